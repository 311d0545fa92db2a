"""One clock for all processes of a stage: virtual or wall, with a skew per worker.

The virtual clock is a number in a page of shared memory that only the lane writes: expiry is an
assignment, not a wait. What it does not model: clocks that drift, jump back, or differ within one
process. The kit's own deadlines use real time, taken here before anything is patched.
"""

from __future__ import annotations

import itertools
import mmap
import threading
import time
from collections.abc import Callable
from typing import Final

#: Real time, for the kit's own deadlines, whatever a subject or a test patches later.
real_monotonic: Final = time.monotonic
real_time_ns: Final = time.time_ns
real_sleep: Final = time.sleep

#: Where a stage's virtual clock starts: 2030-01-01T00:00:00Z, in no daylight saving and no past.
START_NS: Final = 1_893_456_000 * 10**9
#: How many workers one page serves.
SLOTS: Final = 500
_readings: Final = itertools.count()
_NOW, _TURNSTILE, _FIRST = 0, 1, 8
_NO_SKEW: Final = memoryview(bytes(8 * SLOTS)).cast("q")


class ClockPage:
    """Shared memory with the time, the turnstile's flag, and a skew per worker."""

    def __init__(self, *, virtual: bool) -> None:
        #: False: the wall clock is read, and the page has the skews alone.
        self.virtual: Final = virtual
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._cells = memoryview(self._memory).cast("q")
        self.reset()

    def reset(self) -> None:
        """Back to the start, no skew, no turnstile."""
        self._cells[_NOW] = START_NS
        self._cells[_TURNSTILE] = 0
        self._cells[_FIRST : _FIRST + SLOTS] = _NO_SKEW

    def now_ns(self) -> int:
        """The stage's time, without skew."""
        return self._cells[_NOW] if self.virtual else real_time_ns()

    def set_ns(self, now_ns: int) -> None:
        """Move the virtual clock; never back."""
        self._cells[_NOW] = max(self._cells[_NOW], now_ns)

    def skew_ns(self, slot: int) -> int:
        """How far a worker's clock is ahead."""
        return self._cells[_FIRST + slot % SLOTS]

    def set_skew_ns(self, slot: int, skew_ns: int) -> None:
        """Let a worker's clock run ahead (or behind)."""
        self._cells[_FIRST + slot % SLOTS] = skew_ns

    @property
    def turnstile(self) -> bool:
        """Whether several workers move at once, so that commits must queue."""
        return bool(self._cells[_TURNSTILE])

    @turnstile.setter
    def turnstile(self, on: bool) -> None:
        self._cells[_TURNSTILE] = int(on)


def monotonic_ns(page: ClockPage) -> int:
    """A stage's `time.monotonic_ns`: the same for all workers, as on one machine, and unskewed.

    Each reading takes a nanosecond, or a loop that waits until time is *past* its deadline would
    never end at it.
    """
    return page.now_ns() - START_NS + 10**12 + next(_readings)


class WorkerClock:
    """A worker's view of the stage's clock; has what the reference's `Clock` protocol asks for."""

    def __init__(self, page: ClockPage, *, slot: int, on_read: Callable[[int], None]) -> None:
        self._page = page
        self._slot = slot
        self._on_read = on_read

    def now_ns(self) -> int:
        """Nanoseconds since the epoch, as this worker sees them. The reading is an event."""
        value_ns = self._page.now_ns() + self._page.skew_ns(self._slot)
        self._on_read(value_ns)
        return value_ns

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as this worker sees them."""
        return self.now_ns() // 1_000_000

    def time(self) -> float:
        """Seconds since the epoch, like `time.time`."""
        return self.now_ns() / 1e9

    def peek_ns(self) -> int:
        """The same without an event: for the kit itself."""
        return self._page.now_ns() + self._page.skew_ns(self._slot)

    def wait(self, event: threading.Event, timeout_ms: int) -> bool:
        """Wait until `event` is set (True) or `timeout_ms` of stage time have passed (False)."""
        return event.wait(timeout_ms / 1000)

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of stage time pass for this thread."""
        threading.Event().wait(seconds)
