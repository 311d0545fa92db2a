"""Workers are forked ahead by a process of the lane's; what becomes of that process matters not."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from endings import Watch, descendants

from pytest_leasecheck.testkit.history import Noted, Spawned
from pytest_leasecheck.testkit.lane import Lane, Played
from pytest_leasecheck.testkit.script import parse_script

ONE = parse_script("submit r1\nspawn A\nrun A")
SMALL = "subjects_hostile:Small"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()[1])


def at_rest(lane: Lane) -> list[int]:
    """Guard, lane, observer, nursery, and who waits there: a script's end hears of all of them."""
    lane.play(parse_script(""), name="nothing")
    return descendants(lane._process.pid)


def pids(played: Played) -> list[int]:
    return [event.pid for event in played.history if isinstance(event, Spawned)]


def shape(played: Played) -> list[object]:
    """Its history without the numbers of processes."""
    return [repr(event) for event in played.history if not isinstance(event, Spawned)]


def test_who_waits_becomes_a_worker_and_another_one_waits(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of(SMALL)
    *_rest, one, other = before = at_rest(lane)
    assert len(before) == 6
    played = lane.play(ONE, name="x")
    assert played.error is None
    assert pids(played) == [one, other]  # the operator's process first, then A's
    after = at_rest(lane)
    assert after[:4] == before[:4]
    assert len(after) == 6
    assert not set(after[4:]) & set(before[4:])


def test_a_worker_is_the_lanes_own_child(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of(SMALL)
    stage = lane.open_stage(name="x")
    stage.submit("r1")
    stage.spawn("A").run_until("inside before")
    *_operators, spawned = (event for event in stage.history() if isinstance(event, Spawned))
    assert parent_of(spawned.pid) == descendants(lane._process.pid)[1]


def test_forked_ahead_or_not_the_history_is_the_same(lane_of: Callable[..., Lane]) -> None:
    script = parse_script(
        "submit r1\nspawn A\nuntil A inside before\nstop A\nexpire\nspawn B\nrun B\ncont A\nrun A\n"
        "restart A\nrun A\nkill A"
    )
    ahead, alone = (lane_of(SMALL, forks_ahead=one).play(script, name="x") for one in (True, False))
    assert ahead.error is None
    assert shape(ahead) == shape(alone)


def test_a_lane_that_forks_nobody_ahead_has_nobody_waiting(lane_of: Callable[..., Lane]) -> None:
    assert len(at_rest(lane_of(SMALL, forks_ahead=False))) == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_without_its_nursery_the_lane_forks_for_itself(
    number: signal.Signals, lane_of: Callable[..., Lane]
) -> None:
    lane = lane_of(SMALL, deadline_s=0.5)
    _guard, _lane, _observer, nursery, *_waiting = at_rest(lane)
    os.kill(nursery, number)
    for name in ("first", "second", "third"):
        played = lane.play(ONE, name=name)
        assert played.error is None
        assert not [event for event in played.history if isinstance(event, Noted)]
    assert len(descendants(lane._process.pid)) == 3
    assert not Path(f"/proc/{nursery}").exists()


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_who_was_on_the_way_is_not_told_as_left_by_workers(
    clock: str, lane_of: Callable[..., Lane]
) -> None:
    """The nursery is stopped just when one that is nobody yet has become the lane's child."""
    lane = lane_of(SMALL, deadline_s=0.5, clock=clock)
    _guard, lane_pid, _observer, nursery, *waiting = at_rest(lane)
    many = parse_script("spawn A\n" + "restart A\n" * 40)
    children = Path(f"/proc/{lane_pid}/task/{lane_pid}/children")
    stopper = threading.Thread(target=_stop_after_next, args=(nursery, children, len(waiting)))
    stopper.start()
    played = lane.play(many, name="x")
    stopper.join()
    assert played.error is None
    assert not [event for event in played.history if isinstance(event, Noted)]
    assert len(at_rest(lane)) == 3


def _stop_after_next(nursery: int, children: Path, waiting: int) -> None:
    """Stop the nursery as soon as a process of its making ends: others are on the way."""
    while len(children.read_text().split()) < waiting + 3:
        pass
    os.kill(nursery, signal.SIGSTOP)


def test_who_was_killed_while_it_waited_is_passed_over(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of(SMALL)
    *_rest, one, other = at_rest(lane)
    watch = Watch([one])
    os.kill(one, signal.SIGKILL)
    watch.wait()
    played = lane.play(ONE, name="x")
    assert played.error is None
    assert other in pids(played)
    assert one not in pids(played)
    assert len(at_rest(lane)) == 6


def test_what_workers_left_is_told_from_who_waits(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of("subjects_hostile:Hostile")
    before = at_rest(lane)
    script = parse_script("spawn A to leave_children\nuntil A has children before")
    played = lane.play(script, name="x")
    assert played.error is None
    (told,) = [event.text for event in played.history if isinstance(event, Noted)]
    assert "left behind" in told
    assert len(at_rest(lane)) == len(before)


@pytest.mark.parametrize("who", ["guard", "lane", "nursery and lane", "guard and lane"])
def test_nobody_waits_for_a_lane_that_is_gone(who: str, lane_of: Callable[..., Lane]) -> None:
    lane = lane_of(SMALL)
    guard_pid, lane_pid, _observer, nursery_pid, *_waiting = everyone = at_rest(lane)
    watch = Watch(everyone)
    numbers = {"guard": guard_pid, "lane": lane_pid, "nursery": nursery_pid}
    for name in who.split(" and "):
        os.kill(numbers[name], signal.SIGKILL)
    _took_s, left = watch.wait()
    assert left == []
