"""In what a run differs now from what it was in an earlier tenure, and how to put that back.

Each facet is a set of columns under one name: the lease's owner, its token, its expiry, a status,
or an undeclared column under the column's own name (a version that is compared, say). `refusal`
puts facets back one by one to learn which of them a guard looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .history import Commit, History, Key, Row, Value
from .scratch import Tables, apply
from .subject import After, Beat, Declaration
from .verdict import Attempt

#: A row to put in under its key, or to take out when it is None.
Edit = tuple[str, Key, Row | None]
_Column = tuple[str, str]

_ORDER: Final = ("owner", "token", "generation", "expiry", "status", "key", "row")
_MOST_OTHERS: Final = 12
_MOST_ROWS: Final = 32
#: Ten years, in the unit that a number of that size has as a time.
_DECADE_S: Final = 315_360_000
_UNITS: Final = ((1e17, 10**9), (1e14, 10**6), (1e11, 10**3))
_JULIAN: Final = (2.4e6, 2.6e6)


@dataclass(frozen=True, slots=True)
class Facet:
    """Columns that are put back together. `key` has none: it takes rows away."""

    name: str
    columns: frozenset[_Column] = frozenset()


@dataclass(frozen=True, slots=True)
class _Pair:
    """A row of the run as it is now, and as it was then."""

    table: str
    key: Key
    now: Row | None
    then: Row | None
    moved: bool = False  # paired although the keys differ


@dataclass(frozen=True, slots=True)
class World:
    """One run's rows under a declaration; `table` is the one that the statement is about."""

    declaration: Declaration
    run_id: str
    table: str

    @property
    def lease_table(self) -> str:
        """Where the lease is written."""
        return self.declaration.runs.lease.table or self.declaration.runs.table

    def rows(self, tables: Tables, table: str) -> dict[Key, Row]:
        """The run's rows of a table; all of them where the declaration names no run's column."""
        name = next((known for known in tables if known.casefold() == table.casefold()), table)
        rows = tables.get(name, {})
        columns = self._run_columns(name)
        if not columns:
            return dict(rows)
        return {
            key: row
            for key, row in rows.items()
            if "/".join(str(row.get(column)) for column in columns) == self.run_id
        }

    def of_run(self, tables: Tables) -> Tables:
        """The tables with the run's rows alone, as `rows` finds them."""
        return {table: self.rows(tables, table) for table in tables}

    def _run_columns(self, table: str) -> tuple[str, ...]:
        runs, declaration = self.declaration.runs, self.declaration
        own = (runs.id,) if isinstance(runs.id, str) else runs.id
        if table == runs.table:
            return own
        if table == runs.lease.table:
            return (runs.lease.run,) if runs.lease.run else own
        parts = (
            *declaration.writes,
            declaration.steps,
            declaration.reconciliations,
            declaration.effects,
        )
        named = [part.run for part in parts if part is not None and part.table == table]
        return tuple(run for run in named[:1] if ":" not in run)

    def pairs(self, now: Tables, then: Tables) -> list[_Pair]:
        """The rows that facets are about, now beside then."""
        declaration = self.declaration
        tables = [declaration.runs.table, self.lease_table, self.table]
        tables += [declaration.steps.table] if declaration.steps else []
        tables += [declaration.effects.table] if declaration.effects else []
        pairs: list[_Pair] = []
        for table in dict.fromkeys(name for name in tables if name):
            present, past = self.rows(now, table), self.rows(then, table)
            left = [key for key in present if key not in past]
            for key, row in past.items():
                if key in present:
                    pairs.append(_Pair(table, key, present[key], row))
                elif left and table in (declaration.runs.table, self.lease_table):
                    other = left.pop()
                    pairs.append(_Pair(table, other, present[other], row, moved=True))
                else:
                    pairs.append(_Pair(table, key, None, row))
        expires_at = declaration.runs.lease.expires_at
        if isinstance(expires_at, Beat):
            pairs += self._beats(expires_at, now, then)
        return pairs

    def _beats(self, beat: Beat, now: Tables, then: Tables) -> Iterator[_Pair]:
        """The owners' own rows, where the expiry lies with the owner."""
        owners = [row.get(beat.by) for row in self.rows(then, self.lease_table).values()]
        for key, row in then.get(beat.table, {}).items():
            if row.get(beat.key) in owners:
                yield _Pair(beat.table, key, now.get(beat.table, {}).get(key), row)

    def existence(self, table: str) -> str:
        """What it is called that a row of this table is there at all."""
        lease = self.declaration.runs.lease
        if isinstance(lease.expires_at, Beat) and table == lease.expires_at.table:
            return "expiry"
        if table == self.declaration.runs.table:
            return "status"
        return "owner" if table == lease.table else "row"

    def edits(
        self, put_back: Sequence[Facet], *, now: Tables, then: Tables
    ) -> Iterator[list[Edit]]:
        """Every way of putting these facets back; what is put back may help, never hinder.

        An expiry is put back as it was, and also as one that has not passed yet: a lease that was
        in force had both. A conflicting key may be that of any of the run's rows.
        """
        names = {facet.name for facet in put_back}
        pairs = self.pairs(now, then)
        absent = frozenset(column for columns in _declared(self).values() for column in columns)
        ways = (_as_it_was, _as_written, _not_passed) if "expiry" in names else (_as_it_was,)
        for then_as in ways:
            rows: list[Edit] = []
            for pair in pairs:
                row = _put_back(self, pair, put_back, absent, then_as)
                if row is not None and row != pair.now:
                    rows.append((pair.table, pair.key, row))
            yield rows
            if "key" not in names:
                continue
            conflicts = list(self.rows(now, self.table))
            yield [*((self.table, key, None) for key in conflicts), *rows]
            for key in conflicts[:_MOST_ROWS]:
                yield [*rows, (self.table, key, None)]

    def end_of_lease(self, history: History, attempt: Attempt) -> int:
        """The event that ended the last lease that the attempt's incarnation held on this run."""
        tables: Tables = {name: dict(rows) for name, rows in history.header.tables.items()}
        held: list[tuple[Value, ...]] = []
        ended = attempt.n
        for event in history.events:
            if event.n >= attempt.n:
                break
            if not isinstance(event, Commit):
                continue
            before = self.rows(tables, self.lease_table)
            apply(tables, event)
            after = self.rows(tables, self.lease_table)
            identity = [self._identity(row) for row in after.values() if self._is_held(row)]
            if event.who == attempt.who and identity and after != before:
                held, ended = identity, attempt.n
            elif held and identity != held:
                held, ended = [], event.n
        return ended

    def _identity(self, row: Row) -> tuple[Value, ...]:
        lease = self.declaration.runs.lease
        kept = (lease.owner, lease.token, *lease.generation, *lease.held)
        return tuple(row.get(column) for column in kept if column)

    def _is_held(self, row: Row) -> bool:
        lease = self.declaration.runs.lease
        if lease.held:
            return all(row.get(column) in values for column, values in lease.held.items())
        return row.get(lease.owner or "") not in (None, "")


