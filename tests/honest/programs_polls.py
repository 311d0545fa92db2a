"""Honest programs about what a worker does to runs that are not its own: polls, dispatchers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_leasecheck.testkit.subject import Lease, RunTable
from pytest_leasecheck.testkit.worker import Worker

from .programs_leases import Leases
from .tiny import Claim, Queue, connect

_FREED = "owner = NULL, expires = NULL"


class Polls(Leases):
    """Each job is one program. One that has lost its job goes on as any other worker would."""

    def buries(self, worker: Worker) -> str:
        """Its next poll gives up what has expired twice; the guilty one's, what lives as well."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.write(claim)
        return self._polls(
            queue, f"SET status = 'failed', {_FREED} WHERE fence >= 2 AND expires < ?",
            queue.now() if not queue.guilty else 2**60,
        )  # fmt: skip

    def reads_then_buries(self, worker: Worker) -> str:
        """Its next poll reads what has expired and gives that up by name, in one transaction.

        The guilty one has read before its transaction began.
        """
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.write(claim)
        if not queue.guilty:
            queue.sql.execute("BEGIN IMMEDIATE")
        rows = queue.sql.execute(
            "SELECT id FROM jobs WHERE fence >= 2 AND expires < ?", (queue.now(),)
        ).fetchall()
        if queue.guilty:
            queue.sql.execute("BEGIN IMMEDIATE")
        sql = f"UPDATE jobs SET status = 'failed', {_FREED} WHERE id = ?"
        queue.sql.executemany(sql, rows)
        queue.sql.execute("COMMIT")
        return str(len(rows))

    def ages(self, worker: Worker) -> str:
        """Its next poll marks what waits; the guilty one still marks what it takes for its own."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.write(claim)
        if queue.guilty:
            return self._polls(queue, "SET note = 'late' WHERE id = ?", claim.run_id)
        return self._polls(queue, "SET note = 'old' WHERE status = ?", "queued")

    def clears(self, worker: Worker) -> str:
        """Its next poll deletes what is done; the guilty one's, what has its job's name."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.write(claim)
        if queue.guilty:
            queue.sql.execute("DELETE FROM jobs WHERE id = ?", claim[:1])
        queue.sql.execute("DELETE FROM jobs WHERE status = 'done'")
        return "cleared"

    def _polls(self, queue: Queue, sql: str, value: object) -> str:
        return str(queue.sql.execute(f"UPDATE jobs {sql}", (value,)).rowcount)

    def remembers(self, worker: Worker) -> str:
        """Keeps what it was answered, and stores that when it has claimed its job anew.

        The guilty one asks again in its new execution, and stores the old answer all the same.
        """
        queue, claim = self.claimed(worker)
        answer = worker.effect("send", run_id=claim.run_id, token=claim.token, key=claim.run_id)
        worker.point("working")
        if queue.store(claim, answer):
            return str(queue.finish(claim))
        again = queue.claim()
        assert again is not None
        if queue.guilty:
            worker.effect("send", run_id=again.run_id, token=again.token, key=again.run_id)
        return f"stored {queue.store(again, answer)}, finished {queue.finish(again)}"

    def assigns(self, worker: Worker) -> str:
        """A dispatcher: jobs that wait or have expired are given to A first, then to B."""
        now = self.queue(worker).now()
        rows = self.queue(worker).sql.execute(
            "UPDATE jobs SET owner = CASE fence % 2 WHEN 0 THEN 'A' ELSE 'B' END,"
            " fence = fence + 1, expires = ?, status = 'running'"
            " WHERE status IN ('queued', 'running') AND (owner IS NULL OR expires < ?)",
            (now + self.lease_ttl_ms, now),
        )
        return str(rows.rowcount)

    def is_given(self, worker: Worker) -> str:
        """Works on what a dispatcher gave it, and claims nothing."""
        queue = Queue(worker, ttl_ms=self.lease_ttl_ms, owner=worker.name)
        row = queue.sql.execute(
            "SELECT id, owner, fence FROM jobs WHERE owner = ? AND expires > ?",
            (queue.owner, queue.now()),
        ).fetchone()
        claim = Claim(*row)
        worker.point("working")
        return str(queue.finish(claim, guarded=not queue.guilty))

    def hands_over(self, worker: Worker) -> str:
        """Gives its job to B by name; the guilty one writes to it afterwards."""
        queue = Queue(worker, ttl_ms=self.lease_ttl_ms, owner=worker.name)
        claim = queue.claim()
        assert claim is not None
        queue.sql.execute(
            "UPDATE jobs SET owner = 'B', fence = fence + 1, expires = ?"
            " WHERE id = ? AND owner = ? AND fence = ? AND expires > ?",
            (queue.now() + self.lease_ttl_ms, *claim, queue.now()),
        )
        worker.point("given")
        return str(queue.store(claim, "mine", guarded=not queue.guilty))


