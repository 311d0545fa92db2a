"""`--leasecheck-doctor`, `--leasecheck-points`, `--leasecheck-explain`: printed, nothing run."""

import pytest

from pytest_leasecheck.printing import point_map
from pytest_leasecheck.testkit.history import Passed

THEIRS = """
import sqlite3
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject, Writes


class Theirs(Subject):
    runs = RunTable("jobs", id="id", gone=True, lease=Lease(owner="owner", expires_at="expires_at"))

    def prepare(self, db):
        with sqlite3.connect(db) as connection:
            connection.execute("CREATE TABLE jobs (id, owner, expires_at)")
        connection.close()

"""

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


@pytest.mark.parametrize(
    ("declared", "code", "lines"),
    [
        ("", 0, ["its database   jobs(id, owner, expires_at)", "is declared    every table and *"]),
        ("    runs = RunTable('job', id='id', gone=True, lease=Lease(owner='owner'))\n"
         "    writes = [Writes('jobs', run='idd')]\n", 1,
         ["is declared *WRONGLY: runs.table: there is no table 'job'; did you mean 'jobs'[?] *",
          " *WRONGLY: writes[[]0].run: 'jobs' has no column 'idd'; did you mean 'id'[?] *"]),
        ("    def prepare(self, db): raise OSError('no disk')\n", 1,
         ["lane *does not start: the subject's prepare() raised OSError: no disk (theirs.py:*"]),
    ],
)  # fmt: skip
def test_doctor_holds_the_declaration_against_a_real_database(
    pytester: pytest.Pytester, declared: str, code: int, lines: list[str]
) -> None:
    pytester.makepyfile(theirs=THEIRS + declared)
    result = pytester.runpytest_subprocess(
        "--leasecheck-doctor", "--leasecheck-subject=theirs:Theirs"
    )
    result.stdout.fnmatch_lines(lines)
    assert result.ret == code
    assert "Traceback" not in result.stdout.str()


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


def test_points_of_a_worker_that_passes_none_says_so(pytester: pytest.Pytester) -> None:
    idle = "    def submit(self, db, run_id): pass\n    def work(self, worker): pass\n"
    pytester.makepyfile(theirs=THEIRS + idle)
    result = pytester.runpytest_subprocess(
        "--leasecheck-points", "--leasecheck-subject=theirs:Theirs"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(["points of theirs:Theirs: *", "  none: it made no statement *"])
    assert "hold a worker" not in result.stdout.str()
