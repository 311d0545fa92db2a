"""`python -m tests.bench.memory [COUNT]`: does a lane grow, or leave anything behind?"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ways import Ours

SETTLED = 500


@dataclass(frozen=True, slots=True)
class Sizes:
    """A process's resident memory in KiB, its open descriptors, and its files in shared memory."""

    rss_kib: int
    descriptors: int
    files: int


def sizes(pid: int, work: str) -> Sizes:
    """How large a process is now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    files = sum(len(names) for _folder, _folders, names in os.walk(work))
    return Sizes(
        pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        len(os.listdir(f"/proc/{pid}/fd")),
        files,
    )


def lane_pid(lane: Any) -> int:
    """The lane's process: its guard's child."""
    guard = lane._process.pid
    return int(Path(f"/proc/{guard}/task/{guard}/children").read_text("ascii").split()[0])


def run(*, count: int, every: int = 500, workers: str = "fresh") -> Iterator[tuple[int, Sizes]]:
    """Play `count` schedules; the lane's sizes now and then."""
    with tempfile.TemporaryDirectory() as folder:
        way = Ours(Path(folder), workers=workers)
        pid = lane_pid(way.lane)
        try:
            for number in range(1, count + 1):
                way.play()
                if number % every == 0:
                    yield number, sizes(pid, way.lane.facts.work)
        finally:
            way.close()
        assert not os.path.exists(way.lane.facts.work)


def main() -> None:
    """Tell how a lane's sizes change; exit 1 when it grew by more than a tenth."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    grew = False
    for workers in ("fresh", "warm"):
        first: Sizes | None = None
        for number, found in run(count=count, workers=workers):
            first = first or found
            print(f"{workers} {number:6}: {found}", flush=True)
            grew = grew or found.rss_kib > 1.1 * first.rss_kib
            grew = grew or found.descriptors > first.descriptors + 1
    sys.exit(grew)


if __name__ == "__main__":
    main()
