"""Each finding fires on its fault, and not on the honest story beside it."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.advice import ADVICE
from pytest_leasecheck.testkit.history import Commit, Settled
from pytest_leasecheck.testkit.invariants import TITLES
from pytest_leasecheck.testkit.subject import Counter

from .builder import FULL, PLAIN, TTL, Story, declare

BEATING = replace(FULL, capabilities=FULL.capabilities | {"heartbeats"})
ONCE = replace(FULL, delivery="exactly-once")
FENCED = replace(FULL, capabilities=FULL.capabilities | {"fences_effects"}, effects=None)
HIGHEST = replace(FULL, provider_fence="highest seen")


def started(declaration=FULL, **values):
    s = Story(declaration)
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1", **values)
    return s


def taken_over(declaration=FULL, *, step=True):
    """A started a step, its lease expired, B took over."""
    s = started(declaration)
    if step:
        s.start_step("A#1")
    s.expire()
    s.take_over("B#1")
    return s


def faults(s, **options):
    """Titles of the faults; the end isn't judged unless asked for."""
    return s.titles(**({"drained": False} | options))


def only(s, title, **options):
    """The one finding there is, which has this title."""
    assert faults(s, **options) == [title]
    findings = s.judge(**({"drained": False} | options)).findings
    return next(one for one in findings if one.title == title)


# --- V1


def test_a_stale_write_names_who_did_it_who_suffered_and_under_which_tokens():
    s = taken_over()
    s.commit("A#1", s.add_row("events", run_id="r1", what="x"))
    finding = only(s, "a stale write landed")
    assert finding.invariant == "V1"
    assert (finding.culprit, finding.victims) == ("A#1", ("B#1",))
    assert finding.at[-1] == s.n
    assert finding.text == (
        "A#1 changed run 'r1' (in events) at event 13, but its lease (tenure 1, token 1) was taken"
        " over by B#1 at event 12; B#1 held the run by then (tenure 2, token 2)."
    )


def test_the_new_holder_may_write_and_the_old_one_before_the_take_over():
    s = started()
    s.commit("A#1", s.add_row("events", run_id="r1", what="x"))
    s.expire()
    s.take_over("B#1")
    s.commit("B#1", s.add_row("events", run_id="r1", what="y"))
    assert faults(s) == []


def test_a_stale_effect_in_the_subjects_own_store_has_its_own_title():
    s = taken_over()
    s.commit("A#1", s.set("effects", "k", run_id="r1", token=1, name="charge"))
    finding = only(s, "a stale effect was accepted")
    assert finding.culprit == "A#1"
    honest = taken_over()
    honest.commit("B#1", honest.set("effects", "k", run_id="r1", token=2, name="charge"))
    assert faults(honest) == []


def test_an_effect_under_a_lower_token_than_one_accepted_is_stale():
    def ask(s, who, token, key):
        s.effect(who, token=token, key=key)

    s = taken_over()
    ask(s, "B#1", 2, "k2")
    ask(s, "A#1", 1, "k1")
    finding = only(s, "a stale effect was accepted")
    assert (finding.culprit, finding.victims) == ("A#1", ("B#1",))
    assert "under token 1 at event 17, after it had accepted token 2 from B#1" in finding.text
    honest = started()
    ask(honest, "A#1", 1, "k1")
    honest.expire()
    honest.take_over("B#1")
    ask(honest, "B#1", 2, "k2")
    assert faults(honest) == []


def test_a_refused_stale_effect_is_no_fault_and_neither_is_a_replayed_one():
    for outcome in ("refused", "replayed", "failed"):
        s = taken_over()
        s.effect("B#1", token=2, key="k")
        s.effect("A#1", token=1, key="k", outcome=outcome)
        assert faults(s) == []


def test_the_window_of_a_highest_seen_fence_is_a_note_unless_a_fence_is_claimed():
    title = "the window of a highest-seen fence"
    s = taken_over(HIGHEST)
    s.effect("A#1", token=1, key="k")
    assert faults(s) == []
    assert s.notes(drained=False) == [title]
    claimed = taken_over(replace(FENCED, provider_fence="highest seen"))
    claimed.effect("A#1", token=1, key="k")
    only(claimed, title)


def test_a_stale_effect_that_nothing_fences_is_a_note_at_least_once_and_a_fault_if_claimed():
    s = taken_over()
    s.effect("A#1")
    assert faults(s) == []
    assert s.notes(drained=False) == ["a stale effect was accepted"]
    claimed = taken_over(FENCED)
    claimed.effect("A#1")
    only(claimed, "a stale effect was accepted")


def test_an_effect_that_was_under_way_when_an_operator_cancelled_is_nobodys_fault():
    s = started(FENCED)
    s.operator(s.set("runs", "r1", status="cancelled", owner=None))
    s.effect("A#1", token=1)
    assert faults(s) == []
    assert s.notes(drained=False) == []


