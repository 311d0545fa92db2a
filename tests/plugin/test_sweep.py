"""`--leasecheck-sweep`: every point times every fault as ordinary items, on the real engine."""

import pytest

# Fenced by its token, and the same with the fence left out of its last statement.
QUEUES = """
import sqlite3
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject

class Queue(Subject):
    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done"},
        lease=Lease(owner="owner", expires_at="expires_ms", token="fence", unit="ms"),
    )
    clock = "given"
    last = "UPDATE jobs SET status='done', owner=NULL WHERE id=? AND fence=? AND status='running'"

    def prepare(self, db):
        with sqlite3.connect(db) as con:
            con.execute("CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT DEFAULT 'queued',"
                        " owner TEXT, expires_ms INTEGER, fence INTEGER DEFAULT 0)")
        con.close()

    def submit(self, db, run_id):
        with sqlite3.connect(db) as con:
            con.execute("INSERT INTO jobs (id) VALUES (?)", (run_id,))
        con.close()

    def work(self, worker):
        con = sqlite3.connect(worker.db, isolation_level=None)
        now = worker.clock.now_ms()
        row = con.execute(
            "UPDATE jobs SET status='running', owner=?, expires_ms=?, fence=fence+1 WHERE id IN"
            " (SELECT id FROM jobs WHERE status='queued' OR status='running' AND expires_ms < ?"
            "  LIMIT 1) RETURNING id, fence", (worker.name, now + 30_000, now)).fetchone()
        if row is None:
            return "nothing to do"
        worker.effect("charge", run_id=row[0], token=row[1], key=row[0])
        changed = con.execute(self.last, row[:self.last.count("?")]).rowcount
        con.close()
        return "done" if changed else "lost"

class Unfenced(Queue):
    last = "UPDATE jobs SET status='done', owner=NULL WHERE id=?"

class Broken(Queue):
    def work(self, worker):
        import os
        os._exit(3)

class Locking(Queue):
    def work(self, worker):
        con = sqlite3.connect(worker.db, isolation_level=None)
        con.execute("BEGIN IMMEDIATE")
        con.execute("SELECT count(*) FROM jobs")
        con.execute("COMMIT")
        con.close()
        return super().work(worker)
"""


@pytest.fixture
def consumer(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(queues=QUEUES)
    return pytester


def leasecheck(consumer: pytest.Pytester, *args: str, subject: str = "Queue") -> pytest.RunResult:
    flags = ["--leasecheck", f"--leasecheck-subject=queues:{subject}"]
    return consumer.runpytest_subprocess(*flags, *args)


def ids(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("leasecheck/sweep::")]


def test_cheap_part_is_the_default_and_full_is_all_of_it(consumer: pytest.Pytester) -> None:
    look = ("--collect-only", "-q", "leasecheck")
    cheap = ids(leasecheck(consumer, *look))
    assert "leasecheck/sweep::kill[effect:charge#1-before]" in cheap
    families = {name.split("::")[1].split("[")[0] for name in cheap}
    assert families == {"kill", "stale", "stale-while-held"}
    full = ids(leasecheck(consumer, *look, "--leasecheck-sweep=full"))
    assert set(cheap) < set(full)
    assert "leasecheck/sweep::twice[effect:charge#1-before]" in full
    assert "leasecheck/sweep::lapse[sql:UPDATE-jobs#1-after]" in full
    assert ids(leasecheck(consumer, *look, "--leasecheck-sweep=off")) == []


def test_ini_line_does_the_same(consumer: pytest.Pytester) -> None:
    consumer.makeini("[pytest]\nleasecheck_sweep = off\n")
    assert ids(leasecheck(consumer, "--collect-only", "-q", "leasecheck")) == []
    consumer.makeini("[pytest]\nleasecheck_sweep = most\n")
    result = leasecheck(consumer, "leasecheck/sweep")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*leasecheck_sweep is 'most'; it is one of: cheap, full, off")


def test_workers_of_xdist_agree_and_coverage_is_told(consumer: pytest.Pytester) -> None:
    result = leasecheck(consumer, "leasecheck/sweep", "-n", "2")
    outcomes = result.parseoutcomes()
    # A second worker can't come to stand where the first one stands with the write lock.
    assert set(outcomes) == {"passed", "skipped"}, outcomes
    never = outcomes["skipped"]
    count = outcomes["passed"] + never
    result.stdout.fnmatch_lines(
        [
            f"swept         {count} scripts: {count // 3} points x 3 faults; {never} never*",
            "              * points on the map, * of them known by their SQL alone;*",
        ]
    )


def test_one_script_is_selected_by_id_and_fails_where_the_fence_is_missing(
    consumer: pytest.Pytester,
) -> None:
    one = "leasecheck/sweep::stale-while-held[effect:charge#1-before]"
    leasecheck(consumer, one).assert_outcomes(passed=1)
    result = leasecheck(consumer, one, subject="Unfenced")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["V1 *A#1*", "script", "    until A effect:charge#1 before"])
    result.stdout.fnmatch_lines("replay    pytest --leasecheck *--leasecheck-replay=*script.txt*")
    again = leasecheck(consumer, "--lf", subject="Unfenced")
    again.assert_outcomes(failed=1, deselected=again.parseoutcomes().get("deselected", 0))


def test_unknown_id_is_a_usage_error(consumer: pytest.Pytester) -> None:
    result = leasecheck(consumer, "leasecheck/sweep::kill[nowhere]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = result.stderr.lines[:1]
    start = "ERROR: there is no leasecheck/sweep::kill[nowhere] among "
    assert line.startswith(start)
    count, _, rest = line.removeprefix(start).partition(" items of leasecheck/sweep; the nearest")
    assert int(count) > 10
    assert rest.count("leasecheck/sweep::kill[") == rest.count("leasecheck/sweep::") == 3
    assert "`pytest --leasecheck leasecheck/sweep --collect-only -q` lists them all" in line
    assert line.endswith("--leasecheck-sweep=full plays more points and faults")


def test_group_that_was_not_asked_for_says_how(consumer: pytest.Pytester) -> None:
    result = leasecheck(consumer, "leasecheck/explore::races")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "ERROR: there is no leasecheck/explore::races among * groups; the nearest are: *"
        " leasecheck/explore needs --leasecheck-explore=N"
    )


def test_subject_that_does_nothing_right_gets_one_item_that_tells(
    consumer: pytest.Pytester,
) -> None:
    result = leasecheck(consumer, "leasecheck/sweep", subject="Broken")
    assert "passed" not in result.parseoutcomes()


def test_point_that_is_not_reached_again_is_skipped_and_counted(consumer: pytest.Pytester) -> None:
    # A stands there with the write lock in its hands, so B can't come to hold anything.
    held = "leasecheck/sweep::stale-while-held[sql:SELECT-jobs#1-after]"
    result = leasecheck(consumer, held, "--leasecheck-sweep=full", "-rs", subject="Locking")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["swept * 1 never reached, *", "SKIPPED * never reached: worker 'B#1' never reached *"]
    )
