"""gigq 0.5.1, declared. Needs the environment that `python -m tests.wild.envs gigq` builds.

A job's lease is `started_at` plus `timeout`; there is no token and no heartbeat. Every worker puts
back what is overdue before it claims, so a take-over is two commits of the same worker.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import gigq
from gigq.job_queue import JobQueue

from pytest_leasecheck.testkit.subject import After, Lease, RunTable, Subject, Writes
from pytest_leasecheck.testkit.worker import Worker

_WORKER = "gigq.worker:Worker."

#: Whose handler `charge` is; gigq finds a job's function by its module and name.
_worker: Worker | None = None


def charge(run: str) -> object:
    """The job: one effect, whose receipt becomes the job's result."""
    assert _worker is not None
    return _worker.effect("charge", run_id=run)


class GigQueue(Subject):
    """One worker that goes on until nothing is pending."""

    runs = RunTable(
        "jobs",
        id="id",
        status="status",
        terminal={"completed", "failed", "cancelled", "timeout"},
        lease=Lease(
            owner="worker_id",
            held={"status": {"running"}},
            expires_at=After("started_at", "timeout"),
            unit="local iso",
            generation=("attempts", "started_at"),
        ),
    )
    writes = (Writes("job_executions", run="job_id"),)
    claims = (f"{_WORKER}_claim_job",)
    reapers = (f"{_WORKER}_check_for_timeouts",)
    calls = (f"{_WORKER}_complete_job",)
    capabilities = frozenset({"reaps"})
    # Its expiry is datetime.now(), which can be moved. The lease is short for those who play it on
    # the wall clock all the same.
    clock = "patched"
    lease_ttl_ms = 1_000

    #: How often a job is tried in all.
    attempts: ClassVar[int] = 5

    def prepare(self, db: Path) -> None:
        """The schema. Connections are cached by thread and path, so they are closed here."""
        JobQueue(str(db)).close()

    def submit(self, db: Path, run_id: str) -> None:
        """One job with the run's id."""
        queue = JobQueue(str(db), initialize=False)
        job = gigq.Job(
            run_id,
            charge,
            params={"run": run_id},
            timeout=self.lease_ttl_ms / 1000,
            max_attempts=self.attempts,
        )
        job.id = run_id
        queue.submit(job)
        queue.close()

    def work(self, worker: Worker) -> str:
        """Reap, claim, execute, complete, until there is nothing to claim."""
        global _worker
        _worker = worker
        gig = gigq.Worker(str(worker.db), worker_id=worker.name)
        done = 0
        try:
            while gig.process_one():
                done += 1
        finally:
            gig.close()
        return f"processed {done}"

    def reap(self, worker: Worker) -> None:
        """Put back what is overdue, and nothing else."""
        gig = gigq.Worker(str(worker.db), worker_id=worker.name)
        try:
            gig._check_for_timeouts()
        finally:
            gig.close()
