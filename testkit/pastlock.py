"""Whether a locked database can be read all the same, as the file that it is.

With a rollback journal the file's pages are what was committed last, until a transaction has had
its journal synced and writes over them: at its commit, or before when its cache spills. The
journal's header tells (SQLite's file format, section 3). With a journal in memory, none, or with
`synchronous=OFF`, there is nothing that could tell; a transaction that spills then is read half
done.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
#: How many pages the journal has, when it has not been synced (0) or never will be.
_UNSYNCED: Final = (b"\0\0\0\0", b"\xff\xff\xff\xff")

LOCKED: Final = "the database file was locked"
_WAL: Final = (
    "the database file stays locked, and in WAL mode nobody else can read it then: a connection has"
    " it for itself, most likely by PRAGMA locking_mode=EXCLUSIVE"
)
_SPILLED: Final = (
    "the database file is locked, and a transaction that is not over has written to it already"
    " (its cache spilled)"
)


def why_illegible(path: str) -> str:
    """Why a locked database can't be read as the file that it is; empty when it can."""
    if os.path.exists(path + "-wal"):
        return _WAL
    return _SPILLED if _is_hot(path + "-journal") else ""


@contextmanager
def unwritten(path: str) -> Iterator[None]:
    """Read in it. Raises `sqlite3.OperationalError` if somebody has written meanwhile."""
    before = _stamp(path)
    yield
    if _stamp(path) != before or why_illegible(path):
        raise sqlite3.OperationalError("the database was written to while its file was locked")


def _is_hot(journal: str) -> bool:
    # Nobody locks a journal: to open and close it drops no lock of ours.
    try:
        with open(journal, "rb", buffering=0) as file:
            header = file.read(12)
    except OSError:
        return False
    return header[:8] == _MAGIC and header[8:] not in _UNSYNCED


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size
