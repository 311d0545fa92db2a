"""The page of all honest programs and their twins."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .catalogue import CASES
from .importing import ROOT
from .model import Honest
from .playing import Judged, Stagehand

PAGE: Final = ROOT / "docs" / "reference" / "honest.md"

_HEAD: Final = """\
# Honest programs, and their twins

An oracle that cries wolf is switched off. Each of these programs is right and looks wrong: it is
played with real processes, in the moment that looks worst, and must pass. Its twin is the same
program with the smallest change that makes it wrong, in the same script, and must be caught as the
row says.

This page is written by `python -m tests.honest` and checked by a test.

| name | honest | twin | the twin is caught by |
|---|---|---|---|
"""


def row_of(case: Honest) -> str:
    """A case's row."""
    honest, twin = (text.replace("|", "\\|") for text in (case.about, case.twin))
    return f"| {case.name} | {honest} | {twin} | {case.invariant}: {case.title} |"


def caught(case: Honest, judged: Judged) -> str:
    """The text that catches a twin. Raises LookupError when there is none."""
    for finding in judged.faults:
        said = (finding.invariant, finding.title, finding.culprit)
        if said == (case.invariant, case.title, case.culprit):
            return finding.text
    raise LookupError(f"the twin of {case.name!r} is not caught so: {judged.shown}")


def write(folder: Path) -> None:
    """Play everything and write the page. Raises LookupError when a row is not true."""
    hand = Stagehand(folder)
    parts = [_HEAD, *(f"{row_of(case)}\n" for case in CASES), "\n## The scripts\n"]
    try:
        for case in CASES:
            honest, twin = hand.play(case), hand.play(case, guilty=True)
            if honest.verdict.outcome != "pass":
                raise LookupError(f"{case.name!r} is called wrong: {honest.shown}")
            parts.append(
                f"\n<details><summary>{case.name}</summary>\n\n```\n{case.script()}```\n\n"
                f"What tempts: {', '.join(case.requires)}.\n\nThe twin {case.twin}:\n\n"
                f"> {case.invariant}, {case.title}: {caught(case, twin)}\n\n</details>\n"
            )
    finally:
        hand.close()
    PAGE.write_text("".join(parts), encoding="utf-8")
