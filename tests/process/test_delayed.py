"""What the provider had delayed arrives: whom it answers moves to his rest, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playing import lane_for, of, play, value, written
from subjects_delayed import Delayed

from pytest_leasecheck.testkit.history import Acted, History
from pytest_leasecheck.testkit.lane import Lane


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_for(Delayed, tmp_path_factory.mktemp("logs")) as lane:
        yield lane


def doers(history: History, *, since: str) -> list[str]:
    """Who did something after an action: each run of events of one worker once."""
    start = next(one.n for one in of(Acted, history) if one.text == since)
    found = [str(getattr(one, "who", "")) for one in history.events if one.n > start]
    found = [who for who in found if who]
    return [who for index, who in enumerate(found) if index == 0 or found[index - 1] != who]


@pytest.mark.parametrize("fault", ["delay-request", "delay-response"])
def test_whoever_a_delivery_answers_comes_to_rest_within_it(lane: Lane, fault: str) -> None:
    history = play(
        lane,
        f"provider {fault} charge; spawn A; run A; provider deliver charge; spawn B; run B",
    )
    assert value(history).startswith("'rcpt-A#1")
    assert [who for who, _id, _note in written(history)] == ["A#1"] * 4 + ["B#1"] * 4
    assert doers(history, since="provider deliver charge")[:2] == ["A#1", "B#1"]


@pytest.mark.parametrize("end", ["heal", "provider deliver *"])
@pytest.mark.parametrize("fault", ["delay-request", "delay-response"])
def test_two_that_are_answered_at_once_move_one_after_the_other(
    lane: Lane, fault: str, end: str
) -> None:
    delayed = "; ".join(f"provider {fault} charge; spawn {one}; run {one}" for one in "AB")
    for _ in range(3):
        history = play(lane, f"{delayed}; {end}")
        assert doers(history, since=end)[:2] == ["A#1", "B#1"]
        notes = [note for _who, _id, note in written(history)]
        assert notes[2:] == [f"{who} {number}" for who in "AB" for number in range(3)]
