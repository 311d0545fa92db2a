"""Each guard is needed: with it the fault can't be produced, with it taken out it can."""

from contextlib import suppress
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.reference import (
    Approval,
    LeaseLost,
    Policy,
    RunStatus,
    RuntimeRefusal,
    Step,
    Store,
    Tool,
    Verdict,
    guards,
    migrations,
)
from pytest_leasecheck.testkit.reference import driver as driving
from pytest_leasecheck.testkit.reference import resume as resuming
from pytest_leasecheck.testkit.reference.heartbeat import Heartbeat
from pytest_leasecheck.testkit.reference.lease import release

PLAN = [Step("charge"), Step("mail")]


class Race:
    """A has claimed a run; what it may do late is tried after its lease lapsed or was taken."""

    def __init__(self, world, tenure):
        self.world, self._tenure = world, tenure
        self.a, self.b = world.driver(name="a"), world.driver(name="b")

    def claim(self, kind="tool", **step):
        self.mine = self.a._insert("r", [Step("charge", kind=kind, **step)], None)
        self.held = self._tenure(self.a, self.mine)
        return self.held

    def step(self):
        return self.world.store.steps("r")[0]

    def lapse(self):
        self.world.clock.pass_ms(30_000)

    def take(self):
        return resuming.take_over(self.b.store, self.b.settings, "r")

    def taken(self):
        """B takes the run over."""
        self.lapse()
        return self.take()

    def changed(self, act):
        """Whether a refused-or-not act of A's changed any row."""
        before = self.world.rows()
        with suppress(RuntimeRefusal):
            act()
        return self.world.rows() != before


def start(kind, how):
    def fault(race):
        held = race.claim(kind)
        getattr(race, how)()
        return race.changed(lambda: held.start_step(race.step(), limit=None))

    return fault


def end(act, how):
    def fault(race):
        held = race.claim()
        getattr(race, how)()
        if act == "finish":
            return race.changed(lambda: held.finish(RunStatus.SUCCEEDED))
        return race.changed(lambda: held.pause(race.step()))

    return fault


def outcome_over_the_retry_of_another(race):
    held = race.claim()
    started = held.start_step(race.step(), limit=None)
    other = race._tenure(race.b, race.taken())
    resuming.reconcile(other, race.step(), Tool("charge", print, policy=Policy.RETRY))
    return race.changed(lambda: held.record_outcome(started, "late", failed=False))


def effect(how):
    def fault(race):
        held = race.claim()
        call = held.start_step(race.step(), limit=None).call
        getattr(race, how)()
        return race.changed(lambda: race.world.effects.apply(call, result=1))

    return fault


def reconcile(how):
    def fault(race):
        race.world.crash(race.world.driver(), "r")
        race.lapse()
        stale = race._tenure(race.a, resuming.take_over(race.a.store, race.a.settings, "r"))
        getattr(race, how)()
        tool = Tool("charge", print, policy=Policy.RETRY)
        return race.changed(lambda: resuming.reconcile(stale, race.step(), tool))

    return fault


def renew(how):
    def fault(race):
        race.claim()
        heart = Heartbeat(race.a.store, race.mine, clock=race.world.clock, ttl_ms=30_000)
        getattr(race, how)()
        race.world.clock.pass_ms(1_000)
        try:
            return race.changed(heart.beat)
        finally:
            heart._own.close()

    return fault


def expiry_that_grows(race):
    race.claim()
    heart = Heartbeat(race.a.store, race.mine, clock=race.world.clock, ttl_ms=30_000)
    heart.beat()
    heart._own.close()
    return race.world.store.lease("r").expires_at_ms != 1_030_000


def release_of_another_s(race):
    race.claim()
    race.taken()
    with race.a.store.db() as connection:
        return race.changed(lambda: release(connection, race.mine))


def steal_of_a_live_lease(race):
    race.claim()
    return race.changed(race.take)


def lease_on_an_ended_run(race):
    race.claim()
    race.a.cancel("r")
    return race.changed(race.take)


def two_that_resume(race):
    race.claim(needs_approval=True).pause(race.step())

    def rival(step, approval):
        """The first has read the waiting run; before it writes, the other resumes it."""
        resuming.resume_waiting(race.b.store, race.b.settings, "r", approval)
        before.append(race.world.store.lease("r"))
        return Verdict.ALLOW

    before = []
    slow = race.world.driver(policy=rival)
    with suppress(RuntimeRefusal):
        resuming.resume_waiting(slow.store, slow.settings, "r", Approval("ada"))
    return [race.world.store.lease("r")] != before


def two_that_start_a_queued_run(race):
    race.world.store.submit("r", PLAN)
    race.a._claim_queued("r")
    return not _refused(lambda: race.b._claim_queued("r"))


def second_run_under_one_id(race):
    race.claim()
    return not _refused(lambda: race.b._insert("r", PLAN, None))


def token_that_repeats(race):
    race.claim()
    return race.taken().token == race.mine.token


def token_after_release(race):
    race.claim()
    with race.a.store.db() as connection:
        release(connection, race.mine)
    return race.take().token <= race.mine.token


def token_after_delete(race):
    race.claim()
    race.a.cancel("r")
    race.world.store.delete("r")
    return race.b._insert("r", PLAN, None).token <= race.mine.token


def token_after_restore(race):
    race.world.store.raise_tokens(9)
    return race.claim().claim.token <= 9


def end_rewritten(race):
    race.world.driver().start("r", PLAN)
    return race.changed(lambda: race.a.cancel("r"))


