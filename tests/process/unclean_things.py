"""A module that opens SQLite and starts a thread when it is imported."""

from __future__ import annotations

import sqlite3
import threading

held = sqlite3.connect(":memory:", check_same_thread=False)
poller = threading.Thread(target=threading.Event().wait, name="beats", daemon=True)
poller.start()


def beats() -> bool:
    """Whether the thread lives in this process, too."""
    return poller.is_alive()
