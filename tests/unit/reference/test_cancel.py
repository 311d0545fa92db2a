"""An operator's cancel: no lease needed, the lease released, the late outcome appended."""

import pytest

from pytest_leasecheck.testkit.reference import (
    Ownership,
    RunNotFound,
    RunStateError,
    RunStatus,
    StaleToken,
    Step,
    StepStatus,
    Tool,
)
from pytest_leasecheck.testkit.reference import resume as resuming


def test_cancel_takes_a_run_from_its_live_owner_and_releases_the_lease(world):
    world.crash(world.driver(), "r")
    run = world.driver().cancel("r", by="ada")
    assert (run.status, run.lease.owner) == (RunStatus.CANCELLED, "")
    assert run.lease.fencing_token == 1
    event = world.store.events("r")[-1]
    assert event.kind == "run.finished"
    assert event.body == {"status": "CANCELLED", "by": "operator:ada", "in_flight": [0]}


def test_tool_that_ran_meanwhile_has_its_outcome_appended_as_late(world):
    def cancelled(call):
        world.driver().cancel("r")
        rows.append(world.rows()["steps"])
        return "receipt"

    rows = []
    driver = world.driver(Tool("charge", cancelled))
    run = driver.start("r", [Step("charge"), Step("charge")])
    assert run.status is RunStatus.CANCELLED
    assert world.kinds("r")[-2:] == ["run.finished", "step.tool_finished"]
    late = world.store.events("r")[-1].body
    assert (late["late"], late["result"], late["idx"]) == (True, "receipt", 0)
    assert world.rows()["steps"] == rows[0]
    assert Ownership.OUTCOME_UNKNOWN not in driver.ownership("r")


def test_live_loop_stops_at_its_next_write(world, monkeypatch):
    from pytest_leasecheck.testkit.reference import driver as module

    called = []
    look = module.next_step

    def cancel_between(steps):
        step = look(steps)
        if step is not None and step.idx == 1:
            world.driver().cancel("r")
        return step

    monkeypatch.setattr(module, "next_step", cancel_between)
    run = world.driver(Tool("charge", called.append)).start("r", [Step("charge")] * 2)
    assert run.status is RunStatus.CANCELLED
    assert [call.idx for call in called] == [0]
    assert world.kinds("r")[-1] == "run.finished"


def test_call_that_the_cancel_forestalled_is_said_not_to_have_happened(world, monkeypatch):
    from pytest_leasecheck.testkit.reference import driver as module

    called = []
    look = module.validate_before_effect

    def cancel_first(tenure):
        world.driver().cancel("r")
        look(tenure)

    monkeypatch.setattr(module, "validate_before_effect", cancel_first)
    run = world.driver(Tool("charge", called.append)).start("r", [Step("charge")])
    assert (run.status, called) == (RunStatus.CANCELLED, [])
    assert world.store.events("r")[-1].body["status"] == "FAILED"


def test_effect_after_the_cancel_is_refused_and_said_so(world):
    def cancelled(call):
        world.driver().cancel("r")
        return world.effects.apply(call, result=1)

    run = world.driver(Tool("charge", cancelled)).start("r", [Step("charge")])
    assert run.status is RunStatus.CANCELLED
    assert world.store.effects("r") == ()
    assert world.store.events("r")[-1].body["late"] is True
    assert StaleToken.__doc__


def test_heartbeat_that_sees_the_cancel_first_does_not_call_it_a_lost_lease(world, clock):
    def cancelled(call):
        world.driver().cancel("r")
        clock.advance(10_000)

    run = world.driver(Tool("charge", cancelled)).start("r", [Step("charge")])
    assert run.status is RunStatus.CANCELLED


def test_loser_of_the_lease_appends_nothing_after_a_cancel(world, clock, tenure):
    one, two = world.driver(), world.driver()
    claim = one._insert("r", [Step("charge")], None)
    held = tenure(one, claim)
    started = held.start_step(world.store.steps("r")[0], limit=None)
    clock.pass_ms(30_000)
    resuming.take_over(two.store, two.settings, "r")
    two.cancel("r")
    assert held.record_late(started, "late", failed=False) is False


def test_cancel_settles_an_open_interruption_once(world, clock):
    world.crash(world.driver(), "r")
    clock.pass_ms(30_000)
    two = world.driver()
    resuming.take_over(two.store, two.settings, "r")
    two.cancel("r", by="ada")
    (record,) = world.store.reconciliations("r")
    assert (record.decision, record.decided_by) == ("cancel", "operator:ada")
    assert world.store.steps("r")[0].status is StepStatus.CANCELLED


def test_cancel_settles_a_question_in_its_record(world, clock):
    world.crash(world.driver(), "r")
    clock.pass_ms(30_000)
    world.driver(Tool("charge", print)).resume("r")
    world.driver().cancel("r", by="ada")
    (record,) = world.store.reconciliations("r")
    assert (record.decision, record.outcome) == ("ask-operator", "cancelled")
    assert record.decided_by == "operator:ada"


def test_end_is_not_rewritten(world):
    world.driver().start("r", [Step("charge")])
    before = world.rows()
    with pytest.raises(RunStateError, match="it has ended"):
        world.driver().cancel("r")
    assert world.rows() == before
    with pytest.raises(RunNotFound):
        world.driver().cancel("unknown")


def test_queued_and_waiting_runs_can_be_cancelled(world):
    world.store.submit("q", [Step("charge")])
    world.driver().start("w", [Step("charge", needs_approval=True)])
    for run_id in ("q", "w"):
        assert world.driver().cancel(run_id).status is RunStatus.CANCELLED
