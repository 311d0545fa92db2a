"""A scratch copy of the subject's database as it stood just before an event, in memory.

It is built from a history alone, so that a statement can be asked again, under other
circumstances, long after the subject's own file is gone; that file is never opened. Tables that
nobody declared are there, but empty. SQLite's own `'now'` and `CURRENT_TIMESTAMP` say the stage's
time. ATTACH is denied, and work without end is cut off: a history may come from a stranger.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Final

from .history import Commit, History, Key, Row, Value
from .zone import Zone, east_s

#: The declared tables' rows at one moment.
Tables = dict[str, dict[Key, Row]]

#: SQLite's functions that know the time, with the arguments that stand before the time.
_TIME_FUNCTIONS: Final = {
    "date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1
}  # fmt: skip
_CURRENT: Final = {
    "current_timestamp": "datetime", "current_date": "date", "current_time": "time"
}  # fmt: skip
_GENERATED: Final = (2, 3)  # `hidden` in table_xinfo: virtual and stored generated columns
_STEPS_A_TICK: Final = 10_000
_MOST_TICKS: Final = 2_000
_LAST_MS: Final = 253_402_300_799_000  # the end of the year 9999


def tables_before(history: History, n: int) -> Tables:
    """The declared tables' rows just before event `n`: the header's and all earlier commits."""
    tables: Tables = {name: dict(rows) for name, rows in history.header.tables.items()}
    for event in history.events:
        if event.n >= n:
            break
        if isinstance(event, Commit):
            apply(tables, event)
    return tables


def apply(tables: Tables, commit: Commit) -> None:
    """Carry one commit's changes out on the tables."""
    for change in commit.changes:
        rows = tables.setdefault(change.table, {})
        if change.new is None:
            rows.pop(change.key, None)
        else:
            rows[change.key] = change.new


def scratch(history: History, n: int) -> sqlite3.Connection:
    """The database as it stood just before event `n`, on an in-memory connection.

    The stage's time is that of event `n`. What this SQLite can't make (a module or a collation
    that it doesn't have) is left out. The connection is in autocommit mode.
    """
    at_ns = next((event.at_ns for event in history.events if event.n >= n), history.header.start_ns)
    connection = empty(history.header.schema, at_ns=at_ns)
    fill(connection, tables_before(history, n))
    add_triggers(connection, history.header.schema)
    return connection


def empty(schema: Iterable[str], *, at_ns: int, zone: Zone = ()) -> sqlite3.Connection:
    """An in-memory database with a schema's tables, indexes and views, but not its triggers.

    `zone` is what SQLite's modifiers `localtime` and `utc` go by; without one, this machine's.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.set_authorizer(_no_files)
    ticks = iter(range(_MOST_TICKS))
    connection.set_progress_handler(lambda: next(ticks, None) is None, _STEPS_A_TICK)
    _set_time(connection, at_ns, zone)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for sql in sorted(schema, key=lambda sql: _kind(sql) != "TABLE"):
        if _kind(sql) != "TRIGGER":
            _try(connection, sql)
    return connection


def fill(connection: sqlite3.Connection, tables: Mapping[str, Mapping[Key, Row]]) -> None:
    """Put rows into their tables, with the rowids that they had."""
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("BEGIN")
    for table, rows in tables.items():
        info = _columns(connection, table)
        for key, row in rows.items():
            _put(connection, table, info, key, row)
    connection.execute("COMMIT")
    connection.execute("PRAGMA ignore_check_constraints = OFF")


def add_triggers(connection: sqlite3.Connection, schema: Iterable[str]) -> None:
    """Add the schema's triggers. Rows are best put in before."""
    for sql in schema:
        if _kind(sql) == "TRIGGER":
            _try(connection, sql)


def put(connection: sqlite3.Connection, table: str, key: Key, row: Row) -> None:
    """Put one row in, in place of whatever has its key; a table that isn't there is left out."""
    _put(connection, table, _columns(connection, table), key, row)


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, int, int]]:
    """Name, place in the primary key (0: none) and kind of every column."""
    info = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    return [(column[1], column[5], column[6]) for column in info]