def test_a_claimed_fence_is_the_subjects_own_stores_where_it_has_one():
    s = taken_over(replace(FENCED, effects=FULL.effects))
    s.effect("A#1")
    assert faults(s) == []
    s.commit("A#1", s.set("effects", "k", run_id="r1", token=1, name="charge"))
    only(s, "a stale effect was accepted")


def test_a_request_that_was_delayed_past_the_take_over_is_stale_when_it_arrives():
    s = started(FENCED)
    request = s.ask("A#1", token=1)
    s.expire()
    s.take_over("B#1")
    s.decide("A#1", request)
    assert faults(s) == ["a stale effect was accepted"]
    honest = started(FENCED)
    request = honest.ask("A#1", token=1)
    honest.expire()
    honest.decide("A#1", request)
    honest.take_over("B#1")
    assert faults(honest) == []


# --- V2


@pytest.mark.parametrize(
    ("tokens", "title"),
    [((5, 5), "a token was used twice"), ((5, 4), "a token fell"), ((5, 6), None)],
)
def test_tokens_grow_across_take_overs(tokens, title):
    s = started(token=tokens[0])
    s.expire()
    s.take_over("B#1", token=tokens[1])
    assert faults(s) == ([title] if title else [])


def test_a_token_that_restarts_after_release_or_deletion_is_used_twice():
    for end in (
        lambda s: s.release("A#1", token=0),
        lambda s: s.commit("A#1", s.delete("runs", "r1")),
    ):
        s = started()
        end(s)
        s.claim("B#1", token=1)
        finding = only(s, "a token was used twice")
        assert (finding.invariant, finding.culprit, finding.victims) == ("V2", "B#1", ("A#1",))
        assert "had been given to A#1 in tenure 1 already" in finding.text


def test_a_token_that_grew_at_the_release_may_be_claimed_with():
    s = started()
    s.release("A#1", token=2)
    s.claim("B#1", token=2)
    assert faults(s) == []


def test_tokens_from_before_the_first_event_count():
    def story(token):
        s = Story()
        s.given(s.set("runs", "r1", status="queued", owner=None, token=7, expires=None))
        s.spawn("A#1")
        s.claim("A#1", token=token)
        return s

    assert faults(story(6)) == ["a token fell"]
    assert faults(story(8)) == []


# --- V3


def test_a_finished_run_was_changed():
    for status in ("failed", "queued"):
        s = started()
        s.finish("A#1")
        s.commit("B#1", s.set("runs", "r1", status=status))
        finding = only(s, "a finished run was changed")
        assert (finding.invariant, finding.culprit, finding.victims) == ("V3", "B#1", ("A#1",))
    honest = started()
    honest.finish("A#1")
    honest.operator(honest.set("runs", "r1", status="queued"), job="approve")
    honest.commit("B#1", honest.set("runs", "r1", archived=1))
    assert faults(honest) == []


def test_a_late_outcome_after_a_cancel_changes_a_finished_run_unless_it_is_declared():
    def story(late_ok):
        s = started(replace(FULL, writes=(replace(FULL.writes[0], late_ok=late_ok),)))
        s.operator(s.set("runs", "r1", status="cancelled", owner=None))
        s.commit("A#1", s.add_row("events", run_id="r1", what="late"))
        return s

    finding = only(story(False), "a finished run was changed")
    assert finding.culprit == "A#1"
    assert faults(story(True)) == []
    s = taken_over(replace(FULL, writes=(replace(FULL.writes[0], late_ok=True),)))
    s.end_step("B#1")
    s.finish("B#1")
    s.commit("A#1", s.add_row("events", run_id="r1", what="late"))
    assert faults(s) == ["a stale write landed"]  # taken over, not cancelled


def test_the_result_was_recorded_twice():
    s = taken_over()
    s.end_step("B#1")
    s.finish("B#1")
    s.end_step("A#1", result="mine")
    assert faults(s) == ["a stale write landed", "the result was recorded twice"]
    twice = s.judge(drained=False).findings[-1]
    assert (twice.invariant, twice.culprit, twice.victims) == ("V3", "A#1", ("B#1",))
    assert twice.text == (
        "B#1 (tenure 2, token 2) recorded the result of step 'pay' of run 'r1' at event 14, and A#1"
        " (tenure 1, token 1) stored another over it at event 18."
    )


def test_a_second_result_on_a_finished_run():
    s = taken_over(PLAIN, step=False)
    s.finish("B#1", result="b")
    s.commit("A#1", s.set("runs", "r1", result="a"))
    assert "the result was recorded twice" in faults(s)
    honest = taken_over(PLAIN, step=False)
    honest.finish("B#1", result="b")
    honest.commit("A#1", honest.set("runs", "r1", result="b"))
    assert faults(honest) == []


@pytest.mark.parametrize("column", [{"revision": 9}, {"changed_at": "2024-01-01 00:00:00"}])
def test_a_counter_or_a_time_on_a_finished_run_is_a_stale_write_and_no_second_result(column):
    s = taken_over(PLAIN, step=False)
    s.finish("B#1", result="b", revision=1, changed_at="")
    s.commit("A#1", s.set("runs", "r1", **column))
    assert faults(s) == ["a stale write landed"]


