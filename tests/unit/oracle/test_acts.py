"""What each commit is called: every kind of act, told from commits alone."""

from dataclasses import replace

import pytest

from .builder import FULL, PLAIN, TTL, Story, declare


def started(declaration=FULL, *, token=1, **values):
    """A and B live, r1 is submitted, and A has claimed it."""
    s = Story(declaration)
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1", token=token, **values)
    return s


def last(s):
    return s.kinds()[-1]


def test_a_plain_life_of_a_run():
    s = started()
    s.advance(1)
    s.renew("A#1")
    s.start_step("A#1")
    s.end_step("A#1")
    s.release("A#1")
    s.claim("B#1", token=2)
    s.finish("B#1")
    assert [kind.partition(" ")[2] for kind in s.kinds()] == [
        "submit", "acquire", "renew", "write", "write", "release", "acquire", "finish"
    ]  # fmt: skip
    first, second = s.fold().tenures
    assert (first.who, first.ended, first.ended_by, first.token) == ("A#1", "released", "A#1", 1)
    assert (second.who, second.ended, second.token) == ("B#1", "finished", 2)
    assert str(second) == "B#1 (tenure 2 of r1, token 2)"


def test_a_take_over_of_an_expired_lease_is_an_acquisition_and_ends_the_tenure():
    s = started()
    s.expire()
    s.take_over("B#1")
    assert last(s) == "B#1 acquire"
    lost = s.fold().tenures[0]
    assert (lost.ended, lost.ended_by, lost.until) == ("taken over", "B#1", s.n)


def test_taking_a_live_lease_is_a_steal_and_its_holder_was_robbed():
    s = started()
    s.take_over("B#1")
    assert last(s) == "B#1 steal"
    assert s.fold().tenures[0].ended == "stolen"
    s.start_step("A#1")
    assert last(s) == "A#1 robbed-write"


def test_who_was_robbed_and_claims_again_is_a_holder_like_any():
    s = started()
    s.take_over("B#1")
    s.expire()
    s.claim("A#1", token=3)
    s.start_step("A#1")
    assert last(s) == "A#1 write"


@pytest.mark.parametrize("who", ["B#1", "A#1"])
def test_anyone_may_release_an_expired_lease_a_past_holder_too(who):
    s = started()
    s.release("A#1")
    s.claim("B#1", token=2)
    s.submit("r2")
    s.claim("A#1", "r2", token=1)
    s.expire()
    s.release("A#1", "r1")
    assert last(s) == "A#1 reap"
    assert s.fold().tenures[1].ended == "reaped"


def test_a_stranger_releasing_a_live_lease_steals_it():
    s = started()
    s.release("B#1")
    assert last(s) == "B#1 steal"
    assert s.fold().tenures[0].ended == "stolen"


@pytest.mark.parametrize(
    ("does", "kind"),
    [
        (lambda s: s.start_step("A#1"), "stale-write"),
        (lambda s: s.renew("A#1"), "stale-renew"),
        (lambda s: s.release("A#1"), "stale-release"),
        (lambda s: s.finish("A#1"), "stale-finish"),
    ],
)
def test_what_a_past_holder_does_under_the_new_ones_lease_is_stale(does, kind):
    s = started()
    s.expire()
    s.take_over("B#1")
    s.advance(1)
    does(s)
    assert last(s) == f"A#1 {kind}"
    act = s.fold().acts[-1]
    assert (act.tenure, act.holder) == (1, 2)


def test_after_a_stale_release_the_rightful_holder_is_the_victim():
    s = started()
    s.expire()
    s.take_over("B#1")
    s.release("A#1")
    s.start_step("B#1")
    s.finish("B#1")
    assert s.kinds()[-3:] == ["A#1 stale-release", "B#1 robbed-write", "B#1 robbed-finish"]


