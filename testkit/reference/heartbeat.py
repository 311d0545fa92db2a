"""The heartbeat: renews a claim every third of its TTL, as long as the call lives.

By time and not by step, because one call may outlast any TTL that a crash should be noticed
within; on a connection of its own, because whoever holds the store's would starve it.
(Second seed, "When it is renewed" and "The renewal connection".)
"""

from __future__ import annotations

import sqlite3
import threading
from types import TracebackType
from typing import Final, Self

from .clock import Clock
from .errors import RunNotFound
from .lease import Claim, heartbeat_interval_ms, read_lease, renew
from .store import Store


class Heartbeat:
    """One daemon thread per executing call: started on entry, stopped and joined on exit.

    ``lost`` says why the claim is no longer in force, once that has been found out.
    """

    def __init__(self, store: Store, claim: Claim, *, clock: Clock, ttl_ms: int) -> None:
        self.claim: Final = claim
        self.lost: str | None = None
        self._store: Final = store
        self._clock: Final = clock
        self._ttl_ms: Final = ttl_ms
        self._expires_at_ms = claim.expires_at_ms
        self._stop: Final = threading.Event()
        self._own: sqlite3.Connection | None = None
        self._thread: Final = threading.Thread(
            target=self._live, name=f"lease-heartbeat {claim.run_id}", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _live(self) -> None:
        try:
            while self.lost is None:
                if self._clock.wait(self._stop, heartbeat_interval_ms(self._ttl_ms)):
                    return
                self.beat()
        finally:
            if self._own is not None:
                self._own.close()

    def beat(self) -> None:
        """Renew once. An error is left to the next tick, unless the expiry has passed."""
        now_ms = self._clock.now_ms()
        try:
            renewed = self._renew(now_ms)
        except sqlite3.Error as error:
            # A busy lock, a full disk: the lease still has two thirds of its time.
            if self._clock.now_ms() >= self._expires_at_ms:
                self.lost = f"it expired at {self._expires_at_ms} ms, unrenewed: {error}"
            return
        if renewed:
            self._expires_at_ms = max(self._expires_at_ms, now_ms + self._ttl_ms)

    def _renew(self, now_ms: int) -> bool:
        """One UPDATE; when it found nothing to renew, say in ``lost`` what is there."""
        if self._store.in_memory:
            with self._store.db() as connection:
                return self._renew_on(connection, now_ms)
        if self._own is None:
            # A beat that waits for the write lock longer than a tick would miss the next one.
            self._own = self._store.own_connection(
                busy_timeout_ms=heartbeat_interval_ms(self._ttl_ms)
            )
            assert self._own is not None  # only an in-memory store has no second connection
        return self._renew_on(self._own, now_ms)

    def _renew_on(self, connection: sqlite3.Connection, now_ms: int) -> bool:
        if renew(connection, self.claim, now_ms=now_ms, ttl_ms=self._ttl_ms):
            return True
        self.lost = _found(connection, self.claim)
        return False


def _found(connection: sqlite3.Connection, claim: Claim) -> str:
    """What a refused renewal met, in words."""
    try:
        lease = read_lease(connection, claim.run_id)
    except RunNotFound:
        return "the run is gone"
    if not lease.held():
        return "released"
    if (lease.owner, lease.fencing_token) != (claim.owner, claim.token):
        return f"taken by {lease.owner!r} with token {lease.fencing_token}"
    return f"it expired at {lease.expires_at_ms} ms"
