"""Opening SQLite: every connection of the runtime, the heartbeat's too, is hardened alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

#: How long a statement waits for another process's write lock, in milliseconds.
DEFAULT_BUSY_TIMEOUT_MS: Final = 5_000


def connect(path: str, *, busy_timeout_ms: int = DEFAULT_BUSY_TIMEOUT_MS) -> sqlite3.Connection:
    """A connection in autocommit, hardened, that may change threads. Writes nothing."""
    connection = sqlite3.connect(
        path,
        timeout=busy_timeout_ms / 1000,
        isolation_level=None,
        check_same_thread=False,  # the store serializes its users with a lock
    )
    try:
        harden(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def harden(connection: sqlite3.Connection) -> None:
    """trusted_schema off, foreign keys on, and defensive mode where Python offers it (3.12)."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    setconfig = getattr(connection, "setconfig", None)
    if setconfig is not None:
        setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # type: ignore[attr-defined,unused-ignore]  # 3.12


def use_wal(connection: sqlite3.Connection) -> None:
    """Let readers read while one writes. A speed-up that may fail while others are at work."""
    with suppress(sqlite3.OperationalError):
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode not in ("wal", "memory"):
            connection.execute("PRAGMA journal_mode = WAL")


@contextmanager
def immediate(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction that holds the write lock from its beginning: all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # SQLite may have rolled back by itself already (a full disk, an I/O error).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
