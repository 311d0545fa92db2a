"""Whether a declaration fits a database, and a plain run of it; all that doesn't is told at once.

A declaration that fits nothing sees nothing, and would call every runtime clean. So a wrong name
is shown beside what the database has, and a plain run must show leases and ends where it says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from . import scratch
from .claims_check import contradictions
from .errors import Problem, SubjectError
from .history import Commit, History, Row
from .run_function import run_function
from .subject import After, Beat, Declaration

#: Columns of every table, by the table's name.
Columns = Mapping[str, Sequence[str]]
_MOST_SHOWN: Final = 5
_MOST_VALUES: Final = 12


def columns_of(schema: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The columns of each table that these CREATE statements make."""
    connection = scratch.empty(schema, at_ns=0)
    try:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"
        ).fetchall()
        return {
            name: tuple(
                row[1] for row in connection.execute(f"PRAGMA table_xinfo({scratch.quoted(name)})")
            )
            for (name,) in names
        }
    finally:
        connection.close()


def check(
    declaration: Declaration,
    schema: Sequence[str] | Columns,
    rows: Mapping[str, Iterable[Row]] | None = None,
) -> None:
    """Raise `SubjectError` with everything in which the declaration is wrong.

    `schema` are the database's CREATE statements, or its tables' columns. `rows` are rows of the
    declared tables, when there are any: they show whether a table's key matches a run.
    """
    columns = schema if isinstance(schema, Mapping) else columns_of(schema)
    found = [*_misnamed(declaration, columns), *contradictions(declaration)]
    if not found:
        found += _unmatched(declaration, {name: list(some) for name, some in (rows or {}).items()})
    if found:
        raise SubjectError(f"the declaration of {declaration.subject}", found)


def check_against(history: History, declaration: Declaration) -> None:
    """Raise `SubjectError` when a stage's database has nothing of a name that is declared.

    Where rows were seen that the schema at the beginning has no place for, workers define tables
    themselves (they migrate), and nothing is said. A history without a schema can't tell.
    """
    if not history.header.schema:
        return
    columns = _columns_once(history.header.schema)
    found = list(_misnamed(declaration, columns))
    if found and not _is_redefined(history, columns):
        raise SubjectError(f"the declaration of {declaration.subject}", found)


def _is_redefined(history: History, columns: Columns) -> bool:
    """Whether a row came in a table, or with a column, that was not there at the beginning."""
    return any(
        not set(row) <= set(columns.get(change.table, ()))
        for event in history.events
        if isinstance(event, Commit)
        for change in event.changes
        for row in (change.old, change.new)
        if row is not None
    )


@lru_cache(maxsize=64)
def _columns_once(schema: tuple[str, ...]) -> Columns:
    """Scripts come in series over one schema."""
    return columns_of(schema)


def of_no_run(history: History, declaration: Declaration) -> tuple[Problem, ...]:
    """Declared tables in which something was written, and none of it belongs to any run.

    Their key is the wrong one, so that nobody's writes there were judged. Rows without any id are
    meant to be nobody's.
    """
    own = _own_columns(declaration)
    keys = dict(_run_keys(declaration))
    keys.pop(declaration.runs.table, None)
    runs = list(history.header.tables.get(declaration.runs.table, {}).values())
    owners: dict[str, set[str]] = {}
    for event in history.events if keys else ():
        for change in event.changes if isinstance(event, Commit) else ():
            rows = [row for row in (change.old, change.new) if row is not None]
            if change.table == declaration.runs.table:
                runs += rows
            elif change.table in keys:
                named = {_run_of(row, keys[change.table]) for row in rows}
                owners.setdefault(change.table, set()).update(one for one in named if one)
    known = {_joined(row, own) for row in runs}
    return tuple(
        Problem(table, f"{keys[table]!r} matches no run: it is {_listed(some)},"
                       f" the runs are {_listed(known)}")
        for table, some in owners.items() if some and not some & known
    )  # fmt: skip


