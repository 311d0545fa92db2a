"""The plugin on the real engine: worker processes, signals, a database, a verdict."""

import json
import xml.etree.ElementTree as ET

import pytest

# A queue in forty lines, and the same with the token left out of its last statement.
QUEUE = """
import sqlite3
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject

class Queue(Subject):
    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done"},
        lease=Lease(owner="owner", expires_at="expires_ms", token="fence", unit="ms"),
    )
    clock = "given"
    lease_ttl_ms = 30_000
    last = "UPDATE jobs SET status='done', owner=NULL WHERE id=? AND fence=? AND status='running'"

    def prepare(self, db):
        with sqlite3.connect(db) as con:
            con.execute("CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT DEFAULT 'queued',"
                        " owner TEXT, expires_ms INTEGER, fence INTEGER DEFAULT 0, note TEXT)")
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
        return "done" if changed else "lost"

class Unfenced(Queue):
    last = "UPDATE jobs SET status='done', owner=NULL WHERE id=?"
"""

TEST = """
import pytest
import queues

@pytest.mark.leasecheck(subject=queues.{subject}, requires="stale attempt by A", holds="V1")
def test_old_worker_wakes(stage):
    stage.submit("r1")
    a = stage.spawn("A")
    a.run_until("effect:charge before")
    a.stop()
    stage.expire()
    b = stage.spawn("B")
    b.run_until("effect:charge before")
    a.cont()
    a.run()
    assert a.state == "returned"
    b.run()
"""


@pytest.fixture
def consumer(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(queues=QUEUE)
    return pytester


def test_reference_runtime_holds_in_an_empty_folder(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(
        "--leasecheck", "--leasecheck-subject=reference", "leasecheck/classic", "-n", "2"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "subject       reference (leasecheck's own runtime)",
            "held          a stale token never writes * scripts, * stale attempts, none landed",
            "held          each interrupted step is reconciled exactly once *",
            "held          no run stays leased * checked",
        ]
    )
    assert not (pytester.path / ".leasecheck").exists()


def test_fenced_queue_refuses_the_old_worker(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(test_it=TEST.format(subject="Queue"))
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            # Its job row is fenced; the provider, as most are, is not.
            "held          a stale token never writes * 1 landed where no fence is claimed *",
            "noted         a stale effect was accepted: test_it.py::test_old_worker_wakes",
        ]
    )


def test_unfenced_queue_is_caught_and_its_evidence_replays(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(test_it=TEST.format(subject="Unfenced"))
    result = consumer.runpytest_subprocess("--junit-xml=out.xml")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "V1 *: *A#1*",
            "script",
            "    until A effect:charge before",
            "!* STALE*",
            "BROKEN        a stale token never writes * V1 in test_it.py::test_old_worker_wakes",
        ]
    )
    (saved,) = (consumer.path / ".leasecheck").rglob("history.jsonl")
    assert json.loads(saved.read_text().splitlines()[0])["subject"] == "Unfenced"
    properties = ET.parse(consumer.path / "out.xml").getroot().iter("property")
    assert ("leasecheck.outcome", "fail") in {(p.get("name"), p.get("value")) for p in properties}
    again = consumer.runpytest_subprocess(
        "--leasecheck", "--leasecheck-subject=queues:Unfenced", f"--leasecheck-replay={saved}"
    )
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines("V1 *: *A#1*")


def test_subject_inside_a_test_file_with_importlib_mode(consumer: pytest.Pytester) -> None:
    text = QUEUE + TEST.replace("import queues\n", "").replace("queues.{subject}", "Queue")
    consumer.makepyfile(test_whole=text)
    consumer.runpytest_subprocess("--import-mode=importlib").assert_outcomes(passed=1)


def test_killed_lane_fails_its_test_and_no_other(consumer: pytest.Pytester) -> None:
    killer = (
        "\ndef test_killed(stage):\n"
        "    import os, signal, pytest_leasecheck.testkit.lane as lane\n"
        "    (one,) = lane._open_lanes\n"
        "    os.kill(one._process.pid, signal.SIGKILL)\n"
        "    stage.submit('r2')\n"
    ).replace("def test_killed", "@pytest.mark.leasecheck(subject=queues.Queue)\ndef test_killed")
    text = TEST.format(subject="Queue")
    consumer.makepyfile(test_a=text, test_b="import queues, pytest\n" + killer, test_c=text)
    result = consumer.runpytest_subprocess()
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] == 2, outcomes
    assert outcomes["failed"] == 1, outcomes
    result.stdout.fnmatch_lines("*the lane process died (signal 9)*")


@pytest.mark.parametrize("flag", ["--leasecheck-points", "--leasecheck-explain"])
def test_plain_run_of_a_queue_is_shown(consumer: pytest.Pytester, flag: str) -> None:
    result = consumer.runpytest_subprocess(flag, "--leasecheck-subject=queues:Queue")
    assert result.ret == 0, result.stdout.str()
    shown = {
        "--leasecheck-points": ["  effect:charge#1", "    txn:commit#2"],
        "--leasecheck-explain": ["*takes the lease of 'run-1'*", "*finishes 'run-1'*", "Tenures:"],
    }
    result.stdout.fnmatch_lines(shown[flag])
