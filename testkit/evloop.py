"""Inside a worker: asyncio. Its loop's waits are known waits, and its timers the stage's.

A loop that has nothing ready sleeps in its selector, with a timeout when it has timers. That sleep
becomes a wait like any other: on the virtual clock the lane fires it, in deadline order with all
others. A coroutine that is held at a point is carried by a thread of its own, so that the loop,
and a heartbeat on it, goes on. What it does not model: loops that are not built on `selectors`
(uvloop, trio), and sockets to the world outside.
"""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import os
import select
import selectors
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from .channel import Channel, Wait, thread_name
from .clock import monotonic_ns
from .vtime import Waits

T = TypeVar("T")


class _LoopWait(Wait):
    """A thread that sleeps in an epoll. Whatever makes the epoll ready wakes it."""

    __slots__ = ("_alarm", "_poll")

    def __init__(self, epoll_fd: int, alarm: int) -> None:
        super().__init__("loop")
        self.in_loop = True
        self._alarm = alarm
        self._poll = select.poll()
        self._poll.register(epoll_fd, select.POLLIN)

    @property
    def at_rest(self) -> bool:
        # In this order: who empties the epoll was released before, perhaps while we polled.
        return not self._poll.poll(0) and not self.released

    def fire(self) -> None:
        self.released = True
        os.eventfd_write(self._alarm, 1)


class Loops:
    """The event loops of one worker."""

    def __init__(self, waits: Waits) -> None:
        self._waits: Final = waits
        self._alarms: dict[int, int] = {}

    def install(self) -> None:
        """Replace the selector's sleep and, on a virtual clock, the loops' time."""
        loops, real_select = self, selectors.EpollSelector.select
        real_begin, real_close = selectors.EpollSelector.__init__, selectors.EpollSelector.close

        def begin(self: selectors.EpollSelector) -> None:
            loops.follow_clock()
            real_begin(self)

        def waiting_select(self: selectors.EpollSelector, timeout: float | None = None) -> Any:
            if not loops._waits.channel.alive or (timeout is not None and timeout <= 0):
                return real_select(self, timeout)
            return real_select(self, 0) or loops.sleep(self, timeout, real_select)

        def close(self: selectors.EpollSelector) -> None:
            alarm = loops._alarms.pop(self.fileno(), None)
            if alarm is not None:
                os.close(alarm)
            real_close(self)

        patched: Any = selectors.EpollSelector
        patched.select, patched.close, patched.__init__ = waiting_select, close, begin

    def follow_clock(self) -> None:
        """On a virtual clock the loops' time is the stage's. Called before a loop has a selector.

        A process that has no asyncio, which is a third of an interpreter's memory, gets none by us.
        """
        module = sys.modules.get("asyncio")
        if module is not None and self._waits.page.virtual:
            page = self._waits.page
            module.BaseEventLoop.time = lambda _loop: monotonic_ns(page) / 1e9

    def sleep(self, selector: Any, timeout: float | None, real_select: Any) -> Any:
        """Sleep until a descriptor is ready or the stage's clock has reached the timeout."""
        waits, channel, me = self._waits, self._waits.channel, _thread.get_ident()
        channel.finish()
        alarm = self._alarm_of(selector)
        wait = _LoopWait(selector.fileno(), alarm)
        if timeout is not None:
            waits.begin(wait, wait, timeout)
        channel.waits[me] = wait
        channel.tell_if_settled()
        ready = real_select(selector, None if waits.page.virtual else timeout)
        wait.released = True
        waits.end(me)
        if not ready and waits.page.virtual:
            with contextlib.suppress(BlockingIOError):  # a signal ended the sleep, not the alarm
                os.eventfd_read(alarm)
        return ready

    def _alarm_of(self, selector: Any) -> int:
        """A descriptor in the epoll by which the timekeeper ends its sleep."""
        fd = selector.fileno()
        alarm = self._alarms.get(fd)
        if alarm is None:
            alarm = self._alarms[fd] = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            selector._selector.register(alarm, select.EPOLLIN)
        return alarm


async def carried(function: Callable[[], T]) -> T:
    """Call `function`, which may be held, while the event loop goes on.

    By a thread of its own: held coroutines must not use up the loop's pool.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def finish(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

    def carry() -> None:
        result, failure = None, None
        try:
            result = context.run(function)
        except BaseException as error:
            failure = error
        loop.call_soon_threadsafe(finish, result, failure)

    task = asyncio.current_task()
    name = f"{thread_name()}/{task.get_name() if task else 'task'}"
    threading.Thread(target=carry, name=name, daemon=True).start()
    return await done


async def reach_async(channel: Channel, name: str, *, ordinal: int, phase: str) -> None:
    """`Channel.reach` in a coroutine: a thread is needed only where it would be held."""
    if channel.is_armed(name, ordinal=ordinal, phase=phase):
        await carried(lambda: channel.reach(name, ordinal=ordinal, phase=phase))
    else:
        channel.reach(name, ordinal=ordinal, phase=phase)
