"""Inside a warm worker: what belongs to the process is put back before the next script.

Faults it is made for: a pass that changes directory, environment, umask, signal handlers, or the
functions of `time`. What it does not put back: the state of modules. A subject that keeps some
is for fresh workers, where each incarnation is a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any, Final

_SIGNALS: Final = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1,
    signal.SIGUSR2, signal.SIGPIPE,
)  # fmt: skip
_FUNCTIONS: Final = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep")


class Surroundings:
    """How a process's surroundings were when this was made."""

    def __init__(self) -> None:
        self._folder: Final = _folder()
        self._environment: Final = dict(os.environ)
        self._data: Final = dict(os.environ._data)  # type: ignore[attr-defined]
        self._umask: Final = _umask()
        self._handlers: Final = {number: signal.getsignal(number) for number in _SIGNALS}
        self._time: Final[dict[str, Any]] = {name: getattr(time, name) for name in _FUNCTIONS}

    def restore(self) -> None:
        """Put back what was changed since."""
        if self._folder and _folder() != self._folder:
            with contextlib.suppress(OSError):
                os.chdir(self._folder)
        if os.environ._data != self._data:  # type: ignore[attr-defined]  # decoding all costs 0.1 ms
            os.environ.clear()
            os.environ.update(self._environment)
        os.umask(self._umask)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            # None: it was not set from Python, and can't be set back from it
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        for name, function in self._time.items():
            if getattr(time, name, None) is not function:
                setattr(time, name, function)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
