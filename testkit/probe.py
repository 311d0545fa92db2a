"""Inside a worker: what it does with SQLite. Statements, transactions, commits, lock waits.

An audit hook sees every connection, whoever opens it; SQLite's own trace sees every statement,
implicit BEGINs and `with connection:` too, under SQLAlchemy, peewee and aiosqlite alike. STMT fires
before a statement takes any lock, PROFILE after it finished; the commit hook says that a commit is
certain while the write lock is still held. After a commit the thread waits until the observer has
read what it changed. A subject that replaces the trace callback makes its connection blind: the
next commit that we are told of without the statement that made it says so.
"""

from __future__ import annotations

import _thread
import os
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from . import sqlite_api
from .channel import Channel, thread_name
from .clock import ClockPage, real_sleep

_COMMENTS: Final = re.compile(r"(\s+|--[^\n]*(\n|$)|/\*.*?(\*/|$))*", re.DOTALL)
_WORD: Final = r"\w+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\]"
_NAME: Final = rf"(?:(?:{_WORD})\s*\.\s*)?({_WORD})"
_TABLE: Final = {
    "INSERT": re.compile(rf"INSERT\s+(?:OR\s+\w+\s+)?INTO\s+{_NAME}", re.IGNORECASE),
    "REPLACE": re.compile(rf"REPLACE\s+INTO\s+{_NAME}", re.IGNORECASE),
    "UPDATE": re.compile(rf"UPDATE\s+(?:OR\s+\w+\s+)?{_NAME}", re.IGNORECASE),
    "DELETE": re.compile(rf"DELETE\s+FROM\s+{_NAME}", re.IGNORECASE),
    "SELECT": re.compile(rf"\bFROM\s+{_NAME}", re.IGNORECASE),
}
_WITH: Final = re.compile(r"\b(INSERT|REPLACE|UPDATE|DELETE)\b\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sql:
    """What a statement is, from its text: its verb in capitals and the first table it names."""

    verb: str
    table: str

    @property
    def point(self) -> str:
        """Its point's name, empty for what has none (BEGIN, PRAGMA, …)."""
        return f"sql:{self.verb} {self.table}" if self.table else ""


@lru_cache(maxsize=4096)
def read_sql(text: str) -> Sql:
    """Find verb and table of a statement; comments and quoting don't matter."""
    start = _COMMENTS.match(text)
    body = text[start.end() if start else 0 :]
    verb = body.split(None, 1)[0].rstrip(";").upper() if body.strip(" ;\n") else ""
    if verb == "WITH":
        inner = _WITH.search(body)
        verb = inner[1].upper() if inner else "SELECT"
        body = body[inner.start() :] if inner else body
    finder = _TABLE.get(verb)
    match = finder.search(body) if finder else None
    return Sql(verb, match[1].strip('"`[]') if match else "")


class _Connection:
    """One SQLite connection of the worker."""

    __slots__ = ("committing", "number", "open", "pointer", "txn")

    def __init__(self, pointer: int, number: int) -> None:
        self.pointer = pointer
        self.number = number
        self.txn = 1
        self.committing = 0  # the ordinal of the commit that is under way
        #: statements under way: pointer -> (what, ordinal, transaction, ordinal of its begin or 0)
        self.open: dict[int, tuple[Sql, int, int, int]] = {}


class Probe:
    """Hooks of one worker process. `tables` are the declared tables, in lower case."""

    def __init__(self, channel: Channel, page: ClockPage, *, library: Any, turns: bool) -> None:
        self._channel: Final = channel
        self._page: Final = page
        self._library: Final = library
        self._turn: Final = _thread.allocate_lock()
        #: Whether each commit waits for the observer (attribution commit by commit).
        self._turns: Final = turns
        self.tables: Collection[str] = frozenset()
        self.path = ""
        #: Every connection has one number for SQLite's callbacks and one that a script repeats.
        self._serial = 0
        self._opened = 0
        self._connections: dict[int, _Connection] = {}
        self._callbacks: Final = (
            sqlite_api.TraceCallback(self._trace),
            sqlite_api.CommitHook(self._commit),
            sqlite_api.RollbackHook(self._rollback),
        )
        self.armed = False

    def install(self) -> None:
        """From now on every new connection to the stage's database is seen."""
        sqlite_api.install_vfs_sleep(self._library, self._sleep)
        if self._page.virtual:
            sqlite_api.install_vfs_clock(self._library, self._page.now_ns)
        sys.addaudithook(self._audit)

    def watch(self, path: str, *, tables: Collection[str]) -> None:
        """A script begins: its database and its declared tables."""
        self.path = os.path.realpath(path)
        self.tables = frozenset(table.lower() for table in tables)
        self._opened = 0
        self._connections.clear()
        self.armed = True

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle" and self.armed and self._channel.alive:
            pointer = sqlite_api.database_pointer(arguments[0])
            if pointer:
                self._hook(pointer)

    def _hook(self, pointer: int) -> None:
        library = self._library
        name = library.sqlite3_db_filename(pointer, b"main") or b""
        if os.path.realpath(os.fsdecode(name)) != self.path:
            return
        self._serial += 1
        self._opened += 1
        self._connections[self._serial] = _Connection(pointer, self._opened)
        events = sqlite_api.TRACE_STMT | sqlite_api.TRACE_PROFILE
        library.sqlite3_trace_v2(pointer, events, self._callbacks[0], self._serial)
        library.sqlite3_commit_hook(pointer, self._callbacks[1], self._serial)
        library.sqlite3_rollback_hook(pointer, self._callbacks[2], self._serial)

    def _trace(self, kind: int, context: int, statement: int, extra: int) -> int:
        connection = self._connections.get(context)
        if connection is None:  # opened in an earlier script of a warm worker
            return 0
        if kind == sqlite_api.TRACE_STMT:
            # else it is a trigger's program, reported under the statement that fired it
            if extra == self._library.sqlite3_sql(statement):
                self._before(connection, statement, extra)
        elif statement in connection.open:
            self._after(connection, statement)
        return 0

    def _before(self, connection: _Connection, statement: int, text: int) -> None:
        channel, library = self._channel, self._library
        sql = read_sql(sqlite_api.text_at(text))
        begins = 0
        if (
            sql.verb in ("BEGIN", "SAVEPOINT")
            or (sql.table and not library.sqlite3_stmt_readonly(statement))
        ) and library.sqlite3_get_autocommit(connection.pointer):
            begins = channel.count("txn:begin")
            channel.reach("txn:begin", ordinal=begins, phase="before")
        ordinal = 0
        if sql.table:
            ordinal = channel.count(sql.point)
            channel.reach(sql.point, ordinal=ordinal, phase="before")
        connection.open[statement] = (sql, ordinal, connection.txn, begins)

    def _after(self, connection: _Connection, statement: int) -> None:
        channel, library = self._channel, self._library
        sql, ordinal, txn, begins = connection.open.pop(statement)
        if sql.table and sql.table.lower() in self.tables:
            readonly = library.sqlite3_stmt_readonly(statement)
            rows = None if readonly else library.sqlite3_changes(connection.pointer)
            text = library.sqlite3_expanded_sql(statement)
            expanded = sqlite_api.text_at(text)
            library.sqlite3_free(text)
            channel.record(
                "statement", thread_name(), connection.number, txn, sql.verb, sql.table,
                expanded, rows,
            )  # fmt: skip
        committed = self._finish_commit(connection) if connection.committing else 0
        if begins and sql.verb in ("BEGIN", "SAVEPOINT"):
            channel.reach("txn:begin", ordinal=begins, phase="after")
        if ordinal:
            channel.reach(sql.point, ordinal=ordinal, phase="after")
        if committed:
            channel.reach("txn:commit", ordinal=committed, phase="after")

    def _commit(self, context: int) -> int:
        """A commit is certain, and holds the write lock: one at a time from here."""
        channel = self._channel
        connection = self._connections.get(context)
        if connection is None or not channel.alive:
            return 0
        ordinal = channel.count("txn:commit")
        channel.reach("txn:commit", ordinal=ordinal, phase="before")
        if self._turns:
            self._turn.acquire()
            if self._page.turnstile:
                channel.ask("turn", connection.number)
        connection.committing = ordinal
        return 0

    def _finish_commit(self, connection: _Connection) -> int:
        """The statement that was to commit has finished: did it? Returns the commit's ordinal."""
        ordinal, connection.committing = connection.committing, 0
        done = bool(self._library.sqlite3_get_autocommit(connection.pointer))
        if done:
            txn, connection.txn = connection.txn, connection.txn + 1
            if self._turns:
                self._channel.ask("commit", (thread_name(), connection.number, txn))
        elif self._turns and self._page.turnstile:
            self._channel.ask("no-commit", connection.number)
        if self._turns:
            self._turn.release()
        return ordinal if done else 0

    def _rollback(self, context: int) -> None:
        connection = self._connections.get(context)
        if connection is None:
            return
        txn, connection.txn = connection.txn, connection.txn + 1
        self._channel.record("rolled-back", thread_name(), connection.number, txn)

    def _sleep(self, microseconds: int) -> None:
        """SQLite's busy handler waits for the write lock; here, inside its sleep."""
        if self._page.turnstile or not self._channel.alive or not self.armed:
            real_sleep(microseconds / 1e6)
            return
        until_ns = self._page.now_ns() + microseconds * 1000
        self._channel.ask("wait", microseconds, wait="lock", until_ns=until_ns)
