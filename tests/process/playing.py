"""Play a script on a lane and pick from its history what a test is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pytest_leasecheck.testkit.history import (
    Blind,
    Commit,
    Event,
    History,
    Passed,
    Returned,
    Settled,
    Statement,
)
from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.script import parse_script

E = TypeVar("E", bound=Event)


@contextmanager
def lane_for(subject: Any, folder: Path, **options: Any) -> Iterator[Lane]:
    """A lane for a whole module of tests."""
    options.setdefault("deadline_s", 5.0)
    with Lane(subject, options=LaneOptions(folder=folder, **options)) as lane:
        yield lane


def play(lane: Lane, text: str, *, error: type[Exception] | None = None) -> History:
    """Play a script, one action a line or between semicolons; it must end as expected."""
    played = lane.play(parse_script(text.replace(";", "\n")), name="script")
    if error is None:
        if played.error is not None:
            logs = "\n".join(log.read_text()[-1500:] for log in played.logs.values())
            raise AssertionError(f"{played.error}\n{logs}")
    else:
        assert isinstance(played.error, error), played.error
    return played.history


def of(kind: type[E], history: History, who: str = "") -> list[E]:
    """Events of one kind, of one incarnation if named."""
    return [
        event
        for event in history.events
        if type(event) is kind and (not who or getattr(event, "who", "") == who)
    ]


def points(history: History, who: str = "A#1", prefix: str = "") -> list[str]:
    """What was passed, as a script writes it, without phases."""
    return [
        f"{event.point}#{event.ordinal} {event.phase}"
        for event in of(Passed, history, who)
        if event.point.startswith(prefix) and event.point != "start"
    ]


def value(history: History, who: str = "A#1") -> str:
    """What the worker's last job returned; it must not have raised."""
    last = of(Returned, history, who)[-1]
    assert not last.error, last.error
    return last.value


def failure(history: History, who: str = "A#1") -> str:
    """What the worker's last job raised."""
    return of(Returned, history, who)[-1].error


def state(history: History, who: str = "A#1") -> str:
    """Where the worker was when its last move ended."""
    return of(Settled, history, who)[-1].state


def written(history: History, who: str = "") -> list[tuple[str, str, Any]]:
    """`(who, id, note)` of every change of the table `jobs`, commit by commit; None if deleted."""
    return [
        (commit.who, str(change.key[0]), change.new["note"] if change.new else None)
        for commit in of(Commit, history, who)
        for change in commit.changes
        if change.table == "jobs"
    ]


def blind(history: History) -> list[str]:
    """Why the kit lost sight, if it did."""
    return [event.why for event in of(Blind, history)]


def statements(history: History, who: str = "A#1") -> list[tuple[str, str, int | None]]:
    """Verb, table and changed rows of what was said about declared tables."""
    return [(one.verb, one.table, one.rows) for one in of(Statement, history, who)]
