"""A queue on one SQLite file, and how leasecheck drives it."""

import sqlite3

from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject

SCHEMA = """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY, status TEXT DEFAULT 'queued', owner TEXT, expires_ms INTEGER,
        fence INTEGER DEFAULT 0
    )
"""
CLAIM = """
    UPDATE jobs SET status = 'running', owner = ?, expires_ms = ?, fence = fence + 1
    WHERE id IN (
        SELECT id FROM jobs WHERE status = 'queued' OR status = 'running' AND expires_ms < ?
        LIMIT 1
    ) RETURNING id, fence
"""


class Queue(Subject):
    """Its last statement is fenced by the token."""

    runs = RunTable(
        "jobs",
        id="id",
        status="status",
        terminal={"done"},
        lease=Lease(owner="owner", expires_at="expires_ms", token="fence", unit="ms"),
    )
    clock = "given"
    lease_ttl_ms = 30_000
    last = "UPDATE jobs SET status='done', owner=NULL WHERE id=? AND fence=? AND status='running'"

    def prepare(self, db):
        with sqlite3.connect(db) as con:
            con.execute(SCHEMA)
        con.close()

    def submit(self, db, run_id):
        with sqlite3.connect(db) as con:
            con.execute("INSERT INTO jobs (id) VALUES (?)", (run_id,))
        con.close()

    def work(self, worker):
        con = sqlite3.connect(worker.db, isolation_level=None)
        now = worker.clock.now_ms()
        row = con.execute(CLAIM, (worker.name, now + 30_000, now)).fetchone()
        if row is not None:
            worker.effect("charge", run_id=row[0], token=row[1], key=row[0])
            con.execute(self.last, row[: self.last.count("?")])
        con.close()


class Unfenced(Queue):
    """Whoever is slow, writes last."""

    last = "UPDATE jobs SET status='done', owner=NULL WHERE id=?"