class Locks(Leases):
    """Locks in a table of their own, never deleted: one is given back by ending its time."""

    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done", "failed", "cancelled"},
        lease=Lease(
            table="locks", run="job_id", owner="owner", expires_at="until", token="fence", unit="ms"
        ),
    )  # fmt: skip

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connect(db).execute(
            "CREATE TABLE locks (job_id TEXT PRIMARY KEY, owner TEXT, until INTEGER, fence INTEGER)"
        )

    def work(self, worker: Worker) -> object:
        queue = self.queue(worker)
        job = queue.sql.execute("SELECT id FROM jobs WHERE status = 'queued'").fetchone()
        claim = self._lock(queue, *job) if job else None
        return "nothing to do" if claim is None else str(self._ends(queue, claim))

    def unlocks(self, worker: Worker) -> str:
        """Ends the time of its lock with its job; the guilty one forgets."""
        queue = self.queue(worker)
        claim = self._lock(queue, "a")
        assert claim is not None
        worker.point("working")
        return str(self._ends(queue, claim, unlocks=not queue.guilty))

    def locks_then_looks(self, worker: Worker) -> str:
        """Finds a job, is held up, locks it, and sees only then that it is done.

        The guilty one does not look, and does it again.
        """
        queue = self.queue(worker)
        job = queue.sql.execute("SELECT id FROM jobs WHERE status = 'queued'").fetchone()
        worker.point("found")
        claim = self._lock(queue, *job)
        if claim is None:
            return "locked"
        status = queue.sql.execute("SELECT status FROM jobs WHERE id = ?", job).fetchone()
        if status == ("queued",) or queue.guilty:
            worker.effect("send", run_id=claim.run_id, token=claim.token, key=claim.run_id)
            return str(self._ends(queue, claim))
        queue.sql.execute(
            "UPDATE locks SET until = 0 WHERE job_id = ? AND owner = ? AND fence = ?", claim
        )
        return "seen"

    def _lock(self, queue: Queue, job: str) -> Claim | None:
        now = queue.now()
        row = queue.sql.execute(
            "INSERT INTO locks VALUES (?, ?, ?, 1) ON CONFLICT (job_id) DO UPDATE"
            " SET owner = excluded.owner, until = excluded.until, fence = fence + 1"
            " WHERE until <= ? RETURNING fence",
            (job, queue.owner, now + self.lease_ttl_ms, now),
        ).fetchone()
        return Claim(job, queue.owner, row[0]) if row else None

    def _ends(self, queue: Queue, claim: Claim, *, unlocks: bool = True) -> bool:
        queue.sql.execute("BEGIN IMMEDIATE")
        mine = queue.sql.execute(
            "SELECT 1 FROM locks WHERE job_id = ? AND owner = ? AND fence = ? AND until > ?",
            (*claim, queue.now()),
        ).fetchone()
        if mine:
            queue.sql.execute("UPDATE jobs SET status = 'done' WHERE id = ?", claim[:1])
        if mine and unlocks:
            now = queue.now()
            queue.sql.execute("UPDATE locks SET until = ? WHERE job_id = ?", (now, claim.run_id))
        queue.sql.execute("COMMIT")
        return bool(mine)


