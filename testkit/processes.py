"""In the lane: worker processes, forked, stopped, continued, killed and reaped by their parent.

Only a direct parent can confirm a stop: `waitpid(WUNTRACED)` is never wrong, `/proc` is about
processes of several threads. Nothing here waits without the kernel's word for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import quiet, wire
from .clock import real_monotonic
from .errors import Unsettled
from .logs import tail
from .nursery import Spare
from .placement import Placement
from .points import Pattern
from .worker import STACKS_SIGNAL, Life

#: How long the rest of a message, or room for an answer, may take to come.
_HALF_MESSAGE_S = 2.0
#: ident, name, what it waits for, until when (stage time), how many answers it has got
WireWait = tuple[int, str, str, int, int]


@dataclass(slots=True)
class Rest:
    """Where one thread rests, and waits for the lane's answer."""

    wait: str
    what: Any
    arrived: int


@dataclass(slots=True)
class WorkerProcess:
    """One worker process and what the lane knows of it."""

    label: str
    life: Life
    pid: int
    end: socket.socket
    fd: int
    #: thread -> descriptor on which it reads answers
    lines: dict[int, int] = field(default_factory=dict)
    #: thread -> how many answers it was given
    given: dict[int, int] = field(default_factory=dict)
    #: thread -> where it rests until answered
    rests: dict[int, Rest] = field(default_factory=dict)
    #: what the worker last said: all threads at rest?, threads it can't see, who waits for what
    settlement: tuple[bool, int, list[WireWait]] | None = None
    #: rest without a message, found by looking from outside (`quiet`)
    quiet: str = ""
    timekeeper: int = 0
    holds: list[tuple[str, int | None, str]] = field(default_factory=list)
    #: rows of what it passed, as they came
    passed: list[tuple[Any, ...]] = field(default_factory=list)
    stopped: bool = False
    ended: str = ""
    #: The last arrival (of anyone) before it last ended a transaction.
    let_go: int = -1
    #: Something went wrong in it: it may not serve another script.
    suspect: bool = False

    @property
    def who(self) -> str:
        """The incarnation, `A#1`."""
        return self.life.who

    @property
    def settled(self) -> bool:
        """Whether every thread is in a known wait, and none was answered since it said so."""
        if self.ended or self.stopped or self.quiet:
            return True
        if self.settlement is None:
            return False
        settled, unseen, waits = self.settlement
        given = self.given
        return settled and unseen <= 0 and all(got == given.get(i, 0) for i, _, _, _, got in waits)

    def answer(
        self, thread: int, value: Any, *, armed: list[tuple[str, int | None, str]] | None = None
    ) -> None:
        """Let one thread go on."""
        self.given[thread] = self.given.get(thread, 0) + 1
        self.rests.pop(thread, None)
        self.settlement, self.quiet = None, ""
        with contextlib.suppress(OSError):  # it has just died; its end is read soon
            wire.send(self.lines.get(thread, self.fd), (value, armed))

    def fire(self, thread: int, *, armed: list[tuple[str, int | None, str]] | None = None) -> None:
        """Let a timed wait of one thread run out."""
        self.given[thread] = self.given.get(thread, 0) + 1
        self.settlement, self.quiet = None, ""
        with contextlib.suppress(OSError):
            wire.send(self.lines[self.timekeeper], ([thread], armed))

    def timers(self) -> list[tuple[int, int]]:
        """`(until_ns, thread)` of every timed wait, earliest first."""
        waits = self.settlement[2] if self.settlement else []
        return sorted((until, ident) for ident, _, wait, until, _ in waits if wait == "time")

    @property
    def sleeps_for_lock(self) -> bool:
        """Whether a thread of it, by what it said last, sleeps for the write lock by itself."""
        waits = self.settlement[2] if self.settlement and not (self.ended or self.stopped) else []
        return any(kind == "lock" for ident, _, kind, _, _ in waits if ident not in self.rests)

    def is_at(self, until: tuple[str, int | None, str] | None, *, since: int) -> bool:
        """Whether a thread that came to rest after arrival `since` is held at a point."""
        if until is None:
            return False
        pattern = Pattern(*until)
        return any(
            rest.wait == "held"
            and rest.arrived > since
            and pattern.matches(rest.what[0], ordinal=rest.what[1], phase=rest.what[2])
            for rest in self.rests.values()
        )

    def state(self, now_ns: int) -> str:
        """Where its threads are, in words, for reports."""
        if self.ended:
            return self.ended
        words = [_words(rest) for rest in sorted(self.rests.values(), key=lambda r: r.arrived)]
        for until, _ident in self.timers():
            words.append(f"waits {max(0, until - now_ns) / 1e9:g} s more")
        if not words and self.settlement is not None:
            kinds = {wait for _, _, wait, _, _ in self.settlement[2]}
            words += [word for kind, word in _BY_ITSELF.items() if kind in kinds][:1]
        if not words and self.quiet:  # how it was found out must not show in a history
            words.append(self.quiet)
        if self.stopped:
            words.append("stopped")
        return "; ".join(words) or "runs"


