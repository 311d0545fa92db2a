"""In the lane: workers race for a stated time while random ones are stopped, continued and killed.

Permitted faults: SIGSTOP and SIGCONT at any instant, SIGKILL followed by a new life under the same
name, and, on the virtual clock, jumps of up to a lease's time. None of a machine's: no torn write,
no lost file. Signals are drawn from a seed, but meet workers wherever they happen to be: a soak
does not replay, its history is judged as it is (TigerBeetle's VOPR is the model for the phases).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from . import processes, script
from .acts import Actor
from .clock import real_monotonic
from .processes import WorkerProcess
from .turnstile import race, settle_race, try_again

#: Real time between two blows, at most.
_PAUSE_MS: Final = 15
_RESTING: Final = ("held", "returned", "lock")


def shake(
    actor: Actor, labels: Sequence[str], *, duration_ms: int, seed: int, lease_ttl_ms: int
) -> dict[str, int]:
    """Let workers race for so long under blows; returns how many of each kind there were.

    Everyone is continued and has come to rest when it returns. Raises `Unsettled`.
    """
    stage = actor.stage
    random = Random(seed)
    counts = {"stops": 0, "kills": 0, "jumps": 0}
    stage.record("acted", f"free {' '.join(labels)}")
    stage.note(f"shaken for {duration_ms} ms of real time with seed {seed}")
    with race(stage, several=len(labels) > 1):
        for label in labels:
            _go(actor.worker(label))
        end = real_monotonic() + duration_ms / 1000
        while real_monotonic() < end:
            pause = real_monotonic() + random.uniform(0, _PAUSE_MS) / 1000
            while (left := pause - real_monotonic()) > 0:
                stage.serve(left * 1000)
            try_again(stage.page, *stage.everyone)
            _blow(actor, random.choice(labels), random, counts, lease_ttl_ms)
        for worker in list(stage.workers.values()):
            if worker.stopped and not worker.ended:
                _wake(actor, worker)
        settle_race(stage, *(one for one in stage.everyone if not one.ended))
    return counts


def _blow(
    actor: Actor, label: str, random: Random, counts: dict[str, int], lease_ttl_ms: int
) -> None:
    stage = actor.stage
    worker = stage.workers[label]
    if worker.ended:
        actor.restart(script.Restart(label))
        _go(stage.workers[label])
    elif worker.stopped:
        _wake(actor, worker)
    elif (chance := random.random()) < 0.4:
        if processes.stop(worker):
            stage.record("signalled", worker.who, "SIGSTOP", "unknown")
            counts["stops"] += 1
        else:
            stage.leave(worker, worker.ended)
    elif chance < 0.55:
        actor.restart(script.Restart(label))
        counts["kills"] += 1
        _go(stage.workers[label])
    elif chance < 0.7 and stage.page.virtual:
        now_ns = stage.now_ns() + random.randrange(1, lease_ttl_ms) * 1_000_000
        stage.record("clock-moved", now_ns, "advance")
        stage.page.set_ns(now_ns)
        counts["jumps"] += 1
        for one in stage.everyone:
            if not one.ended and not one.stopped and one.settled:
                stage.fire_due(one)
    else:
        _go(worker)


def _wake(actor: Actor, worker: WorkerProcess) -> None:
    """Continue it, and don't wait for it."""
    if processes.cont(worker):
        actor.stage.record("signalled", worker.who, "SIGCONT", "unknown")
        _go(worker)
    else:
        actor.stage.leave(worker, worker.ended)


def _go(worker: WorkerProcess) -> None:
    """Whatever of it rests goes on; one that had returned looks for work again."""
    for thread, rest in list(worker.rests.items()):
        if rest.wait in _RESTING:
            worker.answer(thread, "go", armed=worker.holds)
