"""A script's verdict under several ways to play it, made comparable."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_leasecheck.scenarios import classic, owners, repeats
from pytest_leasecheck.scenarios.reference_subject import ReferenceSubject
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.script import parse_script

from .catalogue import CASES
from .importing import importable
from .model import Honest
from .programs_leases import Leases
from .tiny import SWITCH

#: Short enough to be waited for, long enough that a busy machine's heartbeat is in time.
BRISK_MS: Final = 800


class Brisk(ReferenceSubject):
    """The reference with a lease that can be waited for."""

    lease_ttl_ms = BRISK_MS


class BriskLeases(Leases):
    """The tiny queue with a lease that can be waited for."""

    lease_ttl_ms = BRISK_MS


class Said(NamedTuple):
    """What a verdict comes to, whoever's clock it was and however it was seen."""

    outcome: str
    faults: frozenset[tuple[str, str, str]]
    missing: tuple[str, ...]
    error: str


SCENARIOS: Final[tuple[Scenario, ...]] = (
    *classic.SCENARIOS, *repeats.SCENARIOS, *owners.SCENARIOS
)  # fmt: skip
#: Cases of the tiny queue with no point in SQL, each played as itself and as its twin.
TINY: Final[tuple[Honest, ...]] = tuple(
    case
    for case in CASES
    if case.name
    in (
        "former owner, same process", "former owner, new process", "reaper requeues",
        "reads and gives up", "done as done", "past holder as janitor", "there and back",
        "changes nothing",
    )
)  # fmt: skip


class Player:
    """One lane, and verdicts that can be compared."""

    def __init__(self, subject: type[Any], folder: Path, **options: Any) -> None:
        with importable():
            self._lane: Final = Lane(
                subject, options=LaneOptions(folder=folder, deadline_s=20, **options)
            )

    def close(self) -> None:
        """End it."""
        self._lane.close()

    def scenario(self, scenario: Scenario, *, free: bool = False) -> Said:
        """A scenario of the reference; with `free` its last moves are made at once."""
        text = str(scenario.script_for(self._lane.subject))
        return self._said(_freed(text) if free else text, requires=scenario.requires, drained=True)

    def case(self, case: Honest, *, guilty: bool, free: bool = False) -> Said:
        """A case of the tiny queue, or its twin."""
        switch = Path(self._lane.facts.work) / SWITCH
        switch.unlink(missing_ok=True)
        if guilty:
            switch.touch()
        text = str(case.script())
        requires = () if guilty or free else case.requires
        return self._said(_freed(text) if free else text, requires=requires, drained=case.drained)

    def _said(self, text: str, *, requires: tuple[str, ...], drained: bool) -> Said:
        played = self._lane.play(parse_script(text), name="agreement")
        verdict = judge(played.history, requires=requires, drained=drained)
        faults = frozenset(
            (one.invariant, one.title, one.culprit)
            for one in verdict.findings
            if one.severity == "fault"
        )
        return Said(verdict.outcome, faults, verdict.missing, str(played.error or ""))


def _freed(text: str) -> str:
    """`run A` and `run B` one after the other, made a race."""
    return text.replace("run A\nrun B\n", "free A B\n")
