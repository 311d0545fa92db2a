"""The page of all mutants: what each is, what plays it, and what catches it, in its own words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_leasecheck.testkit.verdict import Finding

from .catalogue import EQUIVALENT, GUARDS, KINDS
from .model import Equivalent, Mutant
from .playing import ROOT, Judged, Stagehand

PAGE: Final = ROOT / "docs" / "reference" / "mutants.md"

_HEAD: Final = """\
# Mutants

The reference runtime with one small fault each, and what catches it. An oracle that has never been
seen to fail proves nothing: each of these faults is played with real processes by the schedule
beside it, which passes on the true runtime, and must be *found*. One that was not, or that only
an inconclusive verdict gave away, would fail CI.

This page is written by `python -m tests.mutants` and checked by a test.
"""
_GUARDS: Final = """
## Each guard taken out, one at a time

The first name is the guard's in the reference runtime.
"""
_KINDS: Final = """
## Faults that real projects had

Each is what went wrong in public, made small and put into the reference runtime.
"""
_EQUIVALENT: Final = """
## What may be taken out

Second walls. Taken out alone, nothing wrong can come of it, and the schedules that bring about the
moment in which it would matter pass. Here is why.
"""
_TEXTS: Final = """
## What a failure says

Per mutant its schedule, and the first finding of the title that is named above.
"""


def write(folder: Path) -> None:
    """Play everything and write the page. Logs go to the folder."""
    hand = Stagehand(folder)
    try:
        judged = {mutant.name: hand.mutated(mutant) for mutant in (*GUARDS, *KINDS)}
    finally:
        hand.close()
    PAGE.write_text("".join(_page(judged)), encoding="utf-8")


def caught(mutant: Mutant, judged: Judged) -> Finding:
    """The finding that catches a mutant. Raises LookupError when there is none."""
    for finding in judged.verdict.findings:
        if (
            finding.severity == "fault"
            and finding.title == mutant.title
            and finding.invariant in mutant.invariants
            and mutant.culprit in finding.text
        ):
            return finding
    found = [f"{one.invariant} {one.title}: {one.text}" for one in judged.verdict.findings]
    raise LookupError(f"{mutant.name} is not caught by {mutant.title!r}; found: {found}")


def row_of(mutant: Mutant) -> str:
    """The beginning of a mutant's row: what doesn't depend on playing it."""
    seen = mutant.link or "–"
    return f"| {mutant.name} | {mutant.fault} | {seen} | {mutant.schedule.name} |"


def row_of_equivalent(guard: Equivalent) -> str:
    """The row of a guard that may be taken out."""
    names = ", ".join(schedule.name for schedule in guard.schedules)
    return f"| {guard.name} | {names} | {guard.why} |"


def _page(judged: dict[str, Judged]) -> Iterator[str]:
    yield _HEAD
    for head, mutants in ((_GUARDS, GUARDS), (_KINDS, KINDS)):
        yield head
        yield "\n| mutant | fault | seen in | schedule | fired | finding |\n"
        yield "|---|---|---|---|---|---|\n"
        for mutant in mutants:
            fired = {
                one.invariant
                for one in judged[mutant.name].verdict.findings
                if one.severity == "fault"
            }
            title = caught(mutant, judged[mutant.name]).title
            yield f"{row_of(mutant)} {' '.join(sorted(fired))} | {title} |\n"
    yield f"{_EQUIVALENT}\n| guard | schedules | why |\n|---|---|---|\n"
    for guard in EQUIVALENT:
        yield f"{row_of_equivalent(guard)}\n"
    yield _TEXTS
    for mutant in (*GUARDS, *KINDS):
        yield _details(mutant, caught(mutant, judged[mutant.name]))


def _details(mutant: Mutant, finding: Finding) -> str:
    script = "".join(f"{line}\n" for line in str(mutant.schedule.script).splitlines())
    return (
        f"\n<details><summary>{mutant.name}: {mutant.fault}</summary>\n\n"
        f"{mutant.schedule.story}\n\n```\n{script}```\n\n"
        f"> {finding.invariant}, {finding.title}: {finding.text}\n\n</details>\n"
    )