#: What a thread waits for without having asked the lane, most telling first.
_BY_ITSELF = {
    "lock": "waits for the write lock",
    "loop": "idle in its event loop",
    "thread": "waits for its own threads",
}


def _words(rest: Rest) -> str:
    if rest.wait == "held":
        name, ordinal, phase = rest.what
        return "held at its start" if name == "start" else f"held at {name}#{ordinal} {phase}"
    return {
        "lock": "waits for the write lock",
        "provider": "waits for the provider",
        "returned": "returned",
    }[rest.wait]


def error_of(worker: WorkerProcess) -> str:
    """What its job raised, and where, when it has returned with an error; else empty."""
    for rest in worker.rests.values():
        if rest.wait == "returned" and rest.what[2]:
            _thread, _value, error, place = rest.what
            return f"{error} ({place})" if place else str(error)
    return ""


def how_it_went(worker: WorkerProcess, now_ns: int) -> str:
    """`ended (exit 3)`, `raised ValueError: … (mine.py:3 in work)`, else where it is."""
    error = error_of(worker)
    if worker.ended:
        return f"ended ({worker.ended})"
    return f"raised {error}" if error else worker.state(now_ns)


def fork_worker(live: Callable[[socket.socket], None]) -> Spare:
    """Fork a worker from this process; `live(its end)` is its whole life."""
    ours, theirs = wire.pair()
    pid = os.fork()
    if pid == 0:
        try:
            live(theirs)
        finally:
            os._exit(70)
    theirs.close()
    return Spare(pid, ours)


def begin_life(spare: Spare, label: str, life: Life) -> WorkerProcess:
    """Somebody who was nobody yet is told who it is."""
    end = spare.end
    # A message comes in one piece or in several at once; half of one is no reason to wait.
    wire.set_timeouts(end, timeout_s=_HALF_MESSAGE_S)
    with contextlib.suppress(OSError):  # it has just died; its end is read soon
        wire.send(end.fileno(), life.told)
    return WorkerProcess(label=label, life=life, pid=spare.pid, end=end, fd=end.fileno())


def alive(workers: Iterable[WorkerProcess]) -> list[WorkerProcess]:
    """Those that have not ended."""
    return [worker for worker in workers if not worker.ended]


def next_timer(workers: Sequence[WorkerProcess]) -> tuple[int, WorkerProcess, int] | None:
    """The earliest timed wait of them all: until when (ns), whose, and of which thread."""
    timers = [
        (until, index, thread)
        for index, worker in enumerate(workers)
        if not worker.stopped and not worker.ended and worker.settlement
        for thread, _name, wait, until, _got in worker.settlement[2]
        if wait in ("time", "lock")
    ]
    if not timers:
        return None
    until, index, thread = min(timers)
    return until, workers[index], thread