def test_a_robbed_holder_that_finishes_is_the_victim():
    s = taken_over()
    s.finish("A#1")
    s.end_step("B#1")
    s.commit("B#1", s.set("runs", "r1", status="failed"))
    assert faults(s) == ["a stale write landed", "a finished run was changed"]
    stale, changed = s.judge(drained=False).findings
    assert (stale.culprit, stale.victims) == ("A#1", ("B#1",))
    assert (changed.culprit, changed.victims) == ("A#1", ("B#1",))


# --- V4


def test_an_interruption_is_reconciled_once():
    s = started()
    s.start_step("A#1")
    s.expire()
    s.take_over("B#1", decide=False)
    s.end_step("B#1")
    s.finish("B#1")
    finding = only(s, "an interruption was never reconciled")
    assert finding.culprit == "B#1"
    assert "step 'pay' of run 'r1' was started by A#1 (tenure 1, token 1)" in finding.text
    twice = taken_over()
    twice.commit("B#1", twice.decision("B#1"))
    finding = only(twice, "an interruption was reconciled twice")
    assert finding.at == (8, 12, 13)
    honest = taken_over()
    honest.end_step("B#1")
    honest.finish("B#1")
    assert faults(honest) == []


def test_reconciliation_is_judged_only_of_those_who_claim_it():
    s = started(replace(FULL, capabilities=frozenset()))
    s.start_step("A#1")
    s.expire()
    s.take_over("B#1", decide=False)
    s.finish("B#1")
    assert faults(s) == []
    assert "'reconciles' is not claimed" in s.judge().not_claimed["V4"]


def test_the_effect_ran_twice_is_a_fault_of_exactly_once_alone():
    def story(declaration, key, outcome):
        s = started(declaration)
        s.effect("A#1", key=key)
        s.expire()
        s.take_over("B#1")
        s.effect("B#1", key=key, outcome=outcome)
        return s

    finding = only(story(ONCE, None, "accepted"), "the effect ran twice")
    assert (finding.culprit, finding.victims) == ("B#1", ("A#1",))
    assert "(no idempotency key)" in finding.text
    assert faults(story(ONCE, "k", "replayed")) == []
    assert faults(story(FULL, None, "accepted")) == []


def test_two_steps_of_one_execution_may_do_the_same_thing():
    s = started(ONCE)
    s.effect("A#1", "mail")
    s.effect("A#1", "mail")
    assert faults(s) == []


def test_a_request_that_the_network_delivered_twice_ran_twice_without_a_key():
    s = started(ONCE)
    request = s.effect("A#1")
    s.decide("A#1", request)
    assert "delivered one request twice" in only(s, "the effect ran twice").text
    keyed = started(ONCE)
    request = keyed.effect("A#1", key="k")
    keyed.decide("A#1", request, "replayed")
    assert faults(keyed) == []


# --- V5


def test_a_lease_outlives_its_runs_end():
    s = started()
    s.finish("A#1", owner="A#1")
    finding = only(s, "a lease outlived its run's end")
    assert finding.invariant == "V5"
    by_status = started(declare(held={"status": {"running"}}))
    by_status.finish("A#1", owner="A#1")
    assert faults(by_status) == []


def test_a_resting_run_holds_no_lease():
    s = started()
    s.release("A#1", status="waiting", owner="A#1")
    only(s, "a resting run held a lease")
    honest = started()
    honest.release("A#1", status="waiting")
    assert faults(honest, drained=True) == []


def test_a_run_stayed_leased_says_who_holds_it_until_when_and_what_the_drain_did():
    s = started()
    s.start_step("A#1")
    s.kill("A#1")
    s.expire()
    s.act("drain")
    s.spawn("drain-1#1")
    s.returned("drain-1#1")
    finding = only(s, "a run stayed leased", drained=True)
    assert finding.culprit == "A#1"
    assert finding.text == (
        "run 'r1' is still held by A#1 (tenure 1, token 1), expired 1 s ago, at 13:47:10; A#1 ended"
        " (signal 9) at event 9; the drain ran one worker, the last of which, drain-1#1, returned"
        " None."
    )


def test_a_run_never_finished():
    s = started()
    s.release("A#1")
    s.act("drain")
    finding = only(s, "a run never finished", drained=True)
    assert "run 'r1' is 'queued' and nobody holds it; A#1 had it last" in finding.text
    assert "the drain started no worker" in finding.text
    s.claim("B#1", token=2)
    s.finish("B#1")
    assert faults(s, drained=True) == []


def test_the_end_is_judged_only_after_a_drain_and_only_for_runs_that_were_touched():
    s = started()
    assert faults(s, drained=False) == []
    others = Story()
    others.given(
        *(others.set("runs", f"x{n}", status="running", owner="x", expires=0) for n in range(50))
    )
    assert faults(others, drained=True) == []


