"""Coverage in workers: saved at an orderly end, lost with a kill. A stand-in for it takes note."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.script import parse_script

#: As much of coverage as is asked for; it writes who saved.
COVERAGE = """
import os

class Coverage:
    @classmethod
    def current(cls):
        return cls()

    def stop(self):
        pass

    def save(self):
        with open(os.environ["SAVED"], "a") as saved:
            saved.write(f"{os.getpid()}\\n")
"""
SUBJECT = """
import coverage
from subjects_hostile import Small as Measured
"""


@pytest.fixture
def measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lane_of: Callable[..., Lane]
) -> Callable[..., Lane]:
    for name in ("coverage", "measured_subject"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "coverage.py").write_text(COVERAGE)
    (folder / "measured_subject.py").write_text(SUBJECT)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("SAVED", str(tmp_path / "saved"))

    def start(**options: object) -> Lane:
        lane = lane_of("measured_subject:Measured", **options)
        for name in ("coverage", "measured_subject"):  # ours to forget, not the lane's
            sys.modules.pop(name, None)
        (tmp_path / "saved").unlink()  # of the children that imported and prepared
        return lane

    return start


@pytest.mark.parametrize("workers", ["fresh", "warm"])
def test_who_ends_in_order_saves_and_who_is_killed_does_not(
    workers: str, measured: Callable[..., Lane], tmp_path: Path
) -> None:
    lane = measured(workers=workers)
    script = "submit r1\nspawn A\nuntil A inside before\nspawn B\nspawn C\nrun B\nrun C\nkill C"
    played = lane.play(parse_script(script), name="x")
    assert played.error is None
    pids = {event.who: event.pid for event in played.history if hasattr(event, "pid")}
    saved = set(map(int, (tmp_path / "saved").read_text().split()))
    assert saved == {pids["operator#1"], pids["B#1"]}
    ends = [event.how for event in played.history if type(event).__name__ == "Ended"]
    assert ends == ["returned", "signal 9", "end of script", "end of script"]


def test_a_worker_that_does_not_end_is_not_waited_for_long(
    measured: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped, or held, when its script ends: killed as ever."""
    lane = measured()
    script = "submit r1\nspawn A\nuntil A inside before\nstop A\nspawn B"
    assert lane.play(parse_script(script), name="x").error is None
