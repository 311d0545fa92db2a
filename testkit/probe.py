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
import functools
import itertools
import os
import sys
from collections.abc import Callable, Collection
from ctypes import string_at
from typing import Any, Final

from . import sqlite_api
from .channel import Channel, Wait, thread_name
from .clock import ClockPage, real_sleep
from .sql_text import Sql, attached_as, keeps_to_itself, read_sql_bytes

#: Where several move at once, who has slept this long for the write lock is at rest.
_LOCK_WAIT_US: Final = 100_000


#: What commits when it is done, unless a transaction goes on.
_COMMIT: Final = frozenset({"COMMIT", "END", "RELEASE", "INSERT", "REPLACE", "UPDATE", "DELETE"})


@functools.cache
def _real(folder: str) -> str:
    """Where a lane's databases lie; each script's folder in it is the lane's own making."""
    return os.path.realpath(folder)


class _Connection:
    """One SQLite connection of the worker."""

    __slots__ = ("committing", "last", "number", "open", "pointer", "txn", "wrote")

    def __init__(self, pointer: int, number: int) -> None:
        self.pointer = pointer
        self.number = number
        self.txn = 1
        self.committing = 0  # the ordinal of the commit that is under way
        self.wrote = False  # the transaction has a statement that wrote to a declared table
        self.last = (0, 0)  # the statement that finished last, and which run of it that was
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
        self._serials: Final = itertools.count(1)
        self._numbers = itertools.count(1)
        self._connections: dict[int, _Connection] = {}
        #: Connections to other files: the stage's database may be attached to them later.
        self._others: dict[int, int] = {}
        self._read_clock: Callable[[], int] = page.now_ns
        self._note_clock: Callable[[int], None] = lambda _ns: None
        #: thread -> how often SQLite has asked for the time since its statement began
        self._looks: dict[int, int] = {}
        #: thread -> microseconds that its statement has slept for the write lock (wall clock)
        self._slept: dict[int, int] = {}
        self._callbacks: Final = (
            sqlite_api.TraceCallback(self._trace),
            sqlite_api.CommitHook(self._commit),
            sqlite_api.RollbackHook(self._rollback),
        )
        self.armed = False

    def install(
        self,
        *,
        now_ns: Callable[[], int] | None = None,
        note_read: Callable[[int], None] | None = None,
    ) -> None:
        """Let SQLite's clock and its busy sleep follow the stage.

        `now_ns` is what SQLite's own `'now'` follows; `note_read` is told when a statement used it.
        """
        self._read_clock = now_ns or self._read_clock
        self._note_clock = note_read or self._note_clock
        sqlite_api.install_vfs_sleep(self._library, self._sleep)
        if self._page.virtual:
            sqlite_api.install_vfs_clock(self._library, self._now_ns)

    def listen(self) -> None:
        """From now on every new connection of this process is seen."""
        sys.addaudithook(self._audit)

    def watch(self, path: str, *, tables: Collection[str]) -> None:
        """A script begins: its database and its declared tables."""
        folder, name = os.path.split(path)
        path = os.path.join(_real(os.path.dirname(folder)), os.path.basename(folder), name)
        self.tables = frozenset(table.lower() for table in tables)
        if path != self.path:
            self.path = path
            self._numbers = itertools.count(1)
            self._connections.clear()
            self._others.clear()
        self.armed = True

    # -- connections ---------------------------------------------------------------------------

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle" and self.armed:
            pointer = sqlite_api.database_pointer(arguments[0])
            if pointer and self._channel.alive:
                self._hook(pointer)
            elif pointer and self._is_ours(self._library.sqlite3_db_filename(pointer, b"main")):
                self._channel.tell_from_child("a child of its own opened the database")

    def _hook(self, pointer: int) -> None:
        library = self._library
        serial = next(self._serials)  # threads connect at once: every call below lets others run
        if self._is_ours(library.sqlite3_db_filename(pointer, b"main")):
            self._adopt(serial, pointer)
        else:
            self._others[serial] = pointer
        events = sqlite_api.TRACE_STMT | sqlite_api.TRACE_PROFILE
        library.sqlite3_trace_v2(pointer, events, self._callbacks[0], serial)

    def _is_ours(self, name: bytes | None) -> bool:
        if not name:
            return False
        path = os.fsdecode(name)
        return path == self.path or os.path.realpath(path) == self.path

    def _adopt(self, serial: int, pointer: int) -> None:
        """A connection has the stage's database: its transactions are events."""
        self._connections[serial] = _Connection(pointer, next(self._numbers))
        self._library.sqlite3_commit_hook(pointer, self._callbacks[1], serial)
        self._library.sqlite3_rollback_hook(pointer, self._callbacks[2], serial)

    def _look_for_ours(self, serial: int, statement: int) -> None:
        """A connection to another file finished an ATTACH: is it the stage's database?"""
        library, pointer = self._library, self._others[serial]
        schema = attached_as(sqlite_api.text_at(library.sqlite3_sql(statement)))
        if schema and self._is_ours(library.sqlite3_db_filename(pointer, schema.encode())):
            del self._others[serial]
            self._adopt(serial, pointer)

    # -- statements ----------------------------------------------------------------------------

    def _trace(self, kind: int, context: int, statement: int, extra: int) -> int:
        """SQLite's callback. What it raised would be swallowed, and sight lost silently."""
        try:
            connection = self._connections.get(context)
            if connection is None:  # another file, or opened in an earlier script of a warm worker
                if kind == sqlite_api.TRACE_PROFILE and context in self._others:
                    self._look_for_ours(context, statement)
            elif kind == sqlite_api.TRACE_STMT:
                # else it is a trigger's program, reported under the statement that fired it
                if extra == self._library.sqlite3_sql(statement):
                    self._before(connection, statement, extra)
            elif statement in connection.open:
                self._after(connection, statement)
        except Exception as error:
            self._channel.record("blind", f"the kit's own hook failed: {error!r}")
        return 0

    def _before(self, connection: _Connection, statement: int, text: int) -> None:
        channel, library = self._channel, self._library
        if channel.unfinished:
            channel.finish()
        me = _thread.get_ident()
        sql = read_sql_bytes(string_at(text))
        if sql.verb == "PRAGMA" and keeps_to_itself(sqlite_api.text_at(text)):
            channel.ask("exclusive", connection.number)
        begins = 0
        if (
            sql.verb in ("BEGIN", "SAVEPOINT")
            or (sql.begins and not library.sqlite3_stmt_readonly(statement))
        ) and library.sqlite3_get_autocommit(connection.pointer):
            begins = channel.count("txn:begin")
            channel.reach("txn:begin", ordinal=begins, phase="before")
        ordinal = 0
        if sql.table:
            ordinal = channel.count(sql.point)
            channel.reach(sql.point, ordinal=ordinal, phase="before")
        connection.open[statement] = (sql, ordinal, connection.txn, begins)
        self._looks[me] = self._slept[me] = 0

    def _after(self, connection: _Connection, statement: int) -> None:
        channel, library = self._channel, self._library
        if not connection.committing and library.sqlite3_expired(statement):
            # The schema had changed: SQLite prepares it anew and runs it without a STMT. It looks
            # at its clock for the second beginning too: that is no look of the statement's own.
            self._looks[_thread.get_ident()] = -1
            return
        self._note_now()
        if self._page.turnstile and self._slept.get(_thread.get_ident(), 0) >= _LOCK_WAIT_US:
            channel.tell_awake()
        sql, ordinal, txn, begins = connection.open.pop(statement)
        connection.last = (statement, self._runs(statement))
        if sql.table and sql.table.lower() in self.tables:
            readonly = library.sqlite3_stmt_readonly(statement)
            rows = None if readonly else self._changed(connection, statement)
            connection.wrote = connection.wrote or not readonly
            channel.record(
                "statement", thread_name(), connection.number, txn, sql.verb, sql.table,
                self._expanded(statement), rows,
            )  # fmt: skip
        committed = self._finish_commit(connection) if connection.committing else 0
        if (
            begins
            and sql.verb in ("BEGIN", "SAVEPOINT")
            and not library.sqlite3_get_autocommit(connection.pointer)  # else it failed
        ):
            channel.reach("txn:begin", ordinal=begins, phase="after")
        if ordinal:
            channel.reach(sql.point, ordinal=ordinal, phase="after")
        if committed:
            channel.reach("txn:commit", ordinal=committed, phase="after")

    def _changed(self, connection: _Connection, statement: int) -> int:
        """How many rows it changed. SQLite counts when it halts; one that is busy still has not."""
        library = self._library
        if not library.sqlite3_stmt_busy(statement):
            return int(library.sqlite3_changes(connection.pointer))
        # Left with a row of RETURNING in hand, or with none: then it found the database locked.
        return int(library.sqlite3_data_count(statement) > 0)

    def _expanded(self, statement: int) -> str:
        """Its text with the bound values in place; as written, when that would be too long."""
        library = self._library
        text = library.sqlite3_expanded_sql(statement)
        if not text:
            return sqlite_api.text_at(library.sqlite3_sql(statement))
        expanded = sqlite_api.text_at(text)
        library.sqlite3_free(text)
        return expanded

    # -- transactions --------------------------------------------------------------------------

    def _commit(self, context: int) -> int:
        """A commit is certain, and holds the write lock: one at a time from here."""
        channel = self._channel
        connection = self._connections.get(context)
        if connection is None:
            return 0
        if not channel.alive:
            channel.tell_from_child("a child of its own committed to the database")
            return 0
        ordinal = channel.count("txn:commit")
        seen = self._is_seen(connection)
        if not seen:
            channel.record("blind", "a commit came without its statement: the subject has a trace"
                           f" callback of its own on connection {connection.number}")  # fmt: skip
        channel.reach("txn:commit", ordinal=ordinal, phase="before")
        if self._turns:
            self._turn.acquire()
            if self._page.turnstile:
                channel.ask("turn", connection.number)
        connection.committing = ordinal
        if not (
            seen and connection.open
        ):  # only what this thread does next will tell that it is over
            channel.unfinished[_thread.get_ident()] = lambda: self._finish_late(connection)
        return 0

    def _is_seen(self, connection: _Connection) -> bool:
        """Whether the statement that commits is one whose beginning we were told.

        It is busy. A SELECT that lies open is so too, and proves nothing.
        """
        library = self._library
        if not connection.open:
            return self._is_ending(connection)
        if len(connection.open) == 1 and next(iter(connection.open.values()))[0].verb in _COMMIT:
            return True
        pointer = library.sqlite3_next_stmt(connection.pointer, None)
        while pointer:
            known = pointer in connection.open or pointer == connection.last[0]
            if not known and library.sqlite3_stmt_busy(pointer):
                return False
            pointer = library.sqlite3_next_stmt(connection.pointer, pointer)
        return True

    def _is_ending(self, connection: _Connection) -> bool:
        """Whether the last statement commits while it is reset: a RETURNING not read out."""
        library = self._library
        pointer = library.sqlite3_next_stmt(connection.pointer, None)
        while pointer:
            if pointer == connection.last[0]:
                busy = bool(library.sqlite3_stmt_busy(pointer))
                return busy and self._runs(pointer) == connection.last[1]
            pointer = library.sqlite3_next_stmt(connection.pointer, pointer)
        return False

    def _runs(self, statement: int) -> int:
        return int(self._library.sqlite3_stmt_status(statement, sqlite_api.STATUS_RUN, 0))

    def _finish_late(self, connection: _Connection) -> None:
        if connection.committing:
            committed = self._finish_commit(connection)
            if committed:
                self._channel.reach("txn:commit", ordinal=committed, phase="after")

    def _finish_commit(self, connection: _Connection) -> int:
        """The statement that was to commit has finished: did it? Returns the commit's ordinal."""
        ordinal, connection.committing = connection.committing, 0
        self._channel.unfinished.pop(_thread.get_ident(), None)
        done = bool(self._library.sqlite3_get_autocommit(connection.pointer))
        if done:
            txn, connection.txn = connection.txn, connection.txn + 1
            wrote, connection.wrote = connection.wrote, False
            if self._turns:
                payload = (thread_name(), connection.number, txn, wrote)
                self._channel.ask("commit", payload)
        self._end_turn(connection, done=done)
        return ordinal if done else 0

    def _end_turn(self, connection: _Connection, *, done: bool) -> None:
        if not self._turns:
            return
        if not done and self._page.turnstile:
            self._channel.ask("no-commit", connection.number)
        self._turn.release()

    def _rollback(self, context: int) -> None:
        connection = self._connections.get(context)
        if connection is None or not self._channel.alive:
            return
        txn, connection.txn = connection.txn, connection.txn + 1
        connection.wrote = False
        self._channel.record("rolled-back", thread_name(), connection.number, txn)
        if connection.committing:  # its commit failed, and took the transaction with it
            connection.committing = 0
            self._channel.unfinished.pop(_thread.get_ident(), None)
            self._end_turn(connection, done=False)

    # -- time ----------------------------------------------------------------------------------

    def _now_ns(self) -> int:
        """SQLite asks for the time: for `'now'`, and for the duration of each statement."""
        me = _thread.get_ident()
        self._looks[me] = self._looks.get(me, 0) + 1
        return self._read_clock()

    def _note_now(self) -> None:
        """PROFILE has just looked once itself; a second look was the statement's own."""
        if self._looks.get(_thread.get_ident(), 0) > 1:
            self._note_clock(self._read_clock())

    def _sleep(self, microseconds: int) -> None:
        """SQLite's busy handler waits for the write lock; here, inside its sleep."""
        channel = self._channel
        if not channel.alive or not self.armed:
            real_sleep(microseconds / 1e6)
        elif self._page.turnstile and not self._page.virtual:
            self._sleep_for_real(microseconds)
        elif self._page.turnstile and self._count_slept(microseconds) < _LOCK_WAIT_US:
            real_sleep(microseconds / 1e6)
        else:
            # In a race the lane lets it try again from time to time: it sleeps for real anew.
            self._slept[_thread.get_ident()] = 0
            until_ns = self._page.now_ns() + microseconds * 1000
            channel.ask("wait", microseconds, wait="lock", until_ns=until_ns)

    def _count_slept(self, microseconds: int) -> int:
        me = _thread.get_ident()
        slept = self._slept[me] = self._slept.get(me, 0) + microseconds
        return slept

    def _sleep_for_real(self, microseconds: int) -> None:
        """On the wall clock SQLite tries again by itself.

        After a while that is a known wait: whoever has the lock doesn't move.
        """
        me, channel = _thread.get_ident(), self._channel
        if self._count_slept(microseconds) >= _LOCK_WAIT_US:
            channel.waits[me] = Wait("lock", self._page.now_ns() + microseconds * 1000)
            channel.tell_if_settled()
        real_sleep(microseconds / 1e6)
        channel.waits.pop(me, None)
