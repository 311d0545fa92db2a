"""Workers' logs: one file each, of which no more is kept than a reader wants.

Fault it is made for: a worker that prints without end. A limit by the kernel (RLIMIT_FSIZE) would
hit the database too, and a pipe would make the worker wait for its reader; so the file is cut when
it has grown too long, while its author, who appends, goes on. What is lost is said in the file.
"""

from __future__ import annotations

import os
from typing import Final

#: A log is cut when it is longer than this, down to its last part.
MOST_BYTES: Final = 4 * 2**20
KEPT_BYTES: Final = 256 * 2**10


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