@pytest.mark.parametrize(
    ("does", "kind"),
    [
        (lambda s: s.start_step("A#1"), "late-write"),
        (lambda s: s.renew("A#1"), "late-renew"),
        (lambda s: s.release("A#1"), "late-release"),
        (lambda s: s.finish("A#1"), "late-finish"),
    ],
)
def test_what_a_holder_does_under_its_lapsed_lease_is_late(does, kind):
    s = started()
    s.expire()
    does(s)
    assert last(s) == f"A#1 {kind}"


def test_lapse_is_judged_by_the_clock_value_read_last():
    s = started()
    s.reads("A#1")
    s.expire()
    s.commit("A#1", s.set("steps", ("r1", "pay"), status="started"))
    assert last(s) == "A#1 write"
    assert s.fold().acts[-1].detail == "lapsed in the gap"


def test_a_reading_after_the_first_write_is_not_what_the_guard_went_by():
    def story(*, reads_first):
        s = started()
        if reads_first:
            s.reads("A#1")
            s.tries("A#1", "UPDATE runs SET revision=2 WHERE id='r1' AND token = 1", rows=1)
        s.expire()
        s.reads("A#1")
        s.commit("A#1", s.set("steps", ("r1", "pay"), status="started"))
        return last(s)

    assert story(reads_first=True) == "A#1 write"
    assert story(reads_first=False) == "A#1 late-write"


def test_a_reading_that_served_an_earlier_commit_serves_no_second_one():
    s = started()
    s.reads("A#1")
    s.commit("A#1", s.set("steps", ("r1", "pay"), status="started"))
    s.expire()
    s.commit("A#1", s.set("steps", ("r1", "mail"), status="started"))
    assert last(s) == "A#1 late-write"


def test_the_reading_of_the_writing_thread_counts_before_another_threads():
    s = started()
    s.reads("A#1", thread="beat")
    s.expire()
    s.reads("A#1", thread="main")
    s.commit("A#1", s.set("runs", "r1", expires=s.now), thread="beat")
    assert last(s) == "A#1 renew"


def test_without_readings_the_time_is_when_the_transaction_was_about_to_begin():
    def finish(*, held):
        s = Story()
        s.spawn("A#1")
        s.submit()
        s.commit("A#1", s.set("runs", "r1", **s.leased("A#1", 1)))
        if held:
            s.passed("A#1", "txn:begin", held=True)
        s.expire()
        if not held:
            s.passed("A#1", "txn:begin")
        s.commit("A#1", s.set("runs", "r1", status="done", owner=None))
        return last(s)

    assert finish(held=True) == "A#1 finish"
    assert finish(held=False) == "A#1 late-finish"


def test_sqlites_own_clock_is_read_when_the_statement_runs():
    s = Story()
    s.spawn("A#1")
    s.submit()
    s.commit("A#1", s.set("runs", "r1", **s.leased("A#1", 1)))
    s.passed("A#1", "txn:begin", held=True)
    s.expire()
    s.commit(
        "A#1", s.set("runs", "r1", status="done", owner=None),
        sql=("UPDATE runs SET status='done' WHERE expires > julianday('now')",),
    )  # fmt: skip
    assert last(s) == "A#1 late-finish"


def test_a_stranger_to_the_run_is_foreign():
    s = started()
    s.commit("B#1", s.set("runs", "r1", result="x"))
    assert last(s) == "B#1 foreign-write"
    s.finish("B#1")
    assert last(s) == "B#1 foreign-finish"


@pytest.mark.parametrize("fields", [{"status": "failed"}, {"status": "queued"}])
def test_leaving_a_terminal_state_rewrites_it(fields):
    s = started()
    s.finish("A#1")
    s.commit("B#1", s.set("runs", "r1", **fields))
    assert last(s) == "B#1 rewrites-terminal"


