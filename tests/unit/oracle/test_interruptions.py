"""A step that was started and not finished, times a tenure that was lost over it."""

from dataclasses import replace

from .builder import FULL, TTL, Story


def started():
    s = Story()
    s.spawn("A#1", "B#1", "C#1")
    s.submit()
    s.claim("A#1")
    s.start_step("A#1")
    return s


def interruptions(s):
    found = s.judge(drained=False).interruptions
    return [(one.step, one.tenure, len(one.decisions)) for one in found]


def test_a_step_that_its_holder_finishes_was_never_interrupted():
    s = started()
    s.end_step("A#1")
    s.expire()
    s.take_over("B#1")
    assert interruptions(s) == []


def test_a_take_over_of_a_started_step_is_an_interruption():
    s = started()
    s.kill("A#1")
    s.expire()
    s.take_over("B#1")
    assert interruptions(s) == [("pay", 1, 1)]


def test_a_reaper_and_a_release_lose_a_step_too():
    s = started()
    s.expire()
    s.release("B#1")
    assert interruptions(s) == [("pay", 1, 0)]
    released = started()
    released.release("A#1")
    assert interruptions(released) == [("pay", 1, 0)]


def test_a_holder_that_brings_its_step_to_rest_as_it_releases_lost_nothing():
    s = started()
    s.reads("A#1")
    step = s.set("steps", ("r1", "pay"), status="waiting")
    s.commit("A#1", s.set("runs", "r1", status="waiting", owner=None), step)
    assert interruptions(s) == []


def test_an_end_of_the_run_interrupts_nothing():
    s = started()
    s.operator(s.set("runs", "r1", status="cancelled", owner=None))
    assert interruptions(s) == []


def test_a_run_that_is_cancelled_while_it_is_free_has_nothing_left_to_reconcile():
    s = started()
    s.release("A#1")
    s.operator(s.set("runs", "r1", status="cancelled"))
    assert interruptions(s) == [("pay", 1, 0)]
    assert s.titles(drained=True) == []


def test_a_step_started_again_and_lost_again_is_a_new_interruption():
    s = started()
    s.expire()
    s.take_over("B#1")
    s.start_step("B#1")
    s.expire()
    s.take_over("C#1", token=3)
    assert interruptions(s) == [("pay", 1, 1), ("pay", 2, 1)]
    assert s.titles(drained=False) == []


def test_a_recovery_that_is_lost_before_it_decided_leaves_the_same_interruption():
    s = started()
    s.expire()
    s.take_over("B#1", decide=False)
    s.kill("B#1")
    s.expire()
    s.take_over("C#1", token=3)
    s.commit("C#1", s.decision("C#1"))
    assert interruptions(s) == [("pay", 1, 1)]
    assert s.titles(drained=False) == []


def test_a_retry_without_a_new_start_is_seen_by_its_effect():
    s = started()
    s.expire()
    s.take_over("B#1")
    s.effect("B#1", token=2)
    s.expire()
    s.take_over("C#1", token=3)
    s.commit("C#1", s.decision("C#1"))
    assert interruptions(s) == [("pay", 1, 1), ("pay", 2, 1)]


def test_a_stale_recovery_that_decides_again_is_one_decision_too_many():
    s = started()
    s.expire()
    s.take_over("B#1", decide=False)
    s.expire()
    s.take_over("C#1", token=3)
    s.commit("C#1", s.decision("C#1"))
    s.commit("B#1", s.decision("B#1"))
    assert interruptions(s) == [("pay", 1, 2)]
    assert s.titles(drained=False) == [
        "a stale write landed", "an interruption was reconciled twice"
    ]  # fmt: skip


def test_a_decision_that_is_filled_in_later_is_one_decision():
    s = started()
    s.expire()
    s.take_over("B#1", decide=False)
    asked = s.add_row("decisions", run_id="r1", name="pay", decision=None, by=None)
    s.commit("B#1", asked)
    s.operator(s.set("decisions", asked.key, decision="retry", by="ann"), job="approve")
    assert interruptions(s) == [("pay", 1, 1)]


def decided_over(second: str, *, again: bool = False, who: str = "C#1"):
    """B decides, and then another writes its own decision over it, in the same row."""
    s = started()
    s.expire()
    s.take_over("B#1", decide=False)
    first = s.decision("B#1")
    s.commit("B#1", first)
    if again:
        s.start_step("B#1")
    s.expire()
    s.take_over("C#1", token=3, decide=False)
    s.commit(who, s.set("decisions", first.key, decision=second, by=who))
    return s


def test_a_decision_written_over_another_is_a_second_one():
    s = decided_over("compensate")
    assert interruptions(s) == [("pay", 1, 2)]
    assert s.titles(drained=False) == ["an interruption was reconciled twice"]


def test_what_is_only_noted_on_a_decision_is_none():
    assert interruptions(decided_over("retry")) == [("pay", 1, 1)]


def test_an_author_may_say_more_about_its_own_decision():
    s = started()
    s.expire()
    s.take_over("B#1", decide=False)
    first = s.decision("B#1", what="asking")
    s.commit("B#1", first)
    s.commit("B#1", s.set("decisions", first.key, decision="applied"))
    assert interruptions(s) == [("pay", 1, 1)]


def test_one_row_may_hold_the_decisions_of_two_interruptions_one_after_the_other():
    assert interruptions(decided_over("retry", again=True)) == [("pay", 1, 1), ("pay", 2, 1)]


def test_a_run_that_waits_for_an_operator_is_not_overdue():
    s = started()
    s.expire()
    s.take_over("B#1", decide=False)
    s.release("B#1", status="waiting")
    assert s.titles(drained=True) == []


def test_steps_of_several_runs_are_kept_apart():
    s = started()
    s.submit("r2")
    s.claim("A#1", "r2", token=1)
    s.start_step("A#1", run_id="r2")
    s.expire()
    s.take_over("B#1", "r2")
    assert [(one.run_id, one.step) for one in s.judge(drained=False).interruptions] == [
        ("r2", "pay")
    ]


def test_without_declared_steps_there_is_nothing_to_go_by():
    s = Story(replace(FULL, steps=None))
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.advance(TTL + 1)
    assert interruptions(s) == []
