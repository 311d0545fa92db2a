"""`python -m tests.bench.lease`: what the run lease costs a step, and how often it writes.

A step is what the reference runtime does for one: it begins it in a transaction, calls the tool,
and records its outcome in another. The same steps with the fence taken out of these transactions
are run beside it, in the same file, in turns.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from pytest_leasecheck.testkit.history import Commit
from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.reference import (
    DEFAULT_LEASE_TTL_MS,
    Driver,
    Step,
    Store,
    Tool,
    WallClock,
    tenure,
)
from pytest_leasecheck.testkit.script import parse_script

#: How many steps one measured run has.
_STEPS = 10


class Steps:
    """Runs of the reference runtime on one file, with its own pragmas (synchronous FULL)."""

    def __init__(self, folder: Path) -> None:
        self._clock = WallClock()
        self._store = Store(folder / "lease.db", clock=self._clock)
        tool = Tool("tool", lambda _call: "done", read_only=True)
        self._driver = Driver(self._store, tools=(tool,), name="A", clock=self._clock)
        self._number = 0

    def seconds(self, *, leased: bool) -> float:
        """A step of a run, its lease looked at and its row touched in each transaction or not."""
        self._number += 1
        run_id = f"r{self._number}"
        self._store.submit(run_id, (Step("tool"),) * _STEPS)
        fence = tenure.fence if leased else _no_fence
        with patch.object(tenure, "fence", fence):
            begun = time.perf_counter()
            done = self._driver.start(run_id)
            taken = time.perf_counter() - begun
        assert done.status == "SUCCEEDED" or not leased, done
        return taken / _STEPS

    def close(self) -> None:
        self._store.close()


def _no_fence(*_arguments: object, **_options: object) -> None:
    """A write that no lease guards."""


def per_step(folder: Path, *, count: int) -> tuple[float, float]:
    """Median seconds of a step without and with the lease, played in turns."""
    steps = Steps(folder)
    taken: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * count):
        # Whoever comes second finds warm caches: so in pairs, each order as often.
        leased = bool((number + number // 2) % 2)
        taken[leased].append(steps.seconds(leased=leased))
    steps.close()
    return statistics.median(taken[False]), statistics.median(taken[True])


def writes_a_minute(folder: Path, *, subject: str) -> int:
    """Commits of an owner inside one long call, in one minute of the stage's time."""
    script = parse_script("submit r1\nspawn A\nuntil A effect:* before\nadvance 60s\n")
    with Lane(subject, options=LaneOptions(folder=folder)) as lane:
        played = lane.play(script, name="minute")
    assert played.error is None, played.error
    held = next(
        event.n for event in played.history.events if getattr(event, "point", "")[:7] == "effect:"
    )
    return sum(isinstance(event, Commit) and event.n > held for event in played.history.events)


def measure(folder: Path, *, count: int) -> dict[str, float]:
    """Everything about the cost of the lease."""
    found: dict[str, float] = {}
    shared = tempfile.mkdtemp(dir="/dev/shm") if os.path.isdir("/dev/shm") else None
    for name, place in (("disk", str(folder)), ("tmpfs", shared)):
        if place is None:
            continue
        with tempfile.TemporaryDirectory(dir=place) as where:
            without, leased = per_step(Path(where), count=count)
        found[f"{name}_step_without_us"] = round(without * 1e6, 1)
        found[f"{name}_step_with_us"] = round(leased * 1e6, 1)
        found[f"{name}_ratio"] = round(leased / without, 3)
    if shared is not None:
        os.rmdir(shared)
    package = "pytest_leasecheck.scenarios"
    for ttl_s, subject in (
        (DEFAULT_LEASE_TTL_MS // 1000, f"{package}.reference_subject:ReferenceSubject"),
        (6, f"{package}.variants_tools:ShortTtl"),
    ):
        found[f"writes_a_minute_ttl_{ttl_s}s"] = writes_a_minute(folder, subject=subject)
    return found


def main() -> None:
    """Print it. The argument is a folder on a real disk; the present one when left out."""
    place = sys.argv[1] if len(sys.argv) > 1 else "."
    with tempfile.TemporaryDirectory(dir=place) as folder:
        print(json.dumps(measure(Path(folder), count=60), indent=2))


if __name__ == "__main__":
    main()