def test_a_step_stayed_in_flight():
    s = started()
    s.start_step("A#1")
    s.finish("A#1")
    only(s, "a step stayed in flight", drained=True)
    cancelled = started()
    cancelled.start_step("A#1")
    cancelled.operator(cancelled.set("runs", "r1", status="cancelled", owner=None))
    assert faults(cancelled, drained=True) == []


def test_an_expiry_that_grows_with_every_renewal():
    def story(step):
        s = started()
        for _ in range(3):
            s.advance(10)
            s.reads("A#1")
            s.commit("A#1", s.set("runs", "r1", expires=step(s)))
        return s

    grows = story(lambda s: s.tables["runs"][("r1",)]["expires"] + TTL)
    assert "30 s, 50 s, 70 s" in only(grows, "a lease grew with its renewals").text
    assert faults(story(lambda s: s.now + TTL)) == []


# --- V6


def test_an_expired_lease_was_renewed():
    s = started()
    s.expire()
    s.renew("A#1")
    finding = only(s, "an expired lease was renewed")
    assert "A#1 (tenure 1, token 1) extended its lease" in finding.text
    assert "when by its own clock it had lapsed 1 s before" in finding.text
    unclaimed = started(replace(FULL, capabilities=frozenset()))
    unclaimed.expire()
    unclaimed.renew("A#1")
    assert faults(unclaimed) == []


def test_a_renewal_with_its_time_already_bound_is_right():
    s = started()
    now = s.reads("A#1")
    s.expire()
    s.commit("A#1", s.set("runs", "r1", expires=now + TTL + 1))
    assert faults(s) == []
    assert s.notes(drained=False) == ["lapsed in the gap"]


def test_where_nothing_tells_a_renewal_and_a_claim_apart_it_is_not_claimed():
    s = started(replace(PLAIN, capabilities=frozenset({"checks_expiry"})))
    s.expire()
    s.renew("A#1")
    assert faults(s) == []
    assert "look alike" in s.judge().not_claimed["V6"]


def test_anothers_lease_was_renewed():
    s = taken_over()
    s.advance(1)
    s.renew("A#1")
    finding = only(s, "another's lease was renewed")
    assert (finding.invariant, finding.culprit, finding.victims) == ("V6", "A#1", ("B#1",))
    honest = taken_over()
    honest.advance(1)
    honest.renew("B#1")
    assert faults(honest) == []


def test_one_name_for_two_processes_does_not_make_a_renewal_right():
    s = Story(PLAIN)
    s.spawn("A#1")
    s.submit()
    s.claim("A#1", owner="host")
    s.spawn("A#2", name="A")
    s.expire()
    s.claim("A#2", owner="host")
    assert s.kinds()[-1] == "A#2 acquire"
    s.advance(1)
    s.renew("A#1")
    only(s, "another's lease was renewed")


# --- V7


def test_a_live_lease_was_taken():
    s = started()
    s.advance(5)
    s.take_over("B#1")
    finding = only(s, "a live lease was taken")
    assert (finding.invariant, finding.culprit, finding.victims) == ("V7", "B#1", ("A#1",))
    assert finding.text == (
        "B#1 took A#1's (tenure 1, token 1) lease on run 'r1' at event 9, 25 s before it expired."
    )


def test_a_restarted_process_waits_its_old_lease_out():
    def story(*, waits):
        s = started()
        s.kill("A#1")
        s.spawn("A#2")
        if waits:
            s.expire()
        s.claim("A#2", token=2, owner="A#1")
        return s

    assert faults(story(waits=False)) == ["a live lease was taken"]
    assert faults(story(waits=True)) == []


def test_a_lease_from_before_the_first_event_is_live_too():
    s = Story()
    row = {"status": "running", "owner": "pre-lease", "token": 0, "expires": s.now + TTL}
    s.given(s.set("runs", "r1", **row))
    s.spawn("A#1")
    s.claim("A#1")
    assert "A#1 took 'pre-lease''s lease" in only(s, "a live lease was taken").text


def test_a_lease_was_released_by_another():
    s = started()
    s.release("B#1")
    finding = only(s, "a lease was released by another")
    assert finding.victims == ("A#1",)
    finished = started()
    finished.finish("B#1")
    only(finished, "a lease was released by another")
    honest = started()
    honest.expire()
    honest.release("B#1")
    assert faults(honest) == []


def test_at_the_instant_of_its_expiry_a_lease_is_either_live_or_expired_not_both():
    s = started()
    s.advance(TTL)
    s.start_step("A#1")
    s.take_over("B#1")
    assert "at the very instant of its expiry" in only(s, "a live lease was taken").text
    honest = started()
    honest.advance(TTL)
    honest.take_over("B#1")
    assert faults(honest) == []


def test_a_late_write_is_a_fault_of_those_who_check_their_expiry():
    s = started()
    s.expire()
    s.start_step("A#1")
    finding = only(s, "a late write")
    assert "lapsed 1 s before and nobody had taken it" in finding.text
    unclaimed = started(replace(FULL, capabilities=frozenset()))
    unclaimed.expire()
    unclaimed.start_step("A#1")
    assert faults(unclaimed) == []


