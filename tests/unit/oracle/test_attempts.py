"""What a worker whose tenure was over still tried, seen whatever came of it."""

from dataclasses import replace

import pytest

from pytest_leasecheck.testkit.history import Ended
from pytest_leasecheck.testkit.subject import Writes

from .builder import FULL, Story

GUARDED = "UPDATE runs SET result='x' WHERE id='r1' AND owner='A#1' AND token = 1"
LOOK = "SELECT owner, token FROM runs WHERE id='r1'"


def taken_over(declaration=FULL):
    s = Story(declaration)
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.expire()
    s.take_over("B#1")
    return s


def attempts(s):
    return [(one.who, one.what, one.outcome) for one in s.judge(drained=False).attempts]


def test_landed_with_and_without_its_statement():
    s = taken_over()
    s.commit(
        "A#1", s.set("runs", "r1", result="x"), sql=("UPDATE runs SET result='x' WHERE id='r1'",)
    )
    assert attempts(s) == [("A#1", "UPDATE runs", "landed")]
    bare = taken_over()
    bare.commit("A#1", bare.set("runs", "r1", result="x"))
    assert attempts(bare) == [("A#1", "change runs", "landed")]


def test_changed_nothing():
    s = taken_over()
    s.tries("A#1", GUARDED)
    (attempt,) = s.judge(drained=False).attempts
    assert (attempt.outcome, attempt.tenure, attempt.sql) == ("changed nothing", 1, GUARDED)
    assert attempt.guards == ()


def test_rolled_back():
    s = taken_over()
    s.tries("A#1", GUARDED, rows=1, rolls_back=True)
    assert attempts(s) == [("A#1", "UPDATE runs", "rolled back")]


def test_died_before_it_could_commit():
    s = taken_over()
    s.tries("A#1", GUARDED, rows=1)
    s.kill("A#1")
    assert attempts(s) == [("A#1", "UPDATE runs", "died")]
    lives = taken_over()
    lives.tries("A#1", GUARDED, rows=1)
    lives.add(Ended, "A#1", "end of script")
    assert attempts(lives) == [("A#1", "UPDATE runs", "rolled back")]


def test_gave_up_after_reading_is_the_last_look_of_one_that_did_no_more():
    s = taken_over()
    s.tries("A#1", LOOK, rows=None)
    s.tries("A#1", LOOK, rows=None)
    s.returned("A#1")
    assert attempts(s) == [("A#1", "SELECT runs", "gave up after reading")]
    s.tries("A#1", GUARDED)
    assert attempts(s) == [("A#1", "UPDATE runs", "changed nothing")]


@pytest.mark.parametrize(
    ("outcome", "came", "guards"),
    [
        ("accepted", "landed", ()),
        ("refused", "refused by the provider", ("token",)),
        ("replayed", "replayed", ("key",)),
        ("failed", "failed", ()),
    ],
)
def test_effects(outcome, came, guards):
    s = taken_over()
    s.effect("A#1", outcome=outcome, token=1, key="k")
    (attempt,) = s.judge(drained=False).attempts
    assert (attempt.what, attempt.outcome, attempt.guards) == ("effect charge", came, guards)


def test_an_effect_in_the_subjects_own_store():
    s = taken_over()
    request = s.ask("A#1", token=1, store="own")
    s.answer("A#1", request, "raised StaleToken")
    assert attempts(s) == [("A#1", "effect charge", "changed nothing")]
    landed = taken_over()
    request = landed.ask("A#1", token=1, store="own")
    landed.commit("A#1", landed.set("effects", "k", run_id="r1", token=1))
    landed.answer("A#1", request, "returned")
    assert ("A#1", "effect charge", "landed") in attempts(landed)


def test_a_request_delayed_past_the_take_over_is_an_attempt_when_it_arrives():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    request = s.ask("A#1", token=1)
    s.expire()
    s.take_over("B#1")
    s.decide("A#1", request, "refused")
    assert attempts(s) == [("A#1", "effect charge", "refused by the provider")]


def test_the_holders_own_statements_are_no_attempts_and_neither_are_those_about_others():
    s = taken_over()
    s.tries("B#1", GUARDED)
    s.tries("A#1", "UPDATE runs SET result='x' WHERE id='r7'")
    s.tries("A#1", "SELECT id FROM runs WHERE status='queued'", rows=None)
    assert attempts(s) == []


