"""`--leasecheck-doctor`, `--leasecheck-points`, `--leasecheck-explain`: printed, nothing run."""

import pytest

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
    result.stdout.fnmatch_lines(["points of mine:Holds*", "  effect:charge#1 before"])
    assert "passed in" not in result.stdout.str()


def test_plain_run_is_explained(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--leasecheck-explain", SUBJECT)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["a plain run of mine:Holds*", "  *> submit run-1", "  *commit: jobs*", "tenures", "*V8*"]
    )


@pytest.mark.parametrize("flag", ["--leasecheck-points", "--leasecheck-explain"])
def test_without_a_subject_it_is_a_usage_error(consumer: pytest.Pytester, flag: str) -> None:
    result = consumer.runpytest_subprocess(flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: leasecheck needs to know what to test. *")
