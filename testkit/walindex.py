"""In the lane: whether anything was committed to a WAL database, by one look at its shared index.

The first 48 bytes of the `-shm` file are the index's header; every commit changes its counter, its
number of frames and its checksums (SQLite's file format, "WAL-index format"). A look costs a tenth
of asking the observer. No SQLite is opened here; a database without such a file is *not known* to
be unchanged.
"""

from __future__ import annotations

import os
from typing import Final

_HEADER: Final = 48
_IS_INIT: Final = 12


class WalIndex:
    """The header of one database's WAL index, and how it was when last marked."""

    def __init__(self, path: str) -> None:
        self._db: Final = path
        self._path: Final = path + "-shm"
        self._log: Final = path + "-wal"
        self._file: tuple[int, int] = (0, 0)
        self._fd = -1
        self._marked = b""

    def mark(self) -> None:
        """What is committed now is going to be read."""
        self._marked = self._header()

    def unchanged(self) -> bool:
        """Whether surely nothing was committed since the mark."""
        return bool(self._marked) and self._header() == self._marked

    def close(self) -> None:
        """Let the file go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _header(self) -> bytes:
        """The header's bytes, empty where there is none."""
        try:
            database, found = os.stat(self._db), os.stat(self._path)
            log = os.stat(self._log)
            if self._fd < 0 or self._file != (found.st_dev, found.st_ino):
                self._open()
            header = os.pread(self._fd, _HEADER, 0)  # a mapping would be fatal were it cut short
        except OSError:  # there is none
            return b""
        if len(header) < _HEADER or not header[_IS_INIT]:
            return b""
        # A file that was put in the database's place is another one. A connection that has the
        # database for itself keeps an index of its own, and only the log grows.
        return header + b"%d %d %d %d" % (
            database.st_dev, database.st_ino, log.st_size, log.st_mtime_ns
        )  # fmt: skip

    def _open(self) -> None:
        self.close()
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        self._fd = os.open(self._path, flags)
        found = os.fstat(self._fd)
        self._file = found.st_dev, found.st_ino
