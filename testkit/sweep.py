"""Every point times every fault: draw a subject's map, and play the variations of it.

The map is what one undisturbed worker passes, and what a recovery passes after a kill. `families`
makes scripts of it; here they are played, and what was covered is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from . import script as acts
from .errors import TOLD_IN_WORDS, LaneDied, LeasecheckError, NeverReached, StageError
from .families import BEGIN, END, PointMap, Recovery, Variation
from .history import EffectAsked, History, Passed
from .judge import judge
from .lane import Played
from .points import Pattern, parse_pattern
from .script import Script
from .subject import Declaration
from .verdict import Verdict

__tracebackhide__ = TOLD_IN_WORDS

#: Recoveries are recorded from kills at so many points.
MOST_RECOVERIES: Final = 4


class Plays(Protocol):
    """The part of a lane that a sweep needs."""

    @property
    def declaration(self) -> Declaration: ...

    def play(self, script: Script, *, name: str) -> Played: ...


class MapNotDrawn(LeasecheckError):
    """The undisturbed run of a subject could not be played to its end: there is no map."""

    def __init__(self, error: LeasecheckError) -> None:
        #: What went wrong.
        self.error: Final = error
        super().__init__(f"the undisturbed run was not played to its end: {error}")


def draw_map(lane: Plays, *, danger: str = "effect:* before") -> PointMap:
    """Record what one worker passes when nothing goes wrong, and what recoveries do.

    `danger` is the subject's: where its worker is killed first, to see a recovery. A map without
    points is a map: a subject that has none can't be swept. Raises `MapNotDrawn`.
    """
    plain = _history(lane, Script((*BEGIN, acts.Run("A"), *END)), "map")
    points = passed_by(plain, "A#1")
    kills = _worth_a_recovery(points, danger=parse_pattern(danger))
    recoveries, holding = [], None
    for number, killed_at in enumerate(kills):
        actions = (*BEGIN, acts.Until("A", killed_at), acts.Kill("A"), acts.Expire(),
                   acts.Spawn("B"), acts.Run("B"), *END)  # fmt: skip
        try:
            history = _history(lane, Script(actions), f"map-recovery-{number}")
        except MapNotDrawn as error:
            if isinstance(error.error, LaneDied):
                raise
            continue  # what can't be played here is told by the variations themselves
        recoveries.append(Recovery(killed_at, passed_by(history, "B#1")))
        holding = holding or _where_it_holds(history, "B#1")
    return PointMap(points, _provider_effects(plain), holding, tuple(recoveries))


def passed_by(history: History, who: str) -> tuple[Pattern, ...]:
    """What an incarnation passed, in order, without its start."""
    return tuple(
        Pattern(event.point, event.ordinal, event.phase)
        for event in history.events
        if isinstance(event, Passed) and event.who == who and event.point != "start"
    )


def _history(lane: Plays, script: Script, name: str) -> History:
    try:
        played = lane.play(script, name=name)
    except LeasecheckError as error:
        raise MapNotDrawn(error) from error
    if played.error is not None:
        raise MapNotDrawn(played.error)
    return played.history


def _worth_a_recovery(points: Iterable[Pattern], *, danger: Pattern) -> list[Pattern]:
    """Around effects, where an outcome is unknown; else wherever the subject sees danger."""
    points = tuple(points)
    chosen = [point for point in points if point.name.startswith("effect:")]
    chosen = chosen or [
        point
        for point in points
        if danger.matches(point.name, ordinal=point.ordinal or 0, phase=point.phase)
    ]
    chosen = chosen or [point for point in points if point.name == "txn:commit"][2:4]
    return chosen[:MOST_RECOVERIES]


def _provider_effects(history: History) -> tuple[Pattern, ...]:
    """Requests that the stage's provider may answer badly."""
    counted: dict[str, int] = {}
    found = []
    for event in history.events:
        if isinstance(event, EffectAsked) and event.who == "A#1":
            counted[event.name] = counted.get(event.name, 0) + 1
            if event.store == "provider":
                found.append(Pattern(f"effect:{event.name}", counted[event.name]))
    return tuple(found)


def _where_it_holds(history: History, who: str) -> Pattern | None:
    """The end of the commit by which a worker took a lease; None when none was seen."""
    granted = next(
        (act.n for act in judge(history).acts if act.who == who and act.kind == "acquire"), None
    )
    if granted is None:
        return None
    return next(
        (
            Pattern(event.point, event.ordinal, event.phase)
            for event in history.events
            if isinstance(event, Passed)
            and event.n > granted
            and event.who == who
            and (event.point, event.phase) == ("txn:commit", "after")
        ),
        None,
    )


# -- playing them ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Swept:
    """What came of one variation.

    `outcome`: `fail` for a fault or an error; `unreached` when its point was not reached again;
    `harmless` when the danger never came about; `pass`.
    """

    variation: Variation
    outcome: str
    history: History
    verdict: Verdict | None
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was tried: points times faults, and what came to nothing."""

    scripts: int = 0
    points: int = 0
    families: int = 0
    unreached: int = 0
    harmless: int = 0
    failed: int = 0

    def __str__(self) -> str:
        told = f"{_many(self.scripts, 'script')}: {_many(self.points, 'point')} x"
        told += f" {_many(self.families, 'fault')}"
        told += f"; {self.unreached} never reached, {self.harmless} without their danger"
        return told + (f"; {self.failed} FAILED" if self.failed else "")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def play_variation(lane: Plays, variation: Variation) -> Swept:
    """Play and judge one. Raises `LaneDied`."""
    played = lane.play(variation.script, name=variation.name)
    verdict = judge(played.history, requires=(variation.moment,), drained=played.error is None)
    return Swept(
        variation,
        outcome_of(played.error, verdict, moment=variation.moment),
        played.history,
        verdict,
        played.error,
    )


def outcome_of(error: LeasecheckError | None, verdict: Verdict | None, *, moment: str) -> str:
    """`fail`, `unreached`, `harmless` or `pass`; a kit that was blind has seen nothing pass."""
    if verdict is None or verdict.outcome == "fail":
        return "fail"
    if error is not None:
        return "unreached" if isinstance(error, NeverReached) else "fail"
    if [missing for missing in verdict.missing if missing != moment]:
        return "fail"
    return "harmless" if verdict.missing else "pass"


def sweep(
    lane: Plays,
    chosen: Iterable[Variation],
    *,
    progress: Callable[[Coverage], None] = lambda coverage: None,
) -> Iterator[Swept]:
    """Play variations, one after the other, telling the coverage after each."""
    done: list[Swept] = []
    for variation in chosen:
        done.append(play_variation(lane, variation))
        progress(coverage_of((one.variation, one.outcome) for one in done))
        yield done[-1]


def coverage_of(done: Iterable[tuple[Variation, str]]) -> Coverage:
    """The sum over variations and their outcomes."""
    done = tuple(done)
    outcomes = [outcome for _, outcome in done]
    return Coverage(
        scripts=len(done),
        points=len({one.at for one, _ in done}),
        families=len({one.family for one, _ in done}),
        unreached=outcomes.count("unreached"),
        harmless=outcomes.count("harmless"),
        failed=outcomes.count("fail"),
    )
