"""The heartbeat: by time, on its own connection, through errors, until the call returns."""

import sqlite3
import threading

import pytest

from pytest_leasecheck.testkit.reference import (
    Driver,
    LeaseLost,
    RunLeased,
    RunStatus,
    Step,
    Store,
    Tool,
)
from pytest_leasecheck.testkit.reference import resume as resuming
from pytest_leasecheck.testkit.reference.heartbeat import Heartbeat
from pytest_leasecheck.testkit.reference.lease import release, renew


def beating():
    return [t for t in threading.enumerate() if t.name.startswith("lease-heartbeat")]


@pytest.fixture
def held(world):
    """A claim in force and a heartbeat on it that beats when told."""
    driver = world.driver(name="a")
    claim = driver._insert("r", [Step("charge")], None)
    heart = Heartbeat(driver.store, claim, clock=world.clock, ttl_ms=30_000)
    yield driver, claim, heart
    if heart._own is not None:
        heart._own.close()


def test_lease_lives_through_a_call_longer_than_several_ttls(world, clock):
    seen = []

    def long(call):
        for _ in range(12):
            clock.advance(10_000)
            seen.append(world.store.lease("r").expires_at_ms - clock._now_ms)
            with pytest.raises(RunLeased):
                world.driver().resume("r")

    run = world.driver(Tool("charge", long)).start("r", [Step("charge")])
    assert run.status is RunStatus.SUCCEEDED
    assert seen == [30_000] * 12
    assert world.kinds("r") == [
        "run.started",
        "step.tool_started",
        "step.tool_finished",
        "run.finished",
    ]


def test_one_daemon_thread_while_the_call_lives_and_none_after(world):
    seen = []
    driver = world.driver(Tool("charge", lambda call: seen.extend(beating())))
    driver.start("r", [Step("charge")])
    (thread,) = seen
    assert thread.daemon
    assert beating() == []


def test_renewal_sets_the_expiry_and_never_adds_to_it(world, clock, held):
    _, _, heart = held
    for _ in range(3):
        clock.pass_ms(1_000)
        heart.beat()
        lease = world.store.lease("r")
        assert lease.expires_at_ms == clock._now_ms + 30_000
        assert lease.last_renewed_at_ms == clock._now_ms


def test_clock_that_goes_back_shortens_no_lease(world, clock, held):
    _, _, heart = held
    clock.pass_ms(-5_000)
    heart.beat()
    assert world.store.lease("r").expires_at_ms == 1_030_000
    assert heart.lost is None


def test_expired_lease_is_not_revived_though_nobody_took_it(world, clock, held):
    _, _, heart = held
    clock.pass_ms(30_000)
    before = world.rows()
    heart.beat()
    assert world.rows() == before
    assert heart.lost == "it expired at 1030000 ms"


def test_delayed_beat_does_not_steal_the_lease_back(world, clock, held):
    _, _, heart = held
    clock.pass_ms(30_000)
    two = world.driver(name="b")
    resuming.take_over(two.store, two.settings, "r")
    before = world.rows()
    heart.beat()
    assert world.rows() == before
    assert heart.lost is not None
    assert two.owner in heart.lost


def test_own_new_claim_is_not_renewed_by_the_old_one_s_heartbeat(world, clock, held):
    driver, _, heart = held
    clock.pass_ms(30_000)
    resuming.take_over(driver.store, driver.settings, "r")
    heart.beat()
    assert heart.lost is not None
    assert "with token 2" in heart.lost


def test_beat_that_finds_the_lock_busy_is_retried_at_the_next_tick(world, clock, held):
    _, _, heart = held
    clock.pass_ms(10_000)
    with world.store.transaction():
        heart.beat()
    assert heart.lost is None
    assert world.store.lease("r").expires_at_ms == 1_030_000
    clock.pass_ms(10_000)
    heart.beat()
    assert world.store.lease("r").expires_at_ms == 1_050_000


def test_lease_is_lost_by_expiry_when_no_beat_succeeded(world, clock, held):
    _, _, heart = held
    with world.store.transaction():
        for _ in range(3):
            assert heart.lost is None
            clock.pass_ms(10_000)
            heart.beat()
    assert heart.lost == "it expired at 1030000 ms, unrenewed: database is locked"


def test_connection_that_can_t_be_opened_is_an_error_like_any_other(
    world, clock, held, monkeypatch
):
    driver, _, heart = held

    def no(**options):
        raise sqlite3.OperationalError("unable to open database file")

    with monkeypatch.context() as patch:
        patch.setattr(driver.store, "own_connection", no)
        heart.beat()
    assert heart.lost is None
    clock.pass_ms(10_000)
    heart.beat()
    assert world.store.lease("r").expires_at_ms == 1_040_000


def test_holder_of_the_store_s_connection_does_not_starve_the_heartbeat(world, clock):
    def long(call):
        with driver.store.db() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT * FROM runs").fetchone()
            clock.advance(60_000)
            connection.execute("COMMIT")

    driver = world.driver(Tool("charge", long))
    assert driver.start("r", [Step("charge")]).status is RunStatus.SUCCEEDED


def test_memory_store_beats_on_its_only_connection(clock, monkeypatch):
    opened = []
    real = sqlite3.connect

    def connect(*args, **kwargs):
        opened.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", connect)
    with Store(":memory:", clock=clock) as store:
        expiries = []

        def long(call):
            clock.advance(60_000)
            expiries.append(store.lease("r").expires_at_ms)

        Driver(store, tools=[Tool("charge", long)]).start("r", [Step("charge")])
        assert expiries == [1_090_000]
    assert opened == [(":memory:",)]


def test_loop_whose_lease_was_taken_stops_before_its_next_call(world, clock):
    started = []
    two = world.driver(name="b")

    def overtaken(call):
        started.append(call.idx)

    def steal_after(tenure, started_call, result, *, failed):
        recorded = real(tenure, started_call, result, failed=failed)
        # Between two steps: frozen past the expiry, and another takes the run.
        clock.set(1_030_000)
        resuming.take_over(two.store, two.settings, "r")
        return recorded

    from pytest_leasecheck.testkit.reference.tenure import Tenure

    real = Tenure.record_outcome
    Tenure.record_outcome = steal_after
    try:
        with pytest.raises(LeaseLost):
            world.driver(Tool("charge", overtaken), name="a").start(
                "r", [Step("charge"), Step("charge", kind="model")]
            )
    finally:
        Tenure.record_outcome = real
    assert started == [0]
    assert world.store.lease("r").owner == two.owner


def test_renew_and_release_are_compare_and_set(world, clock, held):
    driver, claim, _ = held
    two = world.driver(name="b")
    clock.pass_ms(30_000)
    taken = resuming.take_over(two.store, two.settings, "r")
    with driver.store.db() as connection:
        assert not renew(connection, claim, now_ms=clock.now_ms(), ttl_ms=30_000)
        assert not release(connection, claim)
    assert world.store.lease("r").owner == two.owner
    with two.store.db() as connection:
        assert release(connection, taken)
        assert not release(connection, taken)


def test_error_in_a_beat_leaves_no_thread_behind(world, clock, monkeypatch):
    def long(call):
        clock.advance(10_000)

    monkeypatch.setattr(
        "pytest_leasecheck.testkit.reference.heartbeat.renew",
        lambda *args, **kwargs: (_ for _ in ()).throw(sqlite3.OperationalError("disk I/O error")),
    )
    world.driver(Tool("charge", long)).start("r", [Step("charge")])
    assert beating() == []
