"""Values that are the same but for ids drawn at random: each of one stands for one of the other.

A runtime that draws its ids from the operating system (`uuid4`, `secrets`) can't repeat them in a
replay, and does the same all the same. What counts as such an id: eight characters or more, with
letters and digits in it, of the same length on both sides; or as many bytes. What does not: moments
and numbers (a clock or a count that differs is a difference), and an order that follows from the
ids (`ORDER BY id`), which makes a runtime really do something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{8,}")
_LETTER: Final = re.compile(r"[A-Za-z]")
_DIGIT: Final = re.compile(r"[0-9]")
#: `2030-01-01`, `2030-01-01T00`, `20300101T000000Z`.
_MOMENT: Final = re.compile(r"\d{4}-?\d\d-?\d\d(T\d*Z?)?")
_LEAST_BYTES: Final = 8


@dataclass(slots=True)
class Renaming:
    """What stands for what so far, in both directions."""

    _there: dict[Any, Any] = field(default_factory=dict)
    _back: dict[Any, Any] = field(default_factory=dict)

    def same(self, one: Any, other: Any) -> bool:
        """Whether two values tell the same; their ids stand for each other from now on."""
        if type(one) is not type(other):
            return False
        if isinstance(one, str):
            return self._texts(one, other)
        if isinstance(one, bytes):
            return self._names(one, other) if len(one) >= _LEAST_BYTES else one == other
        if isinstance(one, Mapping):
            return self._all(list(one.items()), list(other.items()))
        if isinstance(one, tuple | list):
            return self._all(one, other)
        if is_dataclass(one):
            names = [part.name for part in fields(one)]
            return all(self.same(getattr(one, name), getattr(other, name)) for name in names)
        return bool(one == other)

    def _all(self, one: Any, other: Any) -> bool:
        return len(one) == len(other) and all(map(self.same, one, other))

    def _texts(self, one: str, other: str) -> bool:
        first, second = _TOKEN.findall(one), _TOKEN.findall(other)
        if len(first) != len(second) or _TOKEN.sub("", one) != _TOKEN.sub("", other):
            return False
        return all(map(self._names, first, second))

    def _names(self, one: Any, other: Any) -> bool:
        if one != other and not (_is_drawn(one) and _is_drawn(other) and len(one) == len(other)):
            return False
        return bool(
            self._there.setdefault(one, other) == other and self._back.setdefault(other, one) == one
        )


def _is_drawn(name: str | bytes) -> bool:
    """Whether it may be an id that was drawn."""
    if isinstance(name, bytes):
        return True
    parts = bool(_LETTER.search(name)) and bool(_DIGIT.search(name))
    return parts and not _MOMENT.fullmatch(name)
