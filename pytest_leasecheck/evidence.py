"""The folder with histories, scripts and worker logs: private, per session, never overwritten."""

from __future__ import annotations

import contextlib
import re
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from .testkit.files import write_new

#: Default, below rootdir.
FOLDER: Final = ".leasecheck"

_IGNORE: Final = "# Written by leasecheck; evidence is no source.\n*\n"
_LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class Evidence:
    """This session's folder. `notice` is what the user must hear about it, or empty."""

    folder: Path
    notice: str = ""

    def fresh(self, nodeid: str) -> Path:
        """A folder for one play of a test, that no other play has; not made."""
        name = folder_name(nodeid)
        folder = self.folder / name
        number = 1
        while folder.exists():  # a plugin runs failed tests again
            number += 1
            folder = self.folder / f"{name}-{number}"
        return folder

    def tidy(self) -> None:
        """Remove the session's folder if nothing was kept in it, and its parent likewise."""
        for folder in (*_empty_below(self.folder), self.folder):
            with contextlib.suppress(OSError):
                folder.rmdir()
        parent = self.folder.parent
        with contextlib.suppress(OSError):
            if [path.name for path in parent.iterdir()] == [".gitignore"]:
                (parent / ".gitignore").unlink()
                parent.rmdir()


def folder_name(nodeid: str) -> str:
    """A file name from a node id: readable, short enough, and free of surprises."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", nodeid.replace("::", "--")).strip("-.") or "test"
    if len(name) <= _LONGEST_NAME:
        return name
    from hashlib import sha256

    return f"{name[:_LONGEST_NAME]}-{sha256(nodeid.encode()).hexdigest()[:8]}"


def make_session_folder(asked: Path | None, *, rootpath: Path) -> Evidence:
    """Make the folder of one session.

    Raises `pytest.UsageError` when a folder that was asked for can't be written. The default gives
    way to a temporary folder instead: a read-only checkout is nobody's mistake.
    """
    try:
        return Evidence(_make(asked or rootpath / FOLDER))
    except OSError as error:
        why = f"{error.strerror or error}: {error.filename or asked or rootpath}"
    if asked is not None:
        raise pytest.UsageError(f"leasecheck can't write its evidence to {asked}: {why}")
    folder = Path(tempfile.mkdtemp(prefix="leasecheck-"))
    return Evidence(
        folder, notice=f"evidence goes to {folder}, as rootdir can't be written ({why})"
    )


def _make(parent: Path) -> Path:
    """Make `parent` and a new folder in it."""
    # What was there belongs to somebody, who may have chosen its permissions.
    if not parent.is_dir():
        parent.mkdir(mode=0o700, parents=True)
        write_new(parent / ".gitignore", _IGNORE)
    stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    for number in range(1, 1_000):
        folder = parent / (stamp if number == 1 else f"{stamp}_{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(17, "too many sessions in one second", str(parent))


def _empty_below(folder: Path) -> list[Path]:
    """The folders below, deepest first."""
    found = [path for path in folder.glob("**/") if path != folder] if folder.is_dir() else []
    return sorted(found, key=lambda path: len(path.parts), reverse=True)