def test_an_outcome_that_a_subject_declares_as_late_is_no_attempt():
    late = "INSERT INTO events VALUES ('r1', 'late')"

    def story(late_ok):
        s = Story(replace(FULL, writes=(Writes("events", run="run_id", late_ok=late_ok),)))
        s.spawn("A#1")
        s.submit()
        s.claim("A#1")
        s.operator(s.set("runs", "r1", status="cancelled", owner=None))
        s.commit("A#1", s.add_row("events", run_id="r1", what="late"), sql=(late,))
        return attempts(s)

    assert story(late_ok=True) == []
    assert story(late_ok=False) == [("A#1", "INSERT events", "landed")]


def test_before_its_tenure_was_over_nothing_was_stale():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.tries("A#1", GUARDED, rows=0)
    s.expire()
    s.tries("A#1", GUARDED, rows=0)
    s.take_over("B#1")
    assert attempts(s) == []


def test_after_its_own_release_a_worker_is_stale_only_once_another_has_claimed():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.release("A#1")
    s.tries("A#1", GUARDED)
    assert attempts(s) == []
    s.claim("B#1", token=2)
    s.tries("A#1", GUARDED)
    assert len(attempts(s)) == 1


CLAIM = "UPDATE runs SET owner='A#1', token=3, status='running' WHERE id='r1' AND expires < 5"


def test_a_claim_by_a_past_holder_is_no_stale_attempt():
    s = taken_over()
    s.tries("A#1", CLAIM)
    assert attempts(s) == []
    s.expire()
    s.reads("A#1")
    s.commit("A#1", s.set("runs", "r1", **s.leased("A#1", 3)), sql=(CLAIM,))
    assert attempts(s) == []


def test_a_declared_claim_call_tells_a_claim_whatever_its_statements_look_like():
    s = taken_over(replace(FULL, claims=("q:claim",)))
    s.passed("A#1", "call:q:claim")
    s.tries("A#1", LOOK, rows=None)
    s.tries("A#1", "UPDATE runs SET status='running' WHERE id='r1' AND owner IS NULL")
    s.passed("A#1", "call:q:claim", "after")
    assert attempts(s) == []
    s.tries("A#1", LOOK, rows=None)
    assert attempts(s) == [("A#1", "SELECT runs", "gave up after reading")]


def test_a_process_that_claimed_again_is_stale_in_what_names_its_former_tenure():
    s = Story()
    s.spawn("A#1")
    s.submit()
    s.claim("A#1")
    s.expire()
    s.claim("A#1", token=2)
    s.tries("A#1", "UPDATE runs SET result='x' WHERE id='r1' AND token = 2")
    assert attempts(s) == []
    s.tries("A#1", GUARDED)
    assert attempts(s) == [("A#1", "UPDATE runs", "changed nothing")]


def test_a_worker_that_goes_on_with_another_run_under_its_one_name_is_not_stale_there():
    s = Story()
    s.spawn("A#1", "B#1")
    for run in ("r1", "r2"):
        s.submit(run)
        s.claim("A#1", run)
    s.release("A#1", "r1")
    s.claim("B#1", "r1", token=2)
    s.tries("A#1", "UPDATE runs SET rev=2 WHERE id='r2' AND owner='A#1' AND token = 1", rows=1)
    s.tries("A#1", "UPDATE runs SET beat=1 WHERE owner='A#1'", rows=1)
    assert attempts(s) == []
    s.tries("A#1", GUARDED)
    assert attempts(s) == [("A#1", "UPDATE runs", "changed nothing")]


def test_numbers_as_run_ids_are_found_as_values_only():
    s = Story()
    s.spawn("A#1", "B#1")
    for run in (1, 2):
        s.submit(run)
    s.claim("A#1", 1)
    s.claim("A#1", 2)
    s.expire()
    s.take_over("B#1", 1)
    s.tries("A#1", "UPDATE runs SET result=0 WHERE id=2 LIMIT 1")
    assert attempts(s) == []
    s.tries("A#1", "UPDATE runs SET result=0 WHERE id=1")
    assert len(attempts(s)) == 1