def test_completing_under_an_expired_lease_is_a_late_write():
    s = started()
    s.expire()
    s.finish("A#1")
    only(s, "a late write")


def test_the_outcome_in_flight_is_recorded_late_and_the_lease_released():
    s = started()
    s.start_step("A#1")
    s.expire()
    s.end_step("A#1")
    s.release("A#1")
    assert faults(s) == []


def test_a_late_start_of_an_effect():
    s = started()
    s.expire()
    s.reads("A#1")
    s.effect("A#1", token=1)
    only(s, "a late start")
    gap = started()
    gap.reads("A#1")
    gap.expire()
    gap.effect("A#1", token=1)
    assert faults(gap) == []


def test_a_live_owner_lost_its_lease():
    def story(*, beats, why="advance", stop=False, held=None, lock=False):
        s = started(BEATING)
        if held:
            s.passed("A#1", held, held=True)
        if stop:
            s.signal("A#1", "SIGSTOP")
        if lock:
            s.act("lock")
        for _ in range(4):
            s.act("advance 10s")
            s.advance(10, why=why)
            if beats:
                s.renew("A#1", thread="beat")
        return faults(s)

    assert story(beats=False) == ["a live owner lost its lease"]
    assert story(beats=False, held="effect:charge") == ["a live owner lost its lease"]
    assert story(beats=True) == []
    assert story(beats=False, why="expire") == []
    assert story(beats=False, stop=True) == []
    assert story(beats=False, held="heartbeat") == []
    assert story(beats=False, lock=True) == []


# --- V8 to V11


def test_counts_equal_the_holders_and_stay_within_bounds():
    declaration = replace(FULL, counters=(Counter("slots", "used", most="size"),))

    def story(*, claim, finish):
        s = Story(declaration)
        s.given(s.set("slots", 1, used=0, size=1))
        s.spawn("A#1")
        s.submit()
        s.reads("A#1")
        s.commit("A#1", s.set("runs", "r1", **s.leased("A#1", 1)), s.set("slots", 1, used=claim))
        ended = s.set("runs", "r1", status="done", owner=None)
        s.commit("A#1", ended, s.set("slots", 1, used=finish))
        return s

    assert faults(story(claim=1, finish=0)) == []
    assert "says -1, and 0 runs are held" not in str(story(claim=1, finish=0).judge().findings)
    assert "slots.used says -1" in only(story(claim=1, finish=-1), "a count was wrong").text
    assert "with 1 as its bound" in only(story(claim=2, finish=0), "a count was wrong").text


def test_one_run_id_two_runs():
    s = Story()
    s.spawn("A#1", "B#1")
    s.commit("A#1", s.add_row("runs", id="r1", status="queued", owner=None, token=0))
    s.commit("B#1", s.add_row("runs", id="r1", status="queued", owner=None, token=0))
    only(s, "one run id, two runs")


def test_counts_may_be_of_rows_and_have_a_number_as_their_bound():
    counter = Counter("slots", "used", most=1, of={"steps": {"status": frozenset({"started"})}})
    declaration = replace(FULL, counters=(counter,))

    def story(used):
        s = Story(declaration)
        s.given(s.set("slots", 1, used=0))
        s.spawn("A#1")
        s.submit()
        s.claim("A#1")  # a run that is held, with no step started, holds no slot
        s.reads("A#1")
        s.commit(
            "A#1", s.set("steps", ("r1", "pay"), status="started"), s.set("slots", 1, used=used)
        )
        return s

    assert "a count was wrong" not in faults(story(1))
    assert "says 0, with" not in only_of(story(0), "a count was wrong").text
    assert "0, and 1 rows of steps count" in only_of(story(0), "a count was wrong").text
    assert "says 2, with 1 as its bound" in only_of(story(2), "a count was wrong").text


def only_of(s, title):
    """The one finding of this title, whatever else there is."""
    (finding,) = [one for one in s.judge().findings if one.title == title]
    return finding


def test_one_key_two_runs():
    declaration = replace(FULL, runs=replace(FULL.runs, key="order_key"))

    def story(*keys, delete=False):
        s = Story(declaration)
        s.spawn("A#1", "B#1")
        s.submit("r1", order_key=keys[0])
        s.submit("r2", order_key=keys[1])
        if delete:
            s.operator(s.delete("runs", "r1"), job="edit")
            s.submit("r3", order_key=keys[0])
        return s

    finding = only_of(story("order 7", "order 7"), "one key, two runs")
    assert "by key 'order 7', which had started run 'r1'" in finding.text
    assert "one key, two runs" not in faults(story("order 7", "order 8"))
    assert "one key, two runs" not in faults(story(None, None))
    assert "one key, two runs" not in faults(story("order 7", "order 8", delete=True))


