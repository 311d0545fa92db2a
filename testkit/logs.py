"""Workers' logs: one file each, of which no more is kept than a reader wants.

Fault it is made for: a worker that prints without end. A limit by the kernel (RLIMIT_FSIZE) would
hit the database too, and a pipe would make the worker wait for its reader. So while its author goes
on, a file that has grown too long gives its beginning back to the disk, and keeps its length: what
is appended meanwhile can't be lost. It is cut once he has ended, and what was lost is said in it.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

#: A log is cut when it is longer than this, down to its last part.
MOST_BYTES: Final = 4 * 2**20
KEPT_BYTES: Final = 256 * 2**10

_BLOCK: Final = 512  # of `st_blocks`, whatever the filesystem's own are
_KEEP_SIZE: Final = 1
_PUNCH_HOLE: Final = 2
_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def thin(path: str, *, most: int = MOST_BYTES, kept: int = KEPT_BYTES) -> int:
    """Let a log that may still grow take no more than `most` bytes of the disk.

    Returns how many bytes of it are no more than a hole. Where a filesystem has no holes it is cut.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        about = os.fstat(fd)
        if about.st_blocks * _BLOCK <= most:
            return 0
        dropped = max(0, about.st_size - kept)
        if _libc.fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, 0, dropped) == 0:
            return dropped
    except OSError:
        return 0
    finally:
        os.close(fd)
    return trim(path, most=most, kept=kept)


def trim(path: str, *, most: int = MOST_BYTES, kept: int = KEPT_BYTES) -> int:
    """Cut a log longer than `most` bytes down to its last `kept`. Returns how many were dropped."""
    try:
        if os.stat(path, follow_symlinks=False).st_size <= most:
            return 0
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        size = os.fstat(fd).st_size
        tail = os.pread(fd, kept, max(0, size - kept))
        dropped = size - len(tail)
        os.ftruncate(fd, 0)
        os.write(fd, b"[%d bytes of output were dropped here]\n" % dropped + tail)
    except OSError:
        return 0
    finally:
        os.close(fd)
    return dropped


def tail(path: str, *, size: int = 6000) -> str:
    """The last part of a log as text; empty when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        start = max(0, os.fstat(fd).st_size - size)
        return os.pread(fd, size, start).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
