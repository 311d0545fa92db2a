"""Play a scenario, judge it, keep the evidence: what every kind of test of ours does."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from . import engine
from .asking import ask, implementers, listed, tell
from .evidence import Evidence
from .saved import saved_text, with_required
from .subjects import Named
from .tally import Record, record_of
from .testkit.blame import blaming
from .testkit.errors import LaneDied, LeasecheckError, SubjectError
from .testkit.files import write_new
from .testkit.history import History
from .testkit.scenario import ALL_INVARIANTS, Scenario
from .testkit.script import Drain, Script
from .testkit.subject import Subject
from .testkit.verdict import Finding, Outcome, Verdict

if TYPE_CHECKING:
    from .lanes import Lanes

_HISTORY: Final = "pytest_leasecheck_history"

Invariant = Callable[[History, Verdict], Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Result:
    """All that is known about one test once it was played.

    `folder` takes its evidence; `kept` is the same once something is kept there.
    """

    folder: Path
    subject: Named
    scenario: Scenario
    script: Script
    history: History | None = None
    verdict: Verdict | None = None
    error: LeasecheckError | None = None
    logs: Mapping[str, Path] = field(default_factory=dict)
    kept: Path | None = None
    #: Why not all of it could be kept; empty when it was.
    lost: str = ""
    #: Guarantees that did not hold in the lane that played it.
    fallen: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """A script that could not be carried out fails, whatever else held."""
        if self.error is not None or self.verdict is None:
            return "fail"
        return self.verdict.outcome

    @property
    def drained(self) -> bool:
        """Whether it came to its end, where no run may stay leased."""
        return self.error is None and any(
            isinstance(action, Drain) for action in self.script.actions
        )

    @property
    def record(self) -> Record:
        """What the summary adds up."""
        evidence = str(self.kept or "")
        if self.verdict is None:
            return Record(
                subject=self.subject.label, outcome="fail", evidence=evidence, lost=self.lost
            )
        record = record_of(
            self.subject.label, self.verdict, history=self.history, evidence=evidence
        )
        return replace(record, outcome=self.outcome, fallen=self.fallen, lost=self.lost)


def free_scenario(nodeid: str, *, requires: Sequence[str], holds: Sequence[str] | None) -> Scenario:
    """The scenario of a script that nobody named: a hand-written test, a replay."""
    return Scenario(
        name=nodeid,
        story="",
        script="",
        requires=tuple(requires),
        holds=ALL_INVARIANTS if holds is None else tuple(holds),
    )


def unclaimed(scenario: Scenario, subject: Subject) -> str:
    """Why a subject need not play a scenario; empty when it must."""
    missing = sorted(set(scenario.needs) - set(subject.capabilities))
    return f"not claimed: {', '.join(missing)}" if missing else ""


class Player:
    """Plays and judges for one session."""

    def __init__(
        self, lanes: Lanes, evidence: Evidence, *, config: pytest.Config, keep: bool
    ) -> None:
        self._lanes = lanes
        self._evidence = evidence
        self._config = config
        self._keep = keep

    def play(self, scenario: Scenario, subject: Named, item: pytest.Item, script: Script) -> Result:
        """Play a script in the subject's lane, and judge what came of it."""
        folder = self._evidence.fresh(item.nodeid)
        result = Result(folder, subject, scenario, script)
        try:
            lane = self._lanes.lane_for(subject.subject)
            result = replace(result, fallen=lane.facts.fallen)
            played = lane.play(script, name=folder.name)
        except LeasecheckError as error:
            self._replace_if_dead(subject.subject, error)
            return self.keep(replace(result, error=error))
        except BaseException:
            # Interrupted (Ctrl-C, pytest-timeout): its answer would be taken for the next one's.
            self._lanes.drop(subject.subject)
            raise
        self._replace_if_dead(subject.subject, played.error)
        result = replace(result, history=played.history, error=played.error, logs=played.logs)
        return self.keep(self.judge(result, item))

    def judge(self, result: Result, item: pytest.Item) -> Result:
        """Add the verdict: ours, the scenario's own, and what plugins add; then tell them."""
        history = result.history
        if history is None:
            return result
        scenario = result.scenario
        try:
            verdict = engine.judge(
                history,
                requires=scenario.requires,
                holds=scenario.holds,
                drained=result.drained,
            )
        except LeasecheckError as error:
            tell(self._config, _HISTORY, history=history, verdict=None, item=item)
            # A declaration that fits nothing explains why a script was not played, too.
            first = error if isinstance(error, SubjectError) else result.error
            return replace(result, error=first or error)
        failed = result.error
        added, wrong = self._added_invariants()
        failed = failed or wrong
        # What a scenario adds is about the whole of its script; one that broke off shows nothing.
        also = scenario.also if result.error is None else ()
        for invariant in (*also, *added):
            try:
                verdict = _with(verdict, _asked(invariant, history, verdict))
            except LeasecheckError as error:
                failed = failed or error  # what the others found is not thrown away for it
        raised = tell(self._config, _HISTORY, history=history, verdict=verdict, item=item)
        return replace(result, verdict=verdict, error=failed or next(iter(raised), None))

    def _added_invariants(self) -> tuple[list[Invariant], LeasecheckError | None]:
        """What plugins add, and what the first of them raised that could not say."""
        hook, found, failed = "pytest_leasecheck_invariants", [], None
        for plugin in implementers(self._config, hook):
            try:
                answers = ask(self._config, hook, plugin, config=self._config)
                found += listed(self._config, hook, plugin, answers)
            except LeasecheckError as error:
                failed = failed or error
        return found, failed

    def keep(self, result: Result) -> Result:
        """Save script and history of what failed, or of everything when asked; drop the rest."""
        if result.outcome in ("pass", "not claimed") and not self._keep:
            shutil.rmtree(result.folder, ignore_errors=True)
            return result
        folder = result.folder
        # Evidence that can't be written must not hide the verdict it is evidence of.
        try:
            if folder.is_symlink():
                raise OSError(errno.ELOOP, "a worker put a link in its place")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            named, requires = result.scenario.name, result.scenario.requires
            text = saved_text(result.script, scenario=named, requires=requires)
            write_new(_unused(folder / "script.txt"), text)
            if result.history is not None:
                history = with_required(result.history, requires)
                engine.save_history(history, _unused(folder / "history.jsonl"))
        except OSError as error:
            kept = folder if folder.is_dir() else None
            return replace(result, kept=kept, lost=f"{error.strerror or error}: {folder}")
        return replace(result, kept=folder)

    def _replace_if_dead(self, subject: Subject, error: LeasecheckError | None) -> None:
        if isinstance(error, LaneDied):
            self._lanes.drop(subject)


def _asked(invariant: Invariant, history: History, verdict: Verdict) -> tuple[Finding, ...]:
    """What one invariant finds. Raises `LeasecheckError` with its name when it can't say."""
    name = f"the invariant {getattr(invariant, '__qualname__', repr(invariant))}"
    with blaming(name):
        findings = tuple(invariant(history, verdict))
    for finding in findings:
        if not isinstance(finding, Finding):
            raise LeasecheckError(f"{name} returned a {type(finding).__name__}, not a Finding")
    return findings


def _with(verdict: Verdict, findings: tuple[Finding, ...]) -> Verdict:
    """The verdict with more findings; a fault among them fails it."""
    if not findings:
        return verdict
    faults = any(finding.severity == "fault" for finding in findings)
    outcome: Outcome = "fail" if faults else verdict.outcome
    return replace(verdict, findings=(*verdict.findings, *findings), outcome=outcome)


def _unused(path: Path) -> Path:
    """The same path, or the first numbered one that is free: evidence is never overwritten."""
    for number in range(2, 1_000):
        if not path.exists():
            break
        path = path.with_name(f"{path.stem.rstrip('0123456789').rstrip('-')}-{number}{path.suffix}")
    return path
