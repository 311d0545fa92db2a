"""See processes end: who descends from whom, and when the kernel says that they are gone."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """`pid` and every living process that descends from it."""
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b") ")[2].split()
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X"):
                children[int(fields[1])].append(int(name))
    found = [pid]
    for one in found:
        found += children[one]
    return found


class Watch:
    """Processes that are to end: a pidfd of each, for a number may come again."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._fds: dict[int, int] = {}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it was about to end when it was seen
                self._fds[os.pidfd_open(pid)] = pid
        self._started = time.monotonic()

    def start(self) -> None:
        """Time counts from here."""
        self._started = time.monotonic()

    def wait(self, *, most_s: float = 10.0) -> tuple[float, list[int]]:
        """When the last one was gone, in seconds, and who was not after `most_s`."""
        poller = select.poll()
        left = dict(self._fds)
        for fd in left:
            poller.register(fd, select.POLLIN)
        while left and time.monotonic() - self._started < most_s:
            for fd, _event in poller.poll(100):
                poller.unregister(fd)
                left.pop(fd, None)
        for fd in self._fds:
            os.close(fd)
        return time.monotonic() - self._started, sorted(left.values())
