"""A worker that dies while several race: what was committed is its own, or the next one's.

Where racing processes would have to meet at one instant, the lane's side is driven here message by
message, as workers send them; the observer is a list of what is committed by now.
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_leasecheck.testkit import wire
from pytest_leasecheck.testkit.clock import ClockPage
from pytest_leasecheck.testkit.livestage import LiveStage
from pytest_leasecheck.testkit.observer import ObserverClient
from pytest_leasecheck.testkit.placement import placement
from pytest_leasecheck.testkit.processes import WorkerProcess
from pytest_leasecheck.testkit.provider import Provider
from pytest_leasecheck.testkit.worker import Life

#: The thread that sends whatever is sent here, and where it is held first.
_THREAD = 1
_START: tuple[Any, ...] = ("hold", _THREAD, [], (True, 0, []), ("start", 1, "before"))


class Committed:
    """Stands for the observer: tells what has been committed since it was last asked."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        #: Asked before each reading: who else commits just now?
        self.meanwhile: Callable[[], list[str]] = list

    def read(self, *, certain: bool, past_lock: bool) -> tuple[list[Any], str]:
        del certain, past_lock
        notes = self.waiting + self.meanwhile()
        self.waiting = []
        return [("jobs", (note,), None, {"note": note}) for note in notes], ""


class Racer:
    """One worker process that does nothing; what it would send is sent from here."""

    def __init__(self, stage: LiveStage, label: str, *, folder: Path) -> None:
        self._ours, theirs = wire.pair()
        self.body = subprocess.Popen(["sleep", "infinity"], start_new_session=True)
        life = Life(f"{label}#1", label, "work", "", str(folder / label), 1)
        self.process = WorkerProcess(label, life, self.body.pid, theirs, theirs.fileno())
        wire.send(self._ours.fileno(), _START)
        stage.add(self.process)

    def says(self, kind: str, payload: Any) -> None:
        wire.send(self._ours.fileno(), (kind, _THREAD, [], None, payload))

    def is_answered(self) -> bool:
        """Whether it would go on now; the answer is taken."""
        ready, _, _ = select.select([self._ours], [], [], 0)
        if ready:
            wire.receive(self._ours.fileno())
        return bool(ready)

    def dies(self, stage: LiveStage) -> None:
        stage.gone(self.process)
        self.body.returncode = -9  # reaped by the stage, as its parent
        self._ours.close()


@pytest.fixture
def observer() -> Committed:
    return Committed()


@pytest.fixture
def stage(observer: Committed) -> LiveStage:
    page = ClockPage(virtual=True)
    page.turnstile = True
    return LiveStage(
        page=page,
        observer=cast(ObserverClient, observer),
        provider=Provider("none"),
        deadline_s=2.0,
        by_move=False,
        placement=placement(None),
    )


@pytest.fixture
def two(stage: LiveStage, tmp_path: Path) -> Iterator[tuple[Racer, Racer]]:
    racers = Racer(stage, "A", folder=tmp_path), Racer(stage, "B", folder=tmp_path)
    yield racers
    for one in racers:
        if not one.process.ended:
            one.dies(stage)


def authors(stage: LiveStage) -> list[tuple[str, str]]:
    """`(who, note)` of every commit."""
    return [
        (row[3], change[3]["note"]) for row in stage.rows if row[0] == "commit" for change in row[7]
    ]


def test_who_dies_in_anothers_turn_has_not_committed_what_is_there(
    stage: LiveStage, observer: Committed, two: tuple[Racer, Racer]
) -> None:
    dying, other = two
    other.says("turn", 1)
    stage.serve(100)
    assert other.is_answered()
    observer.waiting = ["of B"]  # it has committed, and not yet said so
    dying.dies(stage)
    other.says("commit", ("main", 1, 1, True))
    stage.serve(100)
    assert authors(stage) == [("B#1", "of B")]


def test_who_dies_in_its_own_turn_is_read_before_the_next_one_has_it(
    stage: LiveStage, observer: Committed, two: tuple[Racer, Racer]
) -> None:
    dying, other = two
    for one in two:
        one.says("turn", 1)
        stage.serve(100)
    observer.waiting = ["of A"]
    # Whoever has been given the turn by the time of a reading has committed too.
    observer.meanwhile = lambda: ["of B"] if other.is_answered() else []
    dying.dies(stage)
    assert other.is_answered()
    observer.waiting = ["of B"]
    other.says("commit", ("main", 1, 1, True))
    stage.serve(100)
    assert authors(stage) == [("A#1", "of A"), ("B#1", "of B")]
