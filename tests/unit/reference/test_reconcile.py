"""Each interruption is decided once, by policy or person, however often recovery is killed."""

import pytest

from pytest_leasecheck.testkit.reference import (
    Answered,
    Approval,
    Decision,
    Found,
    NotFound,
    Policy,
    RunStateError,
    RunStatus,
    Step,
    StepStatus,
    Tool,
    Unknown,
    provider_tool,
)
from pytest_leasecheck.testkit.reference import resume as resuming


class Bank:
    """A provider that knows what it did, and may be asked."""

    def __init__(self, answer=None):
        self.done = {}
        self.calls = []
        self.answer = answer

    def perform(self, call):
        self.calls.append(call)
        return self.done.setdefault(call.idempotency_key, f"receipt {len(self.done) + 1}")

    def lookup(self, key):
        if self.answer is not None:
            return self.answer
        return Found(self.done[key]) if key in self.done else NotFound()


def recover(world, *tools, **options):
    world.clock.pass_ms(30_000)
    return world.driver(*tools, **options).resume("r")


def the_record(world):
    (record,) = world.store.reconciliations("r")
    return record


def test_effect_that_was_applied_is_recorded_and_not_repeated(world):
    bank = Bank()
    world.crash(world.driver(), "r")
    bank.done["r/0"] = "receipt of the dead"
    assert recover(world, provider_tool("charge", bank)).status is RunStatus.SUCCEEDED
    assert bank.calls == []
    assert world.store.steps("r")[0].result == "receipt of the dead"
    record = the_record(world)
    assert (record.decision, record.asked) == ("already-applied", "found")
    assert (record.decided_by, record.attempt) == ("policy:ask-provider", 1)
    assert record.fencing_token == 2


def test_effect_that_was_not_applied_is_retried_under_the_same_key(world):
    bank = Bank()
    world.crash(world.driver(), "r")
    recover(world, provider_tool("charge", bank))
    (call,) = bank.calls
    assert (call.idempotency_key, call.attempt, call.token) == ("r/0", 2, 2)
    assert (the_record(world).decision, the_record(world).asked) == ("retry", "not-found")


def test_time_in_outcome_unknown_is_from_the_expiry_to_the_decision(world):
    world.crash(world.driver(), "r")
    world.clock.pass_ms(5_000)
    recover(world, provider_tool("charge", Bank()))
    record = the_record(world)
    assert (record.unknown_since_ms, record.settled_at_ms) == (1_030_000, 1_035_000)


def test_provider_that_can_t_say_sends_the_run_to_an_operator(world):
    bank = Bank(Unknown("timeout"))
    world.crash(world.driver(), "r")
    run = recover(world, provider_tool("charge", bank))
    assert (run.status, run.lease.owner) == (RunStatus.WAITING_FOR_APPROVAL, "")
    question = world.store.question("r")
    assert (question.name, question.outcome_unknown) == ("charge", True)
    assert (question.idempotency_key, question.asked) == ("r/0", "unknown: timeout")
    assert (the_record(world).decision, the_record(world).outcome) == ("ask-operator", "waiting")
    assert bank.calls == []


def test_provider_that_breaks_when_asked_can_t_say(world):
    def lookup(key):
        raise ConnectionError("no route")

    world.crash(world.driver(), "r")
    recover(world, Tool("charge", lambda call: 1, lookup=lookup))
    assert world.store.question("r").asked == "unknown: ConnectionError: no route"


def test_tool_without_a_policy_waits_for_an_operator(world):
    called = []
    world.crash(world.driver(), "r")
    run = recover(world, Tool("charge", called.append))
    assert run.status is RunStatus.WAITING_FOR_APPROVAL
    assert called == []
    assert world.store.steps("r")[0].status is StepStatus.WAITING


def test_read_only_tool_simply_runs_again_and_asks_nobody(world):
    world.crash(world.driver(), "r")
    tool = Tool("charge", lambda call: "read", read_only=True, lookup=lambda key: 1 / 0)
    assert recover(world, tool).status is RunStatus.SUCCEEDED
    assert (the_record(world).decided_by, the_record(world).asked) == ("policy:read-only", "")


def test_idempotent_tool_is_retried_without_asking(world):
    world.crash(world.driver(), "r")
    recover(world, Tool("charge", lambda call: 1, policy=Policy.RETRY, lookup=lambda key: 1 / 0))
    assert (the_record(world).decision, the_record(world).asked) == ("retry", "")


@pytest.mark.parametrize("answer", [Found(), Unknown(), None])
def test_effect_that_may_have_happened_is_compensated_and_the_run_fails(world, answer):
    undone = []
    world.crash(world.driver(), "r", "charge", "mail")
    tool = Tool(
        "charge",
        lambda call: 1 / 0,
        compensate=undone.append,
        policy=Policy.COMPENSATE,
        lookup=None if answer is None else lambda key: answer,
    )
    run = recover(world, tool, world.tool("mail"))
    assert run.status is RunStatus.FAILED
    assert [call.idempotency_key for call in undone] == ["r/0/compensate"]
    assert [step.status for step in world.store.steps("r")] == [
        StepStatus.COMPENSATED,
        StepStatus.PENDING,
    ]
    assert the_record(world).decision == "compensate"


def test_effect_that_surely_did_not_happen_is_retried_not_compensated(world):
    world.crash(world.driver(), "r")
    tool = Tool(
        "charge",
        lambda call: 1,
        compensate=lambda call: 1 / 0,
        policy=Policy.COMPENSATE,
        lookup=lambda key: NotFound(),
    )
    assert recover(world, tool).status is RunStatus.SUCCEEDED


