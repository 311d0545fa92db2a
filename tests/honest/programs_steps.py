"""Honest programs about effects and interrupted steps, and one whose finished jobs are deleted."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from pytest_leasecheck.testkit.subject import Reconciliations, Steps
from pytest_leasecheck.testkit.worker import Worker

from .programs_leases import Leases
from .tiny import Claim, Queue, Tiny, connect


class Idempotent(Leases):
    """Its requests arrive at least once; the provider carries each key out once."""

    delivery = "exactly-once"

    def work(self, worker: Worker) -> object:
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        key = None if queue.guilty else f"{claim.run_id}/send"
        receipt = worker.effect("send", run_id=claim.run_id, token=claim.token, key=key)
        return str(queue.store(claim, receipt) and queue.finish(claim))


class Stepped(Tiny):
    """Records that its step starts; after a crash one decision is recorded, and it is retried."""

    steps = Steps(
        "steps", run="job_id", id=("name",), status="status", started={"started"},
        finished={"finished"}, interrupted={"interrupted"}, result="result",
    )  # fmt: skip
    reconciliations = Reconciliations(
        "decisions", run="job_id", step=("name",), decision="decision", decided_by="by"
    )
    capabilities = frozenset({"checks_expiry", "reconciles"})

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connect(db).executescript(
            "CREATE TABLE steps (job_id, name, status, result, PRIMARY KEY (job_id, name));"
            "CREATE TABLE decisions (job_id, name, decision, by);"
        )

    def work(self, worker: Worker) -> object:
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        self._recover(queue, claim, worker)
        self._set(queue, claim, "started")
        receipt = worker.effect("send", run_id=claim.run_id, token=claim.token)
        self._set(queue, claim, "finished", receipt)
        return str(queue.finish(claim))

    def _recover(self, queue: Queue, claim: Claim, worker: Worker) -> None:
        found = queue.sql.execute(
            "SELECT status FROM steps WHERE job_id = ?", (claim.run_id,)
        ).fetchone()
        if found is None or found[0] == "finished":
            return
        self._set(queue, claim, "interrupted")
        worker.point("recovering")
        for _ in range(2 if queue.guilty else 1):
            queue.sql.execute(
                "INSERT INTO decisions SELECT id, 'send', 'retry', owner FROM jobs"
                " WHERE id = ? AND owner = ? AND fence = ?",
                claim,
            )

    def _set(self, queue: Queue, claim: Claim, status: str, result: str | None = None) -> None:
        queue.sql.execute(
            "INSERT INTO steps SELECT id, 'send', ?, ? FROM jobs"
            " WHERE id = ? AND owner = ? AND fence = ? AND expires > ?"
            " ON CONFLICT DO UPDATE SET status = excluded.status, result = excluded.result",
            (status, result, *claim, queue.now()),
        )


class Deleting(Tiny):
    """A finished job's row is deleted; its results were stored just before."""

    runs = replace(Tiny.runs, gone=True)

    def work(self, worker: Worker) -> object:
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        worker.point("working")
        queue.sql.execute("BEGIN IMMEDIATE")
        stored = queue.store(claim, "result", guarded=not queue.guilty)
        gone = self._delete(queue.sql, claim)
        queue.sql.execute("COMMIT" if stored else "ROLLBACK")
        return f"stored {stored}, deleted {gone}"

    def _delete(self, sql: sqlite3.Connection, claim: Claim) -> bool:
        return (
            sql.execute("DELETE FROM jobs WHERE id = ? AND owner = ? AND fence = ?", claim).rowcount
            == 1
        )
