"""Where a lane's databases lie: in shared memory when there is room, else on disk.

An fsync in shared memory is free, and SIGKILL loses nothing that the kernel has. In containers
/dev/shm may be missing, full, or 64 MB.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Final

from .errors import LeasecheckError

#: Where to look first.
SHARED_MEMORY: Final = "/dev/shm"
#: With less room than this, a place is left alone.
ROOM_NEEDED: Final = 32 * 2**20


def make_work_folder(
    places: Sequence[str] = (SHARED_MEMORY,), *, room_needed: int = ROOM_NEEDED
) -> str:
    """A new folder, 0700, in the first place that has `room_needed` bytes and lets us write.

    After `places` the system's folder for temporary files is tried, however full. Raises
    `LeasecheckError` when there is none.
    """
    for place in places:
        try:
            room = os.statvfs(place)
            if room.f_bavail * room.f_frsize >= room_needed:
                return tempfile.mkdtemp(prefix="leasecheck-", dir=place)
        except OSError:
            continue
    try:
        return tempfile.mkdtemp(prefix="leasecheck-")
    except OSError as error:
        raise LeasecheckError(f"there is no folder for databases: {error}") from error


def make_private_folder(path: str) -> None:
    """Make a folder and what is missing above it, all 0700, whatever the umask is."""
    above = os.path.dirname(path)
    if above and not os.path.isdir(above):
        make_private_folder(above)
    try:
        os.mkdir(path, mode=0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