def unexplained(history: History, declaration: Declaration) -> tuple[Problem, ...]:
    """What a plain run (one worker, no faults) did that the declaration does not explain.

    Changes of rows that belong to no run; no lease, or no end, where a run went by.
    """
    tables: scratch.Tables = {name: dict(some) for name, some in history.header.tables.items()}
    runs_table = declaration.runs.table
    known = _ids_of_runs(history, declaration)
    seen: dict[str, list[Row]] = {name: list(some.values()) for name, some in tables.items()}
    strangers: list[Problem] = []
    keys = dict(_run_keys(declaration))
    for event in history.events:
        if not isinstance(event, Commit):
            continue
        for change in event.changes:
            row = change.new or change.old or {}
            seen.setdefault(change.table, []).append(row)
            run = keys.get(change.table)
            if run is None or change.table == runs_table:
                continue
            owner = _run_of(row, run)
            if owner not in known:
                said = f"its {run!r} is {owner!r}" if owner is not None else f"{run!r} is nothing"
                text = f"a change of {change.table!r}, key {change.key!r}, is of no run: {said}"
                strangers.append(Problem(f"event {event.n}", text))
    more = len(strangers) - _MOST_SHOWN
    problems = strangers[:_MOST_SHOWN]
    if more > 0:
        problems.append(Problem("", f"and {more} more changes like these"))
    return (*problems, *_never(declaration, seen))


def _ids_of_runs(history: History, declaration: Declaration) -> set[str]:
    """Every run that ever was: a row of it may come before the run's own."""
    own, table = _own_columns(declaration), declaration.runs.table
    rows = list(history.header.tables.get(table, {}).values())
    for event in history.events:
        for change in event.changes if isinstance(event, Commit) else ():
            if change.table == table:
                rows += [row for row in (change.old, change.new) if row is not None]
    return {_joined(row, own) for row in rows}


def _never(declaration: Declaration, seen: Mapping[str, Sequence[Row]]) -> Iterator[Problem]:
    """What a plain run must have shown at least once: a lease, and an end."""
    runs = declaration.runs
    home = runs.lease.table or runs.table
    if not seen.get(runs.table):
        yield Problem("runs.table", f"no row of {runs.table!r} was ever seen")
        return
    rows = seen.get(home, ())
    for column, values in runs.lease.held.items():
        if not any(row.get(column) in values for row in rows):
            text = f"no row ever had one of {_listed(values)}; seen were {_values(rows, column)}"
            yield Problem(f"runs.lease.held.{column}", text)
    owner = runs.lease.owner
    if owner and not any(row.get(owner) not in (None, "") for row in rows):
        yield Problem("runs.lease.owner", f"no row ever had an owner in {home}.{owner}")
    ends = seen[runs.table]
    if runs.status and runs.terminal and not runs.gone:
        status = runs.status
        if not any(row.get(status) in runs.terminal for row in ends):
            text = f"no run ever became one of {_listed(runs.terminal)}"
            yield Problem("runs.terminal", f"{text}; seen were {_values(ends, status)}")


def _misnamed(declaration: Declaration, columns: Columns) -> Iterator[Problem]:
    """Tables and columns that the database doesn't have."""
    told: set[str] = set()
    for where, table, column in names_of(declaration):
        have = columns.get(table)
        if have is None:
            if table not in told:
                told.add(table)
                near = _nearest(table, columns)
                text = f"there is no table {table!r}{near} The database has {_schema(columns)}"
                yield Problem(where, text)
        elif column and column not in have:
            near = _nearest(column, have)
            text = f"{table!r} has no column {column!r}{near} It is {table}({', '.join(have)})"
            yield Problem(where, text)


def names_of(declaration: Declaration) -> Iterator[tuple[str, str, str]]:
    """Every table and column that is named: where in the declaration, the table, the column."""
    runs = declaration.runs
    yield "runs.table", runs.table, ""
    for column in _own_columns(declaration):
        yield "runs.id", runs.table, column
    if runs.status:
        yield "runs.status", runs.table, runs.status
    if runs.key:
        yield "runs.key", runs.table, runs.key
    yield from _lease_names(declaration)
    for at, writes in enumerate(declaration.writes):
        yield f"writes[{at}].table", writes.table, ""
        if ":" not in writes.run:
            yield f"writes[{at}].run", writes.table, writes.run
    for at, counter in enumerate(declaration.counters):
        yield f"counters[{at}].table", counter.table, ""
        yield f"counters[{at}].column", counter.table, counter.column
        if isinstance(counter.most, str):
            yield f"counters[{at}].most", counter.table, counter.most
        for table, conditions in counter.of.items():
            for column in conditions:
                yield f"counters[{at}].of", table, column
    steps, decisions, effects = (
        declaration.steps, declaration.reconciliations, declaration.effects
    )  # fmt: skip
    if steps is not None:
        yield from _part("steps", steps.table, steps.run, steps.id, steps.status, steps.result)
    if decisions is not None:
        yield from _part(
            "reconciliations",
            decisions.table,
            decisions.run,
            decisions.step,
            decisions.decision,
            decisions.decided_by,
        )
    if effects is not None:
        yield from _part(
            "effects", effects.table, effects.run, (), effects.key, effects.token, effects.name
        )


