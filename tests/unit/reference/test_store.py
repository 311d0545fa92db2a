"""The store: reading a lease, hostile text, keys, slots, tokens across delete and restore."""

import os

import pytest

from pytest_leasecheck.testkit.reference import (
    InvalidPayload,
    LeaseLost,
    RunExists,
    RunLeased,
    RunNotFound,
    RunStateError,
    RunStatus,
    Step,
    Store,
    StoreError,
    Tool,
    ToolBusy,
)
from pytest_leasecheck.testkit.reference import resume as resuming


def test_reading_a_lease_changes_nothing_and_tells_stale_from_released(world, clock):
    world.crash(world.driver(name="a"), "stale")
    world.driver().start("released", [Step("charge")])
    clock.pass_ms(60_000)
    before = world.rows()
    stale, released = world.store.lease("stale"), world.store.lease("released")
    assert (stale.owner, stale.expires_at_ms) == ("a/000000000001", 1_030_000)
    assert stale.held()
    assert not stale.live(clock.now_ms())
    assert (released.owner, released.expires_at_ms) == ("", 0)
    with pytest.raises(RunNotFound) as caught:
        world.store.lease("unknown")
    assert caught.value.run_id == "unknown"
    assert world.rows() == before


@pytest.mark.parametrize("run_id", ["o'brien", '"; DROP TABLE runs; --', "日本\n\t", "%_", "a/0"])
def test_strange_ids_are_stored_unharmed(world, run_id):
    world.driver().start(run_id, [Step("charge")])
    assert world.store.runs() == (run_id,)
    assert world.store.runs(RunStatus.SUCCEEDED) == (run_id,)


@pytest.mark.parametrize(
    "payload", ["a\x00b", "\ud800", "x" * 10_000_000, {"k": [1.5, None, True]}, 2**70]
)
def test_strange_payloads_come_back_as_they_were(world, payload):
    driver = world.driver(Tool("echo", lambda call: call.args))
    driver.start("r", [Step("echo", payload)])
    (step,) = world.store.steps("r")
    assert step.args == step.result == payload


def nested():
    loop = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("payload", [{1: 2}, {"a": [{None: 1}]}, float("nan"), b"x", nested()])
def test_payloads_that_json_would_harm_are_refused(world, payload):
    before = world.rows()
    with pytest.raises(InvalidPayload):
        world.driver().start("r", [Step("charge", payload)])
    assert world.rows() == before


def test_step_of_an_unknown_kind_is_refused(world):
    with pytest.raises(ValueError, match="kind 'tol'"):
        world.driver().start("r", [Step("charge", kind="tol")])


def test_start_by_key_happens_once(world):
    plan = [Step("charge")]
    first = world.driver().start("r1", plan, key="order 7")
    again = world.driver().start("r2", plan, key="order 7")
    assert again == first
    assert world.store.submit("r3", plan, key="order 7") == "r1"
    assert world.store.runs() == ("r1",)
    assert len(world.store.effects("r1")) == 1


def test_submit_of_a_taken_id_is_refused(world):
    world.store.submit("r", [Step("charge")], key="a")
    with pytest.raises(RunExists):
        world.store.submit("r", [Step("charge")], key="b")


def test_tool_takes_a_slot_while_it_runs(world):
    seen = []

    def during(call):
        seen.append(world.rows()["tool_slots"])
        with pytest.raises(ToolBusy) as caught:
            world.driver(world.tool("charge", limit=1)).start("r2", [Step("charge")])
        assert (caught.value.tool, caught.value.limit) == ("charge", 1)

    world.driver(world.tool("charge", during, limit=1)).start("r1", [Step("charge")])
    assert seen == [[("charge", 1)]]
    assert world.rows()["tool_slots"] == [("charge", 0)]
    # The refused one was released, and comes later.
    assert world.store.lease("r2").owner == ""
    assert world.driver().resume("r2").status is RunStatus.SUCCEEDED


