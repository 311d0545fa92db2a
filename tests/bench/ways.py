"""The ways to play one schedule: what people write today, what the kit does, and the floor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions

from . import floor, tinylease
from .subject import CLASSIC, CLASSIC_CHECKED, TinyLease

ROOT = Path(__file__).resolve().parents[2]


class Way(Protocol):
    """One way to play the schedule."""

    def play(self) -> None:
        """Once, checked."""

    def close(self) -> None:
        """Leave nothing behind."""


def on_cpu(number: int) -> None:
    """Where this process runs; one that has no such processor stays where it is."""
    if number in os.sched_getaffinity(os.getpid()) or number < (os.cpu_count() or 1):
        os.sched_setaffinity(0, {number})


class Floor:
    """The same SQL on the same connections in one process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "floor.db"
        self._template = floor.template(folder)

    def play(self) -> None:
        floor.play(self._path, self._template)

    def close(self) -> None:
        return


class Naive:
    """Fresh interpreters and a real lease of 0.3 s that really runs out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._played = 0

    def _start(self, *arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.bench.script_worker", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )

    def _said(self, *arguments: object) -> str:
        process = self._start(*arguments)
        said, _ = process.communicate()
        assert process.returncode == 0
        return said.decode().strip()

    def play(self) -> None:
        self._played += 1
        db = self._folder / f"naive{self._played}.db"
        self._said("prepare", db)
        one = self._start("hold", db, "A")
        assert one.stdin is not None
        assert one.stdout is not None
        assert one.stdout.readline() == b"held\n"
        os.kill(one.pid, signal.SIGSTOP)
        os.waitpid(one.pid, os.WUNTRACED)
        time.sleep(0.32)  # what the kit is there to spare: a lease that runs out in real time
        assert self._said("work", db, "B") == "done"
        os.kill(one.pid, signal.SIGCONT)
        said, _ = one.communicate(b"\n")
        assert said == b"lost\n", said
        assert self._said("check", db) == str(tinylease.AFTER_TAKEOVER)
        _remove(db)

    def close(self) -> None:
        return


class Spawned:
    """A process per worker by multiprocess's `spawn`, a pipe each, a clock in shared memory."""

    def __init__(self, folder: Path) -> None:
        import multiprocess

        self._context = multiprocess.get_context("spawn")
        self._folder = folder
        self._template = floor.template(folder)
        self._played = 0

    def play(self) -> None:
        from .spawned_worker import live

        self._played += 1
        db = self._folder / f"spawned{self._played}.db"
        db.write_bytes(self._template)
        clock = self._context.Value("d", 1_893_456_000.0, lock=False)
        one, mine = self._worker(live, db, "A", clock, True)
        assert one.recv() == "held"
        os.kill(mine.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, mine.pid, os.WSTOPPED)
        clock.value += 31
        other, theirs = self._worker(live, db, "B", clock, False)
        assert other.recv() == "done"
        os.kill(mine.pid, signal.SIGCONT)
        one.send("go")
        assert one.recv() == "lost"
        assert tinylease.state_of(db) == tinylease.AFTER_TAKEOVER
        for end, process in ((one, mine), (other, theirs)):
            process.kill()
            process.join()
            end.close()
        _remove(db)

    def _worker(self, live: Callable[..., None], *arguments: Any) -> tuple[Any, Any]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=live, args=(theirs, *arguments), daemon=True)
        process.start()
        theirs.close()
        return ours, process

    def close(self) -> None:
        return


@dataclass
class Ours:
    """A lane, with every hook. Attribution `off` has no observer, so a worker looks at the end."""

    folder: Path
    workers: Any = "warm"
    attribution: Any = "commit"
    judged: bool = False
    cpu: int | None = 1

    def __post_init__(self) -> None:
        options = LaneOptions(
            folder=self.folder / f"{self.workers}-{self.attribution}-{self.cpu}",
            workers=self.workers,
            attribution=self.attribution,
            cpu=self.cpu,
        )
        self.lane = Lane(TinyLease, options=options)
        assert self.lane.facts.hooks, self.lane.facts.fallen

    def play(self) -> None:
        """Once. With attribution, what was committed is read off the history."""
        off = self.attribution == "off"
        played = self.lane.play(CLASSIC_CHECKED if off else CLASSIC, name="stage")
        assert played.error is None, played.error
        values = [fields for fields in map(_returned, played.history.events) if fields]
        assert values[:2] == ["'done'", "'lost'"], values
        if off:
            assert values[2] == repr(tinylease.AFTER_TAKEOVER), values
        elif self.judged:
            verdict = judge(played.history, requires=("stale attempt", "take-over"))
            assert verdict.outcome == "pass", verdict

    def close(self) -> None:
        self.lane.close()


def _returned(event: Any) -> str:
    return event.value if type(event).__name__ == "Returned" else ""


def _remove(db: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{db}{suffix}").unlink(missing_ok=True)
