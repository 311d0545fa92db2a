"""`LeaseConformance`: the suite under ordinary ids, with the flag and without."""

import pytest

from pytest_leasecheck.conformance import LeaseConformance
from pytest_leasecheck.suite import own_groups
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject

FILE = """
import mine
from pytest_leasecheck.conformance import LeaseConformance

class TestMine(LeaseConformance):
    subject = mine.{subject}
{more}
"""


def test_every_scenario_is_a_method(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(test_mine=FILE.format(subject="Reconciles", more=""))
    result = consumer.runpytest_subprocess("-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["test_mine.py::TestMine::test_finished PASSED*", "subject       mine:Reconciles"]
    )


def test_failure_reads_like_the_suites(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(test_mine=FILE.format(subject="Stale", more=""))
    result = consumer.runpytest_subprocess("-k", "finished")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(["V1 a stale write landed: *", "script", "timeline", "replay *"])
    assert "conformance.py" not in result.stdout.str()


def test_one_scenario_can_be_left_out(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(test_mine=FILE.format(subject="Holds", more="    test_finished = None"))
    consumer.runpytest_subprocess().assert_outcomes(passed=1, skipped=1)


def test_class_without_a_subject_is_told_so(consumer: pytest.Pytester) -> None:
    text = FILE.format(subject="Holds", more="").replace("subject = mine.Holds", "pass")
    consumer.makepyfile(test_mine=text)
    result = consumer.runpytest_subprocess("-k", "finished")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines("TestMine has no subject; set it to yours")


def methods(kind: type) -> set[str]:
    return {name for name in dir(kind) if name.startswith("test_") and getattr(kind, name)}


def test_variants_that_a_subject_lacks_are_left_out() -> None:
    class Plain(Subject):
        runs = RunTable("jobs", id="id", lease=Lease(owner="owner"))

    class TestPlain(LeaseConformance):
        subject = Plain

    scenarios = [one for group in own_groups() for one in group.scenarios]
    assert len(methods(LeaseConformance)) == len(scenarios)
    assert len(methods(TestPlain)) == sum(not one.variant for one in scenarios)
    assert "test_eight_steps" in methods(TestPlain)
