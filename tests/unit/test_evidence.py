"""What a history proves: lease times, effects, attempts, unknown outcomes, the checklist."""

import json
from dataclasses import replace
from typing import Any, Literal

import pytest

from pytest_leasecheck.testkit.checklist import merged
from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.evidence import Evidence, evidence_of
from pytest_leasecheck.testkit.evidence_json import dumps, evidence_to_json
from pytest_leasecheck.testkit.history import Header, History
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.verdict import Counts, Finding, Verdict

from .oracle.builder import TTL, Story


def evidence(story: Story, **header: Any) -> Evidence:
    history = story.history(declaration=declaration_to_json(story.declaration), **header)
    return evidence_of(history, judge(history))


def statuses(found: Evidence) -> dict[int, str]:
    return {line.number: line.status for line in found.checklist}


def classic(*, refuses: bool = True) -> Story:
    """A is stopped before its effect, B takes over and finishes, A wakes and asks again."""
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    s.start_step("A#1")
    s.signal("A#1", "STOP")
    s.expire()
    s.spawn("B#1")
    s.take_over("B#1")
    s.effect("B#1", token=2, key="r1/pay")
    s.end_step("B#1")
    s.finish("B#1")
    s.returned("B#1")
    s.signal("A#1", "CONT")
    s.effect("A#1", "charge", "refused" if refuses else "accepted", token=1)
    s.returned("A#1")
    return s


def test_a_lease_has_the_times_of_its_acquisition_renewals_and_end() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    claimed = s.claim("A#1")
    s.advance(10)
    renewed = s.renew("A#1")
    s.advance(5)
    done = s.finish("A#1")
    (lease,) = evidence(s).leases
    assert (lease.who, lease.owner, lease.token) == ("A#1", "A#1", 1)
    assert (lease.acquired.n, lease.acquired.after_ms) == (claimed, 0)
    assert [(item.n, item.after_ms) for item in lease.renewed] == [(renewed, 10_000)]
    assert lease.expires_ms == (TTL * 1000, TTL * 1000 + 10_000)
    assert lease.over is not None
    assert (lease.over.n, lease.ended, lease.held_ms) == (done, "finished", 15_000)


def test_a_lease_in_force_at_the_end_has_no_end() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    s.advance(7)
    (lease,) = evidence(s).leases
    assert lease.over is None
    assert lease.held_ms == 7_000


def test_each_effect_has_owner_and_token_and_what_came_of_it() -> None:
    rightful, stale = evidence(classic()).effects
    assert (rightful.who, rightful.owner, rightful.token) == ("B#1", "B#1", 2)
    assert (rightful.stale, rightful.outcome, rightful.answer) == (False, "accepted", "delivered")
    assert (stale.who, stale.owner, stale.token, stale.tenure) == ("A#1", "A#1", 1, 1)
    assert (stale.stale, stale.outcome) == (True, "refused")


def test_an_effect_in_the_subjects_own_store_is_told_by_its_row() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    first = s.ask("A#1", token=1, key="k", store="own")
    landed = s.commit("A#1", s.set("effects", "k", run_id="r1", token=1, name="charge"))
    s.answer("A#1", first, "returned")
    again = s.ask("A#1", token=1, key="k", store="own")
    s.answer("A#1", again, "returned")
    refused = s.ask("A#1", token=1, key="k", store="own")
    s.answer("A#1", refused, "raised StaleToken")
    effects = evidence(s).effects
    assert [item.outcome for item in effects] == ["accepted", "replayed", "refused"]
    assert [moment.n for moment in effects[0].decided] == [landed]
    assert effects[2].why == "raised StaleToken"


def test_an_effect_that_two_deliveries_decided_has_both_moments() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    request = s.ask("A#1", token=1, key="k")
    s.decide("A#1", request)
    s.decide("A#1", request, "replayed")
    s.answer("A#1", request)
    (effect,) = evidence(s).effects
    assert effect.outcome == "accepted"
    assert len(effect.decided) == 2


def test_stale_attempts_carry_the_token_that_was_stale() -> None:
    (attempt,) = evidence(classic()).stale_attempts
    assert (attempt.who, attempt.token, attempt.what) == ("A#1", 1, "effect charge")
    assert attempt.outcome == "refused by the provider"


def test_a_step_is_unknown_from_the_loss_of_its_lease_to_the_decision() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1", "B#1")
    s.claim("A#1")
    s.start_step("A#1")
    s.expire()
    lost = s.take_over("B#1", decide=False)
    s.advance(12)
    decided = s.commit("B#1", s.decision("policy:retry"))
    (unknown,) = evidence(s).unknown
    assert unknown.what == "step pay"
    assert unknown.until is not None
    assert (unknown.since.n, unknown.until.n, unknown.for_ms) == (lost, decided, 12_000)
    assert unknown.settled_by == "retry, decided by policy:retry"


def test_an_effect_is_unknown_from_its_lost_response_to_the_answer_about_its_key() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1", "B#1")
    s.claim("A#1")
    request = s.ask("A#1", token=1, key="k")
    s.decide("A#1", request)
    s.answer("A#1", request, "lost")
    s.advance(3)
    s.look_up("B#1", "k", "unknown")
    s.advance(4)
    s.look_up("B#1", "k", "accepted")
    (unknown,) = evidence(s).unknown
    assert (unknown.what, unknown.for_ms) == ("effect charge", 7_000)
    assert unknown.settled_by == "B#1 asked the provider: accepted"


@pytest.mark.parametrize("signal", ["KILL", "SIGKILL"])
def test_an_effect_over_which_its_worker_died_stays_unknown(signal: str) -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    s.ask("A#1", token=1, key="k")
    s.signal("A#1", signal)
    s.advance(9)
    (unknown,) = evidence(s).unknown
    assert (unknown.until, unknown.settled_by, unknown.for_ms) == (None, "", 9_000)


