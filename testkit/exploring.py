"""The part of an exploration that needs no Hypothesis: perform, see what is possible, judge.

`explore.Races` chooses what to perform; here it is done on an open stage, and written down as the
script that came of it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from . import script as acts
from .confirming import Judged, play_and_judge
from .errors import TOLD_IN_WORDS, NeverReached, StageError, Unsettled
from .families import PointMap
from .found import Tally, parse_actions, rewritten
from .history import History
from .judge import judge
from .lane import Lane, LaneOptions
from .points import Pattern, parse_pattern
from .possible import LABELS, Standing, hot, position, standings, targets
from .script import Action, Script
from .script_text import format_action
from .shrinking import shrink
from .stage import Stage
from .subject import Subject
from .sweep import draw_map
from .verdict import Finding, Verdict

__tracebackhide__ = TOLD_IN_WORDS

#: So many choices of a point in ten are made among those where windows open.
_HOT_IN_TEN = 7


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
    _kept: ClassVar[dict[type, Shared]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._shared = shared = self._share()
        self.actions: list[Action] = []
        self._texts: list[str] = []
        self.states: dict[str, str] = {}
        self._locked = self._cancelled = False
        self._submitted_again = self._submitted_another = False
        self._expired_last = False
        self._claims = frozenset(shared.lane.declaration.capabilities)
        self._effects = bool(shared.points.effects)
        self._bears_skew_ms = shared.lane.declaration.bears_skew_ms
        self.stage: Stage = shared.lane.open_stage(name="explored")

    @classmethod
    def _share(cls) -> Shared:
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
    def tally(cls) -> Tally:
        """What was done so far."""
        return cls._share().tally

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

    def sleep_one_lease(self, worker: str) -> None:
        """A worker is stopped for exactly one lease; no timer of its fires meanwhile."""
        self.perform(acts.Stop(worker))
        self.perform(acts.Advance(self._shared.lane.declaration.lease_ttl_ms))
        self.perform(acts.Cont(worker))

    def _come(self, *, twin_of: str = "") -> str:
        label = self._free_label()
        assert label is not None
        self.perform(acts.Duplicate(twin_of, label) if twin_of else acts.Spawn(label))
        return label

    def _free_label(self) -> str | None:
        used = self.states.keys()
        free = [label for label in LABELS[: self.most_workers] if label not in used]
        return free[0] if free else None

    def finished(self) -> Judged:
        """Heal, drain, judge."""
        try:
            self.perform(acts.Heal())
            self.perform(acts.Drain())
        finally:
            history = self.stage.close()
        assert history is not None
        script = Script(tuple(self.actions))
        history = rewritten(history, script, self._texts)
        verdict = judge(history)
        added = tuple(self.also(history, verdict))
        if added:
            verdict = replace(verdict, findings=(*verdict.findings, *added))
        return Judged(script, history, verdict)


def smallest(lane: Lane, judged: Judged) -> Judged:
    """The fewest deviations that break the same invariant, played and judged."""
    first = judged.faults[0]
    broken = f"{first.invariant} {first.title}"

    def fails(script: Script) -> bool:
        tried = play_and_judge(lane, script, name="shrinking")
        return tried.error is None and broken in tried.kinds

    script, _trials = shrink(judged.script, fails)
    return play_and_judge(lane, script, name="shrunk")


def _open(machine: type[Explorer]) -> Lane:
    options = machine.lane_options
    if options is None:
        folder = Path(tempfile.mkdtemp(prefix="leasecheck-explored-"))
        options = LaneOptions(folder=folder, number=os.getpid())
    subject: Subject | type[Subject] | str = machine.subject
    return Lane(subject, options=options)
