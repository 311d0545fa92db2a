"""Honest programs that do with SQLite what one can do with it, and lose their lease meanwhile.

In each the worker is held in the middle, another takes the job over, and the first goes on. What it
does then is right; its twin's guard is missing.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import ClassVar

from pytest_leasecheck.testkit.subject import Writes
from pytest_leasecheck.testkit.worker import Worker

from .programs_leases import Leases
from .tiny import connect

KINDS = """
    CREATE TABLE exact (job_id TEXT NOT NULL, size INTEGER, PRIMARY KEY (job_id)) STRICT;
    CREATE TABLE packed (job_id TEXT, part INTEGER, body BLOB, PRIMARY KEY (job_id, part))
        WITHOUT ROWID;
    CREATE TABLE log (job_id TEXT, was TEXT, "is" TEXT);
    CREATE TRIGGER logged AFTER UPDATE OF status ON jobs WHEN old.status <> new.status BEGIN
        INSERT INTO log VALUES (new.id, old.status, new.status); END;
    CREATE TABLE parts (job_id TEXT REFERENCES jobs (id) ON DELETE CASCADE, body);
    CREATE VIRTUAL TABLE docs USING fts5(job_id UNINDEXED, body);
"""


class Rich(Leases):
    """A schema with a bit of everything, all of it declared."""

    writes: ClassVar[tuple[Writes, ...]] = tuple(
        Writes(table, run="job_id")
        for table in ("results", "exact", "packed", "log", "parts", "docs")
    )

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connect(db).executescript(KINDS)

    def blobs(self, worker: Worker) -> str:
        """Stores bytes, guarded."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        body = bytes(range(256))
        return str(queue.store(claim, body, guarded=not queue.guilty) and queue.finish(claim))

    def strict_and_packed(self, worker: Worker) -> str:
        """STRICT and WITHOUT ROWID tables."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.sql.execute("BEGIN IMMEDIATE")
        if not (queue.owns(claim) or queue.guilty):
            queue.sql.execute("ROLLBACK")
            return "lost"
        queue.sql.execute("INSERT OR REPLACE INTO exact VALUES (?, 7)", claim[:1])
        queue.sql.execute("INSERT OR REPLACE INTO packed VALUES (?, 1, x'00ff')", claim[:1])
        queue.sql.execute("COMMIT")
        return str(queue.finish(claim))

    def triggers(self, worker: Worker) -> str:
        """A trigger of the runtime's own writes a log, whoever changes a status."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        return str(queue.finish(claim, guarded=not queue.guilty))

    def full_text(self, worker: Worker) -> str:
        """A full-text index with many tables of its own behind it."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        if queue.guilty or queue.store(claim, "some words"):
            queue.sql.execute("INSERT INTO docs VALUES (?, 'some words')", claim[:1])
        return str(queue.finish(claim))

    def foreign_keys(self, worker: Worker) -> str:
        """Rows that go with their job."""
        queue, claim = self.claimed(worker)
        queue.sql.execute("PRAGMA foreign_keys = ON")
        queue.sql.execute("INSERT INTO parts VALUES (?, 'part')", claim[:1])
        worker.point("working")
        if queue.finish(claim) or queue.guilty:
            queue.sql.execute("DELETE FROM jobs WHERE id = ?", claim[:1])
        return "done"

    def savepoints(self, worker: Worker) -> str:
        """Writes first and looks then: what it must not have written is rolled back to a point."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.sql.execute("BEGIN IMMEDIATE")
        queue.sql.execute("SAVEPOINT mine")
        queue.store(claim, "mine", guarded=False)
        if not (queue.owns(claim) or queue.guilty):
            queue.sql.execute("ROLLBACK TO mine")
        queue.sql.execute("RELEASE mine")
        queue.sql.execute("COMMIT")
        return str(queue.finish(claim))

    def attached(self, worker: Worker) -> str:
        """Keeps its own copy of every result, in a table of the same name in a file beside."""
        queue, claim = self.claimed(worker)
        queue.sql.execute("ATTACH ? AS beside", (f"{worker.db}.beside",))
        queue.sql.execute("CREATE TABLE IF NOT EXISTS beside.results (job_id, part, body)")
        worker.point("working")
        where = "main" if queue.guilty else "beside"
        queue.sql.execute(f"INSERT INTO {where}.results VALUES (?, '', 'mine')", claim[:1])
        return str(queue.finish(claim))

    def migrates(self, worker: Worker) -> str:
        """A worker that had a job migrates the database while another has it."""
        queue, claim = self.claimed(worker)
        queue.store(claim, "begun", part="begun")
        worker.point("working")
        queue.sql.execute("BEGIN IMMEDIATE")
        queue.sql.execute("ALTER TABLE jobs ADD COLUMN priority INTEGER DEFAULT 5")
        queue.sql.execute("UPDATE jobs SET priority = 6")
        queue.sql.execute("CREATE TABLE fresh (job_id TEXT, part TEXT, body, at INTEGER)")
        queue.sql.execute("INSERT INTO fresh SELECT job_id, part, body, 0 FROM results")
        queue.sql.execute("DROP TABLE results")
        queue.sql.execute("ALTER TABLE fresh RENAME TO results")
        if queue.guilty:
            queue.sql.execute("UPDATE jobs SET status = 'queued' WHERE status = 'running'")
        queue.sql.execute("COMMIT")
        return str(queue.finish(claim))

    def vacuums(self, worker: Worker) -> str:
        """A worker that had a job tidies up while another has it: rowids change."""
        queue, claim = self.claimed(worker)
        for part in ("one", "two", "three"):
            queue.store(claim, part, part=part)
        queue.sql.execute("DELETE FROM results WHERE part = 'one'")
        worker.point("working")
        if queue.guilty:
            queue.sql.execute("DELETE FROM results WHERE part = 'two'")
        queue.sql.execute("VACUUM")
        return str(queue.finish(claim))

    def reads_only(self, worker: Worker) -> str:
        """Tries to write by a connection that can only read."""
        queue, claim = self.claimed(worker)
        mode = "rw" if queue.guilty else "ro"
        sql = sqlite3.connect(f"file:{worker.db}?mode={mode}", uri=True, isolation_level=None)
        worker.point("working")
        try:
            sql.execute("UPDATE jobs SET note = 'mine' WHERE id = ?", claim[:1])
        except sqlite3.OperationalError as error:
            return str(error)
        return str(sql.execute("SELECT status FROM jobs WHERE id = ?", claim[:1]).fetchall())

    def temporary(self, worker: Worker) -> str:
        """A temporary table of the same name as a declared one."""
        queue, claim = self.claimed(worker)
        queue.sql.execute("PRAGMA temp_store = MEMORY")
        if not queue.guilty:
            queue.sql.execute("CREATE TEMP TABLE results (job_id, part, body)")
        worker.point("working")
        queue.store(claim, "mine", guarded=False)
        return str(queue.finish(claim))

    def by_itself(self, worker: Worker) -> str:
        """Every statement is its own transaction, with the guard inside."""
        queue, claim = self.claimed(worker)
        queue.store(claim, "one", part="one")
        worker.point("working")
        queue.store(claim, "two", part="two", guarded=not queue.guilty)
        return str(queue.finish(claim))


class RollbackJournal(Rich):
    """The same with a rollback journal."""

    journal = "DELETE"


class Crowd(Leases):
    """Five thousand jobs of others in the same table: some done, some held, some long expired."""

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        with connect(db) as sql:
            sql.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
                " INSERT INTO jobs SELECT printf('x%05d', i),"
                " CASE i % 3 WHEN 0 THEN 'done' ELSE 'other' END,"
                " CASE i % 3 WHEN 0 THEN NULL ELSE 'somebody' END, 1,"
                " CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN 1 ELSE 4000000000000 END, '' FROM n"
            )

    def among_many(self, worker: Worker) -> str:
        """Works, and writes with its guard."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        if queue.guilty:  # one condition too few
            queue.sql.execute("UPDATE jobs SET note = 'mine' WHERE status <> 'other'")
        return str(queue.write(claim))
