"""The floor: the same SQL through the same library in one process, with no control at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from . import tinylease


class _Clock:
    now = 1_893_456_000.0

    def __call__(self) -> float:
        return self.now


def template(folder: Path) -> bytes:
    """The bytes of a fresh database."""
    path = folder / "template.db"
    tinylease.prepare(path)
    found = path.read_bytes()
    path.unlink()
    return found


def play(path: Path, blob: bytes) -> None:
    """The schedule once: three connections, then the look at what stands there."""
    clock = _Clock()
    with open(path, "wb") as file:
        file.write(blob)
    mine = tinylease.Leases(path, owner="A", clock=clock)
    theirs = tinylease.Leases(path, owner="B", clock=clock)

    def paying(pay: object) -> None:
        clock.now += 31
        assert tinylease.work(theirs) == "done"
        pay()  # type: ignore[operator]

    assert tinylease.work(mine, paying=paying) == "lost"
    found = tinylease.state_of(path)
    assert found == tinylease.AFTER_TAKEOVER, found
    mine.close()
    theirs.close()
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")
