"""A subject whose import does what imports should not; chosen by the environment."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading

from subjects_hostile import Small

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


class Imported(Small):
    """Works like `Small`."""
