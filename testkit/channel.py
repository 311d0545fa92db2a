"""Inside a worker: its line to the lane, what each of its threads is doing, and passing points.

All threads of a worker send on one socket, so that their events keep one order; each thread reads
answers from a line of its own, so that nobody has to hand them on. A move is over when every
thread is in a *known wait*: the last one to enter it tells the lane (`settlement`).
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from . import wire
from .points import Pattern

#: What an answer of the lane may carry: the points to hold at from now on.
Armed = Sequence[tuple[str, int | None, str]]


#: How the timekeeper introduces itself; no thread of Python's can have this name by accident.
TIMEKEEPER: Final = "\0timekeeper"
#: Waits that end by what the lane does, so that a move on the wall clock is over with them.
_FOR_THE_LANE: Final = frozenset({"held", "returned", "provider", "lock"})


#: Threads by ident; there is no public way.
_threads: Final[dict[int, threading.Thread]] = threading._active  # type: ignore[attr-defined]


class Wait:
    """What one thread waits for, as long as it does.

    `kind` is `held`, `returned`, `provider`, `lock`, `thread` (another one of its own), `loop` (an
    event loop without a timer), `time` (a timer that the lane fires) or `clock` (a timer that real
    time fires); `until_ns` is when, for the last two.
    """

    __slots__ = ("in_loop", "kind", "released", "until_ns")

    def __init__(self, kind: str, until_ns: int = 0) -> None:
        self.kind = kind
        self.until_ns = until_ns
        #: Set by who wakes the thread, before it wakes: from then on it counts as running.
        self.released = False
        self.in_loop = False

    @property
    def at_rest(self) -> bool:
        """Whether the thread really is waiting, and nothing has woken it yet."""
        return not self.released


class Channel:
    """The control channel of one worker process. Lives from its fork to its death.

    Without an `end` it waits, deaf and mute, to be `born` in a process that is forked later.
    """

    def __init__(self, end: socket.socket | None = None) -> None:
        self._sending: Final = _thread.allocate_lock()
        self._lines: dict[int, int] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._armed: list[Pattern] = []
        self._ordinals: dict[str, int] = {}
        #: thread -> what it waits for; a running thread is absent.
        self.waits: dict[int, Wait] = {}
        #: thread -> what is to be done before it does anything else that the lane sees.
        self.unfinished: dict[int, Callable[[], None]] = {}
        #: thread -> how many answers it has got; the lane compares it with how many it gave.
        self.answers: dict[int, int] = {}
        #: The thread that fires timers; it never counts as running.
        self.timekeeper = 0
        #: Whether timed waits end by themselves (the wall clock).
        self.real_time = False
        self.alive = False
        self._told = 0
        os.register_at_fork(after_in_child=self.forget)
        if end is not None:
            self.born(end)

    def born(self, end: socket.socket) -> None:
        """This process is the worker, and `end` its line to the lane."""
        self._end = end
        self._up = end.fileno()
        self._main = _thread.get_ident()
        self._tasks = f"/proc/{os.getpid()}/task"  # /proc/self is made anew at each look
        self._lines[self._main] = self._up
        self.alive = True

    def forget(self) -> None:
        """This process is a child of the worker's own making: it has no part in the script."""
        self.alive = False

    def tell_from_child(self, why: str) -> None:
        """From a child of the worker's making: what it does is out of our sight."""
        if self._told != os.getpid():
            self._told = os.getpid()
            # No lock: a thread that doesn't exist here may hold it; and one packet is one piece.
            with contextlib.suppress(OSError):
                wire.send(self._up, ("rest", _thread.get_ident(), [("blind", why)], None, None))

    def record(self, kind: str, *fields: Any) -> None:
        """Put an event into the queue; it travels with the next message."""
        if self.alive:
            self._rows.append((kind, *fields))

    def reset(self) -> None:
        """A new script begins in a warm worker."""
        self._rows.clear()
        self._armed = []
        self._ordinals.clear()

    # -- points ------------------------------------------------------------------------------

    def count(self, name: str) -> int:
        """The ordinal of the pass of `name` that begins now."""
        ordinal = self._ordinals.get(name, 0) + 1
        self._ordinals[name] = ordinal
        return ordinal

    def reach(self, name: str, *, ordinal: int, phase: str) -> None:
        """Pass a point, or be held there."""
        if not self.alive:
            return
        if self.unfinished:
            self.finish()
        held = bool(self._armed) and self.is_armed(name, ordinal=ordinal, phase=phase)
        self._rows.append(("passed", thread_name(), name, ordinal, phase, held))
        if held:
            self.ask("hold", (name, ordinal, phase), wait="held")

    def is_armed(self, name: str, *, ordinal: int, phase: str) -> bool:
        """Whether a worker that comes there now is held."""
        for pattern in self._armed:  # not any(): this is asked at every point
            if pattern.phase == phase and pattern.matches(name, ordinal=ordinal, phase=phase):
                return True
        return False

    def finish(self) -> None:
        """Do what the calling thread has left unfinished."""
        if self.unfinished:
            unfinished = self.unfinished.pop(_thread.get_ident(), None)
            if unfinished is not None:
                unfinished()

    # -- messages ----------------------------------------------------------------------------

    def ask(self, kind: str, payload: Any, *, wait: str = "", until_ns: int = 0) -> Any:
        """Send a message and block for the answer. With `wait`, the thread is in that known wait.

        A worker that has lost its lane kills itself: an exception in a callback of SQLite would be
        swallowed, and the statement would go on.
        """
        me = _thread.get_ident()
        if not self.alive:
            raise RuntimeError(f"a child of a worker's own making has no part in a script ({kind})")
        self.finish()
        try:
            line = self._lines.get(me) or self._new_line(me, thread_name())
            self._post(kind, payload, wait=wait, until_ns=until_ns)
            answer, armed = wire.receive(line)
        except (OSError, EOFError):
            os.kill(os.getpid(), signal.SIGKILL)
            raise
        # It runs before it counts as answered: else, in between, it would seem to rest again.
        self.waits.pop(me, None)
        self.answers[me] = self.answers.get(me, 0) + 1
        self.arm(armed)
        return answer

    def arm(self, armed: Armed | None) -> None:
        """From now on these points hold; None leaves them as they are."""
        if armed is not None:
            self._armed = [Pattern(*fields) for fields in armed]

    def _post(self, kind: str, payload: Any, *, wait: str, until_ns: int) -> None:
        """Send a message with every event so far.

        The wait is entered under the lock: another thread that comes to rest meanwhile must not
        report this one as resting before the lane has heard from it.
        """
        me = _thread.get_ident()
        with self._sending:
            if wait:
                self.waits[me] = Wait(wait, until_ns)
            rows, self._rows = self._rows, []
            settled = self.settlement() if wait else None
            wire.send(self._up, (kind, me, rows, settled, payload))

    def settlement(
        self, *, leaving: int = 0
    ) -> tuple[bool, int, list[tuple[int, str, str, int, int]]]:
        """Whether all threads are in known waits; how many the kit can't see; who waits for what.

        Others run meanwhile, so the order matters. A wait that is at rest when looked at has been
        so ever since the waits were listed: none begins twice, and none that was woken rests again.
        Answers are read before that (one that comes later is none of this wait's), threads after
        it (one that is not listed has not waited since), and counted twice: one that ends in
        between must not make up for one that is just being born. `leaving` is about to end.
        """
        answers = dict(self.answers)
        waits = list(self.waits.items())
        before = os.stat(self._tasks).st_nlink
        frames = sys._current_frames()
        # A lone thread, this one, can't have made another meanwhile.
        after = before if before == 3 else os.stat(self._tasks).st_nlink
        unseen = max(before, after) - 2 - len(frames)
        waiting = {ident: wait for ident, wait in waits if wait.at_rest}
        running = [
            ident
            for ident in frames
            if ident not in waiting and ident not in (self.timekeeper, leaving)
        ]
        told = [
            (ident, thread_name(ident), wait.kind, wait.until_ns, answers.get(ident, 0))
            for ident, wait in waiting.items()
        ]
        settled = not running and not (self.real_time and self._goes_on_by_itself(waiting))
        return settled, unseen, told

    def _goes_on_by_itself(self, waiting: dict[int, Wait]) -> bool:
        """Whether real time will soon move what the script moves: the main thread.

        Timers of other threads (a heartbeat's) may run while the main thread rests.
        """
        main = waiting.get(self._main)
        if main is None or main.kind in _FOR_THE_LANE:
            return False
        if main.kind == "clock" and not main.in_loop:
            return True
        kinds = {wait.kind for wait in waiting.values()}
        return "clock" in kinds and not kinds & _FOR_THE_LANE

    def tell_if_settled(self, *, leaving: int = 0) -> None:
        """Report that the last running thread came to a wait that needs no answer, or ended."""
        if not self.alive:
            return
        with self._sending:
            settled = self.settlement(leaving=leaving)
            if settled[0]:
                rows, self._rows = self._rows, []
                wire.send(self._up, ("rest", _thread.get_ident(), rows, settled, None))

    def tell_awake(self) -> None:
        """Report that the calling thread, which was told to be at rest, goes on by itself."""
        with self._sending:
            rows, self._rows = self._rows, []
            wire.send(self._up, ("rest", _thread.get_ident(), rows, self.settlement(), None))

    def own_line(self) -> int:
        """The descriptor from which the timekeeper, who calls this, reads its answers."""
        return self._new_line(_thread.get_ident(), TIMEKEEPER)

    def _new_line(self, me: int, name: str) -> int:
        ours, theirs = wire.pair()
        line = ours.detach()
        self._lines[me] = line
        with self._sending:
            wire.send(self._up, ("line", me, [], None, name))
            socket.send_fds(self._end, [b"\0"], [theirs.fileno()])
        theirs.close()
        return line

    def end_thread(self) -> None:
        """The calling thread ends: its line is closed, and the lane learns who is left.

        Its count of answers stays: the next thread may get the same number.
        """
        self.finish()
        me = _thread.get_ident()
        line = self._lines.pop(me, None)
        if line is not None and line != self._up:
            os.close(line)
        self.tell_if_settled(leaving=me)


def thread_name(ident: int | None = None) -> str:
    """`main`, or the name of the (given) thread."""
    ident = _thread.get_ident() if ident is None else ident
    thread = _threads.get(ident)
    if thread is threading._main_thread:  # type: ignore[attr-defined]  # asked at every point
        return "main"
    return f"thread-{ident}" if thread is None else str(thread.name)
