"""The lease's numbers and names: TTL, owner, validation, skew."""

import pytest

from pytest_leasecheck.testkit.reference import (
    DEFAULT_LEASE_TTL_MS,
    Claim,
    InvalidRunId,
    InvalidTtl,
    Lease,
    LeaseLost,
    skew_borne_ms,
)
from pytest_leasecheck.testkit.reference.lease import (
    checked_ttl_ms,
    heartbeat_interval_ms,
    owner_identity,
    random_suffix,
    validate,
)

HELD = Lease("r", "a/1", 7, 100, 70)
CLAIM = Claim("r", "a/1", 7, 100)


def test_ttl_is_thirty_seconds_unless_said_and_zero_means_that():
    assert DEFAULT_LEASE_TTL_MS == 30_000
    assert checked_ttl_ms(0) == 30_000
    assert checked_ttl_ms(3) == 3


@pytest.mark.parametrize("ttl_ms", [-1, 1, 2, 10**12, True, 1.5, "30"])
def test_ttl_that_no_heartbeat_could_keep_is_refused_in_words(ttl_ms):
    with pytest.raises(InvalidTtl, match="lease_ttl_ms=") as caught:
        checked_ttl_ms(ttl_ms)
    assert isinstance(caught.value, ValueError)
    assert caught.value.ttl_ms == ttl_ms


def test_heartbeat_beats_every_third():
    assert [heartbeat_interval_ms(ttl) for ttl in (30_000, 6_000, 3)] == [10_000, 2_000, 1]


def test_skew_below_two_thirds_of_the_ttl_sees_a_renewed_lease_as_live():
    ttl_ms = 30_000
    # Just before the next beat, a third of the TTL after the last.
    lease = Lease("r", "a/1", 1, ttl_ms, 0)
    now_ms = heartbeat_interval_ms(ttl_ms)
    assert lease.live(now_ms + skew_borne_ms(ttl_ms))
    assert not lease.live(now_ms + skew_borne_ms(ttl_ms) + 1)


def test_owner_is_name_slash_suffix_and_the_suffix_alone_without_a_name():
    assert owner_identity("steward@build-3", lambda: "9c41e0b27d5a") == (
        "steward@build-3/9c41e0b27d5a"
    )
    assert owner_identity("", lambda: "9c41e0b27d5a") == "9c41e0b27d5a"


def test_suffixes_differ():
    assert len({random_suffix() for _ in range(1000)}) == 1000
    with pytest.raises(ValueError, match="no identity"):
        owner_identity("a", lambda: "")
    with pytest.raises(InvalidRunId):
        owner_identity("a\x00b")


def test_validate_passes_the_holder_until_the_expiry():
    validate(HELD, CLAIM, now_ms=99)


@pytest.mark.parametrize(
    ("lease", "now_ms", "reason"),
    [
        (Lease("r", "b/2", 8, 200, 90), 99, "taken by 'b/2'"),
        (Lease("r", "", 7, 0, 90), 99, "released"),
        (Lease("r", "a/1", 8, 200, 90), 99, "token is now 8"),
        (HELD, 100, "expired at 100"),
    ],
)
def test_validate_refuses_owner_token_and_expiry(lease, now_ms, reason):
    with pytest.raises(LeaseLost, match=reason) as caught:
        validate(lease, CLAIM, now_ms=now_ms)
    assert (caught.value.run_id, caught.value.owner, caught.value.token) == ("r", "a/1", 7)