def stop(worker: WorkerProcess) -> bool:
    """SIGSTOP, confirmed. False when it turned out to be dead."""
    os.kill(worker.pid, signal.SIGSTOP)
    _pid, status = os.waitpid(worker.pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        worker.stopped = True
        return True
    worker.ended = how_it_ended(status)
    return False


def cont(worker: WorkerProcess) -> bool:
    """SIGCONT, confirmed. False when it turned out to be dead."""
    os.kill(worker.pid, signal.SIGCONT)
    _pid, status = os.waitpid(worker.pid, os.WCONTINUED)
    worker.stopped = False
    if os.WIFCONTINUED(status):
        return True
    worker.ended = how_it_ended(status)
    return False


def kill(worker: WorkerProcess) -> str:
    """SIGKILL (never SIGTERM: only SIGKILL ends a stopped process), reaped. Returns how it ended.

    What it had sent before it died stays to be read on its channel.
    """
    if not worker.ended:
        os.kill(worker.pid, signal.SIGKILL)
        reap(worker)
    return worker.ended


def doom(workers: Iterable[WorkerProcess], *, placement: Placement) -> None:
    """Tell all to die, before each is waited for: they do it side by side, where there is time.

    The kernel gives back a process's memory on the processor that it may run on.
    """
    for worker in alive(workers):
        placement.spread([worker.pid])
        os.kill(worker.pid, signal.SIGKILL)


def let_end(worker: WorkerProcess, *, patience_s: float = 5.0) -> None:
    """Tell a worker whose job has returned to end, and wait a while for that; others are let be."""
    waiting = [thread for thread, rest in worker.rests.items() if rest.wait == "returned"]
    if worker.ended or worker.stopped or not waiting:
        return
    for thread in waiting:
        worker.answer(thread, "end")
    ending = os.pidfd_open(worker.pid)
    try:
        select.select([ending], [], [], patience_s)
    finally:
        os.close(ending)
    has_died(worker)


def reap(worker: WorkerProcess) -> None:
    """Wait for a worker that is known to die."""
    while not worker.ended:
        _pid, status = os.waitpid(worker.pid, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            worker.ended = how_it_ended(status)
    worker.stopped = False
    worker.rests.clear()


def has_died(worker: WorkerProcess) -> bool:
    """Whether it has died by itself: a child of its own may keep its end of the channel open."""
    if worker.ended:
        return True
    pid, status = os.waitpid(worker.pid, os.WNOHANG)
    if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
        worker.ended = how_it_ended(status)
        worker.stopped = False
        worker.rests.clear()
    return bool(worker.ended)


def has_children(worker: WorkerProcess) -> bool:
    """Whether processes of its own making live, or lie about."""
    try:
        if not worker.timekeeper and worker.settlement and len(worker.settlement[2]) == 1:
            return bool(_children_of(worker.pid, str(worker.pid)))  # it has one thread
        threads = os.listdir(f"/proc/{worker.pid}/task")
        return any(_children_of(worker.pid, thread) for thread in threads)
    except OSError:
        return False


def _children_of(pid: int, thread: str) -> bytes:
    with open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
        return listing.read()


def kill_session(worker: WorkerProcess) -> None:
    """SIGKILL for what the worker forked and left in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, signal.SIGKILL)


def close(worker: WorkerProcess) -> None:
    """Close the lane's descriptors of a worker that has ended."""
    for line in worker.lines.values():
        with contextlib.suppress(OSError):
            os.close(line)
    worker.lines.clear()
    worker.end.close()


def stacks_of(worker: WorkerProcess, *, patience_s: float = 1.0) -> str:
    """The stacks of a worker's threads, which it writes to its log; waits until that has grown.

    When it doesn't answer (it is stopped, or took the signal for itself): what its threads sleep
    in, by the kernel's word.
    """
    before = _size(worker.life.log)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.pid, STACKS_SIGNAL)
    step_s = 0.01
    while _size(worker.life.log) <= before and patience_s > 0:
        select.select([], [], [], step_s)  # a C handler writes the file; nothing tells us when
        patience_s -= step_s
    if _size(worker.life.log) > before:
        return tail(worker.life.log)
    return f"It does not write its stacks; its threads: {quiet.describe(worker.pid)}."


def refuse(movers: Sequence[WorkerProcess], *, since: float, allowed_s: float) -> None:
    """Raise `Unsettled` when time is up, unless the last of them has just come to rest."""
    if real_monotonic() <= since + allowed_s:
        return
    busy = [worker for worker in movers if not worker.settled]
    if busy:
        raise unsettled(busy, deadline_s=allowed_s)


def unsettled(busy: Sequence[WorkerProcess], *, deadline_s: float) -> Unsettled:
    """The error of a move that did not come to rest, with everyone's stacks."""
    stacks = [stacks_of(worker) for worker in busy]
    worst = busy[0]
    return Unsettled(
        worst.who,
        deadline=f"no known wait within {deadline_s:g} s (it {worst.state(0)})",
        stacks="\n".join(stacks),
        log=worst.life.log,
    )


def take_line(worker: WorkerProcess, thread: int, *, timekeeper: bool) -> None:
    """Receive the descriptor by which a thread is answered. Raises EOFError when none comes."""
    try:
        _data, (line,), _flags, _address = socket.recv_fds(worker.end, 16, 1)
    except (OSError, ValueError) as error:  # it died in between, or never had one
        raise EOFError from error
    if thread in worker.lines:  # of an ended thread that had the same number
        os.close(worker.lines[thread])
    worker.lines[thread] = line
    if timekeeper:
        worker.timekeeper = thread


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def how_it_ended(status: int) -> str:
    """`exit 3` or `signal 9`."""
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return f"exit {os.WEXITSTATUS(status)}"
