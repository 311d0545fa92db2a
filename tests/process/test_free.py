"""`free`: several workers move at once, and every commit has its author all the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from playing import blind, failure, of, play, state, written
from subjects_free import (
    Impatient,
    Owning,
    OwningOnTheWall,
    OwningRollback,
    Racing,
    RacingOnTheWall,
    RacingRollback,
)

from pytest_leasecheck.testkit.history import Commit
from pytest_leasecheck.testkit.lane import Lane

RACE = "spawn A to race; spawn B to race_in_threads; spawn C to race; free A B C"


@pytest.mark.parametrize(
    ("subject", "rounds"), [(Racing, 60), (RacingRollback, 20), (RacingOnTheWall, 20)]
)
def test_racing_workers_are_told_apart_by_what_they_wrote(
    lane_of: Callable[..., Lane], subject: type[Racing], rounds: int
) -> None:
    lane = lane_of(subject, deadline_s=20.0)
    interleaved = 0
    for _ in range(rounds):
        history = play(lane, RACE)
        assert not blind(history)
        assert not any(failure(history, who) for who in ("A#1", "B#1", "C#1"))
        found = written(history)
        assert len(found) >= 10
        assert all(who == f"{str(note).split()[0]}#1" for who, _id, note in found)
        for commit in of(Commit, history):
            assert len(commit.changes) <= 1  # two commits were never read as one
        authors = [who for who, _id, _note in found]
        interleaved += any(one != next_ for one, next_ in pairwise(authors))
    assert interleaved


WAITS = "waits for the write lock"


@pytest.mark.parametrize("subject", [Owning, OwningRollback, OwningOnTheWall])
@pytest.mark.parametrize("end", ["stop A", "hold A owns#2"])
def test_who_waits_for_a_lock_that_no_racer_has_is_at_rest(
    lane_of: Callable[..., Lane], subject: type[Owning], end: str
) -> None:
    lane = lane_of(subject)
    history = play(
        lane,
        f"spawn A to owns; until A owns; {end}; spawn B to wants; spawn C to wants_in_thread;"
        " free B C",
    )
    assert (state(history, "B#1"), state(history, "C#1")) == (WAITS, WAITS)
    assert not written(history)


def test_who_waited_in_vain_goes_on_when_the_lock_is_free_and_he_is_moved(
    lane_of: Callable[..., Lane],
) -> None:
    lane = lane_of(Owning)
    begin = "spawn A to owns; until A owns; spawn B to wants; spawn C to wants; free B C"
    for end in ("run A; run B; run C", "run A; free B C", "free A B C"):
        history = play(lane, f"{begin}; {end}")
        assert state(history, "B#1") == state(history, "C#1") == "returned"
        assert written(history)[0][0] == "A#1"
        assert {who for who, _id, _note in written(history)} == {"A#1", "B#1", "C#1"}
    history = play(lane, f"{begin}; kill A; run C; run B")
    assert [who for who, _id, _note in written(history)] == ["C#1", "B#1"]


def test_on_the_wall_clock_a_race_is_over_when_nobody_waits_for_a_lock_that_is_free(
    lane_of: Callable[..., Lane],
) -> None:
    """He sleeps for a while before he looks again."""
    lane = lane_of(OwningOnTheWall)
    begin = "spawn A to owns; until A owns; spawn B to wants; spawn C to wants_in_thread; free B C"
    for end in ("free A B C", "kill A; free B C"):
        history = play(lane, f"{begin}; {end}")
        assert state(history, "B#1") == state(history, "C#1") == "returned"
        assert {"B#1", "C#1"} <= {who for who, _id, _note in written(history)}


def test_a_racers_own_timeout_may_end_his_wait(lane_of: Callable[..., Lane]) -> None:
    history = play(
        lane_of(Impatient), "spawn A to owns; until A owns; spawn B to wants; free B; run A"
    )
    assert "locked" in failure(history, "B#1")
    assert [who for who, _id, _note in written(history)] == ["A#1"]


def test_a_commit_that_a_reader_holds_up_keeps_nobody_from_the_next_race(
    lane_of: Callable[..., Lane],
) -> None:
    lane = lane_of(OwningRollback)
    history = play(
        lane,
        "spawn A to reads; until A owns; spawn B to wants; spawn C to wants; free B C; free A B C",
    )
    assert [state(history, who) for who in ("A#1", "B#1", "C#1")] == ["returned"] * 3
    assert {who for who, _id, _note in written(history)} == {"B#1", "C#1"}
    assert not blind(history)
