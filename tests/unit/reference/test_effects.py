"""The fenced effect store: effect and lease in one transaction."""

import pytest

from pytest_leasecheck.testkit.reference import (
    Found,
    InvalidPayload,
    LeaseLost,
    NotFound,
    RunStatus,
    StaleToken,
    Step,
    Tool,
)


def test_effect_is_applied_in_the_transaction_that_checks_the_lease(world):
    def charge(call):
        return world.effects.apply(
            call, lambda db: db.execute("CREATE TABLE ledger (n)").connection.in_transaction
        )

    world.driver(Tool("charge", charge)).start("r", [Step("charge")])
    (effect,) = world.store.effects("r")
    assert (effect.idempotency_key, effect.result, effect.fencing_token) == ("r/0", True, 1)


def test_effect_that_breaks_is_not_applied(world):
    def charge(call):
        def half(db):
            db.execute("CREATE TABLE ledger (n)")
            raise ZeroDivisionError

        return world.effects.apply(call, half)

    with pytest.raises(ZeroDivisionError):
        world.driver(Tool("charge", charge)).start("r", [Step("charge")])
    assert "ledger" not in world.rows()
    assert world.effects.lookup("r/0") == NotFound()


def test_same_key_gives_the_kept_result_and_applies_nothing(world):
    applied = []

    def charge(call):
        return [world.effects.apply(call, lambda db: applied.append(1) or "once") for _ in "12"]

    world.driver(Tool("charge", charge)).start("r", [Step("charge")])
    assert (applied, world.store.steps("r")[0].result) == ([1], ["once", "once"])
    assert world.effects.lookup("r/0") == Found("once")


def test_two_effects_of_one_step_have_keys_of_their_own(world):
    def charge(call):
        world.effects.apply(call, result=1)
        world.effects.apply(call, result=2, key=call.idempotency_key + "/tip")

    world.driver(Tool("charge", charge)).start("r", [Step("charge")])
    assert [effect.result for effect in world.store.effects("r")] == [1, 2]


@pytest.mark.parametrize("applied_before", [True, False])
def test_stale_token_is_refused_also_where_the_key_would_hide_it(world, clock, applied_before):
    """The first seed's eight steps, in one process: A paused before its effect, B does it."""

    def paused(call):
        if applied_before:
            world.effects.apply(call, result="mine")
        clock.pass_ms(30_000)
        assert world.driver().resume("r").status is RunStatus.SUCCEEDED
        return world.effects.apply(call, result="mine, late")

    with pytest.raises(LeaseLost) as caught:
        world.driver(Tool("charge", paused), name="a").start("r", [Step("charge")])
    assert isinstance(caught.value.__cause__, StaleToken)
    assert caught.value.__cause__.token == 1
    assert world.effects.refused == 1
    assert len(world.store.effects("r")) == 1


def test_lapsed_lease_is_refused_though_nobody_took_it(world, clock):
    def late(call):
        clock.pass_ms(30_000)
        return world.effects.apply(call, result=1)

    with pytest.raises(LeaseLost, match="expired"):
        world.driver(Tool("charge", late)).start("r", [Step("charge")])
    assert world.store.effects("r") == ()


def test_result_that_can_t_be_stored_undoes_its_effect(world):
    def charge(call):
        return world.effects.apply(call, lambda db: db.execute("CREATE TABLE ledger (n)"))

    with pytest.raises(InvalidPayload):
        world.driver(Tool("charge", charge)).start("r", [Step("charge")])
    assert "ledger" not in world.rows()