def test_an_operator_creates_edits_and_cancels_and_never_holds():
    s = started()
    s.operator(s.set("runs", "r1", result="note"), job="submit")
    s.operator(s.set("runs", "r1", status="cancelled", owner=None))
    assert [act.kind for act in s.fold().acts[-2:]] == ["operator-edit", "operator-cancel"]
    (tenure,) = s.fold().tenures
    assert (tenure.who, tenure.ended) == ("A#1", "cancelled")
    assert tenure.ended_by.startswith("operator#")


def test_an_owner_cleared_and_a_status_set_in_one_commit_is_one_finish():
    s = started()
    s.finish("A#1")
    assert s.kinds()[-1] == "A#1 finish"
    assert len(s.fold().acts) == 3


def test_a_row_deleted_at_the_end_is_a_finish_where_declared():
    declaration = replace(FULL, runs=replace(FULL.runs, gone=True))
    s = started(declaration)
    s.commit("A#1", s.add_row("events", run_id="r1", what="result"))
    s.commit("A#1", s.delete("runs", "r1"))
    assert s.kinds()[-2:] == ["A#1 write", "A#1 finish"]
    assert s.fold().tenures[0].ended == "finished"
    other = started()
    other.commit("A#1", other.delete("runs", "r1"))
    assert other.fold().tenures[0].ended == "deleted"


def test_a_change_of_nothing_is_no_act():
    s = started()
    s.finish("A#1", result="r")
    s.commit("A#1", s.set("runs", "r1", status="done", result="r"))
    assert last(s) == "A#1 finish"


def test_renewing_and_writing_in_one_transaction_is_both():
    s = started()
    s.advance(1)
    s.reads("A#1")
    step = s.set("steps", ("r1", "pay"), status="started")
    s.commit("A#1", s.set("runs", "r1", expires=s.now + TTL), step)
    assert s.kinds()[-2:] == ["A#1 renew", "A#1 write"]


def test_several_runs_in_one_commit_are_judged_each():
    s = started()
    s.submit("r2")
    s.claim("B#1", "r2", token=1)
    s.expire()
    s.reads("B#1")
    free = {"status": "queued", "owner": None, "expires": None}
    s.commit("B#1", s.set("runs", "r1", **free), s.set("runs", "r2", **free))
    assert last(s) == "B#1 reap"
    assert s.kinds("r2")[-1] == "B#1 late-release"


def test_one_process_may_hold_several_runs_and_two_tenures_of_one():
    s = started()
    s.submit("r2")
    s.claim("A#1", "r2", token=1)
    s.expire()
    s.claim("A#1", token=2)
    tenures = [(one.run_id, one.number, one.who, one.ended) for one in s.fold().tenures]
    assert tenures == [
        ("r1", 1, "A#1", "taken over"), ("r2", 1, "A#1", ""), ("r1", 2, "A#1", "")
    ]  # fmt: skip


def test_a_receipt_of_the_first_tenure_that_lands_in_the_second_is_stale():
    s = started()
    request = s.effect("A#1")
    s.expire()
    s.claim("A#1", token=2)
    s.end_step("A#1", result=f'{{"receipt": "{s.receipt(request)}"}}')
    assert last(s) == "A#1 stale-write"
    assert s.fold().acts[-1].tenure == 1


@pytest.mark.parametrize("wrap", [str, str.encode, "b64"])
def test_a_receipt_is_found_in_text_in_bytes_and_in_base64(wrap):
    import base64

    s = started()
    receipt = s.receipt(s.effect("A#1"))
    s.expire()
    s.claim("A#1", token=2)
    plain = f"[{receipt}]"
    s.end_step("A#1", result=base64.b64encode(plain.encode()) if wrap == "b64" else wrap(plain))
    assert last(s) == "A#1 stale-write"


def test_only_the_first_landing_of_a_receipt_counts():
    s = started()
    receipt = s.receipt(s.effect("A#1"))
    s.end_step("A#1", result=receipt)
    s.expire()
    s.claim("A#1", token=2)
    s.finish("A#1", result=receipt)
    assert last(s) == "A#1 finish"


