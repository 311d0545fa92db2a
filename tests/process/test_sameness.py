"""The same script twice gives the same history: what replay stands on."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import pytest
from playing import lane_for, play
from subjects_time import Waiting

from pytest_leasecheck.scenarios.reference_subject import ReferenceSubject
from pytest_leasecheck.testkit.history import Commit
from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.sameness import difference
from pytest_leasecheck.testkit.script import parse_script

POINTS = (
    "effect:charge before", "effect:charge after", "effect:mail before", "effect:mail after",
    "txn:begin#3 before", "txn:commit#2 before", "txn:commit#4 after", "sql:UPDATE runs#2 before",
)  # fmt: skip


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_for(ReferenceSubject, tmp_path_factory.mktemp("logs")) as lane:
        yield lane


def scripts(count: int) -> Iterator[str]:
    """Scripts that differ in where a worker is caught and in what becomes of it."""
    chance = random.Random(7)
    for _ in range(count):
        lines = ["submit r1", "spawn A", f"until A {chance.choice(POINTS)}"]
        fate = chance.choice(["stop", "kill", "freeze", "beat", "race"])
        if fate == "stop":
            lines += ["stop A", "expire", "spawn B", "run B", "cont A", "run A"]
        elif fate == "kill":
            lines += ["kill A", "expire", "spawn B", f"until B {chance.choice(POINTS)}", "run B"]
        elif fate == "freeze":
            lines += ["stop A", "expire", "cont A", "run A"]
        elif fate == "beat":
            lines += ["advance 25s", "spawn B", "run B", "advance 10s", "run A"]
        else:
            lines += ["spawn B", "run B", "advance 31s", "run B", "run A"]
        yield "; ".join([*lines, "heal", "drain"])


HUNDRED = list(scripts(100))


# Ten at a time, so that pytest-xdist's workers can share them.
@pytest.mark.parametrize("start", range(0, len(HUNDRED), 10))
def test_a_hundred_scripts_repeat_exactly(lane: Lane, start: int) -> None:
    for text in HUNDRED[start : start + 10]:
        try:
            first = lane.play(parse_script(text.replace(";", "\n")), name="script")
            second = lane.play(parse_script(text.replace(";", "\n")), name="script")
        finally:
            print(text)
        assert str(first.error) == str(second.error)
        assert difference(first.history, second.history) is None


def test_what_warm_workers_did_before_does_not_show(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    waits = "submit r1; spawn A; until A sql:UPDATE runs after; stop A; expire; spawn B; run B"
    ends = "spawn C; run B; run B; advance 11s; run B; run C; heal; drain"
    kills = "submit r1; spawn A; until A effect:charge after; kill A; expire; spawn B; run B"
    with lane_for(ReferenceSubject, tmp_path_factory.mktemp("warm"), workers="warm") as lane:
        texts = [f"{waits}; {ends}", kills]
        first = [play(lane, text) for text in texts]
        for _ in range(3):
            for text, history in zip(texts, first, strict=True):
                assert difference(history, play(lane, text)) is None, text


def test_threads_timers_and_loops_repeat_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    with lane_for(Waiting, tmp_path_factory.mktemp("waiting")) as lane:
        for text in (
            "spawn A to in_order; run A; advance 10s",
            "spawn A to executor_in_loop; run A; advance 10s; run A",
            "spawn A to slow_beat; until A body; advance 20s; run A",
            "lock; spawn B to busy; run B; advance 3s; unlock; advance 1s",
        ):
            first = play(lane, text)
            for _ in range(5):
                assert difference(first, play(lane, text)) is None


def test_what_differs_is_named(lane: Lane) -> None:
    history = play(lane, "submit r1; spawn A; run A")
    assert difference(history, history) is None
    other = play(lane, "submit r2; spawn A; run A")
    assert "script" in str(difference(history, other))
    shorter = dataclasses.replace(history, events=history.events[:-1])
    assert "nothing more" in str(difference(history, shorter))
    index, commit = next(
        (index, event) for index, event in enumerate(history.events) if isinstance(event, Commit)
    )
    forged = list(history.events)
    forged[index] = dataclasses.replace(commit, who="B#1")
    assert f"event {index + 1}" in str(
        difference(history, dataclasses.replace(history, events=tuple(forged)))
    )
