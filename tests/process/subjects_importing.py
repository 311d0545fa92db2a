"""A subject whose import does what imports should not; chosen by the environment."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sqlite3
import threading
from pathlib import Path

from subjects_hostile import Small

from pytest_leasecheck.testkit.worker import Worker

_DOES = os.environ.get("IMPORT_DOES", "")

if "sqlite" in _DOES:
    held = sqlite3.connect(":memory:")
if "thread" in _DOES:
    threading.Thread(target=threading.Event().wait, name="poller", daemon=True).start()
# The rest would end pytest's own process, which imports a subject first.
if os.environ.get("LEASECHECK_LANE"):
    if "raise" in _DOES:
        raise RuntimeError("not in a lane")
    if "exit" in _DOES:
        os._exit(7)
    if "hang" in _DOES:
        os.read(os.pipe()[0], 1)
    if "segfault" in _DOES:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "fork" in _DOES and os.fork() == 0:
        os.setsid()
        while True:
            signal.pause()
    if "no room" in _DOES:  # for the nursery, the third that a lane forks; nor for others later
        _fork, _count = os.fork, itertools.count(1)

        def fork() -> int:
            number = next(_count)
            if number == 3 or (number > 3 and "at all" in _DOES):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            return _fork()

        os.fork = fork


class Imported(Small):
    """Works like `Small`."""


class Elsewhere(Small):
    """Its import is clean; that of the module of its dotted name is not."""

    calls = ("unclean_things:beats",)

    def work(self, worker: Worker) -> str:
        import unclean_things

        return f"{unclean_things.beats()}, {super().work(worker)}"


class _ReplacedOnce(type):
    """Its attributes can be replaced once on a machine; as long as a file is not there."""

    def __setattr__(cls, name: str, value: object) -> None:
        Path(os.environ["REPLACED_ONCE"]).open("x").close()
        super().__setattr__(name, value)


class Once(metaclass=_ReplacedOnce):
    """Has something to be replaced."""

    def beat(self) -> None:
        """Beat."""


class Replaced(Small):
    """Its dotted name can be replaced when a lane tries, and never again."""

    heartbeats = ("subjects_importing:Once.beat",)
