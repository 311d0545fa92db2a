"""Plays a schedule with a mutant in force, or with none, and judges it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions, Played
from pytest_leasecheck.testkit.verdict import Verdict

from . import subjects
from .model import SWITCH, Equivalent, Mutant, Schedule

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Judged:
    """One schedule, played and judged."""

    played: Played
    verdict: Verdict


class Stagehand:
    """Lanes by subject, opened when they are needed; and what has been played on the true one."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._lanes: Final[dict[str, Lane]] = {}
        self._true: Final[dict[str, Judged]] = {}

    def close(self) -> None:
        """End all lanes."""
        for lane in self._lanes.values():
            lane.close()

    def true(self, schedule: Schedule) -> Judged:
        """The schedule on the true reference runtime; played once."""
        if schedule.name not in self._true:
            self._true[schedule.name] = self._play(schedule, "")
        return self._true[schedule.name]

    def mutated(self, mutant: Mutant) -> Judged:
        """The mutant's schedule with its fault in force."""
        return self._play(mutant.schedule, mutant.name)

    def without(self, guard: Equivalent, schedule: Schedule) -> Judged:
        """A schedule with a guard taken out that may be."""
        return self._play(schedule, guard.name)

    def _play(self, schedule: Schedule, mutant: str) -> Judged:
        lane = self._lane(schedule.subject)
        switch = Path(lane.facts.work) / SWITCH
        switch.write_text(mutant, encoding="utf-8")
        name = f"{schedule.name}-{mutant or 'true'}".replace(" ", "_").replace("/", "_")
        played = lane.play(schedule.script, name=name)
        return Judged(played, judge(played.history, requires=schedule.requires))

    def _lane(self, subject: str) -> Lane:
        if subject not in self._lanes:
            with importable():
                self._lanes[subject] = Lane(
                    getattr(subjects, subject), options=LaneOptions(folder=self._folder)
                )
        return self._lanes[subject]


@contextmanager
def importable() -> Iterator[None]:
    """Let a process that is started now import us by name: it gets our path."""
    sys.path.insert(0, str(ROOT))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT))
