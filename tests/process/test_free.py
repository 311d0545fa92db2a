"""`free`: several workers move at once, and every commit has its author all the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from playing import blind, failure, of, play, written
from subjects_free import Racing, RacingOnTheWall, RacingRollback

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
