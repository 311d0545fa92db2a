"""Real time: leases are waited for, held workers' hearts beat, every commit has its author."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playing import lane_for, of, play, points, state, value, written
from subjects_time import OnTheWall

from pytest_leasecheck.testkit.history import Commit, Passed, Returned
from pytest_leasecheck.testkit.lane import Lane


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_for(OnTheWall, tmp_path_factory.mktemp("wall")) as lane:
        yield lane


def test_a_lease_is_waited_for(lane: Lane) -> None:
    start = time.monotonic()
    history = play(
        lane,
        "spawn A to claiming; until A claimed; stop A; expire;spawn B to claiming; until B claimed",
    )
    assert time.monotonic() - start >= 0.3
    owners = [
        (commit.who, commit.changes[0].new and commit.changes[0].new["owner"])
        for commit in of(Commit, history)
    ]
    assert owners == [("A#1", "A"), ("B#1", "B")]


def test_the_heart_of_a_held_worker_beats_and_its_commits_are_its_own(lane: Lane) -> None:
    history = play(
        lane, "spawn A to beating; until A body; advance 200ms; spawn B to claiming; run B; run A"
    )
    beats = [commit for commit in of(Commit, history) if commit.thread == "beat"]
    assert len(beats) >= 3
    assert {commit.who for commit in beats} == {"A#1"}
    (refused,) = [event for event in of(Returned, history) if event.who == "B#1"]
    assert refused.value == "False"


@pytest.mark.parametrize(("job", "said"), [("sleeping", "slept"), ("looping", "looped")])
def test_a_worker_that_sleeps_for_real_is_not_at_rest_yet(lane: Lane, job: str, said: str) -> None:
    history = play(lane, f"spawn A to {job}; until A awake; run A")
    assert value(history) == repr(said)
    assert [event.point for event in of(Passed, history) if event.held] == ["awake"]
    assert points(history) == ["awake#1 before"]


def test_who_waits_for_a_held_lock_is_at_rest_and_gets_it_by_itself(lane: Lane) -> None:
    script = "spawn A to holds; until A holding; spawn B to stubborn; run B"
    assert state(play(lane, script), "B#1") == "waits for the write lock"
    history = play(lane, script + "; run A; advance 300ms")
    assert written(history) == [("B#1", "b", "B")]


def test_a_stopped_heart_does_not_beat_and_its_lease_is_lost(lane: Lane) -> None:
    history = play(
        lane,
        "spawn A to beating; until A body; stop A; expire; spawn B to claiming; run B;"
        "cont A; advance 100ms; run A",
    )
    assert [event.value for event in of(Returned, history, "B#1")] == ["True"]
    taken = of(Commit, history, "B#1")[0]
    assert not [
        commit for commit in of(Commit, history, "A#1") if commit.changes and commit.n > taken.n
    ]
