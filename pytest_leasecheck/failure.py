"""How a failure reads, top down: what broke, the script, the timeline, the evidence, the logs."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .playing import Result
from .saved import required_lines
from .testkit.advice import advice_on, whose
from .testkit.errors import NeverReached
from .testkit.hints import hint_on
from .testkit.scenario import after_danger
from .testkit.timeline import short_timeline

_TAIL_LINES: Final = 15
_TAIL_BYTES: Final = 8_000
_MOST_FINDINGS: Final = 8


class Unproven(Exception):
    """A test of the suite did not prove what it should; `str` of it is the whole report."""

    def __init__(self, result: Result, *, base: Path) -> None:
        #: What was played, and what came of it.
        self.result: Final = result
        #: The report's first line.
        self.headline: Final = headline(result)
        super().__init__(report(result, base=base))


def headline(result: Result) -> str:
    """The one sentence that a reader in a hurry sees."""
    verdict = result.verdict
    faults = [item for item in verdict.findings if item.severity == "fault"] if verdict else []
    if faults:
        others = len(faults) - 1
        more = f" (and {others} more finding{'s' * (others > 1)})" if others else ""
        return _one_line(f"{faults[0].invariant} {faults[0].title}: {faults[0].text}{more}")
    if result.error is not None:
        return _one_line(str(result.error).partition("\n")[0])
    if verdict is None:
        return "nothing was played"
    missing = "; ".join(verdict.missing) or "the kit could not see enough"
    return _one_line(f"inconclusive, so nothing is proven: {missing}")


def report(result: Result, *, base: Path) -> str:
    """The whole text. `base`: paths below it are shown relative to it."""
    parts = [headline(result), *_what(result), *_script(result), *_timeline(result)]
    parts += [*_evidence(result, base), *_logs(result, base)]
    return printable("\n".join(parts))


def notes(result: Result) -> list[str]:
    """What is named, and does not fail."""
    found = result.verdict.findings if result.verdict else ()
    return [
        printable(_one_line(f"noted: {item.title}: {item.text}"))
        for item in found
        if item.severity == "note"
    ]


def printable(text: str) -> str:
    """Text that a terminal can't be harmed by: control characters are written out."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text
    )


def replay_command(result: Result, *, base: Path) -> str:
    """The command that plays it again; empty when there is no file to play."""
    if result.kept is None:
        return ""
    saved = sorted(result.kept.glob("script*.txt"))
    if not saved:
        return ""
    file = shlex.quote(f"--leasecheck-replay={_relative(saved[-1], base)}")
    flags = (result.subject.flag and shlex.quote(result.subject.flag), file)
    return " ".join(("pytest --leasecheck", *filter(None, flags)))


def _what(result: Result) -> Iterator[str]:
    """The other findings, what could not be done, the story."""
    verdict = result.verdict
    if verdict is not None:
        faults = [item for item in verdict.findings if item.severity == "fault"]
        for finding in faults[1:_MOST_FINDINGS]:
            yield _one_line(f"{finding.invariant} {finding.title}: {finding.text}")
        if len(faults) > _MOST_FINDINGS:
            yield f"… and {len(faults) - _MOST_FINDINGS} more findings"
        for advice in advice_on(faults[:_MOST_FINDINGS]):
            yield _one_line(f"what helps: {advice}")
        for name in dict.fromkeys(item.invariant for item in faults[:_MOST_FINDINGS]):
            if whose(name):
                yield _one_line(f"{name} is {whose(name)}")
        yield from notes(result)
        if faults and verdict.missing:
            yield _one_line(f"also not shown: {'; '.join(verdict.missing)}")
        if faults and result.error is not None:
            yield f"Besides, {result.error}"
    if result.error is not None and "\n" in str(result.error):
        yield str(result.error).partition("\n")[2]
    hint = _hint(result)
    if hint:
        yield _one_line(f"what helps: {hint}.")
    if result.outcome == "inconclusive":
        yield (
            "A test counts only if its dangerous moment came about; the timeline tells what came"
            " about instead. Workers are held at the subject's `danger`; --leasecheck-points lists"
            " where else they can be, --leasecheck-explain how the declaration was understood."
        )
    yield ""
    yield f"subject   {result.subject.label}"
    if result.scenario.story:
        yield f"story     {' '.join(result.scenario.story.split())}"


def _hint(result: Result) -> str:
    """What the declaration could say so that a point is one that is reached."""
    error, subject = result.error, result.subject.subject
    if not isinstance(error, NeverReached):
        return ""
    return hint_on(
        error.point,
        passed=error.passed,
        danger=subject.danger,
        danger_after=after_danger(subject),
        long_call=subject.long_call,
    )


def _script(result: Result) -> Iterator[str]:
    yield ""
    yield "script"
    if result.scenario.requires:
        yield from (f"    {line}" for line in required_lines(result.scenario.requires))
    yield from (f"    {line}" for line in str(result.script).splitlines())


def _timeline(result: Result) -> Iterator[str]:
    if result.history is not None:
        yield ""
        yield "timeline"
        drawn = short_timeline(result.history, result.verdict, width=width())
        yield from drawn.splitlines()


def width() -> int:
    """Columns for a timeline: the terminal's, where it is neither a slit nor a wall."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, 80), 120)


def _evidence(result: Result, base: Path) -> Iterator[str]:
    yield ""
    if result.kept is not None:
        yield f"evidence  {_relative(result.kept, base)}"
    if result.lost:
        yield _one_line(f"          not all of it could be kept: {result.lost}")
    command = replay_command(result, base=base)
    if command:
        yield f"replay    {command}"
        if not result.subject.flag:
            yield "          (the subject is defined inside a test: name it in a module to replay)"


def _logs(result: Result, base: Path) -> Iterator[str]:
    for who, path in sorted(result.logs.items()):
        tail = log_tail(path)
        if tail:
            yield ""
            yield f"log of {who} ({_relative(path, base)})"
            yield from (f"    {line}" for line in tail)


def log_tail(path: Path) -> list[str]:
    """The end of a log, a few lines, however long it is."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - _TAIL_BYTES))
            text = log.read().decode("utf-8", "backslashreplace")
    except OSError:
        return []
    lines = text.splitlines()
    hidden = len(lines) > _TAIL_LINES or size > _TAIL_BYTES
    return ["…"] * hidden + lines[-_TAIL_LINES:]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _relative(path: Path, base: Path) -> str:
    try:
        return str(path.relative_to(base))
    except ValueError:
        return str(path)
