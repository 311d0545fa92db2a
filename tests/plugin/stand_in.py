"""A stand-in for the engine, so that tests about options and output need no worker processes.

It plays nothing: a subject's attribute `plays` says what came of it. What real processes do is
tested elsewhere; here it matters only how the plugin tells it.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_leasecheck import engine, searching, suite
from pytest_leasecheck.testkit import history as h
from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.errors import LaneDied, NeverReached, StageError
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.script import Action, Drain, Heal, Script, Spawn, Submit
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject, declaration_of
from pytest_leasecheck.testkit.verdict import Attempt, Counts, Finding, Verdict

CLASSIC = "submit r1\nspawn A\nuntil A {danger}\nstop A\nexpire\nspawn B\nrun B\ncont A\nrun A\n"
GROUPS = (
    suite.Group(
        "classic",
        (
            Scenario(
                name="finished",
                story="A is frozen before its effect; B takes over and finishes; A wakes.",
                script=CLASSIC + "heal\ndrain\n",
                requires=("stale attempt by A",),
            ),
            Scenario(
                name="still_held",
                story="A wakes while B still holds the run.",
                script=CLASSIC + "restart A\nheal\ndrain\n",
                requires=("stale attempt by A",),
            ),
        ),
    ),
    suite.Group(
        "repeats",
        (
            Scenario(
                name="reconciled",
                story="The response is lost, and the outcome is asked for.",
                script=CLASSIC + "kill A\nheal\ndrain\n",
                requires=("interruption",),
                needs={"reconciles"},
            ),
        ),
    ),
)


class Stood(Subject):
    """Base of the subjects of these tests: `plays` is what is found out about them."""

    runs = RunTable("jobs", id="id", status="status", terminal={"done"}, lease=Lease(owner="owner"))
    plays = "holds"


class Stage:
    """Notes what was asked of it."""

    def __init__(self, subject: Any, name: str) -> None:
        self.actions: list[Action] = []
        self.subject = subject
        self.name = name

    @property
    def script(self) -> Script:
        return Script(tuple(self.actions))

    def submit(self, run_id: str) -> None:
        self.actions.append(Submit(run_id))

    def spawn(self, worker: str) -> None:
        if self.subject.plays == "spawns nothing":
            raise StageError("worker 'A' did not start", worker="A#1")
        self.actions.append(Spawn(worker))

    def heal(self) -> None:
        if self.subject.plays == "can't heal":
            raise StageError("worker 'A' did not continue", worker="A#1")
        self.actions.append(Heal())

    def drain(self, most: int = 6) -> None:
        self.actions.append(Drain(most))

    def history(self) -> h.History:
        return history_of(self.script, subject=self.subject)

    def close(self) -> None:
        note("stage closed")


class Lane:
    """Plays what the subject says it plays."""

    def __init__(self, subject: Any, *, settings: Any, folder: Path) -> None:
        self.subject = subject
        self.folder = folder
        self.dead = False
        self.facts = SimpleNamespace(
            python="3", sqlite="3", hooks=settings.hooks, imports="",
            guarantees=("every commit has its author",),
            fallen=() if settings.hooks else ("points at statements",),
        )  # fmt: skip
        note(f"lane started: clock {settings.clock}, workers {settings.workers},"
             f" deadline {settings.deadline_s:g}, hooks {settings.hooks}")  # fmt: skip

    def play(self, script: Script, *, name: str) -> Any:
        note(f"played: {name}")
        assert not self.dead, "a dead lane was asked to play"
        folder = self.folder / name
        folder.mkdir()
        log = folder / "A#1.log"
        log.write_text("hello from A\x1b[31m\n")
        error: Exception | None = None
        match self.subject.plays:
            case "dies":
                self.dead = True
                raise LaneDied("signal 9")
            case "is interrupted":
                raise TimeoutError("as pytest-timeout raises inside of what it interrupts")
            case "unreached":
                error = NeverReached("A", "effect:* before", state="returned", passed=["start"])
        history = history_of(script, subject=self.subject)
        return SimpleNamespace(history=history, error=error, logs={"A#1": log})

    def close(self) -> None:
        note("lane closed")


def open_stage(lane: Lane, *, name: str) -> Stage:
    note(f"stage opened: {name}")
    return Stage(lane.subject, name)


def note(text: str) -> None:
    """What the lane was asked to do, for the test to read."""
    if "STAND_IN_NOTES" in os.environ:
        with open(os.environ["STAND_IN_NOTES"], "a") as notes:
            notes.write(text + "\n")


def history_of(script: Script, *, subject: Any) -> h.History:
    """A history with the script's actions, and one commit."""
    header = h.Header(
        subject=subject.plays, script=str(script), python="3", sqlite="3",
        declaration=declaration_to_json(declaration_of(subject)),
    )  # fmt: skip
    lines = str(script).splitlines()
    events: list[h.Event] = [
        h.Acted(n=number, at_ns=number * 1_000_000, text=line)
        for number, line in enumerate(lines, start=1)
    ]
    change = h.Change("jobs", ("r1",), {"id": "r1", "owner": "B"}, {"id": "r1", "owner": "A"})
    n = len(events) + 1
    events.append(h.Passed(n, n, "A#1", "main", "effect:charge", 1, "before", True))
    events.append(h.Commit(n + 1, 30_000_000_000, "A#1", "main", 1, 1, (change,)))
    return h.History(header, tuple(events))


def judge(
    history: h.History, *, requires: Collection[str], holds: Collection[str], drained: bool
) -> Verdict:
    """The verdict that the subject asked for."""
    plays = history.header.subject
    stale = Finding(
        "V1", "a stale write landed", "A#1 (token 1) wrote jobs r1 after B#1 (token 2) took over",
        "r1", "A#1", ("B#1",), (history.events[-1].n,),
    )  # fmt: skip
    findings = (stale,) if plays in ("stale", "can't heal") else ()
    missing = tuple(requires) if plays == "inconclusive" else ()
    landed = "landed" if findings else "refused by the provider"
    attempt = Attempt(5, "r1", "A#1", 1, "effect charge", landed, ("token",))
    outcome = "fail" if findings else "inconclusive" if missing else "pass"
    counts = Counts(scripts=1, runs=1, stale_attempts=1, interruptions=1, reconciliations=1)
    return Verdict(
        outcome=outcome, findings=findings, missing=missing,
        not_claimed={"V8": "no counter is declared"}, tenures=(), acts=(),
        attempts=(attempt,), interruptions=(), counts=counts,
    )  # fmt: skip


def install() -> None:
    """Put the stand-in where the plugin reaches for the engine."""
    engine.start_lane = Lane
    engine.open_stage = open_stage
    engine.judge = judge
    searching.search_groups = lambda runtime, asked: ()
    suite.own_groups = lambda: GROUPS
