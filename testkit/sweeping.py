"""Whether a transaction went by a run's being free: what a poll or a janitor asks, and no holder.

A worker that has lost a run may meet it again as anybody would: its next poll ages what waits,
buries what was tried too often and has expired, clears away what is finished. What tells that from
the loser's own late write is the condition of the statement. Whoever still takes itself for the
holder asks for its token, its name, or for nothing; it never asks that the lease has expired, that
nobody is named, or for a status in which no run is held.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from .authors import condition_of, names_run, names_value
from .history import Statement
from .ownership_state import Claim
from .rows import Reader, View
from .subject import After, Beat, Declaration

_LITERAL: Final = r"(?:'(?:[^']|'')*'|-?\d+(?:\.\d+)?)"
_FOUND: Final = re.compile(_LITERAL)


class Sweeping:
    """Tells transactions that went by a run's being free."""

    def __init__(self, reader: Reader) -> None:
        declaration = reader.declaration
        lease = declaration.runs.lease
        self._owner: Final = lease.owner
        self._token: Final = lease.token
        self._tables: Final = {reader.runs_table.lower(), reader.lease_table.lower()}
        self._free: Final = tuple(_free(declaration))
        self._held: Final[dict[str, Collection[str | int]]] = dict(lease.held)
        runs = declaration.runs
        #: Where an owner alone says what is held: the statuses that held runs were seen in.
        self._seen: Final[set[str | int]] = set()
        if runs.status is not None:
            self._held.setdefault(runs.status, self._seen)
        #: Statuses in which a run is over: who ended it may ask for them, and write.
        self._over: Final = {_text(value) for value in runs.terminal}
        self._status: Final = runs.status

    def note(self, view: View) -> None:
        """A run stands like this."""
        if view.held and isinstance(view.status, str | int):
            self._seen.add(view.status)

    def went_by_free(
        self,
        statements: Sequence[Statement],
        *,
        former: Sequence[Claim],
        others: Iterable[str] = (),
    ) -> bool:
        """Whether all that a transaction changed of a run and its lease, it asked to be free.

        A read that asked counts for the writes that follow it. `former`: the author's own
        tenures of the run; a statement that goes by one of them is no sweep. `others`: its other
        runs; what names one of them, and not this one, is about that.
        """
        looked = wrote = False
        own = former[0].run_id if former else ""
        elsewhere = tuple(run_id for run_id in others if run_id != own)
        for one in statements:
            if one.table.lower() not in self._tables or one.rows == 0:
                continue
            if not names_run(one, own) and any(names_run(one, run_id) for run_id in elsewhere):
                continue
            asks = self._asks(one)
            if one.rows is None:
                looked = looked or asks
            elif self._goes_by(one.sql, former) or not (asks or looked):
                return False
            else:
                wrote = True
        return wrote

    def _goes_by(self, sql: str, claims: Iterable[Claim]) -> bool:
        """Whether a statement compares with what one of these claims held."""
        where = condition_of(sql)
        for claim in claims:
            held = ((self._token, claim.token), (self._owner, claim.owner))
            for column, value in held:
                if column and isinstance(value, int | str) and names_value(where, column, value):
                    return True
        return False

    def _asks(self, statement: Statement) -> bool:
        where = condition_of(statement.sql)
        if any(pattern.search(where) for pattern in self._free):
            return True
        return any(
            self._asks_unheld(where, column, values, clears=statement.verb == "DELETE")
            for column, values in self._held.items()
        )

    def _asks_unheld(
        self, where: str, column: str, values: Collection[str | int], *, clears: bool
    ) -> bool:
        """Whether a condition asks for values of a column under which no row is a lease."""
        held = {_text(value) for value in values}
        if not clears and column == self._status:
            held |= self._over
        name = rf"\b{re.escape(column)}\b[\"`\]]?\s*"
        flags = re.IGNORECASE
        asked = re.findall(rf"{name}(?:==?|IS)\s*({_LITERAL})", where, flags)
        for several in re.findall(rf"{name}IN\s*\(([^()]*)\)", where, flags):
            asked += _FOUND.findall(several)
        return bool(asked) and held.isdisjoint(asked)


def _free(declaration: Declaration) -> Iterable[re.Pattern[str]]:
    """What a condition says that asks for nobody's lease, or for one that is over."""
    lease = declaration.runs.lease
    if lease.owner:
        owner = re.escape(lease.owner)
        yield re.compile(rf"\b{owner}\b[\"`\]]?\s*(?:IS\s+NULL\b|==?\s*'')", re.IGNORECASE)
    form = lease.expires_at
    column = form.column if isinstance(form, After | Beat) else form
    if column:
        name = rf"[\"`\[]?\b{re.escape(column)}\b[\"`\]]?"
        plus = r"[\s)]*(?:[+*-]\s*[\w.]+[\s)]*)?"
        yield re.compile(rf"{name}{plus}<(?!>)", re.IGNORECASE)  # expires < now
        call = r"\s*(?:\w+\(\s*)?(?:\w+\.)?"
        yield re.compile(rf"(?<!<)>=?{call}{name}", re.IGNORECASE)  # now > expires
        yield re.compile(rf"-{call}{name}{plus}>", re.IGNORECASE)  # now - beat > 30


def _text(value: str | int) -> str:
    """A value as a statement has it."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
