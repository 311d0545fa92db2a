"""How the rate grows from one lane to two: whole processes, each with a lane and a core."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from .ways import ROOT, Ours, on_cpu


class Players:
    """Processes that play for a stated time when told to, and say how many schedules it were."""

    def __init__(self, folder: Path, *, count: int) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.bench.lanes", str(folder / f"player{cpu}"), str(cpu)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                text=True,
            )
            for cpu in range(count)
        ]
        for process in self._processes:
            assert _of(process.stdout).readline() == "ready\n"

    def rate(self, count: int, *, seconds: float) -> float:
        """Schedules a second of the first `count` players at once."""
        chosen = self._processes[:count]
        for process in chosen:
            _of(process.stdin).write(f"{seconds}\n")
            _of(process.stdin).flush()
        return sum(float(_of(process.stdout).readline()) for process in chosen)

    def close(self) -> None:
        for process in self._processes:
            process.communicate()  # its input ends, and so does it


def _of(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def main() -> None:
    """A player: pytest's side on the same core as its lane, as under xdist with all cores busy."""
    folder, cpu = Path(sys.argv[1]), int(sys.argv[2])
    on_cpu(cpu % (os.cpu_count() or 1))
    way = Ours(folder, cpu=cpu % (os.cpu_count() or 1))
    for _ in range(20):
        way.play()
    print("ready", flush=True)
    for line in sys.stdin:
        begun, played = time.perf_counter(), 0
        while time.perf_counter() - begun < float(line):
            way.play()
            played += 1
        print(played / (time.perf_counter() - begun), flush=True)
    way.close()


if __name__ == "__main__":
    main()
