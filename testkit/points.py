"""Points: the places where a worker can be held, their names, and matching.

The grammar, whole::

    pattern := name ['#' ordinal] [' ' phase]
    name    := 'effect:' NAME | 'sql:' VERB ' ' TABLE | 'txn:begin' | 'txn:commit'
             | 'call:' DOTTED.NAME | 'heartbeat' | 'start' | NAME    (a consumer's own point)
    phase   := 'before' | 'after'                                    (before when left out)
    ordinal := 1, 2, …   counts the passes of that name in one incarnation
    '*' anywhere in a name stands for any text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

PHASES: Final = ("before", "after")
_PATTERN: Final = re.compile(
    r"(?P<name>[^#\s](?:[^#]*?[^#\s])?)(?:#(?P<ordinal>[1-9]\d*))?(?:\s+(?P<phase>before|after))?"
)
_SQL: Final = re.compile(r"sql:(?P<verb>\S+)\s+(?P<table>\S.*)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which point a script means. `ordinal` None: whichever comes next."""

    name: str
    ordinal: int | None = None
    phase: str = "before"

    def __str__(self) -> str:
        ordinal = f"#{self.ordinal}" if self.ordinal is not None else ""
        return f"{self.name}{ordinal} {self.phase}"

    def matches(self, name: str, *, ordinal: int, phase: str) -> bool:
        """Whether a pass of `name`, the `ordinal`-th one, in `phase`, is meant."""
        if phase != self.phase or (self.ordinal is not None and ordinal != self.ordinal):
            return False
        return name == self.name or ("*" in self.name and fnmatchcase(name, _only_stars(self.name)))


def parse_pattern(text: str) -> Pattern:
    """Read `NAME[#N] [before|after]`. Raises ValueError that says what is wrong."""
    text = " ".join(text.split())
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a point; write NAME, NAME#2 or 'NAME#2 after'")
    name = match["name"]
    if name.startswith("sql:"):
        sql = _SQL.fullmatch(name)
        if sql is None:
            raise ValueError(f"{text!r} needs a verb and a table, like 'sql:UPDATE jobs before'")
        name = f"sql:{sql['verb'].upper()} {sql['table']}"
    elif name.startswith("txn:") and name not in ("txn:begin", "txn:commit", "txn:*"):
        raise ValueError(f"{text!r}: there are txn:begin and txn:commit")
    elif name in ("effect:", "call:"):
        raise ValueError(f"{text!r} needs a name after the colon")
    ordinal = int(match["ordinal"]) if match["ordinal"] else None
    return Pattern(name, ordinal, match["phase"] or "before")


def _only_stars(name: str) -> str:
    """A shell pattern in which only `*` is special."""
    return re.sub(r"([?\[])", r"[\1]", name)
