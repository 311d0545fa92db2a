"""What can be done next on a stage, from where its workers are: so that few steps are wasted.

Pure: reads the words of `processes.WorkerProcess.state`, which every action is answered with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .families import PointMap
from .history import Acted, Blind, Event, History, Noted, Settled
from .points import Pattern, parse_pattern

_OVER: Final = ("exit ", "signal ")
#: Labels in the order in which they are spawned.
LABELS: Final = ("A", "B", "C", "D", "E", "F", "G", "H")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one worker is."""

    label: str
    state: str

    @property
    def over(self) -> bool:
        """Whether this incarnation has ended."""
        return self.state.startswith(_OVER)

    @property
    def stopped(self) -> bool:
        """Whether it got SIGSTOP and no SIGCONT since."""
        return self.state.endswith("stopped")

    @property
    def returned(self) -> bool:
        """Whether its job came back and it has nothing more to do by itself."""
        return self.state == "returned"

    @property
    def movable(self) -> bool:
        """Whether `run` and `until` do anything for it."""
        if self.over or self.stopped:
            return False
        return any(word in self.state for word in ("held at", "returned", "lock"))

    @property
    def held(self) -> bool:
        """Whether it stands at a point, and would go on."""
        return self.movable and "held at" in self.state

    @property
    def busy(self) -> bool:
        """Whether a signal would meet it in the middle of something."""
        return not (self.over or self.stopped or self.returned)

    @property
    def working(self) -> bool:
        """Whether it is in the middle of something, beyond its start."""
        return self.busy and self.state != "held at its start"

    @property
    def timed(self) -> bool:
        """Whether a timer of its can fire."""
        return not (self.over or self.stopped) and " s more" in self.state

    @property
    def at_provider(self) -> bool:
        """Whether it waits for a response that the network holds back."""
        return not self.over and "waits for the provider" in self.state


def standings(states: Mapping[str, str]) -> list[Standing]:
    """The workers on a stage, in the order in which they came; operators are none."""
    return [Standing(label, state) for label, state in states.items() if label in LABELS]


def targets(points: PointMap, *, danger: str) -> tuple[Pattern, ...]:
    """Where a worker may be told to go, without ordinals, the most dangerous first.

    What shrinks goes to the front: an effect is a simpler story than a SELECT.
    """
    seen = dict.fromkeys(Pattern(one.name, None, one.phase) for one in points.points)
    dangerous = parse_pattern(danger)

    def rank(point: Pattern) -> int:
        if dangerous.matches(point.name, ordinal=1, phase=point.phase):
            return 0
        if point.name.startswith("effect:"):
            return 1
        if point.name.startswith("txn:"):
            return 2 if (point.name, point.phase) != ("txn:begin", "after") else 5
        if not point.name.startswith("sql:"):
            return 3
        return 5 if point.name.startswith("sql:SELECT") == (point.phase == "before") else 4

    return tuple(sorted(seen, key=rank))


def hot(points: PointMap) -> tuple[Pattern, ...]:
    """Where most windows open, with ordinals: before each transaction, around what isn't SQL."""
    return tuple(
        one
        for one in points.points
        if (one.name, one.phase) == ("txn:begin", "before")
        or not one.name.startswith(("sql:", "txn:"))
    )


def position(state: str, points: Sequence[Pattern]) -> int:
    """How many points of the map a worker that is held has behind it; 0 when it can't be said."""
    for at, point in enumerate(points, start=1):
        if f"held at {point.name}#{point.ordinal} {point.phase}" in state:
            return at
    return 0


def steps_of(history: History) -> tuple[int, int]:
    """How many actions a script had, and how many of them nothing came of."""
    total = wasted = 0
    something = True
    for event in (*history.events, Acted(0, 0, "")):
        if isinstance(event, Acted):
            wasted += not something
            total += 1
            something = event.text in ("heal", "drain", "unlock") or _is_arming(event)
        elif not isinstance(event, Settled | Noted | Blind):
            something = True
    return total - 1, wasted


def _is_arming(event: Event) -> bool:
    """Whether an action shows only in what comes later."""
    return isinstance(event, Acted) and event.text.startswith(("hold ", "provider ", "skew "))
