"""A queue whose connections keep the database file to themselves, and relatives of it.

Honest ones write under their lease's guard. `Careless` and its kind finish whatever they once had.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import ClassVar

from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject
from pytest_leasecheck.testkit.worker import Worker

TTL_MS = 10_000
#: More than a cache of one page holds.
_MANY = 200


class Exclusive(Subject):
    """With a rollback journal."""

    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done"},
        lease=Lease(owner="owner", expires_at="expires", token="fence", unit="ms"),
    )  # fmt: skip
    capabilities = frozenset({"checks_expiry"})
    clock = "given"
    lease_ttl_ms = TTL_MS
    journal: ClassVar[str] = "DELETE"
    guarded: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def prepare(self, db: Path) -> None:
        sql = sqlite3.connect(db)
        sql.execute(f"PRAGMA journal_mode = {self.journal}")
        sql.execute(
            "CREATE TABLE jobs (id TEXT PRIMARY KEY, status, owner, fence INTEGER, expires, note)"
        )
        sql.close()

    def submit(self, db: Path, run_id: str) -> None:
        sql = sqlite3.connect(db, isolation_level=None, timeout=0.02)
        sql.execute("INSERT INTO jobs VALUES (?, 'queued', NULL, 0, NULL, NULL)", (run_id,))
        sql.close()

    def work(self, worker: Worker) -> str:
        sql = self._open(worker)
        claim = self._claim(sql, worker)
        if claim is None:
            return "nothing to do"
        worker.point("working")
        return "done" if self._finish(sql, worker, claim) else "lost"

    def opens_anew(self, worker: Worker) -> str:
        """Lets the file go between its claim and its end."""
        sql = self._open(worker)
        claim = self._claim(sql, worker)
        sql.close()
        worker.point("working")
        assert claim is not None
        return "done" if self._finish(self._open(worker), worker, claim) else "lost"

    def locks_later(self, worker: Worker) -> str:
        """Commits, and is in a transaction of its own that keeps readers out when it is held."""
        sql = self._open(worker)
        claim = self._claim(sql, worker)
        assert claim is not None
        sql.execute("BEGIN EXCLUSIVE")
        worker.point("working")
        sql.execute("COMMIT")
        return "done" if self._finish(sql, worker, claim) else "lost"

    def spills(self, worker: Worker) -> str:
        """Is held when pages of a transaction that is not over are in the file."""
        sql = self._open(worker)
        sql.execute("PRAGMA cache_size = 1")
        sql.execute("BEGIN")
        for number in range(_MANY):
            row = (f"s{number}", "done", "x" * 500)
            sql.execute("INSERT INTO jobs (id, status, fence, note) VALUES (?, ?, 0, ?)", row)
        worker.point("spilled")
        sql.execute("ROLLBACK" if worker.name.startswith("R") else "COMMIT")
        sql.close()
        return "spilled"

    def _open(self, worker: Worker) -> sqlite3.Connection:
        sql = sqlite3.connect(worker.db, isolation_level=None, timeout=0.02)
        if self.keeps:
            sql.execute("PRAGMA locking_mode = EXCLUSIVE")
        return sql

    def _claim(self, sql: sqlite3.Connection, worker: Worker) -> tuple[str, int] | None:
        now = worker.clock.now_ms()
        found: tuple[str, int] | None = sql.execute(
            "UPDATE jobs SET status = 'running', owner = ?, fence = fence + 1, expires = ? WHERE"
            " status = 'queued' OR status = 'running' AND expires < ? RETURNING id, fence",
            (worker.unique(), now + self.lease_ttl_ms, now),
        ).fetchone()
        return found

    def _finish(self, sql: sqlite3.Connection, worker: Worker, claim: tuple[str, int]) -> bool:
        guard = " AND fence = ? AND expires > ?" if self.guarded else ""
        values = (*claim, worker.clock.now_ms())[: 3 if self.guarded else 1]
        done = sql.execute(
            "UPDATE jobs SET status = 'done', owner = NULL, expires = NULL, note = ?"
            f" WHERE id = ?{guard}",
            (worker.name, *values),
        )
        return done.rowcount == 1


class Careless(Exclusive):
    guarded = False


class Persisting(Careless):
    journal = "PERSIST"


class InWal(Exclusive):
    journal = "WAL"


class CarelessInWal(InWal):
    guarded = False


class Fleeting(InWal):
    """Without an observer's connection that is there between two looks."""

    observer = "brief"


class CarelessFleeting(Fleeting):
    guarded = False


class Plain(Exclusive):
    """Rollback journal, and every lock let go."""

    keeps = False
