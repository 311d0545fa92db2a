"""Whether two histories tell the same: what replay and determinism are checked by.

Process ids differ from run to run and mean nothing; everything else that is recorded must repeat.
On the wall clock the moments differ too, and are left out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import zip_longest
from typing import Final

from .history import ClockMoved, ClockRead, Event, History

#: Fields that no two runs share.
_NEVER: Final = frozenset({"pid"})
#: Fields that are moments of the stage's clock.
_MOMENTS: Final = frozenset({"at_ns", "value_ns", "to_ns"})


def difference(one: History, other: History) -> str | None:
    """The first thing in which two histories differ, in words; None when they tell the same."""
    wall = "wall" in (one.header.clock, other.header.clock)
    for name in ("subject", "script", "clock", "attribution", "schema", "tables"):
        first, second = getattr(one.header, name), getattr(other.header, name)
        if first != second:
            return f"the headers' {name}: {first!r} and {second!r}"
    for number, (left, right) in enumerate(zip_longest(_told(one, wall), _told(other, wall)), 1):
        if left != right:
            return f"event {number}: {_words(left)} and {_words(right)}"
    return None


_Told = tuple[str, tuple[tuple[str, object], ...]]


def _told(history: History, wall: bool) -> Iterator[_Told]:
    skipped = _NEVER | _MOMENTS if wall else _NEVER
    for event in history.events:
        if wall and isinstance(event, ClockMoved | ClockRead):
            continue
        yield type(event).__name__, _fields(event, skipped)


def _fields(event: Event, skipped: frozenset[str]) -> tuple[tuple[str, object], ...]:
    return tuple(
        (field.name, getattr(event, field.name))
        for field in fields(event)
        if field.name not in skipped
    )


def _words(told: _Told | None) -> str:
    if told is None:
        return "nothing more"
    kind, values = told
    return f"{kind}({', '.join(f'{name}={value!r}' for name, value in values)})"
