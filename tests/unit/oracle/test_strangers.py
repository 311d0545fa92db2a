"""What other people's queues do that our own runtime doesn't: found on them, kept here by hand."""

import time
from dataclasses import replace

import pytest

from pytest_leasecheck.testkit.history import Change
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.rows import read_time
from pytest_leasecheck.testkit.subject import Lease

from .builder import PLAIN, Story

NO_FENCE = replace(PLAIN, claims=("lib:claim",), reapers=("lib:reap",))


def reaped_then_claimed():
    """B puts the run back in one commit, and claims it in the next."""
    s = Story(NO_FENCE)
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.expire()
    s.passed("B#1", "call:lib:reap")
    s.release("B#1")
    s.passed("B#1", "call:lib:reap", "after")
    s.claim("B#1", token=2)
    return s


def test_a_take_over_in_two_commits_is_one():
    s = reaped_then_claimed()
    assert s.kinds()[-2:] == ["B#1 reap", "B#1 acquire"]
    assert s.judge(requires=("take-over by B",), drained=False).missing == ()


@pytest.mark.parametrize("who", ["A#1", "C#1"])
def test_a_take_over_is_by_who_claims_not_by_who_puts_back(who):
    s = Story(NO_FENCE)
    s.spawn("A#1", "B#1", "C#1")
    s.submit()
    s.claim("A#1")
    s.expire()
    s.release("B#1")
    s.claim(who, token=2)
    missing = s.judge(requires=("take-over by B", "take-over by C"), drained=False).missing
    assert missing == ("take-over by B", "take-over by C") if who == "A#1" else ("take-over by B",)


@pytest.mark.parametrize("nobody", ["NULL", " NULL", "  null", "''", " ''"])
def test_a_statement_that_clears_the_owner_is_no_claim(nobody):
    s = reaped_then_claimed()
    sql = f"UPDATE runs SET status = 'done', owner ={nobody} WHERE id = 'r1'"
    s.commit("A#1", s.set("runs", "r1", status="done", owner=None, expires=None), sql=(sql,))
    found = [(one.who, one.what, one.outcome) for one in s.judge(drained=False).attempts]
    assert found == [("A#1", "UPDATE runs", "landed")]


def test_an_effect_of_a_robbed_holder_is_nothing_that_it_did_wrong():
    s = reaped_then_claimed()
    s.finish("A#1")
    s.effect("B#1")
    verdict = s.judge(drained=False)
    assert {finding.culprit for finding in verdict.findings} == {"A#1"}
    assert [finding.title for finding in verdict.findings] == ["a stale write landed"]


def test_an_effect_after_a_reap_and_a_claim_is_stale():
    s = reaped_then_claimed()
    s.effect("A#1")
    (note,) = s.judge(drained=False).findings
    assert (note.culprit, note.victims) == ("A#1", ("B#1",))


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    read_time.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()
    read_time.cache_clear()


@pytest.mark.usefixtures("berlin")
def test_local_times_without_a_zone():
    utc = read_time("2024-07-01T10:00:00.5", "iso")
    assert read_time("2024-07-01T12:00:00.5", "local iso") == utc
    assert read_time("2024-07-01T10:00:00.5+00:00", "local iso") == utc
    winter = read_time("2024-01-01T11:00:00", "local iso")
    assert winter == read_time("2024-01-01T10:00:00", "iso")


#: A lease in a table of its own, whose key is not the run's id.
APART = replace(
    PLAIN,
    runs=replace(
        PLAIN.runs,
        lease=Lease(table="leases", run="run_id", owner="owner", token="token", unit="s"),
    ),
)


def lost_apart():
    s = Story(APART)
    s.spawn("A#1", "B#1")
    s.submit()
    key = ("it's", 7)
    row = {"topic": key[0], "position": key[1], "run_id": "r1", "owner": None, "token": 0}
    s.given(Change("leases", key, None, row))
    for who, token in (("A#1", 1), ("B#1", 2)):
        s.commit(who, s.set("leases", key, owner=who, token=token))
    return s


@pytest.mark.parametrize(
    ("where", "seen"),
    [
        ("topic = 'it''s' AND position = 7", True),
        ("\"topic\"='it''s' AND leases.position IS 7", True),
        ("topic = 'it''s' AND position = 70", False),
        ("topic = 'its' AND position = 7", False),
        ("position = 7", False),
        ("7 = 7 AND 'it''s' = 'it''s'", False),
    ],
)
def test_a_lease_may_be_named_by_the_key_of_its_row(where, seen):
    s = lost_apart()
    s.tries("A#1", f"SELECT owner FROM leases WHERE {where}", rows=None)
    found = [(one.who, one.what) for one in s.judge(drained=False).attempts]
    assert found == ([("A#1", "SELECT leases")] if seen else [])


LOOK = "SELECT owner, token FROM leases WHERE run_id = 'r1'"
CLEAN_UP = "UPDATE leases SET owner = NULL WHERE run_id = 'r1' AND token = 1"
LOOKED = ("SELECT leases", "gave up after reading")
REFUSED = ("UPDATE leases", "changed nothing")


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ("txn:commit", [LOOKED, REFUSED]),
        ("rollback", [LOOKED, REFUSED]),
        ("", [REFUSED]),
        ("txn:commit of another thread", [REFUSED]),
    ],
)
def test_a_transaction_that_only_looked_is_an_attempt_whatever_follows(end, found):
    s = lost_apart()
    s.tries("A#1", LOOK, rows=None, rolls_back=end == "rollback")
    if end.startswith("txn:commit"):
        s.passed("A#1", "txn:commit", "after", thread="other" if "another" in end else "main")
    s.tries("A#1", CLEAN_UP)
    attempts = s.judge(drained=False).attempts
    assert [(one.what, one.outcome) for one in attempts] == found


def test_a_worker_that_looks_again_and_again_is_told_once():
    s = lost_apart()
    for _ in range(3):
        last = s.tries("A#1", LOOK, rows=None, rolls_back=True)
    (one,) = s.judge(drained=False).attempts
    assert one.n == last


def test_a_moment_may_require_the_guard_that_refused():
    s = lost_apart()
    s.tries("A#1", CLEAN_UP)
    schema = (
        "CREATE TABLE leases (topic TEXT, position INT, run_id TEXT, owner TEXT, token INT,"
        " PRIMARY KEY (topic, position))",
        "CREATE TABLE events (n INTEGER PRIMARY KEY, run_id TEXT)",
    )
    history = s.history(schema=schema)
    moments = ("stale attempt refused by token by A", "stale attempt refused by owner by A")
    verdict = judge(history, requires=moments, drained=False, declaration=APART)
    assert verdict.missing == moments[1:]


def test_a_robbed_holder_makes_no_stale_attempt():
    s = reaped_then_claimed()
    s.finish("A#1")
    s.tries("B#1", "UPDATE runs SET result = 'b' WHERE id = 'r1'")
    s.effect("B#1")
    assert [one.who for one in s.judge(drained=False).attempts] == ["A#1"]
