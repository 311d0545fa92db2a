"""The schema, version by version, and how a file gets from one to the next.

``PRAGMA user_version`` says where a file is. Version 0 is an empty file, or a database from
before the lease. All missing steps are taken in one transaction, so two processes that open
an old file at once do it once.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from .connection import immediate
from .errors import ForeignDatabase, NewerDatabase
from .lease import DEFAULT_LEASE_TTL_MS

#: The owner of the grace lease that a run from before the lease is given.
PRE_LEASE_OWNER: Final = "reference:pre-lease-version"

#: The schema as it was before the lease, which is where version 1 starts from.
BEFORE_THE_LEASE: Final = (
    "CREATE TABLE IF NOT EXISTS runs ("
    " run_id TEXT PRIMARY KEY NOT NULL, status TEXT NOT NULL, plan TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS steps ("
    " run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,"
    " idx INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, args TEXT,"
    " status TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0,"
    " idempotency_key TEXT NOT NULL, result TEXT,"
    " PRIMARY KEY (run_id, idx))",
    "CREATE TABLE IF NOT EXISTS events ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,"
    " kind TEXT NOT NULL, body TEXT NOT NULL, at_ms INTEGER NOT NULL)",
)

THE_LEASE: Final = (
    "ALTER TABLE runs ADD COLUMN lease_owner TEXT",
    "ALTER TABLE runs ADD COLUMN lease_expires_at_ms INTEGER",
    "ALTER TABLE runs ADD COLUMN fencing_token INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN last_renewed_at_ms INTEGER",
    "ALTER TABLE runs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE steps ADD COLUMN needs_approval INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE steps ADD COLUMN fencing_token INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE steps ADD COLUMN compensating INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE steps ADD COLUMN unknown_since_ms INTEGER",
    "CREATE INDEX events_by_run ON events (run_id, seq)",
    "CREATE TABLE effects ("
    " idempotency_key TEXT PRIMARY KEY NOT NULL, run_id TEXT NOT NULL, idx INTEGER NOT NULL,"
    " name TEXT NOT NULL, owner TEXT NOT NULL, fencing_token INTEGER NOT NULL, result TEXT)",
    "CREATE TABLE reconciliations ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, idx INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, decision TEXT NOT NULL, asked TEXT NOT NULL,"
    " outcome TEXT NOT NULL, decided_by TEXT NOT NULL, fencing_token INTEGER NOT NULL,"
    " unknown_since_ms INTEGER NOT NULL, settled_at_ms INTEGER)",
    "CREATE INDEX reconciliations_by_run ON reconciliations (run_id, id)",
    # The last token of a run that was deleted: its id may come back, its tokens may not.
    "CREATE TABLE retired_tokens ("
    " run_id TEXT PRIMARY KEY NOT NULL, fencing_token INTEGER NOT NULL)",
    "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL)",
)

#: A process of an older version may still be executing such a run, and knows of no lease.
GRANT_GRACE = (
    "UPDATE runs SET lease_owner = :owner, lease_expires_at_ms = :now_ms + :ttl_ms, "
    "last_renewed_at_ms = :now_ms, fencing_token = 1 WHERE status = 'RUNNING'"
)

#: What makes a start by key happen once, however many processes ask for it.
ONE_RUN_PER_KEY = "CREATE UNIQUE INDEX runs_by_start_key ON runs (start_key)"

SLOTS_AND_KEYS: Final = (
    "ALTER TABLE runs ADD COLUMN start_key TEXT",
    "ALTER TABLE steps ADD COLUMN holds_slot INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE tool_slots (tool TEXT PRIMARY KEY NOT NULL, in_use INTEGER NOT NULL)",
)

#: The version that this runtime writes.
LATEST: Final = 2


def user_version(connection: sqlite3.Connection) -> int:
    """The version of the file; reads only."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection, path: str, *, now_ms: int) -> None:
    """Bring the file to the latest version.

    Raises NewerDatabase or ForeignDatabase, and then has changed nothing.
    """
    try:
        if not _is_old(connection, path):
            return
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise ForeignDatabase(path, f"is no SQLite database ({error})") from error
    with immediate(connection):
        # Look again under the write lock: another process may have been faster.
        if _is_old(connection, path):
            version = user_version(connection)
            if version == 0:
                _refuse_foreign(connection, path)
            _migrate_from(connection, version, now_ms)


def _is_old(connection: sqlite3.Connection, path: str) -> bool:
    version = user_version(connection)
    if version > LATEST:
        raise NewerDatabase(path, version, LATEST)
    return version < LATEST


def _refuse_foreign(connection: sqlite3.Connection, path: str) -> None:
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' "
            "ESCAPE '~'"
        )
    }
    if tables and not {"runs", "steps", "events"} <= tables:
        raise ForeignDatabase(path, f"has other tables: {', '.join(sorted(tables))}")
    if tables:
        columns = {row[1] for row in connection.execute("PRAGMA table_info (runs)")}
        if columns != {"run_id", "status", "plan"}:
            raise ForeignDatabase(path, f"its runs have the columns {', '.join(sorted(columns))}")


def _migrate_from(connection: sqlite3.Connection, version: int, now_ms: int) -> None:
    if version < 1:
        for statement in (*BEFORE_THE_LEASE, *THE_LEASE):
            connection.execute(statement)
        connection.execute(
            GRANT_GRACE,
            {"owner": PRE_LEASE_OWNER, "now_ms": now_ms, "ttl_ms": DEFAULT_LEASE_TTL_MS},
        )
    if version < 2:
        for statement in (*SLOTS_AND_KEYS, ONE_RUN_PER_KEY):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {LATEST}")
