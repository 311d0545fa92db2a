"""Programs that are plainly wrong, each in one way: what their failures say is in snapshots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pytest_leasecheck.testkit.subject import Counter, EffectRows
from pytest_leasecheck.testkit.worker import Worker

from .programs_leases import Leases
from .programs_steps import Stepped
from .tiny import connect


class Wrong(Leases):
    """Leases that go wrong, each its own way."""

    runs = replace(Leases.runs, waiting={"waiting"})

    def same_token(self, worker: Worker) -> str:
        """Claims without a new token."""
        queue = self.queue(worker)
        queue.sql.execute(
            "UPDATE jobs SET owner = ?, fence = 1, expires = ?, status = 'running'"
            " WHERE owner IS NULL OR expires < ?",
            (queue.owner, queue.now() + self.lease_ttl_ms, queue.now()),
        )
        worker.point("working")
        return "done"

    def lower_token(self, worker: Worker) -> str:
        """Takes its token from a counter of its own."""
        queue = self.queue(worker)
        queue.sql.execute(
            "UPDATE jobs SET owner = ?, fence = ?, expires = ?, status = 'running'"
            " WHERE owner IS NULL OR expires < ?",
            (queue.owner, {"A": 7}.get(worker.name, 3), queue.now() + 30_000, queue.now()),
        )
        worker.point("working")
        return "done"

    def waits_with_lease(self, worker: Worker) -> str:
        """Waits for somebody and keeps its lease."""
        queue, claim = self.claimed(worker)
        queue.sql.execute("UPDATE jobs SET status = 'waiting' WHERE id = ?", claim[:1])
        return "waits"

    def leases_for_good(self, worker: Worker) -> str:
        """Its lease ends when it says so."""
        queue, claim = self.claimed(worker)
        queue.sql.execute("UPDATE jobs SET expires = 4000000000000 WHERE id = ?", claim[:1])
        worker.point("working")
        return "done"

    def gets_stuck(self, worker: Worker) -> str:
        """Gives its job back in a state that nobody looks for."""
        queue, claim = self.claimed(worker)
        queue.release(claim)
        queue.sql.execute("UPDATE jobs SET status = 'retry' WHERE id = ?", claim[:1])
        return "given back"

    def renews_anothers(self, worker: Worker) -> str:
        """Extends the lease of whoever has the job."""
        queue, claim = self.claimed(worker)
        worker.point("working")
        queue.sql.execute(
            "UPDATE jobs SET owner = ?, expires = ? WHERE id = ?",
            (claim.owner, queue.now() + self.lease_ttl_ms, claim.run_id),
        )
        return "renewed"

    def adds_up(self, worker: Worker) -> str:
        """Each renewal adds a whole lease to the one before."""
        queue, claim = self.claimed(worker)
        for _ in range(4):
            queue.sql.execute(
                "UPDATE jobs SET expires = expires + ? WHERE id = ? AND owner = ?",
                (self.lease_ttl_ms, claim.run_id, claim.owner),
            )
        return str(queue.finish(claim))

    def starts_late(self, worker: Worker) -> str:
        """Looks at the clock, and starts all the same."""
        _queue, claim = self.claimed(worker)
        worker.point("working")
        worker.clock.now_ms()
        return str(worker.effect("send", run_id=claim.run_id, token=claim.token))

    def robs(self, worker: Worker) -> str:
        """Takes whatever runs, and finishes it."""
        queue = self.queue(worker)
        queue.sql.execute(
            "UPDATE jobs SET owner = ?, fence = fence + 1 WHERE status = 'running'", (queue.owner,)
        )
        return "taken"


class WindowOpen(Wrong):
    """Its effects go to a provider that refuses what is lower than the highest token seen."""

    capabilities = frozenset({"checks_expiry", "fences_effects"})
    provider_fence = "highest seen"

    def asks_late(self, worker: Worker) -> str:
        """Validates, is held, and asks after its lease was taken over."""
        _queue, claim = self.claimed(worker)
        return str(worker.effect("send", run_id=claim.run_id, token=claim.token))


class NoFence(WindowOpen):
    """The same with a provider that refuses nothing."""

    provider_fence = "none"


class Beating(Wrong):
    """Says that a live owner keeps its lease, and has no heartbeat."""

    capabilities = frozenset({"heartbeats", "validates", "checks_expiry", "releases"})

    def goes_on(self, worker: Worker) -> str:
        """Comes to its effect after a pause, and does not look."""
        _queue, claim = self.claimed(worker)
        worker.point("working")
        return str(worker.effect("send", run_id=claim.run_id, token=claim.token))


class Skewed(Wrong):
    """Says that it bears a skew of forty seconds, with a lease of thirty."""

    bears_skew_ms = 40_000


class Counting(Wrong):
    """Counts who is at work, in a table of its own."""

    counters = (Counter("slots", "used", most=1),)

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connect(db).executescript("CREATE TABLE slots (used INTEGER); INSERT INTO slots VALUES (0)")

    def counts_up(self, worker: Worker) -> str:
        """Counts itself in, and never out."""
        queue = self.queue(worker)
        queue.sql.execute("BEGIN IMMEDIATE")
        claim = queue.claim()
        queue.sql.execute("UPDATE slots SET used = used + 1")
        queue.sql.execute("COMMIT")
        return str(claim is not None and queue.finish(claim))


class WrongSteps(Stepped):
    """Steps and effects that go wrong."""

    delivery: ClassVar = "exactly-once"
    effects = EffectRows("effects", run="job_id", key="key", token="token")
    capabilities = Stepped.capabilities | {"asks_first"}

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connect(db).execute("CREATE TABLE effects (job_id, key, token)")

    def work(self, worker: Worker) -> object:
        return self._redo(worker, key="k")

    def without_key(self, worker: Worker) -> object:
        """Asks with no key."""
        return self._redo(worker, key=None)

    def decides_not(self, worker: Worker) -> object:
        """Does an interrupted step again as if nothing had been."""
        return self._redo(worker, key="k", decides=False)

    def _redo(self, worker: Worker, *, key: str | None, decides: bool = True) -> object:
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        if decides:
            self._recover(queue, claim, worker)
        self._set(queue, claim, "started")
        receipt = worker.effect("send", run_id=claim.run_id, token=claim.token, key=key)
        self._set(queue, claim, "finished", receipt)
        return str(queue.finish(claim))

    def leaves_step(self, worker: Worker) -> object:
        """Finishes its job with a step under way."""
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        self._set(queue, claim, "started")
        return str(queue.finish(claim))

    def stores_over(self, worker: Worker) -> object:
        """Stores its result over whatever is there."""
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        self._set(queue, claim, "started")
        worker.point("working")
        queue.sql.execute("UPDATE steps SET result = 'mine' WHERE job_id = ?", claim[:1])
        return "done"

    def stores_twice(self, worker: Worker) -> object:
        """Stores one effect twice."""
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        for _ in range(2):
            queue.sql.execute("INSERT INTO effects VALUES (?, 'k', ?)", (claim[0], claim[2]))
        return str(queue.finish(claim))

    def stores_stale(self, worker: Worker) -> object:
        """Stores its effect under a token that is over."""
        queue = self.queue(worker)
        claim = queue.claim()
        if claim is None:
            return "nothing to do"
        worker.point("working")
        queue.sql.execute("INSERT INTO effects VALUES (?, 'k', ?)", (claim[0], claim[2]))
        return str(queue.finish(claim))