def test_times_that_overlap_count_once_and_runs_count_each() -> None:
    s = Story()
    s.submit("r1")
    s.submit("r2")
    s.spawn("A#1")
    s.claim("A#1", "r1")
    s.claim("A#1", "r2")
    for name, run_id in (("one", "r1"), ("two", "r1"), ("three", "r2")):
        s.answer("A#1", s.ask("A#1", name, run_id=run_id, token=1), "lost")
    s.advance(10)
    found = evidence(s)
    assert len(found.unknown) == 3
    assert found.unknown_ms == 20_000


def test_a_reconciliation_names_who_decided() -> None:
    (decision,) = evidence(classic()).reconciliations
    assert (decision.run_id, decision.step, decision.decision) == ("r1", "pay", "retry")
    assert decision.decided_by == "B#1"


def test_the_classic_failure_shows_six_lines() -> None:
    found = evidence(classic())
    assert [number for number, status in statuses(found).items() if status == "shown"] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip
    assert "not seen: a restart" in found.checklist[6].why
    assert found.checklist[7].why == "a history can't show documentation"


def test_a_line_says_which_events_show_it() -> None:
    lines = evidence(classic()).checklist
    (growth,) = lines[1].seen
    first, second = (item.acquired.n for item in evidence(classic()).leases)
    assert growth.events == (first, second)


def test_a_stale_effect_that_landed_breaks_the_boundary_alone() -> None:
    found = evidence(classic(refuses=False))
    assert [number for number, status in statuses(found).items() if status == "broken"] == [4]
    assert "a stale effect was accepted" in found.checklist[3].why


def test_an_effect_under_no_token_breaks_its_line() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    s.effect("A#1", token=None)
    assert statuses(evidence(s))[3] == "broken"


def test_nothing_is_shown_by_a_history_in_which_nothing_happened() -> None:
    assert set(statuses(evidence(Story())).values()) == {"not shown"}


def test_what_one_history_lacks_another_shows() -> None:
    restart = Story()
    restart.spawn("A#1", "A#2")
    twice = Story()
    twice.spawn("A#1")
    request = twice.ask("A#1")
    twice.decide("A#1", request)
    twice.decide("A#1", request)
    each = [evidence(story).checklist for story in (restart, twice)]
    assert [lines[6].status for lines in each] == ["not shown", "not shown"]
    together = merged(each)
    assert together[6].status == "shown"
    assert merged([*each, evidence(classic(refuses=False)).checklist])[3].status == "broken"


def test_json_has_its_version_and_can_be_read_back() -> None:
    found = evidence(classic(), kit="1.2")
    data = json.loads(dumps(found))
    assert (data["leasecheck-evidence"], data["kit"], data["outcome"]) == (1, "1.2", "pass")
    assert next(iter(data)) == "leasecheck-evidence"
    assert data["leases"][0]["acquired"].keys() == {"n", "at_ns", "after_ms"}
    assert data["checklist"][0]["seen"][0].keys() == {"what", "events"}
    assert data == json.loads(json.dumps(evidence_to_json(found)))


@pytest.mark.parametrize(
    "owner",
    ["\ud800", "a\0\x1b[2J", b"\0\xff", 10**6000, float("nan"), None, "x" * 10_000_000],
    ids=["surrogate", "control", "bytes", "long", "nan", "none", "huge"],
)
def test_json_bears_every_owner(owner: Any) -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1", owner=owner)
    text = dumps(evidence(s))
    json.loads(text)
    assert len(text) < 50_000


def test_a_history_without_a_declaration_has_what_can_be_seen_without() -> None:
    s = classic()
    history = History(Header("Small", ""), tuple(s.events))
    found = evidence_of(history, Verdict("pass", (), (), {}, (), (), (), (), Counts()))
    assert len(found.effects) == 2
    assert (found.leases, found.reconciliations) == ((), ())


def test_an_effect_is_of_the_tenure_whose_token_it_names() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1", token=1)
    s.expire()
    s.claim("A#1", token=2, owner="A again")
    s.effect("A#1", "charge", "refused", token=1)
    (effect,) = evidence(s).effects
    assert (effect.tenure, effect.owner, effect.stale) == (1, "A#1", True)


def test_a_row_that_was_there_already_is_no_new_effect() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    s.commit("A#1", s.set("effects", "k", run_id="r1", token=1, name="charge", note="old"))
    request = s.ask("A#1", token=1, key="k", store="own")
    s.commit("A#1", s.set("effects", "k", note="new"))
    s.answer("A#1", request, "returned")
    (effect,) = evidence(s).effects
    assert (effect.outcome, effect.decided) == ("replayed", ())


def test_a_token_that_fell_shows_nothing_and_breaks_its_line() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1", "B#1")
    s.claim("A#1", token=5)
    s.expire()
    s.take_over("B#1", token=4)
    line = evidence(s).checklist[1]
    assert (line.status, line.seen) == ("broken", ())


def test_what_is_only_noted_breaks_no_line() -> None:
    s = classic()
    history = s.history(declaration=declaration_to_json(s.declaration))
    verdict = judge(history)
    severities: tuple[tuple[Literal["note", "fault"], str], ...] = (
        ("note", "shown"),
        ("fault", "broken"),
    )
    for severity, status in severities:
        finding = Finding("V1", "a stale effect was accepted", "", "r1", "A#1", severity=severity)
        found = evidence_of(history, replace(verdict, findings=(finding,)))
        assert found.checklist[3].status == status
