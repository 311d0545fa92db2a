"""Inside a worker: waits of Python's threads become known waits, and follow the stage's clock.

Fault it serves: a heartbeat, a retry, a poll that happens late, early or never, without waiting for
it. Patched are `threading.Condition.wait`, and with it `Event`, `Queue`, `Semaphore`, `Barrier` and
`Timer`; `Thread.join`, `time.sleep`, `queue.SimpleQueue`, and what these measure their timeouts
with. Event loops are in `evloop`, `time` and `datetime` in `timepatch`. What it does not model:
`Lock.acquire(timeout=…)` and waits inside C libraries; those wait for real.
"""

from __future__ import annotations

import _thread
import contextlib
import math
import queue
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any, Final, Protocol

from . import names, wire
from .channel import Channel, Wait
from .clock import ClockPage, monotonic_ns, real_sleep


class Timed(Protocol):
    """What the timekeeper can end: it marks the wait as released, then wakes its thread."""

    def fire(self) -> None:
        """The deadline has come."""


class _Waiter(Wait):
    """What a waiting thread sleeps on; `Condition.notify` releases it like the lock it replaces."""

    __slots__ = ("_lock", "fired", "ident")

    def __init__(self) -> None:
        super().__init__("thread")
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self.ident = _thread.get_ident()
        self.fired = False

    def release(self) -> None:
        self.released = True
        with contextlib.suppress(RuntimeError):  # notified and fired at once
            self._lock.release()

    def fire(self) -> None:
        if not self.released:
            self.fired = True
            self.release()

    def block(self, seconds: float = -1) -> None:
        """Sleep until released; with `seconds` of real time, at most that long."""
        if not self._lock.acquire(timeout=seconds):
            self.fired = not self.released


