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
import urllib.parse
from typing import Any, Final

from . import guard, pastlock, sqlite_api, wire
from .tables import Table, WireChange, attach_mirrors

#: How long a committed state may stay illegible, in real time.
_BUSY_MS: Final = 50
#: How often it is tried to read a file that is being written, before it counts as illegible.
_TRIES: Final = 4


#: What the lane doesn't wait for.
_UNANSWERED: Final = frozenset({"open_same", "close"})


class ObserverFailed(Exception):
    """What was committed could not be read: nothing may be called clean after that."""


class ObserverClient:
    """The lane's end: asks, and gets the changes since it last asked. Raises `ObserverFailed`."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        self._end: Final = end
        self._fd: Final = end.fileno()
        self.pid: Final = pid
        self.lives = True

    def open_same(self, path: str) -> None:
        """Begin with a file that has the very bytes of the one before when it was opened."""
        self._tell("open_same", path)

    def open(
        self, path: str, *, tables: tuple[str, ...], brief: bool
    ) -> tuple[list[str], dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]]]:
        """Begin with a database: its schema, and the rows of the declared tables by key."""
        return self._ask("open", path, tables, brief)  # type: ignore[no-any-return]

    def read(self, *, certain: bool, past_lock: bool) -> tuple[list[WireChange], str]:
        """What has changed since the last reading; and why that can't be had now, if it can't.

        `certain`: a commit has just been made, and must be legible. `past_lock`: whoever has locked
        the file moves no more, so that it may be read all the same.
        """
        return self._ask("read", certain, past_lock)  # type: ignore[no-any-return]

    def step_aside(self) -> None:
        """From now on, for this database, be connected only while reading."""
        self._ask("step_aside")

    def write_lock(self) -> str:
        """Whether the write lock is `free` or `held` right now."""
        return self._ask("lock")  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let the database go."""
        self._tell("close")

    def _tell(self, *question: Any) -> None:
        """Something to do when there is time; what goes wrong is told at the next question."""
        try:
            wire.send(self._fd, question)
        except OSError as gone:
            self.lives = False
            self._end.close()
            raise ObserverFailed("the observer has died") from gone

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


def start_observer(*, parent_pid: int, library: Any = None) -> ObserverClient:
    """Fork the observer from the lane, which never opens SQLite itself."""
    ours, theirs = wire.pair()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            guard.die_with_parent(parent_pid)
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _serve(guard.keep_only(theirs.detach()), library)
            status = 0
        finally:
            os._exit(status)
    theirs.close()
    wire.set_receive_timeout(ours, timeout_s=30)
    return ObserverClient(ours, pid)


def _serve(fd: int, library: Any) -> None:
    reader = _Reader(library)
    answer, failure = None, ""
    while True:
        try:
            question, *arguments = wire.receive(fd)
        except EOFError:
            return
        try:
            answer = getattr(reader, question)(*arguments)
        except sqlite3.Error as error:
            failure = failure or f"the observer could not {question}: {error}"
        if question not in _UNANSWERED:
            wire.send(fd, (None, failure) if failure else (answer, ""))
            failure = ""


