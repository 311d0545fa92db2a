"""Start, the undisturbed run, and every way in which a call returns."""

import sqlite3
import threading

import pytest

from pytest_leasecheck.testkit.reference import (
    InvalidRunId,
    LeaseLost,
    RunExists,
    RunLeased,
    RunNotFound,
    RunStateError,
    RunStatus,
    Step,
    StepStatus,
    Tool,
    ToolFailed,
    UnknownTool,
)

PLAN = [Step("charge", {"cents": 5}), Step("mail", kind="model")]


def test_start_stamps_the_lease_in_the_inserting_transaction(world, clock):
    seen = []
    driver = world.driver(
        world.tool("charge", lambda call: seen.append(world.store.lease("r"))), name="a"
    )
    driver.start("r", [Step("charge")])
    (lease,) = seen
    assert (lease.owner, lease.fencing_token) == ("a/000000000001", 1)
    assert (lease.expires_at_ms, lease.last_renewed_at_ms) == (1_030_000, 1_000_000)


def test_undisturbed_run_has_this_sequence_of_events_and_no_other(world):
    run = world.driver().start("r", PLAN)
    assert run.status is RunStatus.SUCCEEDED
    assert world.kinds("r") == [
        "run.started",
        "step.tool_started",
        "step.tool_finished",
        "step.model_reserved",
        "step.model_finished",
        "run.finished",
    ]
    assert [step.status for step in world.store.steps("r")] == [StepStatus.DONE] * 2


def test_finished_run_holds_no_lease_and_keeps_its_token(world):
    lease = world.driver().start("r", PLAN).lease
    assert (lease.owner, lease.expires_at_ms, lease.fencing_token) == ("", 0, 1)


def test_call_carries_what_the_boundary_needs(world):
    calls = []
    driver = world.driver(world.tool("charge", calls.append), name="a")
    driver.start("r", [Step("charge", {"cents": 5})])
    (call,) = calls
    assert (call.run_id, call.idx, call.name, call.args) == ("r", 0, "charge", {"cents": 5})
    assert (call.token, call.owner, call.attempt) == (1, driver.owner, 1)
    assert call.idempotency_key == "r/0"


def test_two_drivers_of_one_name_are_two_owners(world):
    one, two = world.driver(name="same"), world.driver(name="same")
    assert one.owner != two.owner
    world.crash(one, "r")
    with pytest.raises(RunLeased) as caught:
        two.resume("r")
    assert caught.value.owner == one.owner


def test_start_of_a_taken_id_changes_nothing(world):
    world.driver().start("r", PLAN)
    before = world.rows()
    with pytest.raises(RunExists):
        world.driver().start("r", PLAN)
    assert world.rows() == before


def test_submitted_run_is_started_once(world):
    assert world.store.submit("r", PLAN) == "r"
    assert world.store.lease("r").held() is False
    assert world.driver().start("r").status is RunStatus.SUCCEEDED
    with pytest.raises(RunStateError, match="only a queued run"):
        world.driver().start("r")
    with pytest.raises(RunNotFound):
        world.driver().start("unknown")


def test_unknown_tool_is_found_before_anything_is_written(world):
    before = world.rows()
    with pytest.raises(UnknownTool, match="charge, mail"):
        world.driver().start("r", [Step("charge"), Step("typo")])
    assert world.rows() == before


def test_resume_without_the_tool_takes_nothing(world, clock):
    world.crash(world.driver(), "r")
    clock.pass_ms(30_000)
    before = world.rows()
    with pytest.raises(UnknownTool):
        world.driver(world.tool("mail")).resume("r")
    assert world.rows() == before