def facets_of(world: World, *, now: Tables, then: Tables) -> tuple[Facet, ...]:
    """The facets in which now differs from then, in the order in which guards are reported."""
    found = _declared(world)
    taken = {column for columns in found.values() for column in columns}
    differing: dict[str, set[_Column]] = {}
    for pair in world.pairs(now, then):
        if pair.now is None:
            names = [name for name, columns in found.items() if _in(columns, pair.table)]
            for name in (world.existence(pair.table), *names):
                differing.setdefault(name, set())
            continue
        for name, value in (pair.then or {}).items():
            column = (pair.table, name)
            differs = pair.now.get(name) != value
            known = next((facet for facet, columns in found.items() if column in columns), None)
            if known is not None and (differs or known == "expiry"):
                differing.setdefault(known, set())
            elif differs and column not in taken and not pair.moved:
                differing.setdefault(name, set()).add(column)
    for name, columns in found.items():
        if name in differing:
            differing[name] |= columns
    if world.rows(now, world.table):
        differing.setdefault("key", set())
    named = [name for name in _ORDER if name in differing]
    others = sorted(name for name in differing if name not in _ORDER)[:_MOST_OTHERS]
    return tuple(Facet(name, frozenset(differing[name])) for name in (*named, *others))


def _in(columns: set[_Column], table: str) -> bool:
    return any(home == table for home, _ in columns)


def _declared(world: World) -> dict[str, set[_Column]]:
    """The columns that the declaration gives a meaning, each under the first name that it has."""
    declaration, lease = world.declaration, world.declaration.runs.lease
    home = world.lease_table
    expires_at = lease.expires_at
    named: list[tuple[str, str, str | None]] = [
        ("owner", home, lease.owner),
        ("token", home, lease.token),
        *(("generation", home, column) for column in lease.generation),
        ("expiry", home, lease.renewed_at),
        *(("status", home, column) for column in lease.held),
        ("status", declaration.runs.table, declaration.runs.status),
    ]
    if isinstance(expires_at, Beat):
        named.insert(2, ("expiry", expires_at.table, expires_at.column))
    else:
        stored = expires_at.column if isinstance(expires_at, After) else expires_at
        named.insert(2, ("expiry", home, stored))
    if declaration.steps is not None:
        named.append(("status", declaration.steps.table, declaration.steps.status))
    if declaration.effects is not None:
        named.append(("token", declaration.effects.table, declaration.effects.token))
    found: dict[str, set[_Column]] = {}
    taken: set[_Column] = set()
    for name, table, known in named:
        if known and (table, known) not in taken:
            found.setdefault(name, set()).add((table, known))
            taken.add((table, known))
    return found


def _put_back(
    world: World,
    pair: _Pair,
    put_back: Sequence[Facet],
    absent: frozenset[_Column],
    then_as: Callable[[Value], Value],
) -> Row | None:
    """The row with these facets as they were; None when it is not there."""
    then = pair.then or {}
    named = {column: facet.name for facet in put_back for column in facet.columns}

    def value_of(name: str) -> Value:
        value = then.get(name)
        return then_as(value) if named.get((pair.table, name)) == "expiry" else value

    if pair.now is not None:
        back = {name: value_of(name) for name in then if (pair.table, name) in named}
        return {**pair.now, **back}
    if world.existence(pair.table) not in {facet.name for facet in put_back}:
        return None
    # It is there again, but what is left as it is now is nobody's.
    return {
        name: None if (pair.table, name) in absent and (pair.table, name) not in named
        else value_of(name)
        for name in then
    }  # fmt: skip


def _as_it_was(value: Value) -> Value:
    return value


def _as_written(value: Value) -> Value:
    """With the fifteen digits that SQLite writes of a number into a statement's text."""
    return float(f"{value:.15g}") if isinstance(value, float) else value


def _not_passed(value: Value) -> Value:
    """The same kind of time, far ahead."""
    if isinstance(value, str):
        if re.match(r"\d{4}-", value):
            return "9999" + value[4:]
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return str(_not_passed(float(value) if "." in value else int(value)))
        return value
    if not isinstance(value, (int, float)):
        return value
    if _JULIAN[0] < value < _JULIAN[1]:
        return value + _DECADE_S / 86_400
    return value + _DECADE_S * next((unit for least, unit in _UNITS if value > least), 1)
