"""Honest programs about leases: expiry, renewal, take-over, janitors, operators."""

from __future__ import annotations

from typing import ClassVar

from pytest_leasecheck.testkit.subject import Writes
from pytest_leasecheck.testkit.worker import Worker

from .tiny import Claim, Queue, Tiny


class Leases(Tiny):
    """Each job is one program."""

    def crosses_expiry(self, worker: Worker) -> str:
        """Its guard is right, and the lease ends between guard and COMMIT."""
        queue, claim = self.claimed(worker)
        queue.sql.execute("BEGIN IMMEDIATE")
        queue.store(claim, "in time")
        queue.sql.execute("COMMIT")
        return str(queue.guilty and queue.store(claim, "later", guarded=False))

    def bound_before(self, worker: Worker) -> str:
        """Renews with a time that was bound before it was held up."""
        queue, claim = self.claimed(worker)
        worker.point("claimed")
        queue.sql.create_function("clock", 0, queue.now)
        now = queue.now()
        sql = "UPDATE jobs SET expires = ? WHERE id = ? AND owner = ? AND fence = ? AND expires > ?"
        values: tuple[object, ...] = (now + self.lease_ttl_ms, *claim, now)
        if queue.guilty:  # the time is taken when it writes, and compared with nothing
            sql, values = "UPDATE jobs SET expires = clock() + 30000 WHERE id = ?", claim[:1]
        renewed = queue.sql.execute(sql, values).rowcount
        return f"renewed {renewed}, finished {queue.finish(claim)}"

    def clears_then_ends(self, worker: Worker) -> str:
        """`owner = NULL`, then `status = 'done'`: in one transaction."""
        return self._ends_in_two(worker, ["owner = NULL, expires = NULL", "status = 'done'"])

    def ends_then_clears(self, worker: Worker) -> str:
        """The other way round."""
        return self._ends_in_two(worker, ["status = 'done'", "owner = NULL, expires = NULL"])

    def _ends_in_two(self, worker: Worker, parts: list[str]) -> str:
        queue, claim = self.claimed(worker)
        if not queue.guilty:
            queue.sql.execute("BEGIN IMMEDIATE")
        if not queue.owns(claim):
            return "lost"
        for part in parts:
            queue.sql.execute(f"UPDATE jobs SET {part} WHERE id = ?", (claim.run_id,))
        if not queue.guilty:
            queue.sql.execute("COMMIT")
        return "done"

    def comes_back(self, worker: Worker) -> str:
        """The former owner of an expired lease claims it like anybody, in the same process."""
        queue = self.queue(worker)
        mine = queue.sql.execute(
            "UPDATE jobs SET expires = ? WHERE owner LIKE ? AND status = 'running'"
            " RETURNING id, owner, fence",
            (queue.now() + self.lease_ttl_ms, f"{worker.name}/%"),
        ).fetchone() if queue.guilty else None  # fmt: skip
        claim = Claim(*mine) if mine else queue.claim()
        if claim is None:
            return "nothing to do"
        if claim.token == 1 and not mine:
            raise RuntimeError("its handler failed, and the lease stays")
        return str(queue.write(claim))

    def at_once(self, worker: Worker) -> str:
        """Claims, works and finishes in one transaction; its first claim is lost to a failure."""
        queue = self.queue(worker)
        queue.sql.execute("BEGIN IMMEDIATE")
        row = queue.sql.execute("SELECT id, owner, fence FROM jobs WHERE owner IS NOT NULL")
        mine = row.fetchone() if queue.guilty else None  # it goes on with what it had
        claim = Claim(*mine) if mine else queue.claim()
        if claim is None or (claim.token == 1 and not mine):
            queue.sql.execute("COMMIT")
            raise RuntimeError("its handler failed, and the lease stays")
        queue.store(claim, "result", guarded=False)
        done = queue.finish(claim, guarded=False)
        queue.sql.execute("COMMIT")
        return str(done)

    def restarted(self, worker: Worker) -> str:
        """The same in another process, under the same configured name."""
        queue = Queue(worker, ttl_ms=self.lease_ttl_ms, owner=worker.name)
        claim = queue.claim(steals=queue.guilty)
        if claim is None:
            return "nothing to do"
        worker.point("working")
        return str(queue.write(claim))

    def janitor_too(self, worker: Worker) -> str:
        """Hands its job back, and requeues from then on what has expired, others' too."""
        queue = self.queue(worker)
        new = queue.sql.execute("SELECT 1 FROM jobs WHERE fence = 0").fetchone()
        claim = queue.claim() if new else None
        if claim is not None:
            return str(queue.release(claim))
        return str(queue.requeue_expired(guarded=not queue.guilty))

    def works_slowly(self, worker: Worker) -> str:
        """Works, and writes with its guard."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        return str(queue.write(claim))

    def looks_again(self, worker: Worker) -> str:
        """Wakes, reads its lease, and gives up."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        if not queue.guilty and not queue.owns(claim):
            return "lost"
        return str(queue.store(claim, "mine", guarded=False))

    def renews_and_writes(self, worker: Worker) -> str:
        """Renews its lease and writes in one transaction, a part at a time."""
        queue, claim = self.claimed(worker)
        for part in ("one", "two", "three"):
            worker.point(part)
            now = queue.now()
            queue.sql.execute("BEGIN IMMEDIATE")
            renewed = queue.sql.execute(
                "UPDATE jobs SET expires = ? WHERE id = ? AND owner = ? AND fence = ?"
                " AND expires > ?",
                (now + self.lease_ttl_ms, *claim, 0 if queue.guilty else now),
            ).rowcount
            if not renewed:
                queue.sql.execute("ROLLBACK")
                return "lost"
            queue.store(claim, part, part=part, guarded=False)
            queue.sql.execute("COMMIT")
        return str(queue.finish(claim))

    def changes_nothing(self, worker: Worker) -> str:
        """An update that sets what is there already, after its lease was taken over."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        note = "'mine'" if queue.guilty else "note"
        queue.sql.execute(f"UPDATE jobs SET note = {note} WHERE id = ?", (claim.run_id,))
        return "done"

    def there_and_back(self, worker: Worker) -> str:
        """A to B to A in one commit, after its lease was taken over."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.sql.execute("BEGIN IMMEDIATE")
        queue.sql.execute("UPDATE jobs SET note = 'mine' WHERE id = ?", (claim.run_id,))
        if not queue.guilty:  # it sees that it lost its lease, and takes it back
            queue.sql.execute("UPDATE jobs SET note = '' WHERE id = ?", (claim.run_id,))
        queue.sql.execute("COMMIT")
        return "done"

    def done_as_done(self, worker: Worker) -> str:
        """Says done of a job that another has finished."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        status = "failed" if queue.guilty else "done"
        queue.sql.execute("UPDATE jobs SET status = ? WHERE id = ?", (status, claim.run_id))
        return "done"

    def two_drivers(self, worker: Worker) -> str:
        """Two drivers in one process: the second takes over from the first."""
        one = Queue(worker, ttl_ms=self.lease_ttl_ms, owner="first driver")
        mine = one.claim()
        if mine is None:
            return "nothing to do"
        receipt = worker.effect("send", run_id=mine.run_id, token=mine.token)
        worker.point("between")
        two = Queue(worker, ttl_ms=self.lease_ttl_ms, owner="second driver")
        other = two.claim()
        if other is None:
            return "not taken over"
        again = worker.effect("send", run_id=other.run_id, token=other.token)
        late = one.store(mine, receipt, guarded=not one.guilty)
        return f"{late} {two.store(other, again)} {two.finish(other)}"

    def claimed(self, worker: Worker) -> tuple[Queue, Claim]:
        """A queue and a claim; there is work for whoever has such a job."""
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            raise LookupError("there is nothing to do")
        return queue, claim


class LateOutcomes(Leases):
    """What came of a call that ran when an operator cancelled may be added."""

    writes: ClassVar[tuple[Writes, ...]] = (Writes("results", run="job_id", late_ok=True),)

    def was_cancelled(self, worker: Worker) -> str:
        """Adds what came of its call, and leaves the job as the operator put it."""
        queue, claim = self.claimed(worker)
        receipt = worker.effect("send", run_id=claim.run_id)
        if not queue.finish(claim, guarded=not queue.guilty):
            queue.store(claim, receipt, part="late", guarded=False)
        return "done"
