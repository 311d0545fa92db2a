"""Honest programs that look guilty, each with the smallest change that makes it guilty."""

from dataclasses import replace

import pytest

from pytest_leasecheck.testkit.history import Change
from pytest_leasecheck.testkit.subject import Beat, Lease, Writes

from .builder import FULL, PLAIN, TTL, Story


def started(declaration=FULL, **values):
    s = Story(declaration)
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1", **values)
    return s


def crosses_its_expiry_between_guard_and_commit(guilty):
    s = started()
    if not guilty:
        s.reads("A#1")
    s.expire()
    if guilty:
        s.reads("A#1")
    s.commit("A#1", s.set("steps", ("r1", "pay"), status="started"))
    return s


def renews_with_a_time_that_was_bound_before(guilty):
    s = started()
    now = s.reads("A#1")
    s.expire()
    if guilty:
        s.take_over("B#1")
    s.commit("A#1", s.set("runs", "r1", expires=now + TTL + 1))
    return s


def clears_its_owner_and_finishes_in_one_commit(guilty):
    s = started()
    if guilty:
        s.commit("A#1", s.set("runs", "r1", owner=None))
        s.claim("B#1", token=2)
        s.commit("A#1", s.set("runs", "r1", status="done"))
    else:
        s.commit("A#1", s.set("runs", "r1", owner=None, status="done"))
    return s


def former_owner_takes_over_in_the_same_process(guilty):
    s = started()
    receipt = s.receipt(s.effect("A#1", token=1))
    s.expire()
    s.claim("A#1", token=2)
    fresh = s.receipt(s.effect("A#1", token=2))
    s.end_step("A#1", result=receipt if guilty else fresh)
    return s


def former_owner_takes_over_in_another_process(guilty):
    s = started()
    s.kill("A#1")
    s.spawn("A#2")
    if not guilty:
        s.expire()
    s.claim("A#2", token=2)
    return s


def past_holder_is_the_janitor_too(guilty):
    s = started()
    s.release("A#1")
    s.claim("B#1", token=2)
    if not guilty:
        s.expire()
    s.release("A#1")
    return s


def reaper_requeues(guilty):
    s = started()
    s.spawn("J#1", job="reap")
    s.expire()
    if guilty:
        s.renew("A#1")
        s.reads("J#1")
    s.release("J#1")
    return s


def operator_cancels_and_the_late_outcome_comes_after(guilty):
    declaration = replace(FULL, writes=(replace(FULL.writes[0], late_ok=True),))
    s = started(declaration)
    s.start_step("A#1")
    s.operator(s.set("runs", "r1", status="cancelled", owner=None))
    s.commit("A#1", s.add_row("events", run_id="r1", what="late"))
    if guilty:
        s.commit("A#1", s.set("runs", "r1", status="done"))
    return s


def rereads_and_gives_up(guilty):
    s = started()
    s.expire()
    s.take_over("B#1")
    s.tries("A#1", "SELECT owner FROM runs WHERE id='r1'", rows=None)
    if guilty:
        s.end_step("A#1")
    s.returned("A#1")
    return s


def effects_at_least_once_with_an_idempotent_provider(guilty):
    s = started()
    s.effect("A#1", key="k", token=1)
    s.expire()
    s.take_over("B#1")
    s.effect("B#1", key="k", token=2, outcome="accepted" if guilty else "replayed")
    return s


def step_is_renewed_and_written_in_one_transaction(guilty):
    s = started()
    s.advance(TTL + 1 if guilty else 5)
    s.reads("A#1")
    step = s.set("steps", ("r1", "pay"), status="started")
    s.commit("A#1", s.set("runs", "r1", expires=s.now + TTL), step)
    return s


def retry_whose_recovery_is_killed_is_decided_again(guilty):
    s = started()
    s.spawn("C#1")
    s.start_step("A#1")
    s.expire()
    s.take_over("B#1")
    if not guilty:
        s.start_step("B#1")
    s.kill("B#1")
    s.expire()
    s.take_over("C#1", token=3)
    if guilty:
        s.commit("C#1", s.decision("C#1"))
    return s


def done_is_rewritten_as_done(guilty):
    s = started()
    s.finish("A#1", result="x")
    s.commit("B#1", s.set("runs", "r1", status="failed" if guilty else "done"))
    return s


def two_drivers_in_one_process(guilty):
    s = started(owner="w/one")
    s.expire()
    s.claim("A#1", token=2, owner="w/two")
    owner = "w/one" if guilty else "w/two"
    s.commit(
        "A#1", s.set("runs", "r1", status="done", owner=None),
        sql=(f"UPDATE runs SET status='done' WHERE id='r1' AND owner='{owner}'",),
    )  # fmt: skip
    return s


def row_is_deleted_at_the_end_results_come_before(guilty):
    s = started(replace(FULL, runs=replace(FULL.runs, gone=True)))
    s.expire()
    s.take_over("B#1")
    who = "A#1" if guilty else "B#1"
    s.commit(who, s.add_row("events", run_id="r1", what="result"))
    s.commit(who, s.delete("runs", "r1"))
    return s


