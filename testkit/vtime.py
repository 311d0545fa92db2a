"""Inside a worker: waits of Python's threads become known waits, and follow the virtual clock.

Fault it serves: a heartbeat, a retry, a poll that happens late, early or never, without waiting for
it. Patched is `threading.Condition.wait`, and with it `Event`, `Queue`, `Semaphore`, `Barrier`,
`Timer`; for subjects whose clock is `patched`, also `time` and `datetime`. What it does not model:
`Lock.acquire(timeout)`, `select` with a timeout, and waits inside C libraries; those wait for real.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from . import wire
from .channel import Channel


class _Waiter:
    """What a waiting thread sleeps on; `Condition.notify` releases it like the lock it replaces."""

    __slots__ = ("_lock", "_times", "fired", "ident")

    def __init__(self, times: VirtualWaits) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self._times = times
        self.ident = _thread.get_ident()
        self.fired = False

    def release(self) -> None:
        self._times.forget(self)
        self._lock.release()

    def block(self) -> None:
        self._lock.acquire()


class VirtualWaits:
    """Who waits until when, in one worker."""

    def __init__(self, channel: Channel, now_ns: Callable[[], int], *, virtual: bool) -> None:
        self._channel: Final = channel
        self._now_ns: Final = now_ns
        self._virtual: Final = virtual
        self._timed: dict[int, _Waiter] = {}

    def install(self) -> None:
        """Replace `Condition.wait`, and see threads end."""
        times, real_wait = self, threading.Condition.wait

        def wait(self: threading.Condition, timeout: float | None = None) -> bool:
            if not times._channel.alive or (timeout is not None and not times._virtual):
                return real_wait(self, timeout)
            return times.wait(self, timeout)

        threading.Condition.wait = wait  # type: ignore[method-assign]  # the point of this module
        real_run = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        def run(self: threading.Thread) -> None:
            try:
                real_run(self)
            finally:
                times._channel.end_thread()

        threading.Thread._bootstrap_inner = run  # type: ignore[attr-defined]

    def wait(self, condition: Any, timeout: float | None) -> bool:
        """`Condition.wait`, on the stage's clock."""
        if not condition._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        if timeout is not None and timeout <= 0:
            return False
        waiter = _Waiter(self)
        condition._waiters.append(waiter)
        saved = condition._release_save()
        try:
            self.block(waiter, timeout)
        finally:
            condition._acquire_restore(saved)
            if waiter.fired:
                try:
                    condition._waiters.remove(waiter)
                except ValueError:  # notified and fired at once
                    waiter.fired = False
        return not waiter.fired

    def sleep(self, seconds: float) -> None:
        """`time.sleep`, on the stage's clock."""
        if seconds > 0:
            self.block(_Waiter(self), seconds)

    def block(self, waiter: _Waiter, timeout: float | None) -> None:
        """Sleep until notified or, after `timeout` seconds of stage time, fired by the lane."""
        channel = self._channel
        if timeout is None:
            channel.waits[waiter.ident] = ("thread", 0)
        else:
            self._start_timekeeper()
            self._timed[waiter.ident] = waiter
            until_ns = self._now_ns() + int(timeout * 1e9)
            channel.waits[waiter.ident] = ("time", until_ns)
        if waiter._lock.locked():
            channel.tell_if_settled()
        waiter.block()
        channel.waits.pop(waiter.ident, None)

    def forget(self, waiter: _Waiter) -> None:
        """The waiter is about to wake: from now on its thread counts as running."""
        self._channel.waits.pop(waiter.ident, None)
        if self._timed.get(waiter.ident) is waiter:
            del self._timed[waiter.ident]

    def _start_timekeeper(self) -> None:
        if self._channel.timekeeper == 0:
            ready = _thread.allocate_lock()
            ready.acquire()
            _thread.start_new_thread(self._keep_time, (ready,))
            ready.acquire()

    def _keep_time(self, ready: Any) -> None:
        channel = self._channel
        channel.timekeeper = _thread.get_ident()
        line = channel.own_line()
        ready.release()
        try:
            while True:
                (due, _armed) = wire.receive(line)
                for ident in due:
                    waiter = self._timed.get(ident)
                    channel.answers[ident] = channel.answers.get(ident, 0) + 1
                    if waiter is not None:
                        waiter.fired = True
                        waiter.release()
        except (OSError, EOFError):
            return


def patch_time(waits: VirtualWaits, now_ns: Callable[[], int], *, start_ns: int) -> None:
    """`time` and `datetime` follow the stage, for a subject whose clock is `patched`.

    Names that a module bound early (`from time import time`) are found and replaced too.
    """
    import datetime as datetimes
    import sys

    def monotonic_ns() -> int:
        return now_ns() - start_ns + 10**12

    replaced: dict[Any, Any] = {
        time.time: lambda: now_ns() / 1e9,
        time.time_ns: now_ns,
        time.monotonic: lambda: monotonic_ns() / 1e9,
        time.monotonic_ns: monotonic_ns,
        time.sleep: waits.sleep,
    }
    real_datetime = datetimes.datetime

    class _Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real_datetime)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real_datetime)

    class VirtualDatetime(datetimes.datetime, metaclass=_Meta):
        """`datetime` whose now is the stage's; instances are ordinary ones."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real_datetime.fromtimestamp(now_ns() / 1e9, tz)

        @classmethod
        def utcnow(cls) -> Any:
            moment = real_datetime.fromtimestamp(now_ns() / 1e9, datetimes.UTC)
            return moment.replace(tzinfo=None)

    VirtualDatetime.__name__ = VirtualDatetime.__qualname__ = "datetime"
    replaced[real_datetime] = VirtualDatetime
    own = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if module is None or name.startswith(own) or name in ("threading", "_strptime"):
            continue
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            try:
                new = replaced.get(value)
            except TypeError:  # not hashable
                continue
            if new is not None:
                setattr(module, attribute, new)
