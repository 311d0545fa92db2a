"""Whether two histories tell the same: what replay and determinism are checked by.

Process ids differ from run to run and mean nothing; everything else that is recorded must repeat.
On the wall clock the moments differ too, and are left out; where asked, so are ids drawn at random
(`renaming`). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, Final

from .history import ClockMoved, ClockRead, Event, History
from .renaming import Renaming

#: Fields that no two runs share.
_NEVER: Final = frozenset({"pid"})
#: Fields that are moments of the stage's clock.
_MOMENTS: Final = frozenset({"at_ns", "value_ns", "to_ns"})


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two histories differ: at which event (0: in their headers), and in what, in words."""

    event: int
    words: str

    def __str__(self) -> str:
        return f"event {self.event}: {self.words}" if self.event else self.words


def difference(one: History, other: History, *, renamed: bool = False) -> Difference | None:
    """The first thing in which two histories differ; None when they tell the same.

    `renamed`: ids that were drawn at random may differ, each of one standing for one of the other.
    """
    found = _difference(one, other, lambda left, right: left == right)
    return _difference(one, other, Renaming().same) if found and renamed else found


def _difference(
    one: History, other: History, same: Callable[[Any, Any], bool]
) -> Difference | None:
    wall = "wall" in (one.header.clock, other.header.clock)
    for name in ("subject", "script", "clock", "attribution", "schema", "tables"):
        first, second = getattr(one.header, name), getattr(other.header, name)
        if not same(first, second):
            return Difference(0, f"the headers' {name}: {first!r} and {second!r}")
    for left, right in zip_longest(_shared(one, wall=wall), _shared(other, wall=wall)):
        first, second = _told(left, wall=wall), _told(right, wall=wall)
        if not same(first, second):
            at = left or right
            return Difference(at.n if at else 0, f"{_words(first)} and {_words(second)}")
    return None


_Told = tuple[str, tuple[tuple[str, object], ...]]


def _shared(history: History, *, wall: bool) -> Iterator[Event]:
    """The events that another run may be held to."""
    for event in history.events:
        if not (wall and isinstance(event, ClockMoved | ClockRead)):
            yield event


def _told(event: Event | None, *, wall: bool) -> _Told | None:
    if event is None:
        return None
    skipped = _NEVER | _MOMENTS if wall else _NEVER
    told = [
        (field.name, getattr(event, field.name))
        for field in fields(event)
        if field.name not in skipped
    ]
    return type(event).__name__, tuple(told)


def _words(told: _Told | None) -> str:
    if told is None:
        return "nothing more"
    kind, values = told
    return f"{kind}({', '.join(f'{name}={value!r}' for name, value in values)})"