class Waits:
    """Who waits until when, in one worker."""

    def __init__(self, channel: Channel, page: ClockPage) -> None:
        self.channel: Final = channel
        self.page: Final = page
        channel.real_time = not page.virtual
        self._timed: dict[int, Timed] = {}
        self._joiners: dict[threading.Thread, list[_Waiter]] = {}
        self._over: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self._starting: Final = _thread.allocate_lock()

    def install(self) -> None:
        """Replace Python's own waits, and see threads end."""
        self._install_wait()
        self._install_join()
        names.replace([(time.sleep, self.sleep), (queue.SimpleQueue, _simple_queue())])
        if self.page.virtual:
            self._install_timeouts()

    def _install_wait(self) -> None:
        times, real_wait = self, threading.Condition.wait

        def wait(self: threading.Condition, timeout: float | None = None) -> bool:
            if not times.channel.alive:
                return real_wait(self, timeout)
            return times.wait(self, timeout)

        threading.Condition.wait = wait  # type: ignore[method-assign]  # the point of this module

    def _install_join(self) -> None:
        times, real_join = self, threading.Thread.join
        real_run = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        def run(self: threading.Thread) -> None:
            try:
                real_run(self)
            finally:
                times._end(self)

        def join(self: threading.Thread, timeout: float | None = None) -> None:
            if not times.channel.alive or not times._can_wait_for(self):
                real_join(self, timeout)
            elif times._joined(self, timeout):
                real_join(self)

        threading.Thread._bootstrap_inner = run  # type: ignore[attr-defined]
        threading.Thread.join = join  # type: ignore[method-assign]

    def _install_timeouts(self) -> None:
        """What measures how much of a timeout is left must use the clock that it waits by."""
        import concurrent.futures._base as futures

        def monotonic() -> float:
            return monotonic_ns(self.page) / 1e9

        threading._time = monotonic  # type: ignore[attr-defined]
        queue.time = monotonic  # type: ignore[attr-defined]
        futures.time = SimpleNamespace(  # type: ignore[attr-defined]
            **{**vars(time), "monotonic": monotonic}
        )

    # -- waiting -----------------------------------------------------------------------------

    def wait(self, condition: Any, timeout: float | None) -> bool:
        """`Condition.wait`, on the stage's clock."""
        if not condition._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        if timeout is not None and timeout <= 0:
            return False
        waiter = _Waiter()
        condition._waiters.append(waiter)
        saved = condition._release_save()
        try:
            self.block(waiter, timeout)
        finally:
            condition._acquire_restore(saved)
            if waiter.fired:
                with contextlib.suppress(ValueError):
                    condition._waiters.remove(waiter)
        return not waiter.fired

    def sleep(self, seconds: float) -> None:
        """`time.sleep`, on the stage's clock."""
        if not self.channel.alive or seconds <= 0:
            real_sleep(seconds)
        else:
            self.block(_Waiter(), seconds)

    def block(self, waiter: _Waiter, timeout: float | None) -> None:
        """Sleep until notified or, after `timeout` seconds of stage time, fired."""
        channel = self.channel
        channel.finish()
        if timeout is not None:
            self.begin(waiter, waiter, timeout)
        channel.waits[waiter.ident] = waiter
        if not waiter.released:
            channel.tell_if_settled()
        waiter.block(-1 if timeout is None or self.page.virtual else timeout)
        waiter.released = True
        self.end(waiter.ident)

    def begin(self, wait: Wait, timed: Timed, timeout: float) -> None:
        """`wait` of the calling thread has a deadline; `timed` is told when it has come."""
        # Rounded up: a loop that wakes a nanosecond early sleeps again.
        wait.until_ns = self.page.now_ns() + math.ceil(timeout * 1e9 - 1e-3)
        wait.kind = "time" if self.page.virtual else "clock"
        if self.page.virtual:
            self._start_timekeeper()
            self._timed[_thread.get_ident()] = timed

    def end(self, ident: int) -> None:
        """The thread runs again."""
        self._timed.pop(ident, None)
        self.channel.waits.pop(ident, None)

    # -- joining -----------------------------------------------------------------------------

    def _can_wait_for(self, thread: threading.Thread) -> bool:
        return (
            thread is not threading.current_thread()
            and thread.is_alive()
            and not isinstance(thread, threading._DummyThread)
        )

    def _joined(self, thread: threading.Thread, timeout: float | None) -> bool:
        """Wait until a thread is about to end; False when the timeout came first."""
        if timeout is not None and timeout <= 0:
            return False
        waiter = _Waiter()
        waiters = self._joiners.setdefault(thread, [])
        waiters.append(waiter)
        if thread not in self._over:
            self.block(waiter, timeout)
        return not waiter.fired

    def _end(self, thread: threading.Thread) -> None:
        self._over.add(thread)
        for waiter in self._joiners.pop(thread, ()):
            waiter.release()
        self.channel.end_thread()

    # -- the timekeeper ------------------------------------------------------------------------

    def _start_timekeeper(self) -> None:
        if self.channel.timekeeper:
            return
        with self._starting:  # two threads may come at once
            if not self.channel.timekeeper:
                ready = _thread.allocate_lock()
                ready.acquire()
                _thread.start_new_thread(self._keep_time, (ready,))
                ready.acquire()

    def _keep_time(self, ready: Any) -> None:
        channel = self.channel
        line = channel.own_line()
        channel.timekeeper = _thread.get_ident()  # the lane knows its line: it may be rung now
        ready.release()
        try:
            while True:
                (due, armed) = wire.receive(line)
                channel.arm(armed)
                for ident in due:
                    timed = self._timed.pop(ident, None)
                    if timed is not None:
                        timed.fire()
                    # After the thread counts as running: else it would seem answered and at rest.
                    channel.answers[ident] = channel.answers.get(ident, 0) + 1
        except (OSError, EOFError):
            return


def _simple_queue() -> Any:
    """`queue.SimpleQueue` in Python: the one in C waits where nobody sees it."""
    return queue._PySimpleQueue  # type: ignore[attr-defined]
