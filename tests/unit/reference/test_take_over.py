"""Resume of a running run: refused while leased, taken over after, each in one transaction."""

import pytest

from pytest_leasecheck.testkit.reference import (
    LeaseLost,
    RunLeased,
    RunStateError,
    RunStatus,
    Step,
    StepStatus,
    Tool,
)
from pytest_leasecheck.testkit.reference import resume as resuming


def test_refused_resume_changes_nothing_and_does_not_read_now(world, clock):
    world.crash(world.driver(name="a"), "r")
    clock.pass_ms(29_999)
    before = world.rows()
    readings = []
    with pytest.raises(RunLeased) as caught:
        world.driver(now=lambda: readings.append(1) or 0).resume("r")
    assert isinstance(caught.value, RunStateError)
    assert (caught.value.run_id, caught.value.owner) == ("r", "a/000000000001")
    assert caught.value.expires_at_ms == 1_030_000
    assert world.rows() == before
    assert readings == []


def test_retry_at_the_expiry_takes_a_dead_owner_s_run_over(world, clock):
    one, two = world.driver(name="a"), world.driver(name="b")
    world.crash(one, "r")
    with pytest.raises(RunLeased) as caught:
        two.resume("r")
    clock.set(caught.value.expires_at_ms)
    assert two.resume("r").status is RunStatus.SUCCEEDED
    (event,) = [e for e in world.store.events("r") if e.kind == "lease.taken_over"]
    assert event.body == {
        "previous_owner": one.owner,
        "previous_expires_at_ms": 1_030_000,
        "owner": two.owner,
        "token": 2,
    }


def test_shorter_ttl_recovers_sooner(world, clock):
    world.crash(world.driver(lease_ttl_ms=6_000), "r")
    clock.pass_ms(6_000)
    assert world.driver().resume("r").status is RunStatus.SUCCEEDED


def test_restarted_process_of_the_same_name_waits_its_old_lease_out(world, clock):
    world.crash(world.driver(name="steward"), "r")
    restarted = world.driver(name="steward")
    with pytest.raises(RunLeased):
        restarted.resume("r")
    clock.pass_ms(30_000)
    assert restarted.resume("r").status is RunStatus.SUCCEEDED


def test_own_expired_lease_is_recorded_as_taken_over_too(world, clock):
    driver = world.driver()
    world.crash(driver, "r")
    clock.pass_ms(30_000)
    driver.resume("r")
    (event,) = [e for e in world.store.events("r") if e.kind == "lease.taken_over"]
    assert event.body["previous_owner"] == event.body["owner"] == driver.owner
    assert world.store.lease("r").fencing_token == 2


@pytest.mark.parametrize("at", ["stamp", "event", "interrupt"])
def test_take_over_is_all_or_nothing(world, clock, monkeypatch, at):
    world.crash(world.driver(), "r")
    clock.pass_ms(30_000)
    before = world.rows()

    def dies(*args, **kwargs):
        raise KeyboardInterrupt

    target = {"stamp": "claimed", "event": "interrupt_steps", "interrupt": "slots.give_back"}[at]
    monkeypatch.setattr(f"{resuming.__name__}.{target}", dies)
    with pytest.raises(KeyboardInterrupt):
        world.driver().resume("r")
    assert world.rows() == before


def test_take_over_marks_the_step_in_flight_interrupted(world, clock):
    world.crash(world.driver(), "r", "charge", "mail")
    clock.pass_ms(40_000)
    two = world.driver()
    resuming.take_over(two.store, two.settings, "r")
    first, second = world.store.steps("r")
    assert (first.status, second.status) == (StepStatus.INTERRUPTED, StepStatus.PENDING)
    # Unknown since the lease that vouched for it ended, not since somebody looked.
    assert first.unknown_since_ms == 1_030_000


