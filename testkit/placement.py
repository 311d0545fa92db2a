"""On which processors a lane and its workers run.

One of them moves at a time, so they share one processor: a message between two costs less than
half there. In a race they have all that the lane was given. What it does not do: keep anybody else
off that processor.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """The processors a lane was given, and those (usually one) that it shares with its workers."""

    given: frozenset[int]
    shared: frozenset[int]

    def gather(self, pids: Iterable[int]) -> None:
        """Everyone moves to where they are shared."""
        _place(pids, self.shared)

    def join(self, pid: int) -> None:
        """A process of one thread comes to where the caller may run now."""
        if self.shared != self.given:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(pid, os.sched_getaffinity(0))

    def spread(self, pids: Iterable[int]) -> None:
        """Everyone may run wherever the lane may."""
        _place(pids, self.given)


def placement(cpu: int | None) -> Placement:
    """Where this process and who is forked from it go; `cpu` is None for wherever they may now."""
    given = frozenset(os.sched_getaffinity(0))
    if cpu is None or cpu not in given:
        return Placement(given, given)
    return Placement(given, frozenset({cpu}))


def cpu_for(cpu: int | None, number: int | None) -> int | None:
    """The processor that was asked for; else one for the lane of this number, if it has one.

    Lanes with neighbouring numbers share none while there are enough.
    """
    if cpu is not None or number is None:
        return cpu
    given = sorted(os.sched_getaffinity(0))
    return given[number % len(given)]


def _place(pids: Iterable[int], cpus: frozenset[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just died, or a container forbids it
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(thread), cpus)