def writes_after_its_own_finish_in_a_commit_of_its_own(guilty):
    s = started()
    s.finish("A#1", **({"status": "queued"} if guilty else {}))
    if guilty:
        s.claim("B#1", token=2)
    s.commit("A#1", s.add_row("events", run_id="r1", what="log"))
    return s


def one_name_for_all_workers_of_a_host(guilty):
    s = started(PLAIN, owner="host")
    s.expire()
    s.claim("B#1", owner="host")
    s.finish("A#1" if guilty else "B#1")
    return s


def many_rows_of_other_peoples_jobs(guilty):
    s = Story()
    rows = [
        s.set("runs", f"x{n}", status="running", owner="x", token=1, expires=s.now + TTL)
        for n in range(500)
    ]
    s.given(*rows)
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    if guilty:
        s.claim("A#1", "x7", token=2)
    return s


def blobs_and_text_results(guilty):
    s = started()
    s.expire()
    s.claim("A#1", token=2)
    s.end_step("A#1", result=b"\x00\xff" * 40)
    if guilty:
        s.take_over("B#1", token=3)
    return s


def expiry_lies_in_the_process_table(guilty):
    lease = Lease(
        "owner", expires_at=Beat("procs", key="name", by="owner", column="seen", seconds=30)
    )
    s = Story(replace(PLAIN, runs=replace(PLAIN.runs, lease=lease)))
    s.spawn("A#1", "B#1")
    s.submit()
    s.commit("A#1", s.set("procs", 1, name="A#1", seen=s.now))
    s.claim("A#1")
    s.advance(20)
    s.commit("A#1", s.set("procs", 1, seen=s.now))
    s.advance(20)
    if not guilty:
        s.advance(20)
    s.commit("B#1", s.set("procs", 2, name="B#1", seen=s.now))
    s.claim("B#1")
    return s


def past_holder_migrates_under_another(guilty):
    s = started()
    s.expire()
    s.take_over("B#1")
    migrated = {"status": "queued"} if guilty else {}
    s.commit("A#1", s.set("runs", "r1", priority=6, **migrated))
    return s


def past_holder_vacuums_under_another(guilty):
    s = started()
    s.expire()
    s.take_over("B#1")
    one, two = ({"run_id": "r1", "what": what} for what in ("one", "two"))
    s.commit("B#1", Change("events", (7,), None, one), Change("events", (9,), None, two))
    s.commit(
        "A#1",
        Change("events", (1,), None, one),
        Change("events", (2,), None, {**two, "what": "three"} if guilty else two),
        Change("events", (7,), one, None),
        Change("events", (9,), two, None),
    )
    return s


def claims_and_finishes_in_one_commit(guilty):
    s = started()
    s.release("A#1")
    s.claim("B#1", token=2)
    if not guilty:
        s.release("B#1")
    s.commit("A#1", s.set("runs", "r1", status="done", owner=None, token=3))
    return s


def claims_its_lapsed_run_and_finishes_in_one_commit(guilty):
    s = started()
    s.expire()
    s.reads("A#1")
    s.commit("A#1", s.set("runs", "r1", status="done", owner=None, token=1 if guilty else 2))
    return s


def a_function_finds_the_run(guilty):
    s = started(replace(FULL, writes=(Writes("events", run=f"{__name__}:run_of_event"),)))
    s.expire()
    s.take_over("B#1")
    s.commit("A#1" if guilty else "B#1", s.add_row("events", path="/runs/r1", what="x"))
    s.commit("A#1", s.add_row("events", path="/health", what="x"))
    return s


def run_of_event(row):
    return row["path"].rpartition("/")[2] if row["path"].startswith("/runs/") else None


STORIES = [
    crosses_its_expiry_between_guard_and_commit, renews_with_a_time_that_was_bound_before,
    clears_its_owner_and_finishes_in_one_commit, former_owner_takes_over_in_the_same_process,
    former_owner_takes_over_in_another_process, past_holder_is_the_janitor_too, reaper_requeues,
    operator_cancels_and_the_late_outcome_comes_after, rereads_and_gives_up,
    effects_at_least_once_with_an_idempotent_provider,
    step_is_renewed_and_written_in_one_transaction,
    retry_whose_recovery_is_killed_is_decided_again, done_is_rewritten_as_done,
    two_drivers_in_one_process, row_is_deleted_at_the_end_results_come_before,
    writes_after_its_own_finish_in_a_commit_of_its_own, one_name_for_all_workers_of_a_host,
    many_rows_of_other_peoples_jobs, blobs_and_text_results, expiry_lies_in_the_process_table,
    a_function_finds_the_run, past_holder_migrates_under_another,
    past_holder_vacuums_under_another, claims_and_finishes_in_one_commit,
    claims_its_lapsed_run_and_finishes_in_one_commit,
]  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_honest_program_is_never_called_wrong(story):
    assert story(guilty=False).titles(drained=False) == []


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_its_twin_is_caught(story):
    assert story(guilty=True).titles(drained=False) != []
