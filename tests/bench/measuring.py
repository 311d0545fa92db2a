"""Everything in one run, in turns, so that a busy machine slows all ways alike; medians."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from . import frontrun_way, hypothesis_way, lease, startup
from .lanes import Players
from .ways import Floor, Naive, Ours, Spawned, Way, on_cpu


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each way is played in one round, and how many rounds there are."""

    rounds: int = 12
    slow: int = 1
    fresh: int = 10
    warm: int = 40
    lanes_s: float = 0.8
    startups: int = 2
    frontrun_rounds: int = 3
    executions: int = 12
    examples: int = 150
    lease: int = 60


#: What shows that the machinery works, and nothing about speed.
TINY = Counts(
    rounds=1, fresh=1, warm=1, lanes_s=0.02, startups=1, frontrun_rounds=0, examples=3, lease=1
)


@dataclass
class Found:
    """Samples in seconds by way (rates in schedules a second), and why something is missing."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    rates: dict[str, list[float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    lease: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, *seconds: float) -> None:
        """More samples of one way."""
        self.seconds.setdefault(name, []).extend(seconds)

    def median(self, name: str) -> float:
        """Of a way's seconds."""
        return statistics.median(self.seconds[name])


def measure(folder: Path, shared: Path, *, counts: Counts, say: Callable[[str], None]) -> Found:
    """Measure. `folder` is on a real disk, `shared` where databases are quick."""
    found = Found()
    with ExitStack() as stack:
        ways = _ways(folder, shared, stack)
        players = Players(folder, count=2)
        stack.callback(players.close)
        for way, count in ways.values():
            for _ in range(min(20, count(counts))):
                way.play()
        for number in range(counts.rounds):
            say(f"round {number + 1} of {counts.rounds}")
            for name, (way, count) in ways.items():
                on_cpu(1 if name == "floor" else 0)
                for _ in range(count(counts)):
                    begun = time.perf_counter()
                    way.play()
                    found.add(name, time.perf_counter() - begun)
            _others(found, folder, players, counts=counts)
    _last(found, folder, shared, counts=counts, say=say)
    return found


def _ways(
    folder: Path, shared: Path, stack: ExitStack
) -> dict[str, tuple[Way, Callable[[Counts], int]]]:
    def slow(counts: Counts) -> int:
        return counts.slow

    def fresh(counts: Counts) -> int:
        return counts.fresh

    def warm(counts: Counts) -> int:
        return counts.warm

    ways: dict[str, tuple[Way, Callable[[Counts], int]]] = {
        "naive": (Naive(shared), slow),
        "spawn": (Spawned(shared), slow),
        "floor": (Floor(shared), warm),
        "fresh": (Ours(folder, workers="fresh"), fresh),
        "warm": (Ours(folder), warm),
        "warm judged": (Ours(folder / "judged", judged=True), warm),
        "warm without attribution": (Ours(folder, attribution="off"), warm),
    }
    for way, _count in ways.values():
        stack.callback(way.close)
    return ways


def _others(found: Found, folder: Path, players: Players, *, counts: Counts) -> None:
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    for _ in range(counts.startups):
        found.add("startup without", startup.seconds(folder, absent=True))
        found.add("startup with", startup.seconds(folder, absent=False))
    for count in (1, 2):
        rate = players.rate(count, seconds=counts.lanes_s)
        found.rates.setdefault(f"{count} lanes", []).append(rate)


def _last(
    found: Found, folder: Path, shared: Path, *, counts: Counts, say: Callable[[str], None]
) -> None:
    if frontrun_way.ABSENT or not counts.frontrun_rounds:
        found.skipped["frontrun"] = frontrun_way.ABSENT or "not asked for"
    else:
        say("frontrun")
        for _ in range(counts.frontrun_rounds):
            found.add("frontrun", *frontrun_way.measure(shared, executions=counts.executions))
    if counts.examples:
        say("Hypothesis")
        plain, driven = hypothesis_way.measure(folder, examples=counts.examples)
        found.add("plain", *plain)
        found.add("hypothesis", *driven)
    else:
        found.skipped["hypothesis"] = "not asked for"
    say("the lease")
    found.lease = lease.measure(folder, count=counts.lease)


def ratios(found: Found) -> dict[str, float | None]:
    """What the targets are stated for; None where something was skipped."""
    median = found.median
    rates = {name: statistics.median(some) for name, some in found.rates.items()}
    frontrun = found.seconds.get("frontrun", [])
    plain = "plain" in found.seconds
    return {
        "hooks_vs_floor": median("warm without attribution") / median("floor"),
        "warm_vs_floor": median("warm") / median("floor"),
        "warm_vs_naive": median("naive") / median("warm"),
        "fresh_vs_naive": median("naive") / median("fresh"),
        # Its rate over the whole search: some interleavings wait for a lock in real time.
        "warm_vs_frontrun": statistics.mean(frontrun) / median("warm") if frontrun else None,
        "hypothesis_vs_plain": median("hypothesis") / median("plain") if plain else None,
        "startup_vs_without": median("startup with") / median("startup without"),
        "two_lanes_vs_one": rates["2 lanes"] / rates["1 lanes"],
    }


def machine() -> str:
    """What this was measured on, in a line."""
    import sqlite3

    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]},"
        f" Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    )
