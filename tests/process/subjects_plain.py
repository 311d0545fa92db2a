"""A queue on plain sqlite3 whose workers have many small jobs: `spawn A to JOB`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from pytest_leasecheck import point
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject
from pytest_leasecheck.testkit.worker import Worker

SCHEMA = """
    CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT, owner TEXT, fence INTEGER, note);
    INSERT INTO jobs VALUES ('a', 'queued', NULL, 0, NULL), ('b', 'queued', NULL, 0, NULL);
"""


class Plain(Subject):
    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done"},
        lease=Lease(owner="owner", token="fence"),
    )  # fmt: skip
    clock = "given"
    lease_ttl_ms = 10_000
    journal = "WAL"

    def prepare(self, db: Path) -> None:
        connection = sqlite3.connect(db)
        connection.execute(f"PRAGMA journal_mode={self.journal}")
        connection.executescript(SCHEMA)
        connection.close()

    def submit(self, db: Path, run_id: str) -> None:
        with sqlite3.connect(db) as connection:
            connection.execute("INSERT INTO jobs VALUES (?, 'queued', NULL, 0, NULL)", (run_id,))

    def work(self, worker: Worker) -> object:
        return update(worker.db, "a", worker.name)


class Rollback(Plain):
    journal = "DELETE"


class Truncating(Plain):
    journal = "TRUNCATE"


def update(db: Path, run_id: str, note: Any) -> int:
    """One autocommit write."""
    connection = sqlite3.connect(db, isolation_level=None)
    try:
        return connection.execute("UPDATE jobs SET note = ? WHERE id = ?", (note, run_id)).rowcount
    finally:
        connection.close()


def own_point(name: str) -> None:
    """A consumer's code calls `point` somewhere deep."""
    point(name)
