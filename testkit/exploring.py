"""The part of an exploration that needs no Hypothesis: perform, see what is possible, judge.

`explore.Races` chooses what to perform; here it is done on an open stage, and written down as the
script that came of it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import textwrap
import types
import unittest
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from . import script as acts
from .concluding import missing_in
from .confirming import Judged, confirm, play_and_judge
from .errors import LeasecheckError, NeverReached, StageError, Unsettled
from .families import PointMap
from .found import (
    FOUND_IN_WORDS,
    Inconclusive,
    Nondeterministic,
    Tally,
    kind_of,
    parse_actions,
    rewritten,
)
from .history import History
from .judge import judge
from .lane import Lane, LaneOptions
from .points import Pattern, parse_pattern
from .possible import LABELS, Standing, hot, position, standings, targets
from .replaying import of_ones_own, on_its_way, own_finding, replayed, smallest
from .script import Action, Script, parse_script
from .script_text import format_action
from .stage import Stage
from .subject import Subject
from .sweep import draw_map
from .verdict import Finding, Verdict

__tracebackhide__ = FOUND_IN_WORDS

#: So many choices of a point in ten are made among those where windows open.
_HOT_IN_TEN = 7
#: What `races` takes for the machine; the rest is for its lane.
_OF_MACHINES = ("most_workers", "confirms", "may_be_harmless")


@dataclass(slots=True)
class Shared:
    """What all examples of one class share."""

    lane: Lane
    points: PointMap
    targets: tuple[Pattern, ...]
    hot: tuple[Pattern, ...]
    danger: Pattern
    tally: Tally = field(default_factory=Tally)
    believed: set[str] = field(default_factory=set)
    #: Whether the search ends with its first failure.
    one_is_enough: bool = False


class Explorer:
    """One example: a stage, what was performed on it, and what may be performed next."""

    subject: ClassVar[Any]
    #: How many workers may be there, and how lanes work (None: the kit's defaults).
    most_workers: ClassVar[int] = 3
    lane_options: ClassVar[LaneOptions | None] = None
    #: An open lane to play on, instead of one of the class's own.
    lane: ClassVar[Lane | None] = None
    #: Whether a failing script is played again before it is believed.
    confirms: ClassVar[bool] = True
    #: Whether a search passes in which no stale attempt was made and no step was interrupted.
    may_be_harmless: ClassVar[bool] = False
    #: Called after each example of any class, as `told_so_far` of its own class is.
    listeners: ClassVar[list[Callable[[Tally], None]]] = []
    _kept: ClassVar[dict[type, Shared]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._shared = shared = self.share()
        self.actions: list[Action] = []
        self._texts: list[str] = []
        self.states: dict[str, str] = {}
        self._locked = self._cancelled = False
        self._submitted_again = self._submitted_another = False
        self._approvals = 0
        self._expired_last = False
        self._claims = frozenset(shared.lane.declaration.capabilities)
        self._effects = bool(shared.points.effects)
        self._bears_skew_ms = shared.lane.declaration.bears_skew_ms
        self.stage: Stage = shared.lane.open_stage(name="explored")

    @classmethod
    def share(cls) -> Shared:
        """The lane and what belongs to it; opened on first use."""
        shared = cls._kept.get(cls)
        if shared is None or not shared.lane.alive:
            tally = shared.tally if shared is not None else Tally()
            lane = cls.lane if cls.lane is not None and cls.lane.alive else _open(cls)
            danger = lane.subject.danger
            points = draw_map(lane, danger=danger)
            shared = Shared(
                lane, points, targets(points, danger=danger), hot(points), parse_pattern(danger),
                tally,
            )  # fmt: skip
            cls._kept[cls] = shared
        return shared

    @classmethod
    def close(cls) -> None:
        """End the lane, if it is the class's own."""
        shared = cls._kept.pop(cls, None)
        if shared is not None and shared.lane is not cls.lane:
            shared.lane.close()

    @classmethod
    def told_so_far(cls, tally: Tally) -> None:
        """Called after each example."""

    @classmethod
    def conclude(cls) -> None:
        """Raise `Inconclusive` where nothing was found, and nothing is proven either."""
        tally = cls.tally()
        why = "" if cls.may_be_harmless else missing_in(tally)
        if why and not cls.share().lane.facts.hooks:
            raise unittest.SkipTest(f"not shown: SQLite's symbols are hidden; {why}")
        if why:
            tally.error = Inconclusive(f"{why}. `may_be_harmless = True` lets it pass")
            raise tally.error
        tally.done = True

    @classmethod
    def tally(cls) -> Tally:
        """What was done so far."""
        return cls.share().tally

    # -- what may be overridden ----------------------------------------------------------------

    def also(self, history: History, verdict: Verdict) -> Iterable[Finding]:
        """Findings of one's own, at the end of each example."""
        return ()

    # -- performing ----------------------------------------------------------------------------

    def perform(self, what: Action | str) -> None:
        """Do an action, or a script's text. What can't be done is no failure, and no part of it."""
        for action in parse_actions(what):
            try:
                self.stage.do(action)
            except NeverReached:
                assert isinstance(action, acts.Until)
                action = acts.Run(action.worker)  # which is what came of it
            except Unsettled:
                raise
            except StageError:
                self._texts.append("")
                continue
            finally:
                self.states = dict(self.stage.states)
            self.actions.append(action)
            self._texts.append(format_action(action))
            self._expired_last = isinstance(action, acts.Expire)

    def must(self, action: Action) -> None:
        """Do an action without which nothing else has a meaning. Raises `StageError`."""
        self.stage.do(action)
        self.states = dict(self.stage.states)
        self.actions.append(action)
        self._texts.append(format_action(action))

    def _all(self) -> list[Standing]:
        return standings(self.states)

    def _some(self, which: str) -> list[str]:
        return [one.label for one in self._all() if getattr(one, which)]

    def _somewhere(self, where: int, worker: str) -> Pattern | None:
        """A point of the map that a worker has before it, most often one where a window opens.

        None when there is none: it has passed them all.
        """
        hot, every = self._shared.hot, self._shared.points.points
        passed = position(self.states.get(worker, ""), every)
        ahead = set(every[passed:])
        among = [one for one in (hot if where % 10 < _HOT_IN_TEN else every) if one in ahead]
        return among[where // 10 % len(among)] if among else None

    def go(self, worker: str, where: Pattern | None) -> None:
        """Let a worker go to a point, or as far as it comes."""
        self.perform(acts.Run(worker) if where is None else acts.Until(worker, where))

    def go_and_expire(self, worker: str, where: int) -> None:
        """A worker goes to a point of the map, and every lease expires."""
        self.go(worker, self._somewhere(where, worker))
        self.perform(acts.Expire())

    def wait_in_a_call(self, worker: str, where: int, *, locked: bool) -> None:
        """A worker is held while time passes, half a lease at a time, and its timers fire.

        `locked`: in the first half somebody else has the write lock.
        """
        self.go(worker, self._somewhere(where, worker))
        half = acts.Advance(self._shared.lane.declaration.lease_ttl_ms // 2)
        first: list[Action] = [acts.Lock(), half, acts.Unlock()] if locked else [half]
        for action in (*first, half, half, half):
            self.perform(action)

    def sleep_until_expiry(self, worker: str, where: int, then: int) -> None:
        """A worker is stopped for exactly one lease, and goes on; no timer of its fires before."""
        points = self._shared.targets
        self.go(worker, self._somewhere(where, worker))
        if worker in self._some("working"):
            self.perform(acts.Stop(worker))
            self.perform(acts.Advance(self._shared.lane.declaration.lease_ttl_ms))
            self.perform(acts.Cont(worker))
            self.go(worker, points[then % len(points)] if points else None)

    def die_and_expire(self, worker: str, where: int) -> None:
        """A worker is killed at a point of the map, and every lease expires."""
        self.go(worker, self._somewhere(where, worker))
        if worker in self._some("busy"):
            self.perform(acts.Kill(worker))
        self.perform(acts.Expire())

    def have_reaped(self) -> None:
        """The janitor goes as far as it comes."""
        if "H" not in self.states:
            self.perform(acts.Spawn("H", job="reap"))
        if "H" in self._some("movable"):
            self.perform(acts.Run("H"))

    def turn_the_lock(self) -> None:
        """Take the write lock, unless somebody waits for it, or let it go."""
        if not self._locked and any("waits for the write lock" in s for s in self.states.values()):
            return
        self.perform(acts.Unlock() if self._locked else acts.Lock())
        self._locked = bool(self.actions) and isinstance(self.actions[-1], acts.Lock)

    def _come(self, *, twin_of: str = "") -> str:
        label = self._free_label()
        assert label is not None
        self.perform(acts.Duplicate(twin_of, label) if twin_of else acts.Spawn(label))
        return label

    def _free_label(self) -> str | None:
        used = self.states.keys()
        free = [label for label in LABELS[: self.most_workers] if label not in used]
        return free[0] if free else None

    def _has_room_for_two(self) -> bool:
        return sum(label not in self.states for label in LABELS[: self.most_workers]) > 1

    def ended(self, teardown: types.FrameType | None) -> Judged | None:
        """Judge an example and count it, in the frame that tears it down.

        None for one that was given up, or interrupted: that is no example.
        """
        error = on_its_way(teardown)
        own = error if error is not None and of_ones_own(error) else None
        if error is not None and own is None and not isinstance(error, LeasecheckError):
            with contextlib.suppress(LeasecheckError):
                self.stage.close()
            return None
        judged = self.finished(own)
        self._shared.tally.count(judged)
        for tell in (self.told_so_far, *self.listeners):
            tell(self._shared.tally)
        return judged

    def finished(self, error: BaseException | None = None) -> Judged:
        """Heal, drain, judge. `error` is what code of one's own raised before."""
        try:
            self.perform(acts.Heal())
            self.perform(acts.Drain())
        finally:
            history = self.stage.close()
        assert history is not None
        script = Script(tuple(self.actions))
        history = rewritten(history, script, self._texts)
        verdict = judge(history)
        added = tuple(self._own_findings(history, verdict, error))
        verdict = replace(verdict, findings=(*verdict.findings, *added))
        if any(one.severity == "fault" for one in added):
            verdict = replace(verdict, outcome="fail")
        return Judged(script, history, verdict, by=type(self).__name__ * self.judges_itself())

    def _own_findings(
        self, history: History, verdict: Verdict, error: BaseException | None
    ) -> Iterable[Finding]:
        last = history.events[-1].n if history.events else 0
        if error is not None:
            yield own_finding(self, error, at=last)
        try:
            yield from self.also(history, verdict)
        except BaseException as raised:
            if not of_ones_own(raised):
                raise
            yield own_finding(self, raised, at=last)

    # -- played again --------------------------------------------------------------------------

    @property
    def _own_invariants(self) -> list[Any]:
        """What is marked with Hypothesis's `invariant`; they look at the open stage."""
        listed: Any = getattr(self, "invariants", ())  # a method, in older versions
        return list(listed() if callable(listed) else listed)

    def judges_itself(self) -> bool:
        """Whether a script must be played on a machine of this class to be judged as it would."""
        own = type(self)
        overrides = own.also is not Explorer.also or own.perform is not Explorer.perform
        return overrides or bool(self._own_invariants)

    def check_own(self) -> None:
        """Check what Hypothesis checks after each rule. Raises what they raise."""
        for one in self._own_invariants:
            if all(condition(self) for condition in one.preconditions):
                one.function(self)

    def play(self, script: Script) -> Judged:
        """Play a script of this class's and judge it as an example is. Raises `LeasecheckError`."""
        if self.judges_itself():
            return replayed(type(self), script)
        return play_and_judge(self._shared.lane, script, name="again")

    @classmethod
    def replay(cls, script: str) -> Judged:
        """Play a script's text, and judge it as an example is. Raises `RaceFound`."""
        kept = cls in cls._kept
        try:
            judged = replayed(cls, parse_script(textwrap.dedent(script)))
        finally:
            if not kept:
                cls.close()
        if judged.faults:
            raise kind_of(judged)(judged)
        return judged

    def found(self, judged: Judged, *, final: bool) -> AssertionError:
        """What is to be raised for a failing example; what is reported in the end is shrunk."""
        shared, tally = self._shared, self._shared.tally
        kinds = "; ".join(sorted(judged.kinds))
        # A script that is the first of its kind to fail, or the final one, is played again.
        if self.confirms and (kinds not in shared.believed or final):
            tally.again += 2
            if parting := confirm(self.play, judged):
                tally.error = Nondeterministic(judged, parting)
                return tally.error
            shared.believed.add(kinds)
        if final:
            judged, plays = smallest(self.play, judged)
            tally.shrinking += plays
        tally.error = kind_of(judged)(judged)
        return tally.error


def _open(machine: type[Explorer]) -> Lane:
    options = machine.lane_options
    if options is None:
        folder = Path(tempfile.mkdtemp(prefix="leasecheck-explored-"))
        options = LaneOptions(folder=folder, number=os.getpid())
    subject: Subject | type[Subject] | str = machine.subject
    return Lane(subject, options=options)


def attributes_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a machine's class from options for it and for its lane."""
    own = {key: value for key, value in options.items() if key in _OF_MACHINES}
    rest = {key: value for key, value in options.items() if key not in own}
    rest.setdefault("folder", Path(tempfile.gettempdir()) / "leasecheck-explored")
    rest.setdefault("number", os.getpid())
    return {"lane_options": LaneOptions(**rest), **own}
