"""On what kind of filesystem a path lies, read from the kernel's table of mounts."""

from __future__ import annotations

import os
import re
from typing import Final

#: Filesystems on which SQLite's locks can't be relied on. (Second seed, "Network filesystems".)
NETWORK_FILESYSTEMS: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "coda",
        "davfs",
        "fuse.sshfs",
        "fuse.davfs2",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.cephfs",
    }
)

_MOUNTS: Final = "/proc/self/mountinfo"
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def filesystem_of(path: str, mountinfo: str) -> str:
    """The type of the innermost mount above an absolute path; "" when none is.

    ``mountinfo`` is text as in proc_pid_mountinfo(5): mount point in the fifth field, the
    type first after a lone hyphen. A later mount on the same point hides the earlier.
    """
    best, found = -1, ""
    for line in mountinfo.splitlines():
        left, hyphen, right = line.partition(" - ")
        fields = left.split(" ")
        if not hyphen or len(fields) < 5:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, found = len(point), right.split(" ", 1)[0]
    return found


def network_filesystem(path: str) -> str:
    """The type of the network filesystem that a path lies on; "" for a local one."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as table:
            mountinfo = table.read()
    except OSError:
        # Without the table nothing can be said; SQLite itself still works.
        return ""
    found = filesystem_of(os.path.realpath(path), mountinfo)
    return found if found in NETWORK_FILESYSTEMS else ""
