"""Bounded exhaustive search: every interleaving of two workers with few preemptions.

A *move* takes a worker from one scheduling point (before a transaction, before an effect) to its
next. A *preemption* leaves a worker that could have gone on. Most races need no more than two
(Musuvathi and Qadeer, CHESS, 2007), so bounds 0, 1 and 2 are searched in turn, each to its end.
Two moves of different workers that touch no common table, and no effect both, commute: when a
preempted worker's next move commutes with all that its rival did in between, going back to it is
the order that was tried already, and is cut short. Where a budget ends the search first, random
priorities take over (Burckhardt et al., PCT, 2010), and the verdict says so: an unfinished search
never reads as a finished one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final

from . import script as acts
from .confirming import Judged
from .errors import StageError, Unsettled
from .families import BEGIN, END
from .found import Tally
from .history import EffectAsked, History, Passed
from .judge import judge
from .lane import Lane
from .points import parse_pattern
from .possible import Standing
from .script import Action, Script
from .stage import Stage

WORKERS: Final = ("A", "B")
#: Where a worker may be preempted.
POINTS: Final = tuple(map(parse_pattern, ("txn:begin before", "effect:* before")))
MOST_PREEMPTIONS: Final = 2
#: A worker that is still not done after so many moves is let go.
_MOST_MOVES: Final = 200
_DEPTH: Final = 3


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one move touched: tables read and written, and whether it asked for an effect."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    effect: bool = False

    def commutes(self, other: Footprint) -> bool:
        """Whether the two moves may be swapped."""
        if self.effect and other.effect:
            return False
        mine, theirs = self.reads | self.writes, other.reads | other.writes
        return not (self.writes & theirs or other.writes & mine)


@dataclass(frozen=True, slots=True)
class Searched:
    """What was searched. `exhausted` is the highest bound searched to its end, None for none.

    `cut` were cut short as equivalent to one that was played; `random` were played with random
    priorities after the budget; `left` were known and not played. `tally` is what came about.
    """

    exhausted: int | None
    schedules: int
    cut: int
    random: int
    left: int
    tally: Tally
    found: Judged | None = None

    @property
    def finished(self) -> bool:
        """Whether every interleaving within the bound was tried."""
        return self.exhausted == MOST_PREEMPTIONS and not self.left

    def __str__(self) -> str:
        told = f"{self.schedules} schedules, {self.cut} more cut short as equivalent"
        if self.finished:
            return f"exhausted up to {MOST_PREEMPTIONS} preemptions: {told}"
        bound = "no bound" if self.exhausted is None else f"up to {self.exhausted} preemptions"
        unfinished = (
            f"NOT exhausted ({bound} was): {told}, at least {self.left} left,"
            f" {self.random} with random priorities"
        )
        return unfinished if self.found is None else f"stopped at a failure; {unfinished}"


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a schedule leaves one that was played: its last move preempts `sleeper`.

    `sleeping` is what the move touched that was preempted; None when nothing is known of it.
    """

    moves: tuple[str, ...] = ()
    sleeper: str = ""
    sleeping: Footprint | None = None


@dataclass(slots=True)
class Run:
    """One schedule as it was played: who moved, who else could have, what each move touched.

    `asleep`: at each move, who would only have gone on with what commutes. `cut`: it was ended as
    equivalent to one that was played.
    """

    moves: list[str] = field(default_factory=list)
    enabled: list[frozenset[str]] = field(default_factory=list)
    prints: list[Footprint] = field(default_factory=list)
    asleep: list[str] = field(default_factory=list)
    cut: bool = False


