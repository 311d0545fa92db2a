"""What is printed instead of running tests: `--leasecheck-doctor`, `-points`, `-explain`."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from . import engine
from .failure import log_tail, printable
from .options import Settings, read_settings
from .playing import free_scenario
from .subjects import Named, configured
from .testkit import history as h
from .testkit.declaration_check import check, columns_of
from .testkit.errors import LeasecheckError, SubjectError
from .testkit.explain import explain
from .testkit.script import parse_script
from .testkit.subject import declaration_of

if TYPE_CHECKING:
    from .testkit.lane import Facts, Lane, Played

#: One worker, undisturbed: what a subject does when nothing goes wrong.
PLAIN: Final = "submit run-1\nspawn A\nrun A\nheal\ndrain\n"

#: Below this, the databases of a few scripts don't fit.
_ENOUGH_SHM_MB: Final = 64


def print_asked(config: pytest.Config) -> int:
    """Print what the flags ask for. 0 when all of it could be found out, else 1.

    Raises `pytest.UsageError` for a configuration that can't be meant.
    """
    settings = read_settings(config)
    folders = (config.rootpath, config.invocation_params.dir)
    doctor = config.getoption("leasecheck_doctor")
    # The doctor is whom one asks when nothing is set up yet.
    subject = (
        None
        if doctor and settings.subject is None
        else configured(settings.subject, folders=folders)
    )
    try:
        ok = _print_all(config, settings, subject, doctor=doctor)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head`: pytest ends without a word
        raise
    except OSError as error:
        print(f"leasecheck could not finish: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to be lost
        return 1
    return 0 if ok else 1


def _print_all(
    config: pytest.Config, settings: Settings, subject: Named | None, *, doctor: bool
) -> bool:
    ok = True
    with tempfile.TemporaryDirectory(prefix="leasecheck-") as folder:
        if doctor:
            ok &= _print_doctor(settings, subject, Path(folder))
        if subject is not None and config.getoption("leasecheck_points"):
            ok &= _print_points(settings, subject, Path(folder))
        if subject is not None and config.getoption("leasecheck_explain"):
            ok &= _print_explained(settings, subject, Path(folder))
    return ok


def _print_doctor(settings: Settings, subject: Named | None, folder: Path) -> bool:
    for name, text in environment():
        _row(name, text)
    if subject is None:
        _row("subject", "none named; name one to see what it allows (--leasecheck-subject=…)")
        return True
    _row("subject", subject.label)
    try:
        lane = engine.start_lane(subject.subject, settings=settings, folder=folder)
    except LeasecheckError as error:
        _row("lane", f"does not start: {error}")
        return False
    try:
        facts: Facts = lane.facts
        fits = _print_declaration(lane, subject)
    finally:
        lane.close()
    _row("its import", facts.imports or "opens no database and starts no thread")
    _row("points in SQL", "yes" if facts.hooks else "no: SQLite's symbols can't be reached")
    for number, held in enumerate(facts.guarantees):
        _row("holds" if number == 0 else "", held)
    for number, fell in enumerate(facts.fallen):
        _row("does not hold" if number == 0 else "", fell)
    return fits


def _print_declaration(lane: Lane, subject: Named) -> bool:
    """Whether what is declared is there, in a database as `prepare` makes it."""
    try:
        stage = engine.open_stage(lane, name="doctor")
        try:
            header = stage.history().header
        finally:
            stage.close()
        tables = columns_of(header.schema)
    except LeasecheckError as error:
        _row("its database", f"could not be looked at: {error}")
        return False
    if not tables:
        _row("its database", "prepare() makes no table: whether the declaration fits shows in a run"
             " (--leasecheck-explain)")  # fmt: skip
        return True
    for number, (table, columns) in enumerate(tables.items()):
        _row("its database" if number == 0 else "", f"{table}({', '.join(columns)})")
    try:
        check(declaration_of(subject.subject), tables, {})
    except SubjectError as error:
        for number, problem in enumerate(error.problems):
            _row("is declared" if number == 0 else "", f"WRONGLY: {problem}")
        return False
    _row("is declared", "every table and column that the declaration names is there")
    return True


def environment() -> Iterator[tuple[str, str]]:
    """What can be found out without a subject."""
    kind = platform.python_implementation()
    yield "interpreter", f"{kind} {platform.python_version()} ({sys.executable})"
    yield "pytest", pytest.__version__
    yield "kernel", f"{platform.system()} {platform.release()}"
    yield "SQLite", f"{sqlite3.sqlite_version}; {_symbols()}"
    yield "/dev/shm", _shared_memory()
    cores = len(os.sched_getaffinity(0))
    yield "cores", f"{cores} usable (one lane each)"


def _symbols() -> str:
    """Whether this interpreter's SQLite can be watched: asked of a process that has it loaded."""
    import ctypes

    try:
        import _sqlite3

        library = ctypes.CDLL(_sqlite3.__file__)
        _ = library.sqlite3_trace_v2
    except (AttributeError, OSError, ImportError):
        return "its symbols are hidden: no points at statements, its own time and lock waits real"
    return "its symbols can be reached"


