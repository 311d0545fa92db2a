"""Waiting takes no time: the stage's clock ends each kind of wait, in deadline order."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playing import failure, lane_for, of, play, points, state, value, written
from subjects_time import Patched, Waiting, _Waits

from pytest_leasecheck.testkit.clock import START_NS
from pytest_leasecheck.testkit.history import ClockRead, Commit, Passed, Returned
from pytest_leasecheck.testkit.lane import Lane

JOBS = sorted(name for name in vars(_Waits) if not name.startswith("_"))


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_for(Waiting, tmp_path_factory.mktemp("given")) as lane:
        yield lane


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_for(Patched, tmp_path_factory.mktemp("patched")) as lane:
        yield lane


@pytest.fixture(params=["given", "patched"])
def lane(request: pytest.FixtureRequest) -> Lane:
    found: Lane = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("job", JOBS)
def test_a_wait_ends_when_the_clock_says_so_and_not_before(lane: Lane, job: str) -> None:
    start = time.perf_counter()
    history = play(lane, f"spawn A to {job}; run A; advance 9999ms")
    assert "waits" in state(history)
    assert not of(Returned, history)
    history = play(lane, f"spawn A to {job}; run A; advance 9999ms; advance 1ms")
    assert [(event.value, event.error) for event in of(Returned, history)] == [("False", "")]
    assert time.perf_counter() - start < 5


def test_timers_fire_in_the_order_of_their_deadlines(given: Lane) -> None:
    history = play(given, "spawn A to in_order; run A; advance 10s")
    assert [note for _who, _id, note in written(history)] == ["A3", "A5", "A7"]
    moments = [(commit.at_ns - START_NS) / 1e9 for commit in of(Commit, history)]
    assert moments == [3, 5, 7]


def test_timers_of_several_workers_fire_in_one_order(given: Lane) -> None:
    history = play(
        given, "spawn A to in_order; spawn B to one_late; run A; advance 1s; run B; advance 10s"
    )
    assert [note for _who, _id, note in written(history)] == ["A3", "A5", "B4", "A7"]


def test_a_stopped_workers_timers_rest_and_are_made_up_for(given: Lane) -> None:
    history = play(given, "spawn A to in_order; run A; stop A; advance 10s")
    assert not written(history)
    history = play(given, "spawn A to in_order; run A; stop A; advance 10s; cont A; run A")
    assert [note for _who, _id, note in written(history)] == ["A3", "A5", "A7"]
    assert state(history) == "returned"


def test_expiry_fires_no_timer(given: Lane) -> None:
    history = play(given, "spawn A to one_late; run A; expire")
    assert not written(history)


def test_a_beat_fires_the_heartbeat_alone(given: Lane) -> None:
    history = play(given, "spawn A to slow_beat; until A body; beat A; beat A")
    assert [note for _who, _id, note in written(history)] == ["beat1", "beat2"]
    held = [event.point for event in of(Passed, history) if event.held]
    assert held == ["body"]


def test_a_held_heartbeat_stays_held_while_time_passes(given: Lane) -> None:
    history = play(given, "spawn A to slow_beat; hold A beat; until A body; advance 20s")
    assert points(history, prefix="beat") == ["beat#1 before"]
    assert not written(history)


def test_a_real_lock_timeout_is_real_and_ends(given: Lane) -> None:
    assert value(play(given, "spawn A to locks; run A")) == "False"


def test_a_loop_with_nothing_to_do_is_at_rest(given: Lane) -> None:
    history = play(given, "spawn A to idle_loop; run A")
    assert state(history) == "idle in its event loop"


def test_the_write_lock_is_waited_for_inside_sqlite(given: Lane) -> None:
    history = play(given, "spawn A to holds; until A holding; spawn B to busy; run B; run A")
    assert state(history, "B#1") == "waits for the write lock"
    assert [who for who, _id, _note in written(history)] == ["A#1"]
    history = play(given, "spawn A to holds; until A holding; spawn B to busy; run B; run A; run B")
    assert written(history) == [("A#1", "b", "holder"), ("B#1", "a", "got it")]
    assert state(history, "B#1") == "returned"


def test_a_waiter_does_not_slip_through_when_the_lock_is_let_go(given: Lane) -> None:
    history = play(given, "spawn A to holds; until A holding; spawn B to busy; run B; until A let*")
    assert written(history) == [("A#1", "b", "holder")]


def test_a_busy_timeout_runs_out_in_stage_time(given: Lane) -> None:
    start = time.perf_counter()
    script = "lock; spawn B to busy; run B; advance {}"
    assert not of(Returned, play(given, script.format("6s")))
    history = play(given, script.format("8s"))
    assert "database is locked" in failure(history, "B#1")
    assert time.perf_counter() - start < 5


def test_a_lock_that_is_let_go_in_time_is_taken(given: Lane) -> None:
    history = play(given, "lock; spawn B to busy; run B; advance 3s; unlock; advance 1s")
    assert written(history) == [("B#1", "a", "got it")]
    assert [round((commit.at_ns - START_NS) / 1e9) for commit in of(Commit, history)] == [3]


def test_a_thread_gets_the_lock_that_its_own_process_lets_go(given: Lane) -> None:
    history = play(given, "spawn A to own_two_writers; until A holding; run A")
    assert [note for _who, _id, note in written(history)] == ["first", "second"]
    assert state(history) == "returned"


def test_a_thread_tries_again_within_the_move_that_let_the_lock_go(given: Lane) -> None:
    history = play(given, "spawn A to late_own_writer; run A; expire; run A")
    assert [note for _who, _id, note in written(history)] == ["first", "second"]
    assert state(history) == "returned"


def test_every_clock_of_a_patched_process_shows_the_stages_time(patched: Lane) -> None:
    assert value(play(patched, "advance 90s; spawn A to readings; run A")) == "[90.0]"
    assert value(play(patched, "spawn A to days; run A")) == "('2030-01-01', '2030-01-01')"


def test_a_skewed_worker_sees_its_own_time_everywhere(patched: Lane) -> None:
    history = play(patched, "spawn A to readings; skew A +31s; run A")
    assert value(history) == "[31.0]"
    assert {read.value_ns for read in of(ClockRead, history)} == {START_NS + 31 * 10**9}


def test_monotonic_time_follows_too(patched: Lane) -> None:
    history = play(patched, "spawn A to monotonics; run A; advance 10s")
    assert value(history) == "[10.0, 10.0, 10.0]"


def test_patched_datetimes_are_ordinary_ones(patched: Lane) -> None:
    history = play(patched, "spawn A to kinds; run A")
    assert value(history) == "(True, True, True, True, True, 2030, True, 2)"


def test_what_a_worker_last_read_is_known_and_what_only_sqlites_trace_read_is_not(
    patched: Lane,
) -> None:
    history = play(
        patched, "spawn A to reads_then_writes; until A sql:UPDATE jobs; advance 5s; run A"
    )
    assert [read.value_ns for read in of(ClockRead, history, "A#1")] == [START_NS]
    history = play(patched, "advance 5s; spawn A to sqlites_now; run A")
    (read,) = of(ClockRead, history, "A#1")
    (commit,) = of(Commit, history)
    assert read.value_ns == START_NS + 5 * 10**9
    assert read.n < commit.n
