"""A queue on plain sqlite3 in a few dozen lines: what honest programs are made of.

Every operation is guarded as it should be; a program that is to be wrong leaves a guard out by an
argument. Which program of a folder is wrong right now is named in a file beside the databases.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject, Writes
from pytest_leasecheck.testkit.worker import Worker, present_worker

#: The file, in a lane's work folder, that says whether the twins play.
SWITCH: Final = "twin.txt"
TTL_MS: Final = 30_000
_DEPTH: Final = 3

SCHEMA: Final = """
    CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT, owner TEXT, fence INTEGER, expires INTEGER,
                       note);
    CREATE TABLE results (job_id TEXT, part TEXT, body);
"""


class Claim(NamedTuple):
    """A lease as its holder knows it."""

    run_id: str
    owner: str
    token: int


def is_guilty(db: Path) -> bool:
    """Whether the twin is to play."""
    return any((folder / SWITCH).exists() for folder in db.parents[:_DEPTH])


class Queue:
    """A worker's queue: one autocommit connection, all SQL in the open."""

    def __init__(self, worker: Worker, *, ttl_ms: int = TTL_MS, owner: str = "") -> None:
        self.worker: Final = worker
        self.guilty: Final = is_guilty(worker.db)
        self.owner: Final = owner or f"{worker.name}/{worker.unique()}"
        self.ttl_ms: Final = ttl_ms
        self.sql: Final = connect(worker.db)

    def now(self) -> int:
        """Milliseconds, by this worker's clock."""
        return self.worker.clock.now_ms()

    def claim(self, *, owner: str = "", steals: bool = False) -> Claim | None:
        """The first job that is free, or whose lease has expired; a new token each time.

        `steals` leaves out the expiry, for one's own name.
        """
        now, owner = self.now(), owner or self.owner
        free = "owner IS NULL OR expires < ?" + (" OR owner = ?" if steals else " OR ? IS NULL")
        row = self.sql.execute(
            "UPDATE jobs SET owner = ?, fence = fence + 1, expires = ?, status = 'running'"
            " WHERE id = (SELECT id FROM jobs WHERE status IN ('queued', 'running')"
            f" AND ({free}) ORDER BY id LIMIT 1) RETURNING id, fence",
            (owner, now + self.ttl_ms, now, owner),
        ).fetchone()
        return Claim(row[0], owner, row[1]) if row else None

    def owns(self, claim: Claim) -> bool:
        """Whether the lease is held by this claim, and has not expired."""
        row = self.sql.execute(
            "SELECT owner, fence, expires FROM jobs WHERE id = ?", (claim.run_id,)
        ).fetchone()
        return row is not None and row[:2] == (claim.owner, claim.token) and row[2] > self.now()

    def store(self, claim: Claim, body: object, *, part: str = "", guarded: bool = True) -> bool:
        """A result, if the lease is still held; of an unguarded one, in any case."""
        if not guarded:
            sql = "INSERT INTO results (job_id, part, body) VALUES (?, ?, ?)"
            self.sql.execute(sql, (claim.run_id, part, body))
            return True
        return (
            self.sql.execute(
                "INSERT INTO results (job_id, part, body) SELECT id, ?, ? FROM jobs"
                " WHERE id = ? AND owner = ? AND fence = ? AND expires > ?",
                (part, body, *claim, self.now()),
            ).rowcount
            == 1
        )

    def finish(self, claim: Claim, *, guarded: bool = True) -> bool:
        """Done, and no lease any more."""
        guard = " AND owner = ? AND fence = ? AND expires > ?" if guarded else ""
        values = (*claim, self.now())[: 4 if guarded else 1]
        return (
            self.sql.execute(
                "UPDATE jobs SET status = 'done', owner = NULL, expires = NULL"
                f" WHERE id = ?{guard}",
                values,
            ).rowcount
            == 1
        )

    def release(self, claim: Claim) -> bool:
        """Back into the queue."""
        return (
            self.sql.execute(
                "UPDATE jobs SET status = 'queued', owner = NULL, expires = NULL"
                " WHERE id = ? AND owner = ? AND fence = ?",
                claim,
            ).rowcount
            == 1
        )

    def requeue_expired(self, *, guarded: bool = True) -> int:
        """What a janitor does: leases whose holder is late go back into the queue."""
        return self.sql.execute(
            "UPDATE jobs SET status = 'queued', owner = NULL, expires = NULL"
            " WHERE status = 'running' AND expires < ?",
            (self.now() if guarded else 2**60,),
        ).rowcount

    def write(self, claim: Claim) -> bool:
        """Store and finish in one transaction, with one guard."""
        self.sql.execute("BEGIN IMMEDIATE")
        if self.finish(claim):
            self.store(claim, "result", guarded=False)
            self.sql.execute("COMMIT")
            return True
        self.sql.execute("ROLLBACK")
        return False


class Tiny(Subject):
    """The queue declared. `work` is a plain honest worker; each program is a job of its own."""

    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done", "failed", "cancelled"},
        lease=Lease(owner="owner", expires_at="expires", token="fence", unit="ms"),
    )  # fmt: skip
    writes: ClassVar[tuple[Writes, ...]] = (Writes("results", run="job_id"),)
    capabilities = frozenset({"checks_expiry", "cancels", "reaps"})
    clock = "given"
    lease_ttl_ms = TTL_MS
    journal: ClassVar[str] = "WAL"

    def prepare(self, db: Path) -> None:
        sql = connect(db)
        sql.execute(f"PRAGMA journal_mode = {self.journal}")
        sql.executescript(SCHEMA)
        sql.close()

    def submit(self, db: Path, run_id: str) -> None:
        connect(db).execute("INSERT INTO jobs VALUES (?, 'queued', NULL, 0, NULL, '')", (run_id,))

    def cancel(self, db: Path, run_id: str) -> None:
        connect(db).execute(
            "UPDATE jobs SET status = 'cancelled', owner = NULL, expires = NULL, note = 'by hand'"
            " WHERE id = ? AND status <> 'done'",
            (run_id,),
        )

    def approve(self, db: Path, run_id: str) -> None:
        """An operator who edits a job, whoever holds it."""
        connect(db).execute("UPDATE jobs SET note = 'urgent' WHERE id = ?", (run_id,))

    def work(self, worker: Worker) -> object:
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        worker.point("working")
        return "done" if queue.write(claim) else "lost"

    def reap(self, worker: Worker) -> object:
        queue = self.queue(worker)
        return queue.requeue_expired(guarded=not queue.guilty)

    def queue(self, worker: Worker) -> Queue:
        """This worker's queue."""
        return Queue(worker, ttl_ms=self.lease_ttl_ms)


def connect(db: Path) -> sqlite3.Connection:
    """An autocommit connection that waits for a lock."""
    return sqlite3.connect(db, isolation_level=None, timeout=5)


def operators_now_ms() -> int:
    """The stage's time in an operator's process."""
    worker = present_worker()
    return worker.clock.now_ms() if worker is not None else 0