def _put(
    connection: sqlite3.Connection,
    table: str,
    info: list[tuple[str, int, int]],
    key: Key,
    row: Row,
) -> None:
    stored = {name for name, _, hidden in info if hidden not in _GENERATED}
    values: dict[str, Value] = {name: value for name, value in row.items() if name in stored}
    if not any(place for _, place, _ in info) and len(key) == 1:
        values = {"rowid": key[0], **values}
    if info and values:
        names = ", ".join(map(quoted, values))
        marks = ", ".join(_mark(value) for value in values.values())
        sql = f"INSERT OR REPLACE INTO {quoted(table)} ({names}) VALUES ({marks})"
        _try(connection, sql, tuple(map(_bound, values.values())))


def remove(connection: sqlite3.Connection, table: str, key: Key) -> None:
    """Take the row with this key out."""
    info = sorted(_columns(connection, table), key=lambda column: column[1])
    columns = [name for name, place, _ in info if place]
    where = " AND ".join(
        f"{quoted(name)} IS {_mark(value)}"
        for name, value in zip(columns or ["rowid"], key, strict=False)
    )
    _try(connection, f"DELETE FROM {quoted(table)} WHERE {where}", tuple(map(_bound, key)))


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _mark(value: Value) -> str:
    # Text that isn't UTF-8 can only be bound as bytes.
    return "CAST(? AS TEXT)" if isinstance(value, str) else "?"


def _bound(value: Value) -> Value:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _kind(sql: str) -> str:
    match = re.match(r"\s*CREATE\s+(?:TEMP\w*\s+|UNIQUE\s+)?(\w+)", sql, re.IGNORECASE)
    kind = match[1].upper() if match else ""
    return "TABLE" if kind == "VIRTUAL" else kind


def _try(connection: sqlite3.Connection, sql: str, values: tuple[Value, ...] = ()) -> None:
    """Shadow tables, unknown modules, collations and functions: the copy does without them."""
    try:
        connection.execute(sql, values)
    except (sqlite3.Error, UnicodeError, OverflowError):
        return


def _no_files(action: int, *_names: object) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def _plainly(sql: str, arguments: Sequence[Value]) -> Value:
    """What SQLite's own function says. Closed at once: what is left open warns, from 3.13 on."""
    with closing(sqlite3.connect(":memory:")) as plain:
        value: Value = plain.execute(sql, arguments).fetchone()[0]
        return value


def _set_time(connection: sqlite3.Connection, at_ns: int, zone: Zone) -> None:
    """Override the functions that read a clock; everything else they do is left to SQLite."""
    at_ms = min(max(at_ns // 1_000_000, 0), _LAST_MS)
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    stage = now.strftime("%Y-%m-%d %H:%M:%S.") + f"{now.microsecond // 1000:03}"

    east = east_s(at_ns // 1_000_000_000, zone) if zone else 0
    shifts = {"localtime": f"{east:+} seconds", "utc": f"{-east:+} seconds"} if zone else {}

    def ask(name: str, before: int, *given: Value) -> Value:
        arguments = [shifts.get(one.lower(), one) if isinstance(one, str) else one for one in given]
        first = str(arguments[before]).lower() if len(arguments) > before else "now"
        if len(arguments) <= before:
            arguments.append(stage)
        elif first == "now":
            arguments[before] = stage
        elif first in ("subsec", "subsecond"):  # a modifier in the time's place means now
            arguments.insert(before, stage)
        marks = ", ".join("?" * len(arguments))
        return _plainly(f"SELECT {name}({marks})", arguments)

    for name, before in _TIME_FUNCTIONS.items():

        def answer(*given: Value, name: str = name, before: int = before) -> Value:
            return ask(name, before, *given)

        connection.create_function(name, -1, answer, deterministic=True)
    for name, function in _CURRENT.items():
        said = _plainly(f"SELECT {function}(?)", [stage])
        connection.create_function(name, 0, lambda said=said: said, deterministic=True)
