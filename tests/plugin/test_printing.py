"""`--leasecheck-doctor`, `--leasecheck-points`, `--leasecheck-explain`: printed, nothing run."""

import pytest

from pytest_leasecheck.printing import point_map
from pytest_leasecheck.testkit.history import Passed

SUBJECT = "--leasecheck-subject=mine:Holds"


def test_doctor_needs_no_subject(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--leasecheck-doctor")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["interpreter *Python *", "SQLite *symbols*", "/dev/shm *", "subject * none named; *"]
    )


def test_doctor_says_what_a_subject_allows(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--leasecheck-doctor", SUBJECT, "--leasecheck-no-hooks")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["subject        mine:Holds", "its import *", "holds *", "does not hold  points at *"]
    )


def test_points_are_listed(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--leasecheck-points", SUBJECT)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["points of mine:Holds*", "  effect:charge#1   (before only)"])
    assert "passed in" not in result.stdout.str()


def test_plain_run_is_explained(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--leasecheck-explain", SUBJECT)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "a plain run of mine:Holds*",
            "*submit run-1*",
            "*jobs*owner 'B' -> 'A'*",
            "Tenures:",
            "*V8*",
        ]
    )


@pytest.mark.parametrize("flag", ["--leasecheck-points", "--leasecheck-explain"])
def test_without_a_subject_it_is_a_usage_error(consumer: pytest.Pytester, flag: str) -> None:
    result = consumer.runpytest_subprocess(flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: leasecheck needs to know what to test. *")


def test_what_is_passed_inside_a_point_is_indented() -> None:
    def passed(n: int, point: str, phase: str) -> Passed:
        return Passed(n, 0, "A#1", "main", point, 1, phase, held=False)

    events = [
        passed(1, "start", "before"),
        passed(2, "effect:charge", "before"),
        passed(3, "txn:begin", "before"),
        passed(4, "txn:begin", "after"),
        passed(5, "effect:charge", "after"),
        passed(6, "txn:commit", "before"),
        passed(7, "txn:commit", "after"),
    ]
    assert list(point_map(events)) == [
        "start#1   (before only)",
        "effect:charge#1",
        "  txn:begin#1",
        "txn:commit#1",
    ]
