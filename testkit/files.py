"""Files that somebody names are read, and evidence is written, with care.

Read is a regular file, of a size that can be meant: a pipe that nobody writes to would be waited
for, and a device read, without end. Written is a new file, whole or not at all.
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
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes", str(path))
    return data


def write_new(path: Path, text: str, *, encoding: str = "utf-8") -> None:
    """Write a new file that only its owner may read; when the disk fills up, nothing is left of it.

    Raises `FileExistsError` when something is there: evidence is never overwritten.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        what = "evidence is never overwritten; choose another name"
        raise FileExistsError(errno.EEXIST, what, str(path)) from None
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode(encoding, "backslashreplace"))
    except OSError:
        path.unlink(missing_ok=True)
        raise


def replace_file(path: Path, text: str) -> None:
    """Write a file beside its place, then put it there: nobody sees half of one.

    What is no regular file (/dev/null, a pipe) is written to, and never replaced; a link is
    followed. Raises OSError.
    """
    data = text.encode("utf-8", "backslashreplace")
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(data)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