def test_of_two_that_take_over_one_wins(world, clock):
    world.crash(world.driver(), "r")
    clock.pass_ms(30_000)
    one, two = world.driver(), world.driver()
    resuming.take_over(one.store, one.settings, "r")
    with pytest.raises(RunLeased) as caught:
        resuming.take_over(two.store, two.settings, "r")
    assert caught.value.owner == one.owner


def test_late_outcome_is_not_written_when_another_took_the_run(world, clock):
    two = world.driver(name="b")

    def overtaken(call):
        clock.pass_ms(30_000)
        two_claims.append(resuming.take_over(two.store, two.settings, "r"))
        return "late"

    two_claims = []
    one = world.driver(Tool("charge", overtaken), name="a")
    with pytest.raises(LeaseLost) as caught:
        one.start("r", [Step("charge")])
    assert isinstance(caught.value.__cause__, RunLeased)
    assert caught.value.__cause__.owner == two.owner
    (step,) = world.store.steps("r")
    assert (step.status, step.result) == (StepStatus.INTERRUPTED, None)
    # The loser gave back nothing that it did not hold.
    assert world.store.lease("r").owner == two.owner


def test_late_outcome_is_not_written_after_the_other_has_finished(world, clock):
    def overtaken(call):
        clock.pass_ms(30_000)
        assert world.driver(name="b").resume("r").status is RunStatus.SUCCEEDED
        return "late"

    with pytest.raises(LeaseLost):
        world.driver(Tool("charge", overtaken), name="a").start("r", [Step("charge")])
    (step,) = world.store.steps("r")
    assert step.result.startswith("charge by b/")
    assert world.kinds("r").count("step.tool_finished") == 1


def test_outcome_under_a_lapsed_lease_is_recorded_and_nothing_more_starts(world, clock):
    started = []

    def slow(call):
        started.append(call.idx)
        clock.pass_ms(30_000)
        return "slow"

    with pytest.raises(LeaseLost, match="expired"):
        world.driver(Tool("charge", slow)).start("r", [Step("charge"), Step("charge")])
    assert started == [0]
    first, second = world.store.steps("r")
    assert (first.status, first.result) == (StepStatus.DONE, "slow")
    assert second.status is StepStatus.PENDING
    lease = world.store.lease("r")
    assert (lease.owner, world.store.run("r").status) == ("", RunStatus.RUNNING)
    # The rest is anybody's, at once.
    assert world.driver().resume("r").status is RunStatus.SUCCEEDED
    assert world.store.reconciliations("r") == ()


@pytest.mark.parametrize("kind", ["tool", "model"])
def test_stalled_loop_starts_neither_tool_nor_model_call(world, clock, kind, tenure):
    driver = world.driver()
    claim = driver._insert("r", [Step("charge", kind=kind)], None)
    clock.pass_ms(30_000)
    before = world.rows()
    with pytest.raises(LeaseLost, match="expired"):
        tenure(driver, claim).start_step(world.store.steps("r")[0], limit=None)
    assert world.rows() == before


@pytest.mark.parametrize("end", ["finish", "pause"])
def test_lapsed_loop_neither_finishes_nor_pauses(world, clock, end, tenure):
    driver = world.driver()
    claim = driver._insert("r", [Step("charge")], None)
    clock.pass_ms(30_000)
    before = world.rows()
    held, what = tenure(driver, claim), world.store.steps("r")[0]
    if end == "finish":
        what = RunStatus.SUCCEEDED
    with pytest.raises(LeaseLost):
        getattr(held, end)(what)
    assert world.rows() == before


def test_lease_is_validated_between_the_recorded_start_and_the_call(world, clock, monkeypatch):
    from pytest_leasecheck.testkit.reference import driver as module

    called = []
    look = module.validate_before_effect

    def stalled(tenure):
        clock.pass_ms(30_000)
        look(tenure)

    monkeypatch.setattr(module, "validate_before_effect", stalled)
    with pytest.raises(LeaseLost):
        world.driver(Tool("charge", called.append)).start("r", [Step("charge")])
    assert called == []
