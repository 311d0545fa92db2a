"""What the subject raises is told in words, wherever a test module calls the kit."""

import pytest

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
