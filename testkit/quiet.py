"""Whether a process is at rest although nobody said so: a look from outside, by the kernel's word.

A thread that waits for a lock of its own, or an event loop that idles, sends no message. One look
at /proc is no proof, since threads are read one after the other. Two looks are, when every thread
slept in both and none was scheduled between them (its count of context switches stands still):
then there was an instant at which all of them slept.
"""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import Final

#: System calls in which a thread waits for another of its own process, or for a message of ours.
_X86: Final = {202: "lock", 0: "read", 45: "read", 47: "read", 232: "loop", 281: "loop", 7: "loop",
               23: "loop", 270: "loop", 271: "loop", 35: "sleep", 230: "sleep"}  # fmt: skip
_ARM: Final = {98: "lock", 63: "read", 207: "read", 212: "read", 22: "loop", 73: "loop",
               72: "loop", 101: "sleep", 115: "sleep"}  # fmt: skip
_CALLS: Final = _ARM if platform.machine() == "aarch64" else _X86


def rest_of(pid: int) -> tuple[str, ...] | None:
    """What each thread of `pid` sleeps in, sorted: `lock`, `timed` (a lock, with a timeout),
    `read`, `loop`, `sleep` or `other`.

    None while any of them runs, or may have run between the two looks.
    """
    first = _look(pid)
    if first is None:
        return None
    second = _look(pid)
    if second is None or first != second:
        return None
    return tuple(sorted(call for _switches, call in first.values()))


def describe(pid: int) -> str:
    """Each thread of `pid` and what the kernel says of it, for a report."""
    words = []
    with contextlib.suppress(OSError):
        for thread in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            base = Path(f"/proc/{pid}/task/{thread}")
            state = _field((base / "status").read_text("ascii", "replace"), "State:")
            try:
                number = int((base / "syscall").read_text().split()[0])
            except (OSError, ValueError):  # not permitted here, or it runs
                number = -1
            where = _CALLS.get(number, f"system call {number}" if number >= 0 else "its own code")
            words.append(f"{thread} {state} in {where}")
    return "; ".join(words) or "none"


def _look(pid: int) -> dict[str, tuple[int, str]] | None:
    threads: dict[str, tuple[int, str]] = {}
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            base = Path(f"/proc/{pid}/task/{thread}")
            status = (base / "status").read_text("ascii", "replace")
            if _field(status, "State:")[:1] != "S":
                return None
            switches = int(_field(status, "voluntary_ctxt_switches:")) + int(
                _field(status, "nonvoluntary_ctxt_switches:")
            )
            try:
                words = (base / "syscall").read_text().split()
                call = _CALLS.get(int(words[0]), "other")
                # A futex whose fourth argument is a timeout ends by itself.
                call = "timed" if call == "lock" and int(words[4], 16) else call
            except (OSError, ValueError, IndexError):  # not permitted, or just returned from it
                call = "other"
            threads[thread] = (switches, call)
    except OSError:
        return None
    return threads


def _field(status: str, name: str) -> str:
    start = status.find("\n" + name)
    return status[start + len(name) + 1 :].split("\n", 1)[0].strip() if start >= 0 else ""
