"""In the lane: what each action of a script does on a live stage."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from . import processes, script
from .clock import real_monotonic
from .convergence import held_expiries_ns, unfinished_runs
from .errors import NeverReached, StageError
from .livestage import LiveStage
from .processes import WorkerProcess, alive
from .script_text import format_action
from .subject import Declaration
from .turnstile import race, settle_race
from .worker import Life

#: How often time may fire a timer within one `advance` before we call it a runaway.
_MOST_TIMERS: Final = 10_000

#: Submits, cancels and approves, each time in a process of its own.
_OPERATOR: Final = "operator"

#: The clock page holds signed 64-bit nanoseconds.
_LATEST_NS: Final = 2**63 - 1


class Actor:
    """Carries out the actions of one script."""

    def __init__(
        self,
        stage: LiveStage,
        *,
        declaration: Declaration,
        start: Callable[[str, Life], WorkerProcess],
        end: Callable[[WorkerProcess, str], None],
        db: str,
        folder: str,
    ) -> None:
        self.stage: Final = stage
        self._declaration: Final = declaration
        self._start: Final = start
        self._end: Final = end
        self._db: Final = db
        self._folder: Final = folder
        self._lives: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._slots = 0
        self._locker: WorkerProcess | None = None

    def perform(self, action: script.Action) -> None:
        """Do one action. Raises `StageError` when it can't be done."""
        self.stage.record("acted", format_action(action))
        _ACTS[type(action)](self, action)

    # -- workers -----------------------------------------------------------------------------

    def _spawn(self, label: str, *, name: str, job: str, argument: str = "") -> WorkerProcess:
        number = self._lives.get(label, 0) + 1
        self._lives[label] = number
        self._names[label] = name
        self._slots += 1
        who = f"{label}#{number}"
        life = Life(
            who=who,
            name=name,
            job=job,
            db=self._db,
            log=os.path.join(self._folder, f"{who}.log"),
            slot=self._slots,
            argument=argument,
        )
        worker = self._start(label, life)
        self.stage.add(worker)
        return worker

    def worker(self, label: str, *, alive: bool = True) -> WorkerProcess:
        """The present incarnation of a label. Raises `StageError` when there is none."""
        worker = self.stage.workers.get(label)
        if worker is None:
            known = ", ".join(self.stage.workers) or "none"
            raise StageError(f"there is no worker {label!r} on this stage; there are: {known}")
        if alive and worker.ended:
            raise StageError(
                f"worker {worker.who!r} is over ({worker.ended}); 'restart {label}' gives it a"
                " new life",
                worker=worker.who,
                log=worker.life.log,
            )
        return worker

    def spawn(self, act: script.Spawn) -> None:
        """A new worker."""
        present = self.stage.workers.get(act.worker)
        if present is not None and not present.ended:
            raise StageError(f"worker {present.who!r} is alive; use 'restart' or 'duplicate'")
        self._spawn(act.worker, name=act.name or act.worker, job=act.job)

    def duplicate(self, act: script.Duplicate) -> None:
        """A second process under the same configured name."""
        original = self.worker(act.worker, alive=False)
        self._spawn(act.twin, name=original.life.name, job=original.life.job)

    def restart(self, act: script.Restart) -> None:
        """A new life under the same configured name."""
        worker = self.worker(act.worker, alive=False)
        if not worker.ended:
            self._kill(worker)
        self._spawn(act.worker, name=worker.life.name, job=worker.life.job)

    def run(self, act: script.Run) -> None:
        """Let it go as far as it comes by itself."""
        self._moving(act.worker)
        self.stage.move(self.worker(act.worker), again=True)

    def until(self, act: script.Until) -> None:
        """Let it go to a point; not getting there is a failure."""
        worker = self._moving(act.worker)
        point = (act.point.name, act.point.ordinal, act.point.phase)
        before = len(worker.passed)
        if not self.stage.move(worker, until=point, again=True):
            raise NeverReached(
                worker.who,
                str(act.point),
                state=processes.how_it_went(worker, self.stage.now_ns()),
                passed=[f"{row[2]}#{row[3]} {row[4]}" for row in worker.passed[before:]],
                log=worker.life.log,
            )

    def _moving(self, label: str) -> WorkerProcess:
        worker = self.worker(label)
        if worker.stopped:
            raise StageError(f"worker {worker.who!r} is stopped; 'cont {label}' first")
        return worker

    def hold(self, act: script.Hold) -> None:
        """Arm a point for good."""
        worker = self.worker(act.worker)
        worker.holds.append((act.point.name, act.point.ordinal, act.point.phase))

    def beat(self, act: script.Beat) -> None:
        """Fire the next timer, now if it is not due, and only timers."""
        worker = self._moving(act.worker)
        timers = worker.timers()
        if not timers:
            raise StageError(
                f"worker {worker.who!r} has no timer: it {worker.state(self.stage.now_ns())}",
                worker=worker.who,
                log=worker.life.log,
            )
        if timers[0][0] > self.stage.now_ns():
            self._set_clock(timers[0][0], "beat")
        while self.stage.fire_due(worker):
            pass

    # -- signals -----------------------------------------------------------------------------

    def stop(self, act: script.Stop) -> None:
        """SIGSTOP."""
        worker = self._moving(act.worker)
        if not processes.stop(worker):
            self.stage.leave(worker, worker.ended)
            raise StageError(f"worker {worker.who!r} died: {worker.ended}", worker=worker.who)
        self.stage.record("signalled", worker.who, "SIGSTOP", self.stage.write_lock())

    def cont(self, act: script.Cont) -> None:
        """SIGCONT; what is held stays held."""
        self._cont(self.worker(act.worker))

    def _cont(self, worker: WorkerProcess) -> None:
        if not worker.stopped:
            raise StageError(f"worker {worker.who!r} is not stopped")
        if not processes.cont(worker):
            self.stage.leave(worker, worker.ended)
            return
        self.stage.record("signalled", worker.who, "SIGCONT", "unknown")
        self.stage.settle(worker)

    def kill(self, act: script.Kill) -> None:
        """SIGKILL."""
        self._kill(self.worker(act.worker))

    def _kill(self, worker: WorkerProcess) -> None:
        lock = self.stage.write_lock()
        how = processes.kill(worker)
        self.stage.record("signalled", worker.who, "SIGKILL", lock)
        self.stage.leave(worker, how)

    # -- time --------------------------------------------------------------------------------

    def _set_clock(self, now_ns: int, why: str) -> None:
        if now_ns > _LATEST_NS:
            raise StageError(
                f"{why}: the time to go to is {now_ns / 1e9:.3g} s after 1970, beyond the stage's"
                " clock, which ends in 2262; does a stored expiry have another unit than declared,"
                " or stand for never?"
            )
        if now_ns > self.stage.now_ns():
            self.stage.record("clock-moved", now_ns, why)
            self.stage.page.set_ns(now_ns)

    def expire(self, act: script.Expire) -> None:
        """Past every stored expiry."""
        expiries = held_expiries_ns(self._declaration, self.stage.tables)
        if not expiries:
            self.stage.note("no lease is held; time passes by one TTL")
            expiries = [self.stage.now_ns() + self._declaration.lease_ttl_ms * 1_000_000]
        if self.stage.page.virtual:
            self._set_clock(max(expiries) + 1_000_000, "expire")
        else:
            self._wait_until_expired()

    def _wait_until_expired(self) -> None:
        """On the wall clock: serve whoever moves, until every stored expiry has passed."""
        deadline = real_monotonic() + 4 * self._declaration.lease_ttl_ms / 1000 + 5
        while True:
            expiries = held_expiries_ns(self._declaration, self.stage.tables)
            left_ns = max(expiries, default=0) + 2_000_000 - self.stage.now_ns()
            if left_ns <= 0:
                break
            if real_monotonic() > deadline:
                raise StageError("a lease is renewed again and again; stop its owner first")
            self.stage.pass_time(min(left_ns / 1e6 + 1, 1000))
        self.stage.record("clock-moved", self.stage.now_ns(), "expire")

    def advance(self, act: script.Advance) -> None:
        """Time passes; timers fire in the order of their deadlines."""
        self._advance(act.duration_ms, "advance")

    def _advance(self, duration_ms: int, why: str) -> None:
        stage = self.stage
        target = stage.now_ns() + duration_ms * 1_000_000
        if not stage.page.virtual:
            stage.record("clock-moved", target, why)
            while (left_ns := target - stage.now_ns()) > 0:
                stage.pass_time(left_ns / 1e6 + 1)
            return
        for _ in range(_MOST_TIMERS):
            due = processes.next_timer(stage.everyone)
            if due is None or due[0] > target:
                self._set_clock(target, why)
                return
            self._set_clock(due[0], why)
            worker, thread = due[1], due[2]
            if thread in worker.rests:  # waits for the write lock: it tries again
                worker.answer(thread, "go", armed=worker.holds)
            else:
                worker.fire(thread, armed=worker.holds)
            stage.settle(worker)
            self._dismiss(worker)
        raise StageError(f"{_MOST_TIMERS} timers fired within one '{why}': a runaway loop?")

    def skew(self, act: script.Skew) -> None:
        """Let a worker's clock run ahead or behind."""
        worker = self.worker(act.worker)
        self.stage.page.set_skew_ns(worker.life.slot, act.skew_ms * 1_000_000)

    # -- operator, database, provider ----------------------------------------------------------

    def operate(self, act: script.Submit | script.Cancel | script.Approve) -> None:
        """The operator's doing, in a process of its own."""
        worker = self._spawn(
            _OPERATOR, name=_OPERATOR, job=type(act).__name__.lower(), argument=act.run_id
        )
        self.stage.move(worker, again=True)
        if worker.ended or processes.error_of(worker):
            how = processes.how_it_went(worker, self.stage.now_ns())
            raise StageError(
                f"the subject's {worker.life.job}() {how}", worker=worker.who, log=worker.life.log
            )
        if not any(r.wait == "lock" for r in worker.rests.values()):
            self._end(worker, "returned")

    def _dismiss(self, worker: WorkerProcess) -> None:
        """An operator who had to wait has got what he came for, or an error: his process ends.

        It would keep what a failed job left open, a transaction with the write lock, say.
        """
        waits = [rest.wait for rest in worker.rests.values()]
        if worker.label == _OPERATOR and not worker.ended and waits == ["returned"]:
            self._end(worker, "returned")

    def lock(self, act: script.Lock) -> None:
        """Somebody else holds the write lock."""
        if self._locker is not None:
            raise StageError("the write lock is held already")
        self._locker = self._spawn("locker", name="locker", job="hold_write_lock")
        self.stage.move(self._locker, until=("locked", None, "before"), again=True)

    def unlock(self, act: script.Unlock) -> None:
        """And lets it go."""
        if self._locker is None:
            raise StageError("nobody holds the write lock; 'lock' comes first")
        locker, self._locker = self._locker, None
        self._end(locker, "returned")

    def provider(self, act: script.Provider) -> None:
        """A fault for the next request, or the arrival of what is delayed."""
        if act.fault == "deliver":
            for worker in self.stage.deliver(act.effect):
                if not worker.stopped:
                    self.stage.move(worker)
        else:
            self.stage.provider.faults.append((act.fault, act.effect))

    # -- many at once --------------------------------------------------------------------------

    def free(self, act: script.Free) -> None:
        """Let them race, until each has come to rest."""
        stage = self.stage
        movers = [self._moving(label) for label in act.workers]
        with race(stage, several=len(movers) > 1):
            for worker in movers:
                for thread, rest in list(worker.rests.items()):
                    if rest.wait in ("held", "returned", "lock"):
                        worker.answer(thread, "go", armed=worker.holds)
            settle_race(stage, *movers)
        for worker in movers:
            stage.record("settled", worker.who, worker.state(stage.now_ns()))

    def heal(self, act: script.Heal) -> None:
        """CONT everyone first, then provider and lock, then everyone goes on to his end."""
        stage = self.stage
        for worker in alive(stage.everyone):
            worker.holds.clear()
            if worker.stopped:
                self._cont(worker)
        stage.provider.faults.clear()
        if self._locker is not None:
            self.unlock(script.Unlock())
        for worker in stage.deliver("*"):
            if not worker.ended:
                stage.move(worker)
        for _round in range(8):
            movable = [
                worker
                for worker in alive(stage.everyone)
                if not worker.settled
                or any(rest.wait in ("held", "lock") for rest in worker.rests.values())
                or (worker.timers() and worker.timers()[0][0] <= stage.now_ns())
            ]
            for worker in movable:
                if not worker.ended:
                    stage.settle(worker)
                    stage.move(worker)
                    self._dismiss(worker)
            if not movable:
                return

    def drain(self, act: script.Drain) -> None:
        """New workers of new names, a TTL at a time, until nothing is left to do."""
        for number in range(1, act.most + 1):
            if not self._unfinished():
                return
            worker = self._spawn(f"drain{number}", name=f"drain{number}", job="work")
            self.stage.move(worker, again=True)
            if not self._unfinished():
                return
            if number < act.most:
                self._advance(self._declaration.lease_ttl_ms + 1, "drain")
        self.stage.note(f"the drain did not converge within {act.most} workers")

    def _unfinished(self) -> tuple[str, ...]:
        now_ns = self.stage.now_ns()
        return unfinished_runs(self._declaration, self.stage.tables, now_ns=now_ns)


_ACTS: Final[dict[type, Callable[[Actor, Any], None]]] = {
    script.Submit: Actor.operate,
    script.Cancel: Actor.operate,
    script.Approve: Actor.operate,
    script.Spawn: Actor.spawn,
    script.Duplicate: Actor.duplicate,
    script.Run: Actor.run,
    script.Until: Actor.until,
    script.Hold: Actor.hold,
    script.Beat: Actor.beat,
    script.Stop: Actor.stop,
    script.Cont: Actor.cont,
    script.Kill: Actor.kill,
    script.Restart: Actor.restart,
    script.Expire: Actor.expire,
    script.Advance: Actor.advance,
    script.Skew: Actor.skew,
    script.Lock: Actor.lock,
    script.Unlock: Actor.unlock,
    script.Provider: Actor.provider,
    script.Free: Actor.free,
    script.Heal: Actor.heal,
    script.Drain: Actor.drain,
}
