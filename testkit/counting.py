"""Counters against those whom they count, after each commit (V8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from .footprints import Miscount
from .history import Commit, Key, Row
from .ownership_state import Run
from .rows import as_token, matches
from .subject import Counter

#: The declared tables as they stand.
Tables = Mapping[str, Mapping[Key, Row]]


class Counting:
    """Finds the commits after which a counter is wrong, once for as long as it stays wrong."""

    def __init__(self, counters: Iterable[Counter]) -> None:
        self._counters: Final = tuple(counters)
        self._wrong: Final[set[tuple[str, str]]] = set()

    def after(self, event: Commit, tables: Tables, runs: Iterable[Run]) -> list[Miscount]:
        """What this commit has made wrong: another number than holders, or out of bounds."""
        found: list[Miscount] = []
        for counter in self._counters:
            rows = list(tables.get(counter.table, {}).values())
            says = sum(as_token(row.get(counter.column)) or 0 for row in rows)
            holders = _holders(counter, tables, runs)
            bounds = [_out_of(counter, row) for row in rows]
            most = next((most for out, most in bounds if out), None)
            wrong = any(out for out, _most in bounds) or (bool(rows) and says != holders)
            key = (counter.table, counter.column)
            if wrong and key not in self._wrong:
                found.append(Miscount(event.n, event.who, *key, says, holders, most))
            (self._wrong.add if wrong else self._wrong.discard)(key)
        return found


def _out_of(counter: Counter, row: Row) -> tuple[bool, int | None]:
    """Whether a row's count is out of its bounds, and its upper bound."""
    value = as_token(row.get(counter.column)) or 0
    most = as_token(row.get(counter.most) if isinstance(counter.most, str) else counter.most)
    return value < 0 or (most is not None and value > most), most


def _holders(counter: Counter, tables: Tables, runs: Iterable[Run]) -> int:
    if not counter.of:
        return sum(run.view.held for run in runs)
    return sum(
        matches(row, conditions)
        for table, conditions in counter.of.items()
        for row in tables.get(table, {}).values()
    )
