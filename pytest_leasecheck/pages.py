"""The page of `--leasecheck-report` and the CI job's summary: drawn from parts that tests leave.

Each test leaves its history and what was found as files, since with pytest-xdist it is another
process that draws. A part is judged again when it is drawn, so that nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from . import engine
from .evidence import folder_name
from .failure import replay_command
from .playing import Result
from .testkit.errors import LeasecheckError
from .testkit.files import replace_file, write_new
from .testkit.history import Header, History
from .testkit.report import Item, html_page, job_summary
from .testkit.verdict import Finding, Verdict
from .wrapped_lines import glued

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Parts lie here below a session's folder, or below the one of a worker of pytest-xdist.
PARTS: Final = "report-parts"

#: Where GitHub (and what imitates it) wants a job's summary.
SUMMARY_VARIABLE: Final = "GITHUB_STEP_SUMMARY"

#: More scripts make a page that no browser likes; what did not pass comes first.
MOST_SCRIPTS: Final = 300

_BEGINS: Final = "<!doctype html>"


def check_target(page: Path) -> None:
    """Refuse a page that could not be written, before any test runs. Raises `pytest.UsageError`."""
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        there = b""
        if page.is_dir():
            raise IsADirectoryError(21, os.strerror(21), str(page))
        if page.is_file():
            with page.open("rb") as file:
                there = file.read(len(_BEGINS))
        if there and not there.lower().startswith(_BEGINS.encode()):
            raise pytest.UsageError(
                f"--leasecheck-report={page}: this file is there and is no page; it is not replaced"
            )
        if not os.access(page if page.exists() else page.parent, os.W_OK):
            raise PermissionError(13, os.strerror(13), str(page))
    except OSError as error:
        raise pytest.UsageError(
            f"--leasecheck-report={page} can't be written: {error.strerror or error}"
        ) from None


class Pages:
    """The parts of one process. Where neither page nor summary is wanted it does nothing."""

    def __init__(self, folder: Path, *, page: Path | None, summary: str, base: Path) -> None:
        self._folder = folder
        self._page = page
        self._base = base
        self._summary = summary

    @property
    def wanted(self) -> bool:
        """Whether anybody will read the parts."""
        return self._page is not None or bool(self._summary)

    def add(self, result: Result, *, nodeid: str) -> None:
        """Leave the part of one test; a test that is run again replaces it."""
        if not self.wanted:
            return
        # A page that lacks a script must not fail its test.
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = folder_name(nodeid)
            told, history = self._folder / f"{name}.json", self._folder / f"{name}.jsonl"
            for old in (told, history):
                old.unlink(missing_ok=True)
            if result.history is not None:
                engine.save_history(result.history, history)
            half = told.with_suffix(".half")
            half.unlink(missing_ok=True)
            write_new(half, json.dumps(_part(result, nodeid=nodeid, base=self._base)))
            half.rename(told)

    def draw(self, session: Path) -> list[tuple[str, str]]:
        """Draw from all parts below a session's folder, and remove them.

        Returns what there is to say about it: pairs of a word and a text.
        """
        if not self.wanted:
            return []
        folders = [session / PARTS, *sorted(session.glob(f"*/{PARTS}"))]
        parts = [path for folder in folders for path in sorted(folder.glob("*.json"))]
        try:
            items = sorted(_items(parts), key=lambda item: (item.outcome == "pass", item.name))
            told = [] if self._page is None else [_write_page(self._page, items, base=self._base)]
            if self._summary and items:
                told += _append_summary(Path(self._summary), items)
            return told
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)


def _part(result: Result, *, nodeid: str, base: Path) -> dict[str, Any]:
    """What `_item` needs beside the history."""
    verdict = result.verdict
    return {
        "name": nodeid,
        "subject": result.subject.label,
        "script": str(result.script),
        "story": " ".join(result.scenario.story.split()),
        "error": str(result.error or ""),
        "replay": replay_command(result, base=base),
        "requires": list(result.scenario.requires),
        "holds": list(result.scenario.holds),
        "drained": result.drained,
        "outcome": verdict.outcome if verdict else None,
        "findings": [asdict(finding) for finding in verdict.findings] if verdict else [],
    }


def _items(parts: Sequence[Path]) -> Iterator[Item]:
    for part in parts:
        # What can't be read was left by a process that was killed over it.
        with contextlib.suppress(OSError, ValueError, KeyError, LeasecheckError):
            yield _item(json.loads(part.read_text("utf-8")), part.with_suffix(".jsonl"))


def _item(told: Mapping[str, Any], saved: Path) -> Item:
    """One part as a script on the page."""
    shown = {name: told[name] for name in ("name", "story", "error", "replay")}
    if not saved.exists():
        header = Header(subject=told["subject"], script=told["script"], python="", sqlite="")
        return Item(history=History(header, ()), **shown)
    history = engine.load_history(saved)
    return Item(history=history, verdict=_verdict(told, history), **shown)


def _verdict(told: Mapping[str, Any], history: History) -> Verdict | None:
    """The verdict again, with what a scenario's or a plugin's own invariants had found."""
    if told["outcome"] is None:
        return None
    verdict = engine.judge(
        history, requires=told["requires"], holds=told["holds"], drained=told["drained"]
    )
    findings = tuple(map(_finding, told["findings"]))
    return replace(verdict, findings=findings, outcome=told["outcome"])


def _finding(told: dict[str, Any]) -> Finding:
    victims, at = tuple(told.pop("victims")), tuple(told.pop("at"))
    return Finding(**told, victims=victims, at=at)


def _write_page(page: Path, items: Sequence[Item], *, base: Path) -> tuple[str, str]:
    """Write the page beside its place, then put it there: nobody sees half of one."""
    shown = page.relative_to(base) if page.is_relative_to(base) else page
    try:
        replace_file(page, html_page(items[:MOST_SCRIPTS]))
    except (OSError, LeasecheckError) as error:
        return "no report", f"{glued(str(shown))} could not be written: {error}"
    left_out = len(items) - MOST_SCRIPTS
    return "report", glued(str(shown)) + (f" (without {left_out} that passed)" * (left_out > 0))


def _append_summary(path: Path, items: Sequence[Item]) -> list[tuple[str, str]]:
    """Append to the job's summary, which other steps write as well."""
    try:
        text = job_summary(items)
        with path.open("a", encoding="utf-8") as out:
            out.write(f"\n{text}")
    except (OSError, LeasecheckError) as error:
        return [("no summary", f"{glued(str(path))} could not be written: {error}")]
    return []
