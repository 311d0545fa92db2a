"""Saved histories, offline: `python -m pytest_leasecheck judge|show|report FILE …`.

FILE is a `history.jsonl`, or the folder of evidence that it lies in. Nothing of the code under test
is needed: what was declared lies in the history. Only a declaration with a function from a row to
its run names code, which is imported and called with `--import` alone: a file may come from a
stranger. `judge` exits with 1 when there is a fault, 2 when a file can't be read; a history that
proves nothing is told, and is no fault.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from .testkit.errors import HistoryError, InputError, Problem
from .testkit.files import read_file, replace_file
from .testkit.harmless import harmless
from .testkit.history import History
from .testkit.verdict import Verdict

_UNREADABLE = 2
#: The history in a folder of evidence: such a folder may be named for it.
_SAVED = "history.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse arguments, do what they say; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pytest_leasecheck", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="judge|show|report")
    judge = commands.add_parser("judge", help="judge saved histories with today's invariants")
    judge.add_argument("files", nargs="+", type=Path, metavar="FILE")
    judge.set_defaults(do=_judge)
    show = commands.add_parser("show", help="draw the timeline of one saved history")
    show.add_argument("files", nargs=1, type=Path, metavar="FILE")
    show.add_argument("--width", type=int, default=100, help="columns (100)")
    show.set_defaults(do=_show)
    report = commands.add_parser("report", help="one self-contained page of saved histories")
    report.add_argument("files", nargs="+", type=Path, metavar="FILE")
    report.add_argument("-o", "--output", type=Path, required=True, metavar="PAGE.html")
    report.set_defaults(do=_report)
    for command in (judge, show, report):
        command.add_argument(
            "--import",
            action="store_true",
            dest="trusted",
            help="import and call the functions that a history's declaration names",
        )
    options = parser.parse_args(arguments)
    try:
        return int(options.do(options))
    except OSError as error:
        named = error.filename is not None
        told = f"{error.filename}: {error.strerror}" if named else str(error)
        print(_line(told), file=sys.stderr)
    except InputError as error:
        print(_line(str(error)), file=sys.stderr)
    return _UNREADABLE


def _judge(options: argparse.Namespace) -> int:
    """A line a file, and its findings. 1 for a fault in any of them."""
    failed = unreadable = 0
    for file in options.files:
        try:
            history, verdict = _judged(file, trusted=options.trusted)
        except (InputError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            print(_line(f"{file}: can't be read: {why or error}"), file=sys.stderr)
            unreadable += 1
            continue
        counts = verdict.counts
        print(_line(
            f"{file}: {verdict.outcome}; {history.header.subject}, {_many(counts.runs, 'run')},"
            f" {_many(counts.stale_attempts, 'stale attempt')},"
            f" {_many(counts.interruptions, 'interruption')}"
        ))  # fmt: skip
        for finding in verdict.findings:
            mark = "  noted: " if finding.severity == "note" else "  "
            print(_line(f"{mark}{finding.invariant} {finding.title}: {finding.text}"))
        for missing in verdict.missing:
            print(_line(f"  not shown: {missing}"))
        failed += verdict.outcome == "fail"
    return 1 if failed else _UNREADABLE if unreadable else 0


def _show(options: argparse.Namespace) -> int:
    """The timeline, with the verdict's marks."""
    from .testkit.timeline import timeline

    history, verdict = _judged(options.files[0], trusted=options.trusted)
    print(timeline(history, verdict, width=options.width))
    return 0


def _report(options: argparse.Namespace) -> int:
    """The page; an existing file is replaced."""
    from .testkit.report import Item, html_page

    items = []
    for file in options.files:
        history, verdict = _judged(file, trusted=options.trusted)
        items.append(Item(_name(file), history, verdict))
    _write_page(options.output, html_page(items))
    print(f"{options.output}: {len(items)} {'history' if len(items) == 1 else 'histories'}")
    return 0


def _write_page(page: Path, text: str) -> None:
    """Raises `InputError` for a file that is no page: it may be the evidence itself."""
    if page.is_file() and not read_file(page).lower().startswith(b"<!doctype html>"):
        what = "this file is there and is no page; it is not replaced"
        raise InputError(str(page), [Problem("", what)])
    replace_file(page, text)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _line(text: str) -> str:
    """One line, whatever is in a history."""
    return harmless(text, most=10_000)


def _name(file: Path) -> str:
    """Evidence lies in a folder named after its test; the file's own name is always the same."""
    if file.is_dir():
        return file.resolve().name
    return file.parent.name if file.name == _SAVED and file.parent.name else file.stem


def _judged(file: Path, *, trusted: bool) -> tuple[History, Verdict]:
    """A saved history and its verdict. Raises `InputError`, OSError."""
    from .testkit.declaration_json import declaration_from_json
    from .testkit.history_json import load
    from .testkit.judge import judge
    from .testkit.run_function import functions_of
    from .testkit.script import Drain, parse_script

    history = load(file / _SAVED if file.is_dir() else file)
    named = functions_of(declaration_from_json(history.header.declaration))
    if named and not trusted:
        what = f"its declaration names {', '.join(named)}, which would be imported and called;"
        raise HistoryError(str(file), [Problem("", f"{what} say --import if you trust this file")])
    acted = [line for line in history.header.script.splitlines() if line.strip()]
    drained = bool(acted) and isinstance(parse_script(history.header.script).actions[-1], Drain)
    requires = history.header.requires or ()
    drained = drained and _played_to_its_end(history)
    try:
        return history, judge(history, requires=requires, drained=drained)
    except ValueError as error:  # a moment that there is none of
        raise HistoryError(str(file), [Problem("", f"what it requires: {error}")]) from error


def _played_to_its_end(history: History) -> bool:
    """Whether the script's last action was begun: a history may have been cut off before it."""
    from .testkit.history import Acted

    last = next((one for one in reversed(history.events) if isinstance(one, Acted)), None)
    return last is not None and last.text.startswith("drain")


if __name__ == "__main__":
    # Like any filter: who reads no further (`| head`) ends us, and hears no complaint.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
