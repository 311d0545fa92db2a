"""In the lane: what has been read of what was committed, and what could not be read in time.

A look that is not about a commit that was told may find the database illegible: in WAL mode a
connection that has the file for itself lets nobody read, and a transaction whose cache spilled has
overwritten pages that were committed. Nothing is lost by that if a later look finds no change that
it can't put to a commit. If it does, whoever made the change, and when, can't be known any more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Final

from .observer import ObserverClient, ObserverFailed
from .tables import WireChange
from .walindex import WalIndex

#: Where the database's header says how it is read; 2 is WAL (SQLite's file format, 1.3.3).
_READ_VERSION: Final = 19
_WAL: Final = b"\2"

KEPT_TO_ITSELF: Final = (
    "keeps the database file to itself (PRAGMA locking_mode=EXCLUSIVE): no other worker gets in"
    " while that connection is open"
)
KEPT_FROM_US: Final = (
    "PRAGMA locking_mode=EXCLUSIVE, which in WAL mode keeps everybody else, the observer too, from"
    " reading what was committed"
)


class Sight:
    """One stage's eyes. `lost` is told whose commits were not seen, and why."""

    def __init__(
        self, db: str, observer: ObserverClient | None, *, lost: Callable[[str, str], None]
    ) -> None:
        self._db: Final = db
        self._observer: Final = observer
        self._index: Final = WalIndex(db)
        self._lost: Final = lost
        #: Whose move it was when the database was illegible, and why it was; empty: it was not.
        self._illegible = ("", "")
        #: Whether the last look failed, so that there may be something that is older than it.
        self._unread = False

    def look(self, who: str, *, told: bool, past_lock: bool) -> list[WireChange] | None:
        """What has been committed since the last look, None if nothing can have been.

        `told`: a worker waits for us after a commit. `past_lock`: the file may be read though it
        is locked, since whoever locked it is at rest.
        """
        if not told and not self._unread and self._index.unchanged():
            return None
        if self._observer is None:
            return []
        self._index.mark()  # first: what comes after it will be looked for again
        try:
            changes, illegible = self._observer.read(certain=told, past_lock=told or past_lock)
        except ObserverFailed as error:
            self._unread = True
            self._lost(who, str(error))
            return None
        self._unread = bool(illegible)
        if illegible:
            self._illegible = (who, illegible)
            return []
        if changes and not told:
            self._tell_illegible()
        self._illegible = ("", "")
        return changes

    def write_lock(self) -> str:
        """Whether the database's write lock is free at this moment."""
        try:
            return self._observer.write_lock() if self._observer is not None else "unknown"
        except ObserverFailed:
            return "unknown"

    def note_exclusive(self, who: str, *, note: Callable[[str], None]) -> None:
        """A worker is about to ask for the file for itself; in WAL mode nobody sees past that."""
        if not is_wal(self._db) or self._observer is None:
            note(KEPT_TO_ITSELF)
            return
        self._lost(who, KEPT_FROM_US)
        with contextlib.suppress(ObserverFailed):  # said when it is asked to read
            self._observer.step_aside()

    def close(self) -> None:
        """The stage is over: what is illegible still has never been read."""
        self._tell_illegible()
        self._index.close()

    def _tell_illegible(self) -> None:
        who, why = self._illegible
        if why:
            self._lost(who, f"what it committed was not read in time: {why}")
        self._illegible = ("", "")


def is_wal(path: str) -> bool:
    """Whether a database is in WAL mode, by its header.

    For the lane only: in a process that has the database open, this would drop its locks.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.pread(fd, 1, _READ_VERSION) == _WAL
    finally:
        os.close(fd)