def _shared_memory() -> str:
    try:
        room = os.statvfs("/dev/shm")
    except OSError as error:
        return f"missing ({error.strerror}): databases go to the temporary folder, slower"
    free = room.f_bavail * room.f_frsize // 2**20
    size = room.f_blocks * room.f_frsize // 2**20
    little = "; that is little" if free < _ENOUGH_SHM_MB else ""
    writable = "" if os.access("/dev/shm", os.W_OK) else "; not writable"
    return f"{size} MB, {free} MB free{little}{writable}"


def _print_points(settings: Settings, subject: Named, folder: Path) -> bool:
    """The map that scripts name points from, in the order in which they were passed."""
    played = _play_plain(settings, subject, folder)
    if played is None:
        return False
    print(f"points of {subject.label}: one worker, one run, nothing goes wrong")
    passed = [
        event
        for event in played.history
        if isinstance(event, h.Passed) and event.who.startswith("A#")
    ]
    for line in point_map(passed):
        print(printable(f"  {line}"))
    if not passed:
        print("  none: it made no statement and asked for no effect. Did its work() open another")
        print("  file than worker.db, or find no run? --leasecheck-explain shows what it did.")
        return _told_all(played)
    print("hold a worker at one of them with: until A POINT before (or: after);")
    print("without its number, a point is the next one of that name")
    return _told_all(played)


def point_map(passed: Sequence[h.Passed]) -> Iterator[str]:
    """One line a point; what was passed between its before and its after is indented."""
    both = {
        (event.thread, event.point, event.ordinal) for event in passed if event.phase == "after"
    }
    depth: dict[str, int] = {}
    for event in passed:
        inside = depth.setdefault(event.thread, 0)
        paired = (event.thread, event.point, event.ordinal) in both
        if event.phase == "before":
            only = "" if paired else "   (before only)"
            yield f"{'  ' * inside}{event.point}#{event.ordinal}{only}"
            depth[event.thread] += paired
        else:
            depth[event.thread] = max(0, inside - 1)


def _print_explained(settings: Settings, subject: Named, folder: Path) -> bool:
    """How a plain run was understood, commit by commit."""
    played = _play_plain(settings, subject, folder)
    if played is None:
        return False
    scenario = free_scenario("plain", requires=(), holds=None)
    try:
        verdict = engine.judge(
            played.history, requires=(), holds=scenario.holds, drained=played.error is None
        )
    except LeasecheckError as error:
        print(printable(str(error)))
        return False
    print(f"a plain run of {subject.label}")
    print(printable(explain(played.history)))
    for finding in verdict.findings:
        print(printable(f"  {finding.invariant} {finding.title}: {finding.text}"))
    for name, why in verdict.not_claimed.items():
        print(printable(f"  {name} is not judged: {why}"))
    return _told_all(played)


def _play_plain(settings: Settings, subject: Named, folder: Path) -> Played | None:
    try:
        lane = engine.start_lane(subject.subject, settings=settings, folder=folder)
        try:
            return lane.play(parse_script(PLAIN), name="plain")
        finally:
            lane.close()
    except LeasecheckError as error:
        print(printable(str(error)))
        return None


def _told_all(played: Played) -> bool:
    if played.error is None:
        return True
    print(printable(f"the plain run was not played to its end: {played.error}"))
    for who, log in sorted(played.logs.items()):
        for line in log_tail(log):
            print(printable(f"  {who}  {line}"))
    return False


def _row(name: str, text: str) -> None:
    print(printable(f"{name:<15}{text}"))
