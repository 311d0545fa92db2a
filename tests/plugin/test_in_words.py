"""What the subject raises is told in words, wherever a test module calls the kit."""

import runpy
from pathlib import Path

import pytest

import pytest_leasecheck

MODULE = """
import sqlite3
from pytest_leasecheck.conformance import LeaseConformance
from pytest_leasecheck.testkit.explore import races
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject
import pytest

class Unprepared(Subject):
    runs = RunTable("jobs", id="id", gone=True, lease=Lease(owner="owner"))

    def prepare(self, db):
        raise OSError("no disk today")

class TestConformance(LeaseConformance):
    subject = Unprepared

@pytest.mark.leasecheck(subject=Unprepared)
def test_stage(stage):
    pass

@pytest.mark.leasecheck(subject=Unprepared)
def test_scenario(leasecheck_scenario):
    leasecheck_scenario("classic::eight_steps")

TestRaces = races(Unprepared)
"""


def test_no_frame_of_the_kit_is_shown_in_a_consumers_module(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MODULE)
    result = pytester.runpytest_subprocess(
        "-k", "eight_steps or stage or scenario or runTest", "-p", "no:cacheprovider"
    )
    result.assert_outcomes(failed=3, errors=1)
    said = result.stdout.str()
    told = "the subject's prepare() raised OSError: no disk today (test_no_frame_of_the_kit_is_sh"
    assert said.count(told) >= 4
    for ours in ("lane.py", "exploring.py", "conformance.py", "subject_source.py", "Traceback",
                 "During handling"):  # fmt: skip
        assert ours not in said


UNPLAYED = """
from contextlib import closing
import sqlite3
from hypothesis import settings
from pytest_leasecheck.testkit.explore import Races, races
from queues import Queue

class Unsubmitted(Queue):
    def submit(self, db, run_id):
        raise OSError("no queue today")

class Exits(Races):
    subject = Queue

    def also(self, history, verdict):
        raise SystemExit("enough")

few = settings(max_examples=2)
TestNoModule = races("no_such_module:Queue")
TestNoName = races("queues:Nobody")
TestBrokenModule = races("broken:Queue")
TestUnsubmitted = races(Unsubmitted)
TestHarmless = races(Queue, workers="warm", most_workers=1)
TestHarmless.settings = few
TestExits = Exits.TestCase
TestExits.settings = few
"""
TOLD = (
    "*the subject 'no_such_module:Queue': no module named 'no_such_module'*",
    "*the subject 'queues:Nobody': module 'queues' has no 'Nobody'*",
    "*the subject 'broken:Queue': broken.py:1: importing it raised ZeroDivisionError*",
    "*the subject's submit() raised OSError: no queue today (test_*",
    "*inconclusive, so nothing is proven: *",
    "*own also raised SystemExit: enough (test_*",
)


def test_no_frame_of_the_kit_is_shown_of_a_search(pytester: pytest.Pytester) -> None:
    queues = runpy.run_path(str(Path(__file__).with_name("test_sweep.py")))["QUEUES"]
    pytester.makepyfile(UNPLAYED, queues=queues, broken="1 / 0")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=len(TOLD))
    result.stdout.fnmatch_lines(TOLD)
    folder = str(Path(pytest_leasecheck.__file__).parent)
    assert folder not in result.stdout.str()
    for function in ("conclude", "draw_map", "_found", "import_module", "finished"):
        assert f"def {function}(" not in result.stdout.str()
