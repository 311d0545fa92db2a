"""Many workers, many runs, random signals on the wall clock: what no schedule was written for.

In rounds: runs are submitted, workers race and are shaken (`shaking`), then everything is healed,
drained and judged. What fails is kept as a history; it is not shrunk, for it does not replay.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from . import script as acts
from .confirming import Judged
from .judge import judge
from .lane import Lane
from .script import Script
from .verdict import Verdict

WORKERS: Final = 8
RUNS: Final = 40
#: So long are workers shaken in one round.
ROUND_S: Final = 3.0
#: A pass over all runs may take a worker so long.
DEADLINE_S: Final = 120.0
#: Submitting many runs takes seconds: every so many are told.
_SUBMITTED_TOLD: Final = 250
#: Workers that a drain may need: a run may have to wait out one lease after the other.
_DRAINERS: Final = 12


@dataclass(slots=True)
class Soaked:
    """What came of a soak so far."""

    seed: int
    rounds: int = 0
    runs: int = 0
    events: int = 0
    stale_attempts: int = 0
    refused: int = 0
    interruptions: int = 0
    reconciliations: int = 0
    seconds: float = 0.0
    #: What the present round is doing; empty between rounds.
    doing: str = ""
    blows: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    failed: list[Judged] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    #: What the kit was blind to: rounds that it judged prove nothing.
    unseen: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        blows = ", ".join(f"{count} {name}" for name, count in sorted(self.blows.items()))
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        rate = self.runs / max(0.001, self.seconds)
        return (
            f"{self.rounds} rounds, {self.runs} runs ({rate:.0f}/s), {blows or 'no blow yet'};"
            f" {self.stale_attempts} stale attempts, {self.interruptions} interruptions;"
            f" verdicts: {outcomes or 'none yet'} (seed {self.seed})"
        )


def soak(
    lane: Lane,
    *,
    seconds: float,
    seed: int,
    workers: int = WORKERS,
    runs: int = RUNS,
    rounds: int | None = None,
    told: Callable[[Soaked], None] = lambda soaked: None,
) -> Soaked:
    """Soak for so many seconds of real time, or so many rounds; stops at the first failure.

    `told` hears of each step of a round (`Soaked.doing`) and of its end. The lane's `deadline_s`
    should be `DEADLINE_S`. Raises `LeasecheckError`.
    """
    random = Random(seed)
    soaked = Soaked(seed)
    started = time.monotonic()

    def doing(what: str) -> None:
        soaked.doing, soaked.seconds = what, time.monotonic() - started
        told(soaked)

    while not soaked.failed and (
        soaked.rounds < rounds
        if rounds is not None
        else soaked.rounds == 0 or time.monotonic() - started < seconds
    ):
        left = seconds - (time.monotonic() - started)
        shaken_s = max(0.2, min(ROUND_S, left)) if rounds is None else ROUND_S
        _round(
            lane, soaked, random.randrange(1 << 32), workers=workers, runs=runs, for_s=shaken_s,
            doing=doing,
        )  # fmt: skip
        doing("")
    return soaked


#: What says more about jumps of the clock, and a busy machine, than about the subject.
_UNFAIR: Final = ("a live owner lost its lease",)


def _fair(verdict: Verdict) -> Verdict:
    """A jump of the clock may be over before a heartbeat had its turn: that is noted, no fault."""
    findings = tuple(
        replace(one, severity="note") if one.title in _UNFAIR else one for one in verdict.findings
    )
    faults = any(one.severity == "fault" for one in findings)
    outcome = verdict.outcome
    if outcome == "fail" and not faults:
        outcome = "inconclusive" if verdict.missing else "pass"
    return replace(verdict, findings=findings, outcome=outcome)


def _round(
    lane: Lane,
    soaked: Soaked,
    seed: int,
    *,
    workers: int,
    runs: int,
    for_s: float,
    doing: Callable[[str], None],
) -> None:
    labels = [f"W{number}" for number in range(1, workers + 1)]
    stage = lane.open_stage(name="soak")
    try:
        for number in range(1, runs + 1):
            if number % _SUBMITTED_TOLD == 0:
                doing(f"{number} of {runs} runs submitted")
            stage.submit(f"run-{number}")
        doing(f"{workers} workers race for {runs} runs")
        for label in labels:
            stage.spawn(label)
        soaked.blows.update(lane.shake(labels, duration_ms=round(for_s * 1000), seed=seed))
        doing("healing and draining")
        stage.heal()
        stage.drain(_DRAINERS)
        doing("judging")
    finally:
        history = stage.close()
    assert history is not None
    verdict = _fair(judge(history))
    # As a script it is what a person would write down: a race. The signals are in the history.
    actions = [one for one in stage.script.actions if not isinstance(one, acts.Heal | acts.Drain)]
    script = Script((*actions, acts.Free(tuple(labels)), acts.Heal(), acts.Drain(_DRAINERS)))
    counts = verdict.counts
    soaked.rounds += 1
    soaked.runs += runs
    soaked.events += len(history.events)
    soaked.stale_attempts += counts.stale_attempts
    soaked.refused += sum(one.outcome != "landed" for one in verdict.attempts)
    soaked.interruptions += counts.interruptions
    soaked.reconciliations += counts.reconciliations
    soaked.notes |= {one.title for one in verdict.findings if one.severity == "note"}
    soaked.outcomes[verdict.outcome] += 1
    soaked.unseen.update(verdict.missing)
    if verdict.outcome == "fail":
        soaked.failed.append(Judged(script, history, verdict))
