"""What is left running when something died: nothing.

Faults it is made for: pytest or a lane is killed with SIGKILL while a worker is stopped, holds the
write lock, or has children of its own. A stopped child would be *continued by the kernel* when
its process group is orphaned, and go on writing. What it does not cover: a machine that goes down,
and a worker's child that left its session and cleared its environment, when guard *and* lane were
killed with SIGKILL in the same instant.

Three lines of defence. The process that pytest starts becomes the guard, and the lane is its
child: it outlives both, is the subreaper of whatever they leave, and kills that. Should the guard
itself be killed, the kernel tells the lane (PDEATHSIG), which does the same; workers die with the
lane. And whatever a lane starts carries its mark in the environment, by which pytest finds it too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import stat
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None, use_errno=True)

#: The environment variable that every process of a lane inherits.
MARK: Final = "LEASECHECK_LANE"
#: What the guard gets when the thread that started it ends; pytest may live on.
_PARENT_SIGNAL: Final = signal.SIGUSR1
#: What the lane gets when the guard ends; no program uses it for itself.
_GUARD_SIGNAL: Final = signal.SIGRTMIN + 6
_WAKING: Final = frozenset({signal.SIGCHLD, signal.SIGTERM, _PARENT_SIGNAL})
_ROUNDS: Final = 500


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def die_with_parent(parent_pid: int) -> None:
    """SIGKILL for this process when the thread that forked it ends; exits if that has happened."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def adopt_orphans() -> None:
    """Grandchildren whose parent died become this process's children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def stand_guard(
    mark: str, *, folder_path: str, parent_pid: int, others: Collection[int] = ()
) -> None:
    """Split in two: the caller goes on as the lane, a child; this process stays behind as guard.

    When the lane ends, in whatever way, or the parent or one of the `others` dies, or SIGTERM
    comes, everything that descends from the lane or carries its mark is killed, the folder (the
    databases) is removed, and the guard ends as the lane did.
    """
    os.setsid()
    adopt_orphans()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAKING)
    _prctl(_PR_SET_PDEATHSIG, _PARENT_SIGNAL)
    guard_pid = os.getpid()
    lane_pid = os.fork()
    if lane_pid == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _clear_up_without(guard_pid, mark=mark, folder_path=folder_path)
        adopt_orphans()
        return
    status = int(signal.SIGKILL)
    try:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        os.closerange(3, 1 << 20)
        status = _watch(lane_pid, parent_pid=parent_pid, others=others)
        _clear_up(mark, folder_path=folder_path)
    finally:
        _end_like(status)


def _clear_up(mark: str, *, folder_path: str) -> None:
    kill_children()
    kill_marked(mark)
    remove_folder(folder_path)


def _clear_up_without(guard_pid: int, *, mark: str, folder_path: str) -> None:
    """In the lane: should the guard be killed, do its work, and end."""

    def take_over(_number: int, _frame: object) -> None:
        if os.getppid() != guard_pid:
            _clear_up(mark, folder_path=folder_path)
            os._exit(1)

    signal.signal(_GUARD_SIGNAL, take_over)
    _prctl(_PR_SET_PDEATHSIG, _GUARD_SIGNAL)
    take_over(0, None)


def _watch(lane_pid: int, *, parent_pid: int, others: Collection[int]) -> int:
    """Wait until there is something to clean up; returns the lane's wait status."""
    wakes = _wake_on_signals()
    poller = select.poll()
    poller.register(wakes, select.POLLIN)
    for pid in others:
        try:
            poller.register(os.pidfd_open(pid), select.POLLIN)
        except OSError:  # it is dead already
            return signal.SIGKILL
    while os.getppid() == parent_pid:
        ready = [fd for fd, _events in poller.poll()]
        if wakes not in ready:
            break
        numbers = os.read(wakes, 512)
        if signal.SIGTERM in numbers:
            break
        while (ended := _reap_one()) is not None:
            if ended[0] == lane_pid:
                return ended[1]
    return signal.SIGKILL


def _wake_on_signals() -> int:
    """A descriptor from which the numbers of signals can be read; one that was pending too."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    for number in _WAKING:
        signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKING)
    return read_end


def _reap_one() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _end_like(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def keep_only(fd: int) -> int:
    """Close every descriptor above 2 but `fd`, which becomes 3.

    An inherited one would hide a sibling's end.
    """
    if fd != 3:
        os.dup2(fd, 3, inheritable=False)
    os.closerange(4, 1 << 20)
    return 3


def kill_children(*, spare: Collection[int] = ()) -> int:
    """SIGKILL and reap every child of this process but `spare`. Returns how many there were.

    We are their subreaper: a dead child's children become ours, so one look is not enough.
    """
    killed = 0
    for _ in range(_ROUNDS):
        children = [pid for pid in _children() if pid not in spare]
        if not children:
            break
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                killed += 1
    return killed


def _children() -> list[int]:
    """Children of every thread of this process, by the kernel's list."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
    except OSError:  # a kernel without that list: the mark alone has to do
        return []
    return [int(word) for word in text.split()]


def kill_marked(mark: str, *, rounds: int = _ROUNDS) -> int:
    """SIGKILL whatever carries `mark`, but this process, until a look finds none. Returns how many.

    A process may fork between being read and being killed, so one look is not enough.
    """
    killed: set[int] = set()
    for _ in range(rounds):
        alive = [pid for pid in marked(mark) if pid != os.getpid()]
        if not alive:
            break
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(0.002)  # the only sleep: nobody reports the death of a stranger's child to us
    return len(killed)


def marked(mark: str) -> list[int]:
    """Every living process that carries `mark`. Needs no right but to read its environment."""
    wanted = f"\0{MARK}={mark}\0".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
            state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b") ")[2][:1]
        except OSError:
            continue
        if wanted in b"\0" + environment + b"\0" and state not in (b"Z", b"X"):
            found.append(int(name))
    return found


def remove_folder(path: str) -> None:
    """Remove a folder, also one in which a worker took away its own right to write.

    Where a worker has put a link in its place, the link goes, and what it leads to stays.
    """

    with contextlib.suppress(OSError):  # the common case, in a tenth of the time: no folder in it
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name in os.listdir(folder):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(path)
        return
    if os.path.islink(path) or os.path.isfile(path):
        with contextlib.suppress(OSError):
            os.unlink(path)
        return

    def allow_and_retry(function: Any, name: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(name), stat.S_IRWXU)
            if not os.path.islink(name) and os.path.isdir(name):
                os.chmod(name, stat.S_IRWXU)
                shutil.rmtree(name, ignore_errors=True)
            else:
                function(name)

    shutil.rmtree(path, onerror=allow_and_retry)