def test_a_receipt_that_its_process_looked_up_again_may_land_later():
    s = started()
    receipt = s.receipt(s.effect("A#1", key="k"))
    s.expire()
    s.claim("A#1", token=2)
    s.look_up("A#1", "k")
    s.end_step("A#1", result=receipt)
    assert last(s) == "A#1 write"


def test_two_drivers_in_one_process_are_told_apart_by_what_their_statements_name():
    def story(*, sql):
        s = started(owner="w/one")
        s.expire()
        s.claim("A#1", token=2, owner="w/two")
        s.commit("A#1", s.set("steps", ("r1", "pay"), status="started"), sql=(sql,))
        return last(s)

    assert story(sql="UPDATE steps SET status='started' WHERE owner='w/two'") == "A#1 write"
    assert story(sql="UPDATE steps SET status='started' WHERE owner='w/one'") == "A#1 stale-write"
    assert story(sql="UPDATE steps SET status='started' WHERE token = 1") == "A#1 stale-write"


def test_two_drivers_in_one_process_the_second_takes_the_firsts_live_lease():
    s = started(owner="w/one")
    s.claim("A#1", token=2, owner="w/two")
    assert last(s) == "A#1 steal"


def test_another_process_under_the_holders_name_is_no_holder():
    s = started(PLAIN)
    s.spawn("A#2", name="A")
    s.reads("A#2")
    s.commit("A#2", s.set("runs", "r1", expires=s.now + TTL + 5, owner="A#1"))
    assert last(s) == "A#2 steal"


def test_a_delayed_heartbeat_that_puts_its_own_claim_back_is_a_stale_renewal():
    s = started()
    s.expire()
    s.take_over("B#1")
    s.reads("A#1")
    s.commit("A#1", s.set("runs", "r1", owner="A#1", token=1, expires=s.now + TTL))
    assert last(s) == "A#1 stale-renew"
    s.start_step("B#1")
    assert last(s) == "B#1 robbed-write"


def test_a_blind_heartbeat_takes_the_name_but_no_new_token():
    s = started()
    s.expire()
    s.take_over("B#1")
    s.reads("A#1")
    s.commit("A#1", s.set("runs", "r1", owner="A#1", expires=s.now + TTL))
    assert last(s) == "A#1 stale-renew"


def test_a_declared_reaper_is_a_janitor_whoever_calls_it():
    s = started(replace(FULL, reapers=("q:reap",)))
    s.expire()
    s.take_over("B#1")
    s.expire()
    s.passed("A#1", "call:q:reap")
    s.commit("A#1", s.set("runs", "r1", status="failed", owner=None))
    s.passed("A#1", "call:q:reap", "after")
    assert last(s) == "A#1 reap"


def test_a_worker_whose_job_is_to_reap_may_end_what_expired_and_steals_what_did_not():
    def reap(*, expired):
        s = started()
        s.spawn("J#1", job="reap")
        if expired:
            s.expire()
        s.commit("J#1", s.set("runs", "r1", status="queued", owner=None))
        return last(s)

    assert reap(expired=True) == "J#1 reap"
    assert reap(expired=False) == "J#1 steal"


def test_leases_in_a_table_of_their_own():
    declaration = declare(table="leases", run="run_id", token="fence", held={})
    s = Story(declaration)
    s.spawn("A#1", "B#1")
    s.submit()
    lease = {"run_id": "r1", "owner": "A", "fence": 1, "expires": s.now + TTL}
    s.commit("A#1", s.set("leases", 1, **lease))
    s.expire()
    s.reads("B#1")
    lease |= {"fence": 2, "expires": s.now + TTL}
    s.commit("B#1", s.delete("leases", 1), s.set("leases", 2, **lease))
    s.commit("B#1", s.delete("leases", 2), s.set("runs", "r1", status="done"))
    assert s.kinds()[1:] == ["A#1 acquire", "B#1 acquire", "B#1 finish"]
    assert [one.token for one in s.fold().tenures] == [1, 2]