def test_known_failure_of_a_tool_fails_the_run(world):
    def decline(call):
        raise ToolFailed("card declined")

    run = world.driver(Tool("charge", decline)).start("r", [Step("charge"), Step("charge")])
    assert run.status is RunStatus.FAILED
    assert [step.status for step in world.store.steps("r")] == [
        StepStatus.FAILED,
        StepStatus.PENDING,
    ]
    assert world.store.steps("r")[0].result == "card declined"


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_call_that_breaks_releases_its_lease_and_leaves_the_outcome_open(world, error):
    def breaks(call):
        raise error

    with pytest.raises(error):
        world.driver(Tool("charge", breaks)).start("r", [Step("charge")])
    lease = world.store.lease("r")
    assert (lease.owner, lease.expires_at_ms, lease.fencing_token) == ("", 0, 1)
    assert world.store.run("r").status is RunStatus.RUNNING
    assert world.store.steps("r")[0].status is StepStatus.EXECUTING
    assert not [t for t in threading.enumerate() if t.name.startswith("lease-heartbeat")]


def test_released_run_is_taken_at_once_and_without_a_take_over_event(world):
    def breaks(call):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        world.driver(Tool("charge", breaks)).start("r", [Step("charge")])
    assert world.driver().resume("r").status is RunStatus.SUCCEEDED
    assert "lease.taken_over" not in world.kinds("r")
    assert world.store.lease("r").fencing_token == 2


def test_release_that_fails_does_not_hide_the_call_s_own_error(world, monkeypatch):
    from pytest_leasecheck.testkit.reference import driver as module

    def breaks(call):
        raise ZeroDivisionError

    def busy(store, claim):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(module, "release_lease", busy)
    with pytest.raises(ZeroDivisionError):
        world.driver(Tool("charge", breaks)).start("r", [Step("charge")])


def test_driver_refuses_a_run_that_it_executes_in_another_call(world):
    refused = []

    def again(call):
        for attempt in (driver.resume, lambda run_id: driver.start(run_id, PLAN)):
            with pytest.raises(RunLeased) as caught:
                attempt("r")
            refused.append((caught.value.owner, caught.value.expires_at_ms))

    driver = world.driver(world.tool("charge", again))
    driver.start("r", [Step("charge")])
    assert refused == [(driver.owner, 1_030_000)] * 2
    assert world.store.lease("r").fencing_token == 1


def test_driver_refuses_itself_across_threads_even_after_its_lease_expired(world, clock):
    inside, go = threading.Event(), threading.Event()

    def hold(call):
        inside.set()
        assert go.wait(10)

    driver = world.driver(Tool("hold", hold))
    results = []

    def start():
        try:
            driver.start("r", [Step("hold")])
        except LeaseLost as error:
            results.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    assert inside.wait(10)
    clock.set(2_000_000)  # the heartbeat finds the lease expired
    with pytest.raises(RunLeased):
        driver.resume("r")
    go.set()
    thread.join(10)
    assert len(results) == 1


def test_resume_of_what_can_t_be_resumed(world):
    world.driver().start("done", PLAN)
    world.store.submit("queued", PLAN)
    for run_id, reason in (("done", "it has ended"), ("queued", "start it")):
        with pytest.raises(RunStateError, match=reason):
            world.driver().resume(run_id)
    with pytest.raises(RunNotFound):
        world.driver().resume("unknown")


def test_now_stamps_events_and_lease_time_comes_from_the_clock_alone(world, clock):
    readings = iter(range(100))
    driver = world.driver(now=lambda: next(readings))
    driver.start("r", PLAN)
    assert [event.at_ms for event in world.store.events("r")] == list(range(6))
    assert next(readings) == 6
    assert world.store.lease("r").last_renewed_at_ms == 1_000_000


def test_error_of_a_tool_about_another_run_is_the_tool_s(world):
    world.crash(world.driver(), "other")

    def meddle(call):
        world.driver().resume("other")

    with pytest.raises(RunLeased) as caught:
        world.driver(Tool("charge", meddle)).start("r", [Step("charge")])
    assert caught.value.run_id == "other"


def test_ids_that_could_not_be_stored_are_refused(world):
    for bad in ("", "a\x00b", "\ud800", "x" * 2000, 7):
        with pytest.raises(InvalidRunId):
            world.driver().start(bad, PLAN)
