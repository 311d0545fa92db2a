"""The page that shows what was measured beside what was aimed at."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from .measuring import Found, machine

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "speed.md"

#: ratio -> what it says, the target, whether less is better
TARGETS: Final = {
    "hooks_vs_floor": ("warm workers, every hook, attribution off, against the floor", 1.7, True),
    "warm_vs_floor": ("warm workers as a user has them, against the floor", 2.5, True),
    "warm_vs_naive": ("warm workers against fresh interpreters and real waits", 150.0, False),
    "fresh_vs_naive": ("a process per incarnation against the same", 50.0, False),
    "warm_vs_frontrun": ("warm workers against frontrun with reused workers", 25.0, False),
    "hypothesis_vs_plain": (
        "scripts that Hypothesis makes up, against the same without",
        3.0,
        True,
    ),
    "startup_vs_without": ("pytest's start with the plugin, its flag absent", 1.02, True),
    "two_lanes_vs_one": ("two lanes against one", 1.8, False),
}
_HEAD: Final = """\
# Speed

The schedule that is measured: worker A is held before its effect and stopped with SIGSTOP, its
lease expires, worker B takes over and finishes, A goes on and is refused, and what was committed is
checked. The program is a small lease library (`tests/bench/tinylease.py`) of one step. *The floor*
is the same SQL through the same library on connections of one process, with no control. Everything
is measured in one run, in turns; figures are medians.

This page is written by `python -m tests.bench`; `--json` prints the ratios and leaves it alone. The
ratios, not the milliseconds, travel from machine to machine.
"""


_ABOUT_FRONTRUN: Final = """
frontrun explores interleavings of the same program, with a lease that lasts no time; its figure is
the mean over its whole search, since some of its interleavings wait for SQLite's write lock in real
time, seconds each. By medians, which leave these out, the ratio is {by_median:.2g}.
"""
_ABOUT_WAYS: Final = """
`warm judged` has the verdict of every invariant too, in pytest's process. `startup` is processor
time of a whole run of pytest over one test.
"""
_WHY: Final = """
## Where the time goes

Of a warm schedule's time (from a profile of each process, rounded) the two workers have 45 %, a
third of that SQLite itself; the lane 25 %, for 14 messages of workers and some 120 events; the
observer 20 %, for one reading a commit; pytest's process 10 %. Four processes take turns on one
core, and each finds its caches cold: a reading that takes 30 µs when repeated takes over 100 µs in
its turn. No function has more than a few per cent. A process per incarnation is forked ahead, on
another processor; what is left of it is some 650 pages that each worker copies after it was told
who it is (by writing reference counts, 2 µs each), and its end. Without attribution a third worker
looks at the database in the end, and is counted.
"""
_LEASE: Final = """

## What the lease costs

A step of the reference runtime with the fence in its transactions and without, in turns on one file
with synchronous FULL, on a real disk and in shared memory; and how often an owner writes in a
minute of one long call.

| | |
|---|---|
"""


def met(name: str, value: float) -> bool:
    """Whether a ratio is within its target."""
    _what, target, less = TARGETS[name]
    return value <= target if less else value >= target


def write(found: Found, ratios: Mapping[str, float | None]) -> None:
    """Write the page."""
    PAGE.write_text("".join(_page(found, ratios)), encoding="utf-8")


def _page(found: Found, ratios: Mapping[str, float | None]) -> Iterator[str]:
    yield f"{_HEAD}\nMeasured on: {machine()}.\n\n## Beside the targets\n\n"
    yield "| ratio | what | target | measured | |\n|---|---|---|---|---|\n"
    for name, (what, target, less) in TARGETS.items():
        value = ratios[name]
        aim = f"{'at most' if less else 'at least'} {target:g}"
        if value is None:
            why = found.skipped.get(name.split("_")[0]) or found.skipped.get(name.split("_")[-1])
            yield f"| `{name}` | {what} | {aim} | – | not measured: {why} |\n"
        else:
            said = "met" if met(name, value) else "missed"
            yield f"| `{name}` | {what} | {aim} | {value:.3g} | {said} |\n"
    if "frontrun" in found.seconds:
        by_median = found.median("frontrun") / found.median("warm")
        yield _ABOUT_FRONTRUN.format(by_median=by_median)
    yield "\n## Milliseconds each\n\n| way | median | quickest | a second |\n|---|---|---|---|\n"
    for name, seconds in found.seconds.items():
        middle = statistics.median(seconds)
        yield f"| {name} | {middle * 1e3:.2f} | {min(seconds) * 1e3:.2f} | {1 / middle:.0f} |\n"
    yield _ABOUT_WAYS
    for name, rates in found.rates.items():
        yield f"\n- {name}: {statistics.median(rates):.0f} schedules a second"
    yield f"\n{_WHY}"
    yield _LEASE
    for name, value in found.lease.items():
        yield f"| {name.replace('_', ' ')} | {value:g} |\n"