def _part(
    name: str, table: str, run: str, several: Sequence[str], *single: str | None
) -> Iterator[tuple[str, str, str]]:
    yield f"{name}.table", table, ""
    for column in (run, *several, *single):
        if column and ":" not in column:
            yield name, table, column


def _lease_names(declaration: Declaration) -> Iterator[tuple[str, str, str]]:
    runs, lease = declaration.runs, declaration.runs.lease
    home = lease.table or runs.table
    if lease.table:
        yield "runs.lease.table", lease.table, ""
        for column in (lease.run,) if lease.run else _own_columns(declaration):
            yield "runs.lease.run", lease.table, column
    single = {
        "owner": lease.owner, "token": lease.token, "renewed_at": lease.renewed_at
    }  # fmt: skip
    for field, name in single.items():
        if name:
            yield f"runs.lease.{field}", home, name
    for column in lease.generation:
        yield "runs.lease.generation", home, column
    for column in lease.held:
        yield "runs.lease.held", home, column
    match lease.expires_at:
        case str(column):
            yield "runs.lease.expires_at", home, column
        case After(column, seconds):
            yield "runs.lease.expires_at.column", home, column
            if isinstance(seconds, str):
                yield "runs.lease.expires_at.seconds", home, seconds
        case Beat(table, key, by, column, _):
            yield "runs.lease.expires_at.table", table, ""
            yield "runs.lease.expires_at.key", table, key
            yield "runs.lease.expires_at.by", home, by
            yield "runs.lease.expires_at.column", table, column


def _unmatched(declaration: Declaration, rows: Mapping[str, Sequence[Row]]) -> Iterator[Problem]:
    """Tables whose rows all belong to no run: their key is the wrong one."""
    own = _own_columns(declaration)
    runs = rows.get(declaration.runs.table, ())
    known = {_joined(row, own) for row in runs}
    for table, run in _run_keys(declaration):
        some = rows.get(table, ())
        if table == declaration.runs.table or not some or not known:
            continue
        try:
            owners = [_run_of(row, run) for row in some]
        except SubjectError as error:
            yield from (Problem(table, f"{one.where!r} {one.what}") for one in error.problems)
            continue
        if not known & set(owners):
            text = f"{run!r} matches no run: it is {_listed(owners)}, the runs are {_listed(known)}"
            yield Problem(table, text)


def _run_keys(declaration: Declaration) -> Iterator[tuple[str, str]]:
    lease = declaration.runs.lease
    if lease.table and lease.run:
        yield lease.table, lease.run
    parts = (
        *declaration.writes, declaration.steps, declaration.reconciliations, declaration.effects
    )  # fmt: skip
    for part in parts:
        if part is not None:
            yield part.table, part.run


def _run_of(row: Row, run: str) -> str | None:
    """The id of the run that a row belongs to, by its column or by a function's dotted name."""
    if ":" not in run:
        value = row.get(run)
        return None if value is None else str(value)
    return _run_function(run)(row)


@lru_cache(maxsize=64)
def _run_function(name: str) -> Callable[[Row], str | None]:
    return run_function(name, subject="the declaration")


def _own_columns(declaration: Declaration) -> tuple[str, ...]:
    own = declaration.runs.id
    return (own,) if isinstance(own, str) else tuple(own)


def _joined(row: Row, columns: Sequence[str]) -> str:
    return "/".join(str(row.get(column)) for column in columns)


def _values(rows: Sequence[Row], column: str) -> str:
    return _listed({row.get(column) for row in rows})


def _listed(values: Collection[object]) -> str:
    texts = sorted({repr(value) for value in values})
    more = f" and {len(texts) - _MOST_VALUES} more" if len(texts) > _MOST_VALUES else ""
    return (", ".join(texts[:_MOST_VALUES]) or "none") + more


def _schema(columns: Columns) -> str:
    return ", ".join(f"{table}({', '.join(have)})" for table, have in columns.items()) or "none"


def _nearest(name: str, known: Collection[str]) -> str:
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f"; did you mean {folded[near[0]]!r}?" if near else "."
