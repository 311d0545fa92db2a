"""The only source of lease time: a clock with two methods.

Lease time is never taken from a consumer's own ``now``: a deterministic one that stands
still would never expire a lease. (Second seed, "LeaseTTL".)
"""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the epoch, and a wait that follows the same time."""

    def now_ms(self) -> int:
        """The present, in milliseconds."""
        ...

    def wait(self, event: threading.Event, timeout_ms: int) -> bool:
        """Wait until ``event`` is set or ``timeout_ms`` have passed; whether it was set."""
        ...


class WallClock:
    """The wall clock: processes that share a file must agree on it to well within the TTL."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, timeout_ms: int) -> bool:
        return event.wait(timeout_ms / 1000)