def search(
    lane: Lane,
    *,
    expiring: bool,
    budget: int,
    seed: int = 0,
    told: Callable[[int, int], None] = lambda played, left: None,
) -> Searched:
    """Search all interleavings of two workers on one run; stops at the first failure.

    `expiring`: at the first preemption every lease expires. `budget` bounds the schedules that are
    played before random priorities take over for a tenth as many. Raises `LaneDied`, and
    `StageError` where two workers can't even begin, or one comes to no rest.
    """
    waiting: list[deque[Branch]] = [deque([Branch()]), deque(), deque()]
    tally = Tally()
    played = cut = 0
    exhausted: int | None = None
    for bound, queue in enumerate(waiting):
        while queue:
            if played >= budget:
                left = sum(map(len, waiting))
                at_random = _random(lane, budget // 10, seed=seed, expiring=expiring, tally=tally)
                return Searched(exhausted, played, cut, at_random[1], left, tally, at_random[0])
            branch = queue.popleft()
            run, judged = _play(lane, branch, expiring=expiring)
            cut += run.cut
            played += not run.cut
            told(played, sum(map(len, waiting)))
            if judged is not None:
                tally.count(judged)
                if judged.faults:
                    left = sum(map(len, waiting))
                    return Searched(exhausted, played, cut, 0, left, tally, judged)
            for longer in alternatives(run, since=len(branch.moves), cutting=not expiring):
                count = preemptions(longer.moves, run.enabled)
                if count <= MOST_PREEMPTIONS:
                    waiting[max(count, bound)].append(longer)
        exhausted = bound
    return Searched(exhausted, played, cut, 0, 0, tally)


def alternatives(run: Run, *, since: int, cutting: bool) -> list[Branch]:
    """At each place from `since` on, the other worker instead.

    Left out is one who is asleep there: the order in which it went first was played. `cutting`
    says that orders may be told apart by footprints alone; an expiry in between forbids that.
    """
    found = []
    for at in range(since, len(run.moves)):
        mover = run.moves[at]
        for other in sorted(run.enabled[at] - {mover, run.asleep[at]}):
            preempts = cutting and at > 0 and run.moves[at - 1] == mover
            sleeper, sleeping = (mover, run.prints[at]) if preempts else ("", None)
            found.append(Branch((*run.moves[:at], other), sleeper, sleeping))
    return found


def preemptions(moves: tuple[str, ...], enabled: list[frozenset[str]]) -> int:
    """How often a worker was left that could have gone on."""
    return sum(
        before != after and before in enabled[at]
        for at, (before, after) in enumerate(pairwise(moves), start=1)
    )


def _play(
    lane: Lane,
    branch: Branch,
    *,
    expiring: bool,
    choose: Callable[[frozenset[str], str], str] | None = None,
) -> tuple[Run, Judged | None]:
    """Follow a branch, then go on without preemption (or as `choose` says), to the end."""
    run, prefix = Run(), branch.moves
    stage = lane.open_stage(name="interleaved")
    history = None
    try:
        _begin(stage)  # a stage that can't begin would prove nothing
        current, seen, expired = "A", 0, not expiring
        sleeping: Footprint | None = None
        while len(run.moves) < _MOST_MOVES and (able := _enabled(stage)):
            at = len(run.moves)
            if at < len(prefix) and prefix[at] in able:
                mover = prefix[at]
            elif choose is not None:
                mover = choose(able, current)
            else:
                mover = current if current in able else min(able)
            if mover != current and current in able and not expired and run.moves:
                stage.expire()
                expired = True
            if at == len(prefix) - 1:
                sleeping = branch.sleeping
            if sleeping is not None and mover == branch.sleeper:
                run.cut = True  # it comes back, and nothing in between had to do with its move
                break
            try:
                stage.do(acts.Run(mover))
            except Unsettled:
                raise
            except StageError:
                break  # what can't be done ends the schedule; what happened is judged
            history = stage.history()
            touched = footprint(history, since=seen)
            seen = len(history.events)
            run.moves.append(mover)
            run.enabled.append(able)
            run.prints.append(touched)
            run.asleep.append(branch.sleeper if sleeping is not None else "")
            if sleeping is not None and not touched.commutes(sleeping):
                sleeping = None
            current = mover
        if not run.cut:
            for action in END:
                stage.do(action)
    finally:
        history = stage.close()
    if run.cut or history is None:
        return run, None
    script = Script(tuple(stage.script.actions))
    return run, Judged(script, history, judge(history))


def _begin(stage: Stage) -> None:
    actions: list[Action] = [*BEGIN, acts.Spawn("B")]
    actions += [acts.Hold(worker, point) for worker in WORKERS for point in POINTS]
    for action in actions:
        stage.do(action)


def _enabled(stage: Stage) -> frozenset[str]:
    """Who can move: held at a point. Who waits for the lock can once its holder went on."""
    able = {
        label
        for label, state in stage.states.items()
        if label in WORKERS and "held at" in state and not Standing(label, state).over
    }
    if not able:
        able = {
            label
            for label, state in stage.states.items()
            if label in WORKERS and "waits for the write lock" in state
        }
    return frozenset(able)


def footprint(history: History, *, since: int) -> Footprint:
    """What the events after the first `since` touched."""
    reads: set[str] = set()
    writes: set[str] = set()
    effect = False
    for event in history.events[since:]:
        if isinstance(event, EffectAsked):
            effect = True
        if isinstance(event, Passed) and event.point.startswith("sql:"):
            verb, _, table = event.point.removeprefix("sql:").partition(" ")
            (reads if verb == "SELECT" else writes).add(table)
    return Footprint(frozenset(reads), frozenset(writes), effect)


def _random(
    lane: Lane, count: int, *, seed: int, expiring: bool, tally: Tally
) -> tuple[Judged | None, int]:
    """Random priorities that change at few random places; at least one schedule."""
    random, count = Random(seed), max(1, count)
    for number in range(1, count + 1):
        favourite = random.choice(WORKERS)
        changes = {random.randrange(40) for _ in range(_DEPTH - 1)}
        step = 0

        def choose(able: frozenset[str], _current: str) -> str:
            nonlocal favourite, step
            if step in changes:  # noqa: B023  # called within this round only
                favourite = "B" if favourite == "A" else "A"
            step += 1
            return favourite if favourite in able else min(able)

        _run, judged = _play(lane, Branch(), expiring=expiring, choose=choose)
        if judged is not None:
            tally.count(judged)
            if judged.faults:
                return judged, number
    return None, count
