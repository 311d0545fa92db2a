"""The verdict: fail before inconclusive before pass, and never a pass that proves nothing."""

from dataclasses import replace

import pytest

from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.errors import HistoryError
from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.judge import judge

from .builder import FULL, PLAIN, Story


def finished():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.finish("A#1")
    return s


def test_pass_counts_what_it_rests_on():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.start_step("A#1")
    s.effect("A#1", token=1, key="k")
    s.expire()
    s.take_over("B#1")
    s.effect("A#1", token=1, key="k", outcome="refused")
    s.end_step("B#1")
    s.finish("B#1")
    verdict = s.judge(requires=["stale attempt by A"])
    assert (verdict.outcome, verdict.findings, verdict.missing) == ("pass", (), ())
    counts = verdict.counts
    assert (counts.scripts, counts.runs, counts.commits, counts.effects) == (1, 1, 6, 1)
    assert (counts.stale_attempts, counts.interruptions, counts.reconciliations) == (1, 1, 1)


def test_a_required_moment_that_never_came_is_inconclusive():
    verdict = finished().judge(requires=["stale attempt by A", "finish by A"])
    assert verdict.outcome == "inconclusive"
    assert verdict.missing == ("stale attempt by A",)


def test_a_fault_fails_whatever_else_is_missing():
    s = finished()
    s.finish("B#1", status="failed")
    assert s.judge(requires=["stale attempt"]).outcome == "fail"


def test_a_note_does_not_fail():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.expire()
    s.take_over("B#1")
    s.effect("A#1")
    s.finish("B#1")
    verdict = s.judge()
    assert [one.severity for one in verdict.findings] == ["note"]
    assert verdict.outcome == "pass"


def test_where_the_kit_was_blind_nothing_is_clean():
    s = finished()
    s.blind("A#1")
    verdict = s.judge()
    assert verdict.outcome == "inconclusive"
    assert verdict.missing == ("sight of A#1: its trace callback was replaced",)


def test_with_attribution_off_nothing_is_clean():
    s = Story()
    s.spawn("A#1")
    verdict = judge(s.history(attribution="off"), declaration=FULL)
    assert verdict.outcome == "inconclusive"
    assert "attribution" in verdict.missing[0]


def test_only_the_invariants_asked_for_are_judged():
    s = finished()
    s.finish("B#1", status="failed")
    assert s.judge(holds=("V1", "V2")).outcome == "pass"
    assert s.judge(holds=("V3",)).outcome == "fail"


def test_what_is_not_claimed_has_its_reason():
    reasons = Story(PLAIN).judge().not_claimed
    assert set(reasons) == {"V2", "V4", "V6", "V8", "V10"}
    assert reasons["V2"] == "no token column is declared"
    bare = replace(
        PLAIN, runs=replace(PLAIN.runs, lease=replace(PLAIN.runs.lease, expires_at=None))
    )
    assert "no expiry is declared" in Story(bare).judge().not_claimed["V7"]
    assert set(Story(PLAIN).judge(holds=("V1", "V2")).not_claimed) == {"V2"}


def test_the_declaration_comes_with_the_history():
    s = finished()
    history = s.history(declaration=declaration_to_json(FULL))
    assert judge(history) == s.judge()
    with pytest.raises(HistoryError):
        judge(s.history(declaration={"subject": "Small"}))


def test_an_empty_history_is_judged_too():
    s = Story()
    assert s.judge().outcome == "pass"
    assert judge(History(s.history().header, ()), declaration=FULL).tenures == ()


def test_judging_twice_gives_the_same_and_leaves_the_history_alone():
    s = finished()
    history = s.history()
    before = repr(history)
    assert judge(history, declaration=FULL) == judge(history, declaration=FULL)
    assert repr(history) == before


def test_a_table_whose_key_matches_no_run_shows_nothing():
    s = Story()
    s.spawn("A#1")
    s.submit()
    s.claim("A#1")
    s.commit("A#1", s.set("steps", ("another", "pay"), status="finished", result="ok"))
    s.finish("A#1")
    verdict = s.judge()
    assert verdict.outcome == "inconclusive"
    assert verdict.missing == (
        "the runs of table steps: 'run_id' matches no run: it is 'another', the runs are 'r1'",
    )
