"""In the lane: whether anything was committed to a WAL database, by one look at its shared index.

The first 48 bytes of the `-shm` file are the index's header; every commit changes its counter, its
number of frames and its checksums (SQLite's file format, "WAL-index format"). A look costs a tenth
of asking the observer. No SQLite is opened here; a database without such a file is *not known* to
be unchanged.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

_HEADER: Final = 48
_IS_INIT: Final = 12


class WalIndex:
    """The header of one database's WAL index, and how it was when last marked."""

    def __init__(self, path: str) -> None:
        self._db: Final = path
        self._path: Final = path + "-shm"
        self._file: tuple[int, int] = (0, 0)
        self._map: mmap.mmap | None = None
        self._marked = b""

    def mark(self) -> None:
        """What is committed now is going to be read."""
        self._marked = self._header()

    def unchanged(self) -> bool:
        """Whether surely nothing was committed since the mark."""
        return bool(self._marked) and self._header() == self._marked

    def close(self) -> None:
        """Let the file go: a mapping holds a descriptor of its own."""
        if self._map is not None:
            self._map.close()
            self._map = None

    def _header(self) -> bytes:
        """The header's bytes, empty where there is none."""
        try:
            database, found = os.stat(self._db), os.stat(self._path)
            if self._map is None or self._file != (found.st_dev, found.st_ino):
                self._open()
        except (OSError, ValueError):  # no such file, or an empty one
            return b""
        assert self._map is not None
        header = self._map[:_HEADER]
        if not header[_IS_INIT]:
            return b""
        # A file that was put in the database's place is another one.
        return header + b"%d %d" % (database.st_dev, database.st_ino)

    def _open(self) -> None:
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            found = os.fstat(fd)
            self.close()
            self._map = mmap.mmap(fd, _HEADER, prot=mmap.PROT_READ)
            self._file = found.st_dev, found.st_ino
        finally:
            os.close(fd)