def test_interrupted_compensation_is_an_interruption_of_its_own(world):
    def dies(call):
        raise KeyboardInterrupt

    undone = []
    world.crash(world.driver(), "r")
    world.clock.pass_ms(30_000)
    tool = Tool("charge", print, compensate=dies, policy=Policy.COMPENSATE)
    with pytest.raises(KeyboardInterrupt):
        world.driver(tool).resume("r")
    tool = Tool("charge", print, compensate=undone.append, policy=Policy.COMPENSATE)
    assert world.driver(tool).resume("r").status is RunStatus.FAILED
    assert [(r.attempt, r.decision) for r in world.store.reconciliations("r")] == [
        (1, "compensate"),
        (2, "compensate"),
    ]
    assert len(undone) == 1


def test_tools_that_can_t_do_what_their_policy_says_are_refused():
    with pytest.raises(ValueError, match="no lookup"):
        Tool("t", print, policy=Policy.ASK_PROVIDER)
    with pytest.raises(ValueError, match="no compensate"):
        Tool("t", print, policy=Policy.COMPENSATE)
    with pytest.raises(ValueError, match="limit=0"):
        Tool("t", print, limit=0)


@pytest.mark.parametrize(
    "at", ["claimed", "interrupt_steps", "ask", "fence", "settle", "_record_settled", "after"]
)
def test_recovery_killed_anywhere_leaves_one_record_per_interruption(world, monkeypatch, at):
    bank = Bank()
    world.crash(world.driver(), "r")
    world.clock.pass_ms(30_000)

    class Killed(BaseException):
        pass

    def dies(*args, **kwargs):
        raise Killed

    second = provider_tool("charge", bank)
    with monkeypatch.context() as patch:
        # A killed process releases nothing.
        patch.setattr("pytest_leasecheck.testkit.reference.driver.release_lease", dies)
        if at == "after":
            second = Tool("charge", dies, lookup=bank.lookup)
        else:
            patch.setattr(resuming, at, dies)
        with pytest.raises(Killed):
            world.driver(second).resume("r")
    world.clock.pass_ms(30_000)
    assert world.driver(provider_tool("charge", bank)).resume("r").status is RunStatus.SUCCEEDED
    interruptions = [
        event.body["attempt"]
        for event in world.store.events("r")
        if event.kind == "step.interrupted"
    ]
    decided = [record.attempt for record in world.store.reconciliations("r")]
    assert decided == interruptions == ([1, 2] if at == "after" else [1])
    assert len(bank.done) == 1


def test_stale_recovery_decides_nothing(world, tenure):
    bank = Bank()
    world.crash(world.driver(), "r")
    world.clock.pass_ms(30_000)
    stale = world.driver()
    claim = resuming.take_over(stale.store, stale.settings, "r")
    (step,) = world.store.steps("r")
    world.clock.pass_ms(30_000)
    world.driver(provider_tool("charge", bank)).resume("r")
    before = world.rows()
    with pytest.raises(RunStateError):
        resuming.reconcile(tenure(stale, claim), step, provider_tool("charge", bank))
    assert world.rows() == before


def wait_for_operator(world):
    world.crash(world.driver(), "r")
    recover(world, Tool("charge", print, compensate=print))


@pytest.mark.parametrize(
    ("answer", "status", "step"),
    [
        (Answered.APPLIED, RunStatus.SUCCEEDED, StepStatus.DONE),
        (Answered.RETRY, RunStatus.SUCCEEDED, StepStatus.DONE),
        (Answered.COMPENSATE, RunStatus.FAILED, StepStatus.COMPENSATED),
        (Answered.FAIL, RunStatus.FAILED, StepStatus.FAILED),
    ],
)
def test_operator_settles_the_unknown_outcome_in_its_one_record(world, answer, status, step):
    wait_for_operator(world)
    undone = []
    driver = world.driver(Tool("charge", lambda call: "again", compensate=undone.append))
    run = driver.resume("r", approval=Approval("ada", answer, result="seen on the statement"))
    assert (run.status, run.lease.owner) == (status, "")
    assert world.store.steps("r")[0].status is step
    record = the_record(world)
    assert (record.decision, record.decided_by) == ("ask-operator", "operator:ada")
    assert record.outcome == {"applied": "already-applied"}.get(answer, answer)
    assert record.settled_at_ms == 1_030_000
    assert len(undone) == (answer is Answered.COMPENSATE)


@pytest.mark.parametrize("approval", [None, Approval("ada"), Approval("ada", Answered.REJECT)])
def test_unknown_outcome_is_not_settled_by_a_mere_approval(world, approval):
    wait_for_operator(world)
    before = world.rows()
    with pytest.raises(RunStateError, match="is unknown; an operator must say"):
        world.driver().resume("r", approval=approval)
    assert world.rows() == before


def test_operator_can_t_ask_for_a_compensation_that_nobody_wrote(world):
    wait_for_operator(world)
    with pytest.raises(RunStateError, match="can't compensate"):
        world.driver(Tool("charge", print)).resume(
            "r", approval=Approval("ada", Answered.COMPENSATE)
        )


def test_decisions_have_these_names():
    assert [str(decision) for decision in Decision] == [
        "already-applied",
        "retry",
        "compensate",
        "ask-operator",
        "fail",
    ]
    assert Step("x").kind == "tool"
