"""No room for another process or descriptor: a lane does without, or says so in words."""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from endings import descendants

from pytest_leasecheck.testkit.errors import LaneDied
from pytest_leasecheck.testkit.history import Returned
from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.script import parse_script

PLAIN = parse_script("submit r1\nspawn A\nrun A")


def test_a_lane_without_room_for_a_nursery_does_without(
    lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORT_DOES", "no room")
    sys.modules.pop("subjects_importing", None)
    lane = lane_of("subjects_importing:Imported")
    assert len(descendants(lane._process.pid)) == 3
    played = lane.play(PLAIN, name="x")
    assert played.error is None
    assert "'done'" in [one.value for one in played.history if isinstance(one, Returned)]


def test_a_lane_without_room_for_a_worker_says_so_in_words(
    lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORT_DOES", "no room at all")
    sys.modules.pop("subjects_importing", None)
    lane = lane_of("subjects_importing:Imported")
    with pytest.raises(LaneDied, match=r"\[Errno 11\].*; `ulimit -u`") as told:
        lane.play(PLAIN, name="x")
    assert "Traceback" not in str(told.value)


def test_a_lane_that_runs_out_of_descriptors_says_so_in_words(
    lane_of: Callable[..., Lane],
) -> None:
    lane = lane_of("subjects_hostile:Small")
    many = parse_script("\n".join(f"spawn {label}" for label in "ABCDEFGH"))
    lane_pid = descendants(lane._process.pid)[1]
    taken = set(map(int, os.listdir(f"/proc/{lane_pid}/fd")))
    most = sorted(set(range(1000)) - taken)[7]  # so many are free
    _soft, hard = resource.prlimit(lane_pid, resource.RLIMIT_NOFILE)
    resource.prlimit(lane_pid, resource.RLIMIT_NOFILE, (most, hard))
    with pytest.raises(LaneDied, match=r"\[Errno 24\].*`ulimit -n`") as told:
        lane.play(many, name="x")
    assert "Traceback" not in str(told.value)


def test_without_room_for_the_lane_itself_that_is_said_in_words(
    lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none_left(_self: object, _process: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("multiprocess.context.SpawnProcess._Popen", none_left)
    with pytest.raises(LaneDied, match=r"\[Errno 11\].*; `ulimit -u`"):
        lane_of("subjects_hostile:Small", places=(str(tmp_path),))
    assert list(tmp_path.glob("leasecheck-*")) == []
