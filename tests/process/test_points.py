"""Every kind of point: where it is, how it is named, and that it holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playing import lane_for, of, play, points, state, value, written
from subjects_points import Points

from pytest_leasecheck.testkit.errors import NeverReached
from pytest_leasecheck.testkit.history import EffectDecided, Passed
from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.script import parse_script


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_for(Points, tmp_path_factory.mktemp("logs")) as lane:
        yield lane


@pytest.mark.parametrize(
    ("point", "held_at"),
    [
        ("effect:charge before", "effect:charge#1 before"),
        ("effect:charge", "effect:charge#1 before"),
        ("effect:charge#2 before", "effect:charge#2 before"),
        ("effect:charge after", "effect:charge#1 after"),
        ("effect:* after", "effect:charge#1 after"),
        ("effect:m* before", "effect:mail#1 before"),
        ("*#2 after", "effect:charge#2 after"),
    ],
)
def test_a_pattern_holds_where_it_says(lane: Lane, point: str, held_at: str) -> None:
    history = play(lane, f"spawn A to charging; until A {point}")
    assert state(history) == f"held at {held_at}"
    held = [event for event in of(Passed, history, "A#1") if event.held]
    assert [f"{one.point}#{one.ordinal} {one.phase}" for one in held] == [held_at]


def test_before_an_effect_nothing_is_decided_and_after_it_is(lane: Lane) -> None:
    assert not of(EffectDecided, play(lane, "spawn A to charging; until A effect:charge before"))
    assert of(EffectDecided, play(lane, "spawn A to charging; until A effect:charge after"))


def test_a_point_that_is_never_reached_lists_what_passed(lane: Lane) -> None:
    played = lane.play(
        parse_script("spawn A to charging\nuntil A effect:charge#2 after\nuntil A effect:never"),
        name="script",
    )
    error = played.error
    assert isinstance(error, NeverReached)
    assert error.point == "effect:never before"
    assert error.passed == ("effect:mail#1 before", "effect:mail#1 after")
    assert "returned" in str(error)
    assert "effect:mail#1 after" in str(error)


def test_calls_of_every_kind_are_points_and_work_as_before(lane: Lane) -> None:
    history = play(lane, "spawn A to called; run A")
    assert value(history) == repr(["f!", "m.", "s,", "cThing", "a?"])
    names = ("function", "Thing.method", "Thing.static", "Thing.made", "coroutine")
    assert points(history, prefix="call:") == [
        f"call:subjects_points:{name}#1 {phase}" for name in names for phase in ("before", "after")
    ]


@pytest.mark.parametrize("name", ["function", "Thing.method", "Thing.static", "coroutine"])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_call_can_be_held(lane: Lane, name: str, phase: str) -> None:
    point = f"call:subjects_points:{name} {phase}"
    history = play(lane, f"spawn A to called; until A {point}; run A")
    assert value(history) == repr(["f!", "m.", "s,", "cThing", "a?"])


def test_a_name_that_another_module_bound_early_is_a_point_too(lane: Lane) -> None:
    history = play(
        lane, "spawn A to called_by_another_module; until A call:*elsewhere before; run A"
    )
    assert value(history) == "'early!'"


def test_own_points_do_nothing_outside_a_worker_and_hold_inside(lane: Lane) -> None:
    from subjects_plain import own_point

    own_point("outside")
    history = play(lane, "spawn A to own; until A deep; until A shallow; run A")
    assert points(history) == ["deep#1 before", "shallow#1 before"]


def test_one_thread_is_held_while_the_other_goes_on(lane: Lane) -> None:
    history = play(lane, "spawn A to in_thread; hold A second; run A")
    assert "held at second#1 before" in state(history)
    assert written(history) == [("A#1", "a", "first")]
    history = play(lane, "spawn A to in_thread; hold A second; run A; run A")
    assert written(history) == [("A#1", "a", "first"), ("A#1", "b", "second")]
    assert state(history) == "returned"
    assert [event.thread for event in of(Passed, history) if event.point == "second"] == ["second"]


def test_a_heartbeat_is_a_point_and_its_thread_can_be_held(lane: Lane) -> None:
    history = play(
        lane, "spawn A to beating; hold A heartbeat before; until A effect:charge; advance 10s"
    )
    assert points(history, prefix="heartbeat") == ["heartbeat#1 before"]
    assert not written(history)
    free = play(lane, "spawn A to beating; until A effect:charge; advance 10s; run A")
    assert points(free, prefix="heartbeat")[-1] == "heartbeat#3 after"
    assert written(free) == [("A#1", "a", "renewed")]  # the same value thrice is one change
    assert state(free) == "returned"


def test_the_event_loop_goes_on_while_a_coroutine_is_held(lane: Lane) -> None:
    history = play(lane, "spawn A to coroutines; until A held; advance 10s")
    assert [note for _who, _id, note in written(history)] == [0, 1, 2]
    assert "held at held#1 before" in play_state(lane)
    done = play(lane, "spawn A to coroutines; until A held; advance 10s; run A")
    assert value(done) == repr(["ticked", "held"])


def play_state(lane: Lane) -> str:
    return state(play(lane, "spawn A to coroutines; until A held"))


def test_held_coroutines_do_not_use_up_the_loops_pool(lane: Lane) -> None:
    history = play(lane, "spawn A to many_held; hold A held; run A")
    assert state(history).count("held at held#") == 40
    assert any("function#1 after" in point for point in points(history))
    history = play(lane, "spawn A to many_held; hold A held; run A; run A")
    assert value(history) == "41"


def test_an_awaited_effect_can_be_held_while_the_loop_ticks(lane: Lane) -> None:
    history = play(lane, "spawn A to awaited_effect; until A effect:charge before; advance 3s")
    assert written(history) == [("A#1", "b", "tick")]
    history = play(lane, "spawn A to awaited_effect; until A effect:charge after; run A")
    assert "rcpt-A#1" in value(history)
