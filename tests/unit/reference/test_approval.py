"""Runs that wait: the pause releases, the resume takes, of two resumers one wins."""

import pytest

from pytest_leasecheck.testkit.reference import (
    Answered,
    Approval,
    RunStateError,
    RunStatus,
    Step,
    StepStatus,
    Tool,
    ToolBusy,
    Verdict,
)
from pytest_leasecheck.testkit.reference import resume as resuming

PLAN = [Step("charge", {"cents": 5}, needs_approval=True), Step("mail")]


@pytest.fixture
def waiting(world):
    run = world.driver().start("r", PLAN)
    assert run.status is RunStatus.WAITING_FOR_APPROVAL
    return run


def test_pause_releases_the_lease_in_its_transaction(world, waiting):
    assert (waiting.lease.owner, waiting.lease.expires_at_ms) == ("", 0)
    assert world.kinds("r") == ["run.started", "run.paused"]
    question = world.store.question("r")
    assert (question.name, question.args) == ("charge", {"cents": 5})
    assert (question.outcome_unknown, question.attempt) == (False, 0)


def test_approval_takes_the_lease_and_starts_the_tool_with_a_new_token(world, waiting):
    run = world.driver().resume("r", approval=Approval("ada"))
    assert (run.status, run.lease.fencing_token) == (RunStatus.SUCCEEDED, 2)
    kinds = world.kinds("r")
    assert kinds[2:4] == ["policy.decided", "step.tool_started"]
    assert "lease.taken_over" not in kinds
    decided = world.store.events("r")[2].body
    assert (decided["verdict"], decided["decided_by"]) == ("allow", "operator:ada")


@pytest.mark.parametrize("at", ["claimed", "_record_settled", "settle", "begin_call"])
def test_decision_start_and_lease_are_one_transaction(world, waiting, monkeypatch, at):
    before = world.rows()

    def dies(*args, **kwargs):
        raise KeyboardInterrupt

    if at == "_record_settled":
        monkeypatch.setattr(resuming.rows, "record", dies)
    else:
        monkeypatch.setattr(resuming, at, dies)
    with pytest.raises(KeyboardInterrupt):
        world.driver().resume("r", approval=Approval("ada"))
    assert world.rows() == before


def test_of_two_resumers_exactly_one_wins_and_the_other_gets_the_state_error(world, waiting):
    calls = []
    second = world.driver(world.tool("charge"), world.tool("mail"))

    def rival(step, approval):
        # The first has read the waiting run, and has not yet written.
        if not calls:
            calls.append(1)
            assert second.resume("r", approval=Approval("bob")).finished
        return Verdict.ALLOW

    with pytest.raises(RunStateError) as caught:
        world.driver(policy=rival).resume("r", approval=Approval("ada"))
    assert type(caught.value) is RunStateError
    assert world.kinds("r").count("policy.decided") == 1
    assert world.kinds("r").count("step.tool_started") == 2


def test_answer_to_an_earlier_question_is_not_taken_for_a_later_one(world):
    world.driver().start("r", [Step("charge", needs_approval=True)] * 2)
    asked = []

    def meanwhile(step, approval):
        if not asked:
            asked.append(step.idx)
            run = world.driver().resume("r", approval=Approval("bob"))
            assert run.status is RunStatus.WAITING_FOR_APPROVAL
        return Verdict.ALLOW

    with pytest.raises(RunStateError):
        world.driver(policy=meanwhile).resume("r", approval=Approval("ada"))
    assert world.store.question("r").idx == 1


def test_rejection_ends_the_run_and_starts_nothing(world, waiting):
    run = world.driver().resume("r", approval=Approval("ada", Answered.REJECT))
    assert (run.status, run.lease.owner) == (RunStatus.FAILED, "")
    assert world.store.steps("r")[0].status is StepStatus.FAILED
    assert world.kinds("r")[-2:] == ["policy.decided", "run.finished"]


@pytest.mark.parametrize(
    ("approval", "reason"),
    [(None, "needs an approval"), (Approval("ada", Answered.RETRY), "approve or reject")],
)
def test_resume_without_a_fitting_answer_changes_nothing(world, waiting, approval, reason):
    before = world.rows()
    with pytest.raises(RunStateError, match=reason):
        world.driver().resume("r", approval=approval)
    assert world.rows() == before


def test_policy_of_the_driver_decides_again_at_resume(world, waiting):
    run = world.driver(policy=lambda step, approval: Verdict.DENY).resume(
        "r", approval=Approval("ada")
    )
    assert run.status is RunStatus.FAILED


def test_policy_can_deny_at_start(world):
    called = []
    driver = world.driver(Tool("charge", called.append), policy=lambda step, a: Verdict.DENY)
    assert driver.start("r", [Step("charge")]).status is RunStatus.FAILED
    assert called == []


def test_resume_that_finds_no_slot_leaves_the_run_waiting(world, waiting):
    with world.store.transaction() as connection:
        connection.execute("INSERT INTO tool_slots VALUES ('charge', 1)")
    before = world.rows()
    with pytest.raises(ToolBusy):
        world.driver(world.tool("charge", limit=1), world.tool("mail")).resume(
            "r", approval=Approval("ada")
        )
    assert world.rows() == before