class Moving(Leases):
    """A claim moves a job's row from one table into another, and giving back moves it back."""

    runs = RunTable(
        "ready", id="id", gone=True,
        lease=Lease(table="taken", run="id", owner="owner", expires_at="until", token="fence"),
    )  # fmt: skip

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connect(db).executescript(
            "CREATE TABLE ready (id TEXT PRIMARY KEY, fence INTEGER);"
            "CREATE TABLE taken (id TEXT PRIMARY KEY, fence INTEGER, owner TEXT, until INTEGER)"
        )

    def submit(self, db: Path, run_id: str) -> None:
        connect(db).execute("INSERT INTO ready VALUES (?, 0)", (run_id,))

    def work(self, worker: Worker) -> object:
        queue = self.queue(worker)
        now = queue.now()
        queue.sql.execute("BEGIN IMMEDIATE")
        queue.sql.execute("INSERT INTO ready SELECT id, fence FROM taken WHERE until < ?", (now,))
        queue.sql.execute("DELETE FROM taken WHERE until < ?", (now,))
        row = queue.sql.execute("DELETE FROM ready RETURNING id, fence + 1").fetchone()
        if row is not None:
            values = (*row, queue.owner, now + self.lease_ttl_ms)
            queue.sql.execute("INSERT INTO taken VALUES (?, ?, ?, ?)", values)
        queue.sql.execute("COMMIT")
        if row is None:
            return "nothing to do"
        worker.point("working")
        queue.sql.execute("BEGIN IMMEDIATE")
        done = queue.sql.execute(
            "DELETE FROM taken WHERE id = ? AND fence = ? AND until > ?", (*row, queue.now())
        ).rowcount
        if done or queue.guilty:
            queue.store(Claim(row[0], queue.owner, row[1]), "result", guarded=False)
        queue.sql.execute("COMMIT")
        return done


class Timed(Leases):
    """A lease is nothing but its time: who compares it has the job, and renews by moving it."""

    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done", "failed", "cancelled"},
        lease=Lease(owner="expires", expires_at="expires", unit="ms"),
    )  # fmt: skip

    def work(self, worker: Worker) -> object:
        queue = self.queue(worker)
        now = queue.now()
        row = queue.sql.execute(
            "UPDATE jobs SET expires = ? WHERE id = (SELECT id FROM jobs WHERE status = 'queued'"
            " AND (expires IS NULL OR expires < ?) LIMIT 1) RETURNING id, expires",
            (now + self.lease_ttl_ms, now),
        ).fetchone()
        if row is None:
            return "nothing to do"
        row = self._renew(queue, *row)
        worker.point("working")
        return row is not None and self._renew(queue, *row, ends=True) is not None

    def _renew(
        self, queue: Queue, run_id: str, until: int, *, ends: bool = False
    ) -> tuple[str, int] | None:
        guard = " AND expires = ? AND expires > ?" if not queue.guilty else " AND (1 OR ? < ?)"
        found = queue.sql.execute(
            f"UPDATE jobs SET expires = ?, status = ? WHERE id = ?{guard} RETURNING id, expires",
            (
                None if ends else queue.now() + self.lease_ttl_ms + 1,
                "done" if ends else "queued", run_id, until, queue.now(),
            ),
        ).fetchone()  # fmt: skip
        return None if found is None else (found[0], found[1])


class Waking(Leases):
    """A job starts another and waits; who ends that one wakes it."""

    runs = replace(Leases.runs, waiting={"waiting"})

    def waits(self, worker: Worker) -> str:
        """Starts another job, and waits."""
        queue, claim = self.claimed(worker)
        queue.sql.execute("BEGIN IMMEDIATE")
        queue.sql.execute("INSERT INTO jobs VALUES ('b', 'queued', NULL, 0, NULL, '')")
        queue.sql.execute(
            f"UPDATE jobs SET status = 'waiting', {_FREED}"
            " WHERE id = ? AND owner = ? AND fence = ?",
            claim,
        )
        queue.sql.execute("COMMIT")
        return "waits"

    def wakes(self, worker: Worker) -> str:
        """Loses its job, ends the one that was started, and wakes the one that waits for it.

        The guilty one wakes it in any case, when it has lost it.
        """
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.finish(claim)
        if queue.guilty:
            queue.sql.execute("UPDATE jobs SET status = 'queued' WHERE id = ?", claim[:1])
        other = queue.claim()
        assert other is not None
        queue.sql.execute("BEGIN IMMEDIATE")
        if queue.finish(other):
            queue.sql.execute(
                "UPDATE jobs SET status = 'queued' WHERE id = ? AND status = 'waiting'", claim[:1]
            )
        queue.sql.execute("COMMIT")
        return "woken"


class Relaying(Leases):
    """What a job has to say is stored with its end; any worker's next poll sends that."""

    reapers = (f"{__name__}:relay",)

    def work(self, worker: Worker) -> object:
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.write(claim)
        worker.point("ended")
        if queue.guilty:
            queue.store(claim, "mine", part="late", guarded=False)
        return relay(queue)


def relay(queue: Queue) -> int:
    """Send what was not sent, whoever's it is."""
    rows = queue.sql.execute("SELECT rowid FROM results WHERE part = ''").fetchall()
    queue.sql.executemany("UPDATE results SET part = 'sent' WHERE rowid = ?", rows)
    return len(rows)