@pytest.mark.parametrize("how", ["taken over", "cancelled"])
def test_slot_is_given_back_once_though_the_pruned_worker_finishes_too(world, clock, how):
    def pruned(call):
        if how == "cancelled":
            world.driver().cancel("r")
        else:
            clock.pass_ms(30_000)
            two = world.driver()
            resuming.take_over(two.store, two.settings, "r")
        assert world.rows()["tool_slots"] == [("charge", 0)]

    driver = world.driver(Tool("charge", pruned, limit=1))
    if how == "cancelled":
        driver.start("r", [Step("charge")])
    else:
        with pytest.raises(LeaseLost):
            driver.start("r", [Step("charge")])
    assert world.rows()["tool_slots"] == [("charge", 0)]


def test_token_grows_at_every_change_of_ownership_and_never_repeats(world, clock):
    plan = [Step("charge", needs_approval=True)]
    world.driver().start("r", plan)
    tokens = [world.store.lease("r").fencing_token]
    for _ in range(3):
        two = world.driver()
        with two.store.transaction() as connection:
            connection.execute("UPDATE runs SET status = 'RUNNING'")
        resuming.take_over(two.store, two.settings, "r")
        tokens.append(world.store.lease("r").fencing_token)
        clock.pass_ms(30_000)
    assert tokens == [1, 2, 3, 4]


def test_run_of_a_deleted_id_repeats_neither_token_nor_key(world):
    world.driver().start("r", [Step("charge")])
    world.store.delete("r")
    with pytest.raises(RunNotFound):
        world.store.run("r")
    world.driver().start("r", [Step("charge")])
    assert world.store.lease("r").fencing_token == 2
    assert world.store.steps("r")[0].idempotency_key == "r/1.0"
    world.store.delete("r")
    world.store.submit("r", [Step("charge")])
    assert world.driver().start("r").lease.fencing_token == 3
    assert world.store.highest_token() == 3


def test_unfinished_run_can_t_be_deleted(world):
    world.crash(world.driver(), "r")
    with pytest.raises(RunStateError, match="only a finished run"):
        world.store.delete("r")


def test_restored_backup_can_be_told_never_to_issue_a_token_twice(world, clock, tenure, tmp_path):
    one = world.driver(name="a")
    world.crash(one, "r")
    world.store.backup(tmp_path / "backup.db")
    # Life goes on in the file that will be lost.
    for _ in range(5):
        clock.pass_ms(30_000)
        two = world.driver(name="b")
        last = resuming.take_over(two.store, two.settings, "r")
    highest = world.store.highest_token()
    assert last.token == highest == 6

    with Store(tmp_path / "backup.db", clock=clock) as restored:
        restored.raise_tokens(highest)
        three = world.driver(name="c", store=restored)
        clock.pass_ms(30_000)
        claim = resuming.take_over(restored, three.settings, "r")
        assert claim.token > highest
        three.start("new", [Step("charge", needs_approval=True)])
        assert restored.lease("new").fencing_token > highest


def test_holder_in_a_restored_file_loses_its_lease_and_it_is_waited_out(world, tenure):
    one = world.driver()
    claim = one._insert("r", [Step("charge")], None)
    world.store.raise_tokens(9)
    with pytest.raises(RunStateError):
        tenure(one, claim).start_step(world.store.steps("r")[0], limit=None)
    with pytest.raises(RunLeased):
        world.driver().resume("r")
    with pytest.raises(ValueError, match="never negative"):
        world.store.raise_tokens(-1)


def test_backup_overwrites_nothing(world, tmp_path):
    (tmp_path / "there.db").write_text("mine")
    with pytest.raises(StoreError, match="never overwrites"):
        world.store.backup(tmp_path / "there.db")


def test_store_from_before_a_fork_is_refused(world, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StoreError, match="before a fork"):
        world.store.runs()


def test_path_must_be_one():
    with pytest.raises(StoreError, match="empty path"):
        Store("")
