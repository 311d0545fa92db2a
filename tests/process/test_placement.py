"""Where a lane and its workers run: together, on one processor, and in a race wherever they may."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from playing import play, value
from subjects_plain import Plain

from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.worker import Worker

EVERYWHERE = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(EVERYWHERE) < 2, reason="one processor: nothing to choose")


class Placed(Plain):
    def look(self, worker: Worker) -> list[int]:
        return sorted(os.sched_getaffinity(0))


def test_lanes_that_play_side_by_side_share_their_processor_with_nobody(
    lane_of: Callable[..., Lane],
) -> None:
    seen = [
        value(play(lane_of(Placed, number=number), "spawn A to look; run A")) for number in (7, 8)
    ]
    count = len(EVERYWHERE)
    assert seen == [f"[{EVERYWHERE[7 % count]}]", f"[{EVERYWHERE[8 % count]}]"]


def test_who_races_may_run_anywhere_and_comes_back(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of(Placed, cpu=EVERYWHERE[1])
    history = play(lane, "spawn A to look; free A; spawn B to look; run B; run A")
    assert value(history, "B#1") == f"[{EVERYWHERE[1]}]"
    assert value(history) == f"[{EVERYWHERE[1]}]"
    raced = play(lane, "spawn A to look; free A")
    assert value(raced) == str(EVERYWHERE)


@pytest.mark.parametrize("options", [{}, {"clock": "wall", "number": 0}], ids=["untold", "wall"])
def test_who_was_not_told_where_or_waits_for_real_may_run_anywhere(
    lane_of: Callable[..., Lane], options: dict[str, object]
) -> None:
    history = play(lane_of(Placed, **options), "spawn A to look; run A")
    assert value(history) == str(EVERYWHERE)
