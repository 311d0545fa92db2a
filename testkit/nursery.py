"""Workers are forked ahead of time, by a process that does nothing else.

A fork shares its parent's memory until one of the two writes to a page, which is copied then. The
lane goes on working, so each fork cost it half of what it cost the worker. Therefore it has a
child, the nursery, which holds what all workers begin with, and forks when it is told to. Some are
always ready, made on whatever processor was free, before a script asks for them.

Only a direct parent can confirm a stop, and the lane stays that: a child of the nursery forks the
worker and ends, and the orphan becomes a child of the nearest subreaper, which is the lane. What
this is not: a pool. Who was somebody once is never somebody else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import guard, wire

#: How many wait to become somebody: a script begins with one worker or two.
_READY: Final = 2
_EXIT_WITHOUT_LANE: Final = 0


@dataclass(frozen=True, slots=True)
class Spare:
    """A worker process that is nobody yet, and the lane's end of its line."""

    pid: int
    end: socket.socket


class Nursery:
    """The lane's end of it. It ends with the lane, and who waits there does."""

    def __init__(
        self,
        live: Callable[[socket.socket], None],
        *,
        begin: Callable[[], None],
        patience_s: float,
    ) -> None:
        """Fork the nursery. It calls `begin()` first.

        `live(its end)` is the whole life of a worker, and never returns. A nursery that makes none
        within `patience_s` of real time is given up.
        """
        lane_pid = os.getpid()
        ours, theirs = wire.pair()
        self._end: Final = ours
        self._spares: Final[deque[Spare]] = deque()
        self._expected = 0
        self._pid = os.fork()
        if self._pid == 0:
            try:
                guard.die_with_parent(lane_pid)
                begin()
                _tend(socket.socket(fileno=guard.keep_only(theirs.detach())), live)
            finally:
                os._exit(_EXIT_WITHOUT_LANE)
        theirs.close()
        wire.set_receive_timeout(ours, timeout_s=patience_s)
        self.lives = True
        self._left_some = False
        self._expect(_READY)

    @property
    def pids(self) -> set[int]:
        """Its own, and of those who wait. Complete after `catch_up`."""
        return {self._pid, *(spare.pid for spare in self._spares)} if self.lives else set()

    def take(self) -> Spare | None:
        """A process that is to become somebody; None when none is to be had from here any more."""
        while self.lives:
            if not self._spares:
                self._hear()
                continue
            spare = self._spares.popleft()
            self._expect(1)
            try:
                if os.waitpid(spare.pid, os.WNOHANG) == (0, 0):
                    return spare
            except ChildProcessError:  # a sandbox that knows no subreaper
                self._give_up()
            spare.end.close()  # somebody has killed it
        return None

    def catch_up(self) -> None:
        """Hear of everyone who is on the way: an unknown child would be taken for a stray."""
        while self.lives and self._expected:
            self._hear()

    def left_some(self) -> bool:
        """Whether some were on the way when it was given up, unless that was said before.

        They are the lane's children by now, and not to be told from what workers left behind.
        """
        left, self._left_some = self._left_some, False
        return left

    def _expect(self, count: int) -> None:
        try:
            for _ in range(count):
                wire.send(self._end.fileno(), True)
                self._expected += 1
        except OSError:
            self._give_up()

    def _hear(self) -> None:
        try:
            pid, ends, _flags, _address = socket.recv_fds(self._end, 32, 1)
        except OSError:  # it hangs
            pid, ends = b"", []
        if ends:
            self._expected -= 1
            self._spares.append(Spare(int(pid), socket.socket(fileno=ends[0])))
        else:  # it has died, or there is no room for another process
            self._give_up()

    def _give_up(self) -> None:
        """From now on there is none: the lane forks for itself."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self.lives, self._left_some = False, self._expected > 0
        self._end.close()
        for spare in self._spares:
            spare.end.close()
        self._spares.clear()


def _tend(end: socket.socket, live: Callable[[socket.socket], None]) -> None:
    """In the nursery: one worker for each message, until the lane is gone."""
    with contextlib.suppress(EOFError):
        while wire.receive(end.fileno()):
            ours, theirs = wire.pair()
            pid = _fork_orphan(live, theirs)
            theirs.close()
            socket.send_fds(end, [b"%d" % pid], [ours.fileno()] if pid else [])
            ours.close()


def _fork_orphan(live: Callable[[socket.socket], None], end: socket.socket) -> int:
    """Fork a worker that is the subreaper's child. Its number; 0 when there is no room for it."""
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            pid = os.fork()
            if pid == 0:
                live(end)
            os.write(write, b"%d" % pid)
        finally:
            os._exit(0)
    os.close(write)
    told = os.read(read, 32)
    os.close(read)
    os.waitpid(middle, 0)  # only from here on is it the subreaper's
    return int(told or 0)
