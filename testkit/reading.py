"""Reading a file that somebody names: a regular one, of a size that can be meant.

A pipe that nobody writes to would be waited for, and a device read, without end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

#: Far above any history: a long soak comes to some hundred megabytes.
MOST_BYTES: Final = 1 << 30


def read_file(path: Path, *, most: int = MOST_BYTES) -> bytes:
    """All of a regular file. Raises OSError, also for what is no file, or longer than `most`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes", str(path))
    return data