def test_a_call_left_its_lease_behind():
    def story(*, release=False, lapse=False, lock=False, waits=False, wrote=False):
        s = started()
        s.act("lock" if lock else "run A")
        if waits:  # another worker, held in its transaction, has the write lock
            s.add(Settled, "A#1", "waits for the write lock; waits 10 s more")
        if wrote:
            s.commit("A#1", s.set("runs", "r1", note="x"))
        if release:
            s.release("A#1")
        if lapse:
            s.advance(TTL + 1)
        s.returned("A#1")
        return s

    title = "a call left its lease behind"
    assert title in faults(story())
    assert "left run 'r1' leased (tenure 1, token 1)" in only_of(story(), title).text
    assert title not in faults(story(release=True))
    assert title not in faults(story(lapse=True))
    assert title not in faults(story(lock=True))
    assert title not in faults(story(waits=True))
    assert title in faults(story(waits=True, wrote=True))
    # What a call could not give back while the lock was held is not the next one's.
    again = story(lock=True)
    again.act("unlock")
    again.commit("A#1", again.set("runs", "r1", note="x"))
    again.returned("A#1")
    assert title not in faults(again)


def test_an_unchecked_start():
    claims = FULL.capabilities | {"validates"}

    def story(*, look=False, held_there=False, over=True, claimed=True, held=(), then=()):
        s = started(replace(FULL, capabilities=claims if claimed else FULL.capabilities))
        s.spawn("B#1")
        s.reads("A#1")
        if held:
            s.passed("A#1", *held, held=True)
        if held_there:
            s.passed("A#1", "effect:charge", held=True)
        s.expire()
        if over:
            s.claim("B#1", token=2)
        if look:
            s.reads("A#1")
        if then:
            s.passed("A#1", *then)
        if not held_there:
            s.passed("A#1", "effect:charge")
        s.ask("A#1", token=1)
        return s

    title = "an unchecked start"
    looked = ("call:their.look", "after")
    for guilty in (
        {"held": ("half way",)}, {"held": ("call:their.look", "before")},
        {"held": looked, "then": ("sql:INSERT events", "before")},
        {"held": looked, "then": ("effect:other", "after")},
    ):  # fmt: skip
        assert title in faults(story(**guilty))
    assert title not in faults(story(held=looked))
    assert title not in faults(story(held=looked, then=("call:their.check", "after")))
    assert "since then it was taken over by B#1" in only_of(story(), title).text
    assert "since then it had lapsed" in only_of(story(over=False), title).text
    for honest in ({"look": True}, {"held_there": True}, {"claimed": False}):
        assert title not in faults(story(**honest))


def test_an_effect_was_retried_unasked():
    claims = FULL.capabilities | {"asks_first"}

    def story(*, asks=False, outcome="accepted", claimed=True, waits=""):
        s = started(replace(FULL, capabilities=claims if claimed else FULL.capabilities))
        s.spawn("B#1")
        s.effect("A#1", outcome=outcome, token=1, key="r1/0")
        s.expire()
        s.claim("B#1", token=2)
        if waits:
            row = {"status": "waiting", "owner": None, "expires": None, "token": 2}
            s.commit("B#1", s.set("runs", waits, **row))
            s.claim("B#1", token=3)
        if asks:
            s.look_up("B#1", "r1/0")
        s.effect("B#1", outcome="replayed", token=3 if waits else 2, key="r1/0")
        return s

    title = "an effect was retried unasked"
    assert "about key 'r1/0' since A#1's request" in only_of(story(), title).text
    assert title in faults(story(waits="r2"))  # another run
    for honest in ({"asks": True}, {"outcome": "failed"}, {"claimed": False}, {"waits": "r1"}):
        assert title not in faults(story(**honest))


def test_a_stale_first_request_is_no_retry():
    s = started(replace(FULL, capabilities=FULL.capabilities | {"asks_first"}))
    s.spawn("B#1")
    s.expire()
    s.claim("B#1", token=2)
    s.effect("B#1", token=2, key="r1/0")
    s.effect("A#1", outcome="refused", token=1, key="r1/0")  # it was held at it all the while
    assert "an effect was retried unasked" not in faults(s)


def test_a_stale_request_after_the_question_needs_no_other_question():
    s = started(replace(FULL, capabilities=FULL.capabilities | {"asks_first"}))
    s.spawn("B#1")
    s.expire()
    s.claim("B#1", token=2)
    s.look_up("B#1", "r1/0")
    s.effect("A#1", token=1, key="r1/0")
    s.effect("B#1", outcome="replayed", token=2, key="r1/0")
    assert "an effect was retried unasked" not in faults(s)


def test_a_lost_effect_is_not_done_again_under_another_key():
    def story(*, first="k1", again="k2", lands_in="pay", asks_again=False, delivery="exactly-once"):
        s = started(replace(FULL, delivery=delivery))
        s.start_step("A#1")
        s.effect("A#1", "pay", token=1, key=first)
        s.expire()
        s.take_over("B#1")
        if asks_again:
            s.effect("B#1", "pay", "replayed", token=2, key=first)
        request = s.effect("B#1", "pay", token=2, key=again)
        s.end_step("B#1", lands_in, result=s.receipt(request))
        return s

    title = "the effect ran twice"
    finding = only_of(story(), title)
    assert "effect 'pay' of step 'pay' of run 'r1' for A#1" in finding.text
    assert "again for B#1" in finding.text
    assert "another key, 'k2'" in finding.text
    # Another step's effect of the same name; the lost one asked for again before the next one.
    assert title not in faults(story(lands_in="pay again"))
    assert title not in faults(story(asks_again=True))
    assert title not in faults(story(delivery="at-least-once"))


