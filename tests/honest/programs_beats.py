"""An honest program about a heartbeat: it beats whenever it can, and sometimes it can't."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress

from pytest_leasecheck.testkit.worker import Worker

from .tiny import Claim, Tiny


class Beats(Tiny):
    """Renews its lease every third of its TTL, on a connection of its own."""

    capabilities = Tiny.capabilities | {"heartbeats"}

    def is_busy(self, worker: Worker) -> str:
        """Works for long, beating; the guilty one keeps its transaction open meanwhile."""
        queue = self.queue(worker)
        claim = queue.claim()
        assert claim is not None
        over = threading.Event()
        beat = threading.Thread(target=self._live, args=(worker, claim, over), daemon=True)
        beat.start()
        if queue.guilty:
            queue.sql.execute("BEGIN IMMEDIATE")
        worker.point("working")
        if queue.guilty:
            queue.sql.execute("COMMIT")
        over.set()
        beat.join()
        return str(queue.write(claim))

    def _live(self, worker: Worker, claim: Claim, over: threading.Event) -> None:
        sql = self.queue(worker).sql
        while not worker.clock.wait(over, self.lease_ttl_ms // 3):
            now = worker.clock.now_ms()
            with suppress(sqlite3.OperationalError):  # locked: there are more beats in a lease
                sql.execute(
                    "UPDATE jobs SET expires = ? WHERE id = ? AND owner = ? AND fence = ?"
                    " AND expires > ?",
                    (now + self.lease_ttl_ms, *claim, now),
                )

    def counts(self, worker: Worker) -> str:
        """Rests on a read, in a transaction that has written."""
        queue = self.queue(worker)
        with suppress(sqlite3.OperationalError):  # locked
            queue.sql.execute("BEGIN IMMEDIATE")
            claim = queue.claim()
            worker.point("counting")
            assert claim is not None
            queue.finish(claim)
            queue.sql.execute("COMMIT")
        return "done"