class _Reader:
    """One database, as last read."""

    def __init__(self, library: Any) -> None:
        self._library: Final = library
        self._path = ""
        #: Connected only while reading: every database, or the present one.
        self._brief = self._aside = False
        self._identity: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None
        self._tables: dict[str, Table] = {}
        self._versions: tuple[int, int] = (0, 0)
        #: What was found in the file when it was opened in full, and its schema's version.
        self._known: dict[str, Any] = {}
        self._known_schema = 0

    def open_same(self, path: str) -> None:
        """Begin with a file of the very bytes that the last opened one had."""
        self.close()
        if not all(self._known.values()):  # a table that is read inside SQLite
            self.open(path, tuple(self._known), self._brief)
            return
        self._path = path
        self._identity = _identity(path)
        self._tables = {
            name: Table(None, name, mirrored=not self._brief, known=known)
            for name, known in self._known.items()
        }
        # The first reading compares everything; until then there is no connection.
        self._versions = (0, self._known_schema)

    def open(self, path: str, tables: tuple[str, ...], brief: bool) -> tuple[list[str], Any]:
        """Begin with a database: its schema, and the declared tables' rows by key."""
        self.close()
        self._path, self._brief = path, brief
        self._identity = _identity(path)
        connection = self._connect()
        schema = [
            sql
            for (sql,) in connection.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
            )
        ]
        self._versions = _versions(connection)
        self._tables = {name: Table(connection, name, mirrored=not brief) for name in tables}
        rows = {name: table.keyed(connection) for name, table in self._tables.items()}
        self._known = {name: table.known for name, table in self._tables.items()}
        self._known_schema = self._versions[1]
        self._release()
        return schema, rows

    def read(self, certain: bool, past_lock: bool) -> tuple[list[WireChange], str]:
        """What has changed since the last reading, or why it is illegible."""
        if _identity(self._path) != self._identity:
            raise sqlite3.OperationalError("the database file was deleted or replaced")
        for _ in range(_TRIES):
            try:
                return self._changes(self._connect(), certain), ""
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
            finally:
                self._release()
            illegible = pastlock.why_illegible(self._path)
            if not (illegible and past_lock):
                break  # else it may be a commit that is nearly over
        if certain and illegible:
            raise sqlite3.OperationalError(illegible)
        if illegible or not past_lock:
            return [], illegible or pastlock.LOCKED
        try:
            with pastlock.unwritten(self._path):
                return self._changes_past_lock(), ""
        finally:
            self._release()

    def _changes_past_lock(self) -> list[WireChange]:
        """With a rollback journal, a locked file is what was committed last, and is read as that.

        The next to commit locks it before it asks for its turn, and a connection may keep it to
        itself; nobody writes a page meanwhile (`pastlock`).
        """
        own = self._connect()
        for table in self._tables.values():
            table.leave_mirror(own)
        path = urllib.parse.quote(self._path)
        frozen = sqlite3.connect(f"file:{path}?immutable=1", uri=True, isolation_level=None)
        try:
            changes: list[WireChange] = []
            for table in self._tables.values():
                changes += table.changes(frozen, reshaped=True)
            self._versions = (0, 0)  # read by another connection, whose count is another one
            return changes
        finally:
            frozen.close()

    def _changes(self, connection: sqlite3.Connection, certain: bool) -> list[WireChange]:
        # The data's version stands still while nobody else commits; a new connection has its
        # own count.
        if (
            not (certain or self._brief or self._aside)
            and _data_version(connection) == self._versions[0]
        ):
            return []
        if any(table.grows for table in self._tables.values()):
            attach_mirrors(connection)
        connection.execute("BEGIN")
        try:
            versions = _versions(connection)
            if versions == self._versions and not (self._brief or self._aside):
                return []
            reshaped = versions[1] != self._versions[1]
            changes: list[WireChange] = []
            for table in self._tables.values():
                changes += table.changes(connection, reshaped=reshaped)
            self._versions = versions
            return changes
        finally:
            connection.execute("COMMIT")

    def lock(self) -> str:
        connection = self._connect()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return "held"
        finally:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self._release()
        return "free"

    def step_aside(self) -> None:
        """A connection that is there keeps out whoever wants a WAL database for itself."""
        if self._connection is not None:
            for table in self._tables.values():
                table.leave_mirror(self._connection)
        self._aside = True
        self._release()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._tables = {}
        self._aside = False

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._path, timeout=_BUSY_MS / 1000, isolation_level=None
            )
            if not self._brief and self._library is not None:
                # Ours is the last to close, and the file is removed then.
                sqlite_api.close_without_checkpoint(self._library, self._connection)
        return self._connection

    def _release(self) -> None:
        if (self._brief or self._aside) and self._connection is not None:
            self._connection.close()
            self._connection = None


def _versions(connection: sqlite3.Connection) -> tuple[int, int]:
    """The versions of data and schema, as this connection counts them."""
    schema = connection.execute("PRAGMA main.schema_version").fetchone()[0]
    return _data_version(connection), schema


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA main.data_version").fetchone()[0])


def _identity(path: str) -> tuple[int, int] | None:
    """Which file it is, without opening it: a raw open and close would drop locks."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
