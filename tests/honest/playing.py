"""Plays a case, honestly or as its twin, and judges it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions, Played
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .importing import importable
from .model import Honest
from .tiny import SWITCH


@dataclass(frozen=True, slots=True)
class Judged:
    """One script, played and judged."""

    played: Played
    verdict: Verdict

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What is wrong."""
        return tuple(one for one in self.verdict.findings if one.severity == "fault")

    @property
    def shown(self) -> str:
        """All that there is to say when it was not as expected."""
        logs = "".join(path.read_text()[-800:] for path in self.played.logs.values())
        found = "".join(
            f"{one.invariant} {one.title}: {one.text}\n" for one in self.verdict.findings
        )
        return f"{self.played.error or ''}\n{found}missing: {self.verdict.missing}\n{logs}"


class Stagehand:
    """Lanes by subject, opened when they are needed."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self._options: Final = LaneOptions(folder=folder, **options)
        self._lanes: Final[dict[str, Lane]] = {}

    def close(self) -> None:
        """End all lanes."""
        for lane in self._lanes.values():
            lane.close()

    def play(self, case: Honest, *, guilty: bool = False) -> Judged:
        """A case's script by the honest program or by its twin."""
        lane = self.lane(case.subject)
        switch = Path(lane.facts.work) / SWITCH
        switch.unlink(missing_ok=True)
        if guilty:
            switch.touch()
        name = f"{case.name}-{'twin' if guilty else 'honest'}".replace(" ", "_").replace("/", "_")
        played = lane.play(case.script(guilty=guilty), name=name)
        requires = () if guilty else case.requires
        return Judged(played, judge(played.history, requires=requires, drained=case.drained))

    def lane(self, subject: str) -> Lane:
        """The lane of a subject, `module:Class` in this package."""
        if subject not in self._lanes:
            module, _, name = subject.partition(":")
            with importable():
                found = getattr(importlib.import_module(f"{__package__}.{module}"), name)
                self._lanes[subject] = Lane(found, options=self._options)
        return self._lanes[subject]
