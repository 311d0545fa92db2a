"""The observer: a process that reads the subject's tables after each commit.

It says what one commit changed by comparing whole declared tables before and after, with a
connection of its own, while the committing worker waits: attribution by exclusion. Nothing of the
subject's is touched: no trigger, no table, no setting. What it can't see: changes that a commit
undoes itself, and tables that nobody declared.
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
from typing import Any, Final

from . import guard, wire

#: A changed row on the wire: table, key, the row before (or None), the row after (or None).
WireChange = tuple[str, tuple[Any, ...], dict[str, Any] | None, dict[str, Any] | None]
_Table = tuple[tuple[str, ...], tuple[int, ...], list[tuple[Any, ...]]]


class ObserverFailed(Exception):
    """What was committed could not be read: nothing may be called clean after that."""


class ObserverClient:
    """The lane's end: asks, and gets the changes since it last asked. Raises `ObserverFailed`."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        self._end: Final = end
        self._fd: Final = end.fileno()
        self.pid: Final = pid
        self.lives = True

    def open(
        self, path: str, *, tables: tuple[str, ...], brief: bool
    ) -> tuple[list[str], dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]]]:
        """Begin with a database: its schema, and the rows of the declared tables by key."""
        return self._ask("open", path, tables, brief)  # type: ignore[no-any-return]

    def read(self) -> list[WireChange]:
        """What has changed since the last reading."""
        return self._ask("read")  # type: ignore[no-any-return]

    def write_lock(self) -> str:
        """Whether the write lock is `free` or `held` right now."""
        return self._ask("lock")  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let the database go."""
        self._ask("close")

    def _ask(self, *question: Any) -> Any:
        try:
            wire.send(self._fd, question)
            answer, error = wire.receive(self._fd)
        except (OSError, EOFError) as gone:
            self.lives = False
            self._end.close()
            raise ObserverFailed("the observer has died") from gone
        if error:
            raise ObserverFailed(error)
        return answer


def start_observer(*, parent_pid: int) -> ObserverClient:
    """Fork the observer from the lane, which never opens SQLite itself."""
    ours, theirs = wire.pair()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            guard.die_with_parent(parent_pid)
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _serve(guard.keep_only(theirs.detach()))
            status = 0
        finally:
            os._exit(status)
    theirs.close()
    wire.set_receive_timeout(ours, timeout_s=30)
    return ObserverClient(ours, pid)


def _serve(fd: int) -> None:
    reader = _Reader()
    while True:
        try:
            question, *arguments = wire.receive(fd)
        except EOFError:
            return
        try:
            wire.send(fd, (getattr(reader, question)(*arguments), ""))
        except sqlite3.Error as error:
            wire.send(fd, (None, f"the observer could not {question}: {error}"))


class _Reader:
    """One database, as last read."""

    def __init__(self) -> None:
        self._path = ""
        self._tables: tuple[str, ...] = ()
        self._brief = False
        self._identity: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None
        self._known: dict[str, _Table] = {}

    def open(self, path: str, tables: tuple[str, ...], brief: bool) -> tuple[list[str], Any]:
        self.close()
        self._path, self._tables, self._brief = path, tables, brief
        self._identity = _identity(path)
        connection = self._connect()
        schema = [
            sql
            for (sql,) in connection.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
            )
        ]
        self._known = {table: _read_table(connection, table) for table in self._tables}
        self._release()
        return schema, {
            table: [(_key(keys, row), _named(columns, row)) for row in rows]
            for table, (columns, keys, rows) in self._known.items()
        }

    def read(self) -> list[WireChange]:
        if _identity(self._path) != self._identity:
            raise sqlite3.OperationalError("the database file was deleted or replaced")
        connection = self._connect()
        changes: list[WireChange] = []
        connection.execute("BEGIN")
        try:
            for table in self._tables:
                before = self._known[table]
                after = _read_table(connection, table)
                if after[2] != before[2] or after[0] != before[0]:
                    changes += _compare(table, before, after)
                    self._known[table] = after
        finally:
            connection.execute("COMMIT")
            self._release()
        return changes

    def lock(self) -> str:
        connection = self._connect()
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return "held"
        finally:
            self._release()
        return "free"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._known = {}
        _keys.clear()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=0.05, isolation_level=None)
            self._connection.text_factory = _text
        return self._connection

    def _release(self) -> None:
        if self._brief and self._connection is not None:
            self._connection.close()
            self._connection = None


def _identity(path: str) -> tuple[int, int] | None:
    """Which file it is, without opening it: a raw open and close would drop locks."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _text(stored: bytes) -> str:
    """SQLite stores whatever bytes a program calls text; none may make the observer fail."""
    return stored.decode("utf-8", "surrogateescape")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_table(connection: sqlite3.Connection, table: str) -> _Table:
    """Columns, the positions of the key's columns (the rowid is column 0), and all rows in order.

    A table that does not exist yet is empty: a worker may create it.
    """
    quoted = _quoted(table)
    try:
        rows = connection.execute(f"SELECT rowid, * FROM {quoted} ORDER BY rowid")
        offset = 1
    except sqlite3.OperationalError:  # WITHOUT ROWID, or no such table
        try:
            rows = connection.execute(f"SELECT * FROM {quoted}")
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return ((), (), [])
            raise
        offset = 0
    columns = tuple(column[0] for column in rows.description[offset:])
    return (columns, _key_columns(connection, table, offset=offset), rows.fetchall())


def _key_columns(connection: sqlite3.Connection, table: str, *, offset: int) -> tuple[int, ...]:
    """Where the primary key's columns stand in a row as read; the rowid when there is none."""
    cached = _keys.get((table, offset))
    if cached is None:
        info = connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
        keyed = sorted((row[5], row[0] + offset) for row in info if row[5])
        cached = tuple(position for _order, position in keyed) or (0,)
        _keys[table, offset] = cached
    return cached


_keys: dict[tuple[str, int], tuple[int, ...]] = {}


def _key(keys: tuple[int, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(row[position] for position in keys)


def _named(columns: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(columns, row[len(row) - len(columns) :], strict=True))


def _compare(table: str, before: _Table, after: _Table) -> list[WireChange]:
    """Net changes by key."""
    (columns_before, keys_before, rows_before), (columns, keys, rows) = before, after
    old = {_key(keys_before, row): row for row in rows_before} if keys_before else {}
    new = {_key(keys, row): row for row in rows} if keys else {}
    changes: list[WireChange] = []
    for key, row in old.items():
        other = new.get(key)
        if other is None:
            changes.append((table, key, _named(columns_before, row), None))
        elif other != row or columns != columns_before:
            named_old, named_new = _named(columns_before, row), _named(columns, other)
            if named_old != named_new:
                changes.append((table, key, named_old, named_new))
    for key, row in new.items():
        if key not in old:
            changes.append((table, key, None, _named(columns, row)))
    return changes
