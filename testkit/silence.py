"""Waiting for a lane's answer, but not for ever: one that gives no sign of life has hung.

A script may take as long as it likes, so time alone says nothing. A lane that is at work is seen
to be: it runs, or wakes up. One that was stopped, or waits for somebody who was, is not; that is
counted in looks, not in time, so that a machine which slept accuses nobody.
"""

from __future__ import annotations

from pathlib import Path
from select import POLLIN, poll
from typing import Any, Final

from . import quiet
from .errors import LaneHung

#: How often we look whether a silent lane is at work.
_STEP_S: Final = 1.0


class Patience:
    """Waits for what comes on a connection. `silence_s` is how long a lane may show nothing."""

    def __init__(self, connection: Any, *, silence_s: float) -> None:
        self._poller: Final = poll()
        self._poller.register(connection.fileno(), POLLIN)
        self._step_s: Final = min(_STEP_S, silence_s / 5)
        self._silence_s: Final = silence_s
        #: The lane's; unknown, 0, until it has told.
        self.pid = 0

    def wait(self, *, silence_s: float | None = None) -> None:
        """Return when there is something to read, or the other end is closed. Raises `LaneHung`."""
        if self._poller.poll(0):
            return
        allowed_s = silence_s or self._silence_s
        silent, before = 0, b""
        while not self._poller.poll(self._step_s * 1000):
            now = _signs(self.pid)
            silent = silent + 1 if now == before else 0
            before = now
            if silent * self._step_s >= allowed_s:
                where = quiet.describe(self.pid) if self.pid else "it had not started yet"
                raise LaneHung(silence_s=allowed_s, where=where)


def _signs(pid: int) -> bytes:
    """What changes while a process is at work: its processor time, and how often it was woken."""
    try:
        process = Path(f"/proc/{pid}")
        times = b" ".join((process / "stat").read_bytes().rpartition(b") ")[2].split()[11:13])
        switches = [
            line for line in (process / "status").read_bytes().splitlines() if b"ctxt" in line
        ]
    except OSError:
        return b""
    return times + b" ".join(switches)
