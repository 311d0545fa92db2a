"""What is left running when something died: nothing.

Faults it is made for: pytest or a lane is killed with SIGKILL while a worker is stopped, holds the
write lock, or has children of its own. A stopped child would be *continued by the kernel* when
its process group is orphaned, and go on writing. What it does not cover: a machine that goes down.

Three lines of defence: the kernel kills a child when its parent dies (PDEATHSIG); the lane is the
subreaper of whatever its workers leave; and a guard process, which outlives the lane by
milliseconds, kills everything that carries the lane's mark in its environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None, use_errno=True)

#: The environment variable that every process of a lane inherits.
MARK: Final = "LEASECHECK_LANE"


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


def start_guard(mark: str, *, folder_path: str) -> tuple[int, int]:
    """Fork the guard; returns its pid and the descriptor whose closing lets it act.

    When the lane ends, in whatever way, everything with its mark is killed, and the folder
    (the databases) is removed.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            keep_only(read_end)
            while os.read(read_end, 4096):
                pass
            kill_marked(mark)
            shutil.rmtree(folder_path, ignore_errors=True)
        finally:
            os._exit(0)
    os.close(read_end)
    return pid, write_end


def keep_only(fd: int) -> int:
    """Close every descriptor above 2 but `fd`, which becomes 3.

    An inherited one would hide a sibling's end.
    """
    if fd != 3:
        os.dup2(fd, 3)
    os.closerange(4, 1 << 20)
    return 3


def kill_marked(mark: str, *, rounds: int = 50) -> int:
    """SIGKILL whatever carries `mark`, but this process, until a look finds none. Returns how many.

    A process may fork between being read and being killed, so one look is not enough.
    """
    wanted = f"{MARK}={mark}\0".encode()
    killed: set[int] = set()
    for _ in range(rounds):
        alive = [pid for pid in _marked(wanted) if pid != os.getpid()]
        if not alive:
            break
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(0.002)  # the only sleep: nobody reports the death of a stranger's child to us
    return len(killed)


def _marked(wanted: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
            state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b") ")[2][:1]
        except OSError:
            continue
        if wanted in environment + b"\0" and state not in (b"Z", b"X"):
            found.append(int(name))
    return found