def late_line_of_a_loser(race):
    held = race.claim()
    started = held.start_step(race.step(), limit=None)
    race.taken()
    race.b.cancel("r")
    return held.record_late(started, "late", failed=False)


def slots_over_the_bound(race):
    race.claim().start_step(race.step(), limit=1)
    other = race._tenure(race.b, race.b._insert("r2", PLAN, None))
    return not _refused(lambda: other.start_step(race.world.store.steps("r2")[0], limit=1))


def slot_given_back_twice(race):
    held = race.claim()
    started = held.start_step(race.step(), limit=1)
    race.a.cancel("r")
    held.record_late(started, "late", failed=False)
    return race.world.rows()["tool_slots"] != [("charge", 0)]


def start_in_the_gap_between_start_and_call(race):
    called = []
    real = driving.Tenure.start_step

    def stalls(self, step, *, limit):
        started = real(self, step, limit=limit)
        race.lapse()
        return started

    driving.Tenure.start_step = stalls
    try:
        race.world.driver(Tool("charge", called.append)).start("r", [Step("charge")])
    except LeaseLost:
        pass
    finally:
        driving.Tenure.start_step = real
    return bool(called)


def driver_that_robs_itself(race):
    def again(call):
        calls.append(call)
        if len(calls) == 1:
            race.lapse()
            driver.resume("r")

    calls = []
    driver = race.world.driver(Tool("charge", again, policy=Policy.RETRY))
    with suppress(RuntimeRefusal):
        driver.start("r", [Step("charge")])
    return len(calls) > 1


def owner_without_a_suffix(race):
    return race.world.driver(name="same").owner == race.world.driver(name="same").owner


def two_runs_of_one_key(race):
    with Store(Path(race.world.path).with_name("fresh.db"), clock=race.world.clock) as store:
        ids = {store.submit(run_id, PLAN, key="order 7") for run_id in ("r1", "r2")}
    return len(ids) == 2


def _refused(act):
    try:
        act()
    except RuntimeRefusal:
        return True
    return False


GONE = "1"
TABLE = [
    (guards, "RENEW_HOLDER", GONE, renew("taken")),
    (guards, "RENEW_UNEXPIRED", GONE, renew("lapse")),
    (guards, "RENEW_EXPIRY", "lease_expires_at_ms + :ttl_ms", expiry_that_grows),
    (guards, "RELEASE_HOLDER", GONE, release_of_another_s),
    (guards, "RELEASED", "lease_owner = NULL, fencing_token = 0", token_after_release),
    (guards, "NEXT_TOKEN", "fencing_token", token_that_repeats),
    (guards, "RETIRED_TOKEN", "0", token_after_delete),
    (guards, "TOKEN_FLOOR", "0", token_after_restore),
    (guards, "TOOL_START_HOLDER", GONE, start("tool", "taken")),
    (guards, "TOOL_START_UNEXPIRED", GONE, start("tool", "lapse")),
    (guards, "MODEL_START_HOLDER", GONE, start("model", "taken")),
    (guards, "MODEL_START_UNEXPIRED", GONE, start("model", "lapse")),
    (guards, "OUTCOME_HOLDER", GONE, outcome_over_the_retry_of_another),
    (guards, "FINISH_HOLDER", GONE, end("finish", "taken")),
    (guards, "FINISH_UNEXPIRED", GONE, end("finish", "lapse")),
    (guards, "PAUSE_HOLDER", GONE, end("pause", "taken")),
    (guards, "PAUSE_UNEXPIRED", GONE, end("pause", "lapse")),
    (guards, "RECONCILE_HOLDER", GONE, reconcile("taken")),
    (guards, "RECONCILE_UNEXPIRED", GONE, reconcile("lapse")),
    (guards, "CLAIM_QUEUED", GONE, two_that_start_a_queued_run),
    (guards, "TAKE_OVER_STATUS", GONE, lease_on_an_ended_run),
    (guards, "TAKE_OVER_EXPIRED", GONE, steal_of_a_live_lease),
    (guards, "RESUME_WAITING", GONE, two_that_resume),
    (guards, "CANCEL_STATUS", GONE, end_rewritten),
    (guards, "LATE_RUN", GONE, late_line_of_a_loser),
    (guards, "EFFECT_HOLDER", GONE, effect("taken")),
    (guards, "EFFECT_UNEXPIRED", GONE, effect("lapse")),
    (guards, "SLOT_FREE", GONE, slots_over_the_bound),
    (guards, "SLOT_HELD", GONE, slot_given_back_twice),
    (guards, "INSERT_RUN", "INSERT OR REPLACE INTO runs", second_run_under_one_id),
    (migrations, "ONE_RUN_PER_KEY", "SELECT 1", two_runs_of_one_key),
    (
        driving,
        "validate_before_effect",
        lambda tenure: None,
        start_in_the_gap_between_start_and_call,
    ),
    (driving.Driver, "executes", lambda self, run_id: False, driver_that_robs_itself),
    (driving, "owner_identity", lambda name, suffix: name, owner_without_a_suffix),
]


def names():
    return [f"{owner.__name__.rpartition('.')[2]}.{name}" for owner, name, _, _ in TABLE]


@pytest.mark.parametrize(("owner", "name", "gone", "fault"), TABLE, ids=names())
def test_fault_needs_the_guard_taken_out(
    world, tenure, tmp_path, monkeypatch, owner, name, gone, fault
):
    assert not fault(Race(world, tenure))
    (folder := tmp_path / "without").mkdir()
    other = type(world)(folder / "runs.db")
    try:
        monkeypatch.setattr(owner, name, gone)
        assert fault(Race(other, tenure))
    finally:
        other.close()
