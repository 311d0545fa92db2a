"""Which runs a statement names, by an id or a row's key in its text; pure.

Every statement of a worker with a past is asked about every run that anybody held, which in a soak
are a thousand. So each run's clues are filed under the word of theirs that the fewest others have,
and only runs whose word a statement has are looked at. What is found is the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from .authors import names_row, names_run
from .history import Key, Row, Statement

#: Rows by table (in lower case) and run, and by their keys.
RowsOfRuns = Mapping[tuple[str, str], Mapping[Key, Row]]
_WORD: Final = re.compile(r"\w+")


class Naming:
    """Which of these runs statements name."""

    def __init__(self, runs: Collection[str], rows: RowsOfRuns) -> None:
        self._rows: Final = rows
        self._filed: Final[dict[str, set[str]]] = {}
        self._last: tuple[Statement | None, frozenset[str]] = (None, frozenset())
        clues = [*_clues(runs, rows)]
        counts = Counter(word for _run, words in clues for word in words)
        for run_id, words in clues:
            rarest = min(words, key=lambda word: (counts[word], word), default="")
            self._filed.setdefault(rarest, set()).add(run_id)

    def named_by(self, statement: Statement) -> frozenset[str]:
        """The runs that a statement names, by their ids or by the keys of their rows."""
        last, named = self._last
        if last is not statement:
            maybe = set(self._filed.get("", ()))
            for word in _words(statement.sql):
                maybe.update(self._filed.get(word, ()))
            named = frozenset(run for run in maybe if self._names(statement, run))
            self._last = (statement, named)
        return named

    def _names(self, statement: Statement, run_id: str) -> bool:
        if names_run(statement, run_id):
            return True
        rows = self._rows.get((statement.table.lower(), run_id), {})
        return any(names_row(statement.sql, key, row) for key, row in rows.items())


def _clues(runs: Collection[str], rows: RowsOfRuns) -> Iterator[tuple[str, frozenset[str]]]:
    """Each run with the words that a statement has all of when it names it in one of the ways."""
    for run_id in runs:
        yield run_id, _words(run_id)
    for (_table, run_id), keyed in rows.items():
        for key in keyed:
            yield run_id, frozenset(word for value in key for word in _words(str(value)))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
