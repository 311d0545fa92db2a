"""Process alive, lease valid, lease lost, outcome unknown, reconciliation required: told apart."""

import itertools

import pytest

from pytest_leasecheck.testkit.reference import (
    Claim,
    Lease,
    Ownership,
    RunStatus,
    Step,
    StepRow,
    StepStatus,
    Tool,
    ownership,
)

ALIVE, VALID, LOST, UNKNOWN, REQUIRED = Ownership
MINE = Claim("r", "a/1", 1, 100)
HELD = Lease("r", "a/1", 1, 100, 70)
TAKEN = Lease("r", "b/2", 2, 200, 90)
FREE = Lease("r", "", 1, 0, 70)


def step(status, *, unknown_since_ms=None):
    return StepRow(
        "r", 0, "charge", "tool", None, False, status, 1, 1, "r/0", False, unknown_since_ms, None
    )


def states(status, lease, step_status, *, claim=MINE, now_ms=50, alive=True, **options):
    since = options.pop("since", None)
    return ownership(
        RunStatus(status),
        lease=lease,
        steps=[step(StepStatus(step_status), unknown_since_ms=since)],
        claim=claim,
        now_ms=now_ms,
        process_alive=alive,
        **options,
    )


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize(
    ("status", "lease", "step_status", "now_ms", "expected"),
    [
        # executing, also when the liveness probe fails: a busy worker holds a valid lease
        ("RUNNING", HELD, "EXECUTING", 50, {VALID}),
        ("RUNNING", HELD, "PENDING", 50, {VALID}),
        # lapsed: alive or not, it no longer may
        ("RUNNING", HELD, "EXECUTING", 100, {LOST, UNKNOWN}),
        ("RUNNING", HELD, "PENDING", 100, {LOST}),
        # taken by another, before and after that one has decided
        ("RUNNING", TAKEN, "INTERRUPTED", 150, {LOST, UNKNOWN, REQUIRED}),
        ("RUNNING", TAKEN, "EXECUTING", 150, {LOST}),
        ("RUNNING", TAKEN, "DONE", 150, {LOST}),
        ("SUCCEEDED", Lease("r", "", 2, 0, 90), "DONE", 150, {LOST}),
        # released with a call's outcome open
        ("RUNNING", FREE, "EXECUTING", 50, {LOST, UNKNOWN}),
        # ended or waiting under this claim: neither held nor lost
        ("SUCCEEDED", FREE, "DONE", 50, set()),
        ("WAITING_FOR_APPROVAL", FREE, "PENDING", 50, set()),
        ("WAITING_FOR_APPROVAL", FREE, "WAITING", 50, {UNKNOWN, REQUIRED}),
        # re-taken by itself, the old claim is lost
        ("RUNNING", Lease("r", "a/1", 2, 200, 90), "INTERRUPTED", 150, {LOST, UNKNOWN, REQUIRED}),
    ],
)
def test_every_combination_that_can_occur(status, lease, step_status, now_ms, expected, alive):
    found = states(status, lease, step_status, now_ms=now_ms, alive=alive)
    assert found == expected | ({ALIVE} if alive else set())


def test_who_never_claimed_has_nothing_to_lose():
    assert states("RUNNING", HELD, "EXECUTING", claim=None) == {ALIVE}
    assert states("RUNNING", HELD, "EXECUTING", claim=None, now_ms=100) == {ALIVE, UNKNOWN}


def test_read_only_call_needs_deciding_but_its_outcome_needn_t_be_known():
    assert states("RUNNING", TAKEN, "INTERRUPTED", read_only=["charge"]) == {ALIVE, LOST, REQUIRED}


def test_cancelled_call_is_unknown_until_its_late_outcome():
    assert states("CANCELLED", FREE, "CANCELLED", since=40) == {ALIVE, UNKNOWN}
    assert states("CANCELLED", FREE, "CANCELLED", since=40, reported=[0]) == {ALIVE}
    assert states("CANCELLED", FREE, "CANCELLED") == {ALIVE}


def test_valid_and_lost_exclude_each_other_and_valid_leaves_nothing_unknown():
    for status, lease, step_status, now_ms in itertools.product(
        RunStatus, (HELD, TAKEN, FREE), StepStatus, (50, 100, 150)
    ):
        found = states(status, lease, step_status, now_ms=now_ms)
        assert not {VALID, LOST} <= found
        if step_status in ("EXECUTING", "COMPENSATING") and VALID in found:
            assert UNKNOWN not in found


def test_driver_tells_its_own_states(world, clock):
    seen = []

    def look(call):
        seen.append(driver.ownership("r"))
        clock.pass_ms(30_000)
        seen.append(driver.ownership("r", process_alive=False))
        raise ZeroDivisionError

    driver = world.driver(Tool("charge", look))
    with pytest.raises(ZeroDivisionError):
        driver.start("r", [Step("charge")])
    assert seen == [{ALIVE, VALID}, {LOST, UNKNOWN}]
    assert driver.ownership("r") == {ALIVE, LOST, UNKNOWN}
    assert world.driver().resume("r").finished
    assert driver.ownership("r") == {ALIVE, LOST}