def test_a_cancel_does_not_rewrite_an_end():
    def story(status):
        s = started()
        s.finish("A#1", status=status)
        s.operator(s.set("runs", "r1", status="cancelled"))
        return s

    finding = only(story("done"), "a finished run was changed")
    assert "ended by A#1" in finding.text
    assert "changed its end from 'done' to 'cancelled'" in finding.text
    assert faults(story("cancelled")) == []


def test_a_row_that_comes_after_a_deleted_one_has_a_result_of_its_own():
    s = started()
    s.start_step("A#1")
    s.end_step("A#1")
    s.finish("A#1")
    s.operator(s.delete("steps", ("r1", "pay")), s.delete("runs", "r1"), job="edit")
    s.submit()
    s.claim("A#1", token=2)
    s.start_step("A#1")
    s.end_step("A#1", result="another")
    s.finish("A#1")
    assert faults(s) == []


def test_a_restored_backup_takes_back_what_was_started():
    s = started()
    s.start_step("A#1")
    s.kill("A#1")
    s.operator(
        s.set("runs", "r1", status="queued", owner=None, expires=None, token=0),
        s.set("steps", ("r1", "pay"), status="pending"),
        job="edit",
    )
    s.spawn("B#1")
    s.claim("B#1", token=2)
    s.start_step("B#1")
    s.end_step("B#1")
    s.finish("B#1")
    assert faults(s) == []


def test_a_pause_under_a_lapsed_lease_is_late_and_a_release_is_not():
    def story(status):
        s = started()
        s.advance(TTL + 1)
        s.release("A#1", status=status)
        return s

    assert "paused run 'r1'" in only_of(story("waiting"), "a late write").text
    assert "a late write" not in faults(story("queued"))


def test_an_effect_that_touches_its_run_is_an_effect_all_the_same():
    s = started()
    s.spawn("B#1")
    s.expire()
    s.claim("B#1", token=2)
    s.commit(
        "A#1", s.set("runs", "r1", result="touched"),
        s.set("effects", "k", run_id="r1", token=1, name="charge"),
    )  # fmt: skip
    assert "a stale effect was accepted" in faults(s)


def test_a_call_that_returned_is_no_live_owner():
    s = started(BEATING)
    s.passed("A#1", "txn:commit", phase="after")
    s.returned("A#1")
    s.act("advance 41s")
    s.advance(1)
    s.advance(40)
    assert "a live owner lost its lease" not in faults(s)
    again = started(BEATING)
    again.returned("A#1")
    again.passed("A#1", "effect:charge", held=True)
    again.act("advance 41s")
    again.advance(1)
    again.advance(40)
    assert "a live owner lost its lease" in faults(again)


def test_a_renewal_that_was_held_up_is_an_excuse():
    def story(*, held_up):
        s = started(BEATING)
        s.act("advance 60s")
        s.advance(10)
        s.reads("A#1", thread="beat")
        bound = s.now
        if held_up:
            s.advance(19, why="expire")
        s.commit("A#1", s.set("runs", "r1", expires=bound + TTL), thread="beat")
        s.advance(TTL + 1)
        s.advance(1)
        return faults(s)

    assert story(held_up=True) == []
    assert story(held_up=False) == ["a live owner lost its lease"]


def test_another_worker_that_is_held_in_its_transaction_is_an_excuse():
    def story(point, phase="before"):
        s = started(BEATING)
        s.spawn("C#1")
        s.passed("C#1", point, phase, held=True)
        for _ in range(4):
            s.act("advance 10s")
            s.advance(10)
        return faults(s)

    assert story("txn:commit") == []
    assert story("txn:commit", "after") == ["a live owner lost its lease"]
    assert story("sql:SELECT runs") == ["a live owner lost its lease"]


def test_a_lock_that_was_let_go_in_time_is_no_excuse():
    def story(locked_until):
        s = started(BEATING)
        s.act("lock")
        for at in range(10, 50, 10):
            if at > locked_until:
                s.act("unlock")
            s.act("advance 10s")
            s.advance(10)
        return faults(s)

    assert story(10) == ["a live owner lost its lease"]
    assert story(20) == []


def test_one_key_two_effects():
    s = started()
    s.effect("A#1", key="k")
    s.effect("A#1", key="k")
    only(s, "one key, two effects")
    rows = started()
    rows.commit("A#1", rows.add_row("effects", run_id="r1", key="k", token=1, name="charge"))
    rows.commit("A#1", rows.add_row("effects", run_id="r1", key="k", token=1, name="charge"))
    only(rows, "one key, two effects")


