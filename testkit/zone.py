"""Local time, as the machine that recorded a history keeps it; so that all others read it alike.

A subject that stores what `datetime.now().isoformat()` writes stores no zone. A name of one would
ask the reader's machine for the same tables; so a history carries the offsets themselves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final

_SECOND_NS: Final = 1_000_000_000
_WEEK_S: Final = 7 * 86_400
#: How far around the present, and around a stage's, offsets are looked up. Beyond, the nearest is
#: taken.
_BEFORE_S: Final = 53 * _WEEK_S
_AFTER_S: Final = 105 * _WEEK_S
#: Where a stage's virtual clock starts (`clock.START_NS`).
STAGES_S: Final = 1_893_456_000
_1970: Final = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Offset:
    """From `since_s` (seconds since 1970, UTC) on, local time is `east_s` ahead of UTC."""

    since_s: int
    east_s: int


#: Offsets, in order. The first is taken for what lies before it, too.
Zone = tuple[Offset, ...]


def zone_here() -> Zone:
    """How this process keeps local time: from a year ago to two years from now, or after 2030."""
    week = time.time_ns() // _SECOND_NS // _WEEK_S
    return _zone(time.tzname, week)


@lru_cache(maxsize=16)
def _zone(_names: tuple[str, str], week: int) -> Zone:
    """`_names`: a process may move, so what was looked up in another zone is none of this one."""
    present_s = week * _WEEK_S
    first = min(present_s, STAGES_S) - _BEFORE_S
    found = [Offset(first, _east_s(first))]
    for since in range(first, max(present_s, STAGES_S) + _AFTER_S, _WEEK_S):
        until = since + _WEEK_S
        if _east_s(since) != _east_s(until):
            at = _change(since, until)
            found.append(Offset(at, _east_s(at)))
    return tuple(found)


def _east_s(at_s: int) -> int:
    return time.localtime(at_s).tm_gmtoff


def _change(since: int, until: int) -> int:
    """The first second of the new offset, between two moments that have different ones."""
    old = _east_s(since)
    while until - since > 1:
        middle = (since + until) // 2
        since, until = (middle, until) if _east_s(middle) == old else (since, middle)
    return until


def east_s(at_s: int, zone: Sequence[Offset]) -> int:
    """How far local time is ahead of UTC at a moment, in seconds."""
    begun = [one for one in zone if one.since_s <= at_s]
    return (begun[-1] if begun else zone[0]).east_s


def since_1970_s(local: datetime, zone: Sequence[Offset]) -> int:
    """The moment, in whole seconds, that a local time without a zone stands for.

    One that comes twice (clocks were put back) is the first of the two. One that never comes (they
    were put forward) is the moment of the change: all that was written before it is less.
    """
    since = local - _1970
    wall_s = since.days * 86_400 + since.seconds
    for before, after in pairwise(zone):
        if wall_s - before.east_s < after.since_s:
            return wall_s - before.east_s
        if wall_s - after.east_s < after.since_s:
            return after.since_s
    return wall_s - zone[-1].east_s