@pytest.mark.parametrize(("bears_ms", "fault"), [(60_000, True), (1_000, False), (0, False)])
def test_a_skew_that_is_claimed_to_be_borne_takes_no_live_lease(bears_ms, fault):
    s = started(replace(FULL, bears_skew_ms=bears_ms))
    s.skew("B", 31)
    s.take_over("B#1")
    assert faults(s) == (["a live lease was taken"] if fault else [])
    if fault:
        (finding,) = s.judge(drained=False).findings
        assert finding.invariant == "V10"


def test_a_skew_that_was_borne_is_no_finding():
    s = started(replace(FULL, bears_skew_ms=5_000))
    s.skew("B", 5)
    s.advance(TTL + 1)
    s.take_over("B#1")
    assert faults(s) == []


def test_rows_do_not_change_without_a_commit():
    def story(tamper):
        s = started()
        tamper(s.tables)
        s.renew("A#1")
        s.advance(1)
        s.renew("A#1")
        return faults(s)

    assert story(lambda t: None) == []
    assert story(lambda t: t["runs"].pop(("r1",))) == ["a row vanished"]
    assert story(lambda t: t["runs"][("r1",)].update(result="x")) == [
        "a row changed without a commit"
    ]
    s = started()
    s.commit("A#1", gone := s.delete("runs", "r1"))
    s.tables["runs"][gone.key] = dict(gone.old)
    s.commit("A#1", s.set("runs", "r1", result="x"))
    assert "a row came back" in faults(s)


def test_a_change_found_outside_every_commit_is_one_without_a_commit():
    s = started()
    s.commit("", s.set("runs", "r1", result="x"))
    assert only(s, "a row changed without a commit").text == (
        "row r1 of runs changed, found outside every commit that was seen at event 7."
    )
    gone = started()
    gone.commit("", gone.delete("runs", "r1"))
    only(gone, "a row vanished")


def test_a_change_whose_author_could_not_be_seen_is_no_fault():
    s = started()
    s.blind("A#1", "several moved at once")
    s.commit("", s.set("runs", "r1", result="x"))
    assert faults(s) == []


def test_every_title_has_a_test_in_this_file():
    source = Path(__file__).read_text()
    assert set(ADVICE) == set(TITLES)
    assert [title for title in TITLES if f'"{title}"' not in source] == []


def test_what_only_the_holder_may_write_is_not_written_by_a_stranger_meanwhile():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.commit("B#1", s.set("runs", "r1", result="seen"))  # the run's own row is everybody's
    assert s.titles(drained=False) == []
    s.start_step("B#1")
    (finding,) = s.judge(drained=False).findings
    assert (finding.invariant, finding.title, finding.culprit, finding.victims) == (
        "V7", "a run was written without its lease", "B#1", ("A#1",)
    )  # fmt: skip


def test_a_lease_that_came_with_its_columns_is_a_grace_for_who_was_there_before():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    submitted = s.events[-1]
    s.claim("B#1")
    granted = s.events[-1]
    assert isinstance(submitted, Commit) and isinstance(granted, Commit)  # noqa: PT018
    bare = {"id": "r1", "status": "queued"}
    first = tuple(replace(one, new=bare) for one in submitted.changes)
    s.events[submitted.n - 1] = replace(submitted, changes=first)
    then = tuple(replace(one, old=bare) if one.table == "runs" else one for one in granted.changes)
    s.events[granted.n - 1] = replace(granted, changes=then)
    s.start_step("A#1")
    assert s.titles(drained=False) == []


@pytest.mark.parametrize("lapsed", [True, False])
def test_a_stranger_may_write_where_nobody_holds_the_run(lapsed):
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.expire() if lapsed else s.release("A#1")
    s.start_step("B#1")
    assert s.titles(drained=False) == []


def test_a_run_whose_row_is_deleted_before_its_end_is_lost():
    s = Story(PLAIN)
    s.spawn("A#1")
    s.submit()
    s.claim("A#1")
    s.commit("A#1", s.delete("runs", "r1"))
    (finding,) = s.judge().findings
    assert (finding.invariant, finding.title, finding.culprit) == ("V5", "a run was lost", "A#1")


def test_a_run_that_goes_on_under_another_id_is_not_lost():
    s = Story(PLAIN)
    s.spawn("A#1")
    s.submit()
    s.claim("A#1")
    again = dict(s.tables["runs"]["r1",], status="done", owner=None, expires=None)
    s.commit("A#1", s.delete("runs", "r1"), s.set("runs", "r2", **(again | {"id": "r2"})))
    assert s.titles() == []


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("who", ["A#1", "J#1"])
def test_a_finished_run_may_be_cleared_away(who, gone):
    s = Story(replace(PLAIN, runs=replace(PLAIN.runs, gone=gone)))
    s.spawn("A#1", "J#1")
    s.submit()
    s.claim("A#1")
    s.finish("A#1")
    s.commit(who, s.delete("runs", "r1"))
    assert s.titles() == []
