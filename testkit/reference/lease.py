"""The run lease itself: who may mutate a run, until when, under which fencing token.

The lease is four columns on the run's own row, so there is no second place where a run's
state lives, and its renewal writes no event. (First seed, "The lease contract"; second
seed, "What it is"; the idea of a lease: Gray and Cheriton, 1989.)
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import guards
from .errors import InvalidTtl, LeaseLost, RunNotFound
from .payload import checked_name

#: How long a lease lasts without renewal when nothing else is said, in milliseconds.
DEFAULT_LEASE_TTL_MS: Final = 30_000
#: A third of a TTL below this is not a whole millisecond, so no heartbeat could keep it.
MIN_LEASE_TTL_MS: Final = 3
#: A crashed process blocks its run for a TTL: more than a week is surely another unit.
MAX_LEASE_TTL_MS: Final = 7 * 24 * 3600 * 1000
#: The heartbeat renews this many times in one TTL.
BEATS_PER_TTL: Final = 3
#: Between the configured name and the random suffix of an owner.
OWNER_SEPARATOR: Final = "/"


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as stored. Nobody holds it when ``owner`` is empty and the expiry 0.

    A lease whose time has passed is stale, not released: its owner is still named.
    """

    run_id: str
    owner: str
    fencing_token: int
    expires_at_ms: int
    last_renewed_at_ms: int

    def held(self) -> bool:
        """Whether an owner is named, be the lease expired or not."""
        return self.owner != ""

    def live(self, now_ms: int) -> bool:
        """Whether an owner is named and the expiry has not come."""
        return self.held() and not has_expired(self, now_ms)


@dataclass(frozen=True, slots=True)
class Claim:
    """What an owner got when it took a run: the proof that each of its writes presents."""

    run_id: str
    owner: str
    token: int
    expires_at_ms: int


def checked_ttl_ms(ttl_ms: int) -> int:
    """The TTL to use, in milliseconds: 0 means the default. Raises InvalidTtl."""
    if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, int):
        raise InvalidTtl(ttl_ms, "must be a whole number of milliseconds")
    if ttl_ms == 0:
        return DEFAULT_LEASE_TTL_MS
    if ttl_ms < 0:
        raise InvalidTtl(ttl_ms, f"must not be negative; 0 means {DEFAULT_LEASE_TTL_MS}")
    if ttl_ms < MIN_LEASE_TTL_MS:
        raise InvalidTtl(
            ttl_ms,
            f"too small for a heartbeat every TTL/{BEATS_PER_TTL}; use {MIN_LEASE_TTL_MS} or more",
        )
    if ttl_ms > MAX_LEASE_TTL_MS:
        raise InvalidTtl(
            ttl_ms, f"a crash would block the run that long; at most {MAX_LEASE_TTL_MS}"
        )
    return ttl_ms


def heartbeat_interval_ms(ttl_ms: int) -> int:
    """Milliseconds between two renewals."""
    return ttl_ms // BEATS_PER_TTL


def skew_borne_ms(ttl_ms: int) -> int:
    """By how much another host's clock may run ahead and still see a live lease as live.

    A heartbeat in time leaves at least two thirds of the TTL on the lease; a clock ahead by
    less than that sees it unexpired. A late beat eats into it, so stay well below.
    """
    return ttl_ms - heartbeat_interval_ms(ttl_ms) - 1


def random_suffix() -> str:
    """Twelve hexadecimal digits, as unlikely to repeat as an owner must be."""
    return secrets.token_hex(6)


def owner_identity(name: str, suffix: Callable[[], str] = random_suffix) -> str:
    """The owner as stored: the configured name, a slash, a suffix drawn once.

    The name is for the operator who reads the row; the suffix makes it an identity. A
    restarted process draws a new one, and waits its old lease out like everybody else.
    """
    drawn = suffix()
    if not drawn:
        raise ValueError("the owner's suffix is empty; without it an owner is no identity")
    return checked_name(f"{name}{OWNER_SEPARATOR}{drawn}" if name else drawn)


def read_lease(connection: sqlite3.Connection, run_id: str) -> Lease:
    """The stored lease; changes nothing. Raises RunNotFound."""
    row = connection.execute(
        "SELECT lease_owner, fencing_token, lease_expires_at_ms, last_renewed_at_ms "
        "FROM runs WHERE run_id = :run_id",
        {"run_id": run_id},
    ).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    owner, token, expires_at_ms, renewed_at_ms = row
    return Lease(run_id, owner or "", token, expires_at_ms or 0, renewed_at_ms or 0)


def stamp() -> str:
    """The assignments by which a run gets a new owner: always with a new token."""
    return (
        "lease_owner = :owner, lease_expires_at_ms = :now_ms + :ttl_ms, "
        f"last_renewed_at_ms = :now_ms, fencing_token = {guards.next_token()}"
    )


def claimed(connection: sqlite3.Connection, run_id: str) -> Claim:
    """The claim that this transaction has just stamped."""
    lease = read_lease(connection, run_id)
    return Claim(run_id, lease.owner, lease.fencing_token, lease.expires_at_ms)


def renew(connection: sqlite3.Connection, claim: Claim, *, now_ms: int, ttl_ms: int) -> bool:
    """Extend an unexpired lease of this claim to ``now_ms + ttl_ms``; whether it was one.

    One UPDATE outside any transaction. The expiry never goes back, even if the clock does.
    """
    renewed = connection.execute(
        f"UPDATE runs SET lease_expires_at_ms = {guards.RENEW_EXPIRY}, "
        "last_renewed_at_ms = :now_ms WHERE run_id = :run_id AND "
        + guards.where(guards.RENEW_HOLDER, guards.RENEW_UNEXPIRED),
        {
            "run_id": claim.run_id,
            "owner": claim.owner,
            "token": claim.token,
            "now_ms": now_ms,
            "ttl_ms": ttl_ms,
        },
    )
    return renewed.rowcount == 1


def release(connection: sqlite3.Connection, claim: Claim) -> bool:
    """Give the lease back if this claim still holds it, expired or not; whether it did."""
    released = connection.execute(
        f"UPDATE runs SET {guards.RELEASED}, revision = revision + 1 "
        f"WHERE run_id = :run_id AND {guards.RELEASE_HOLDER}",
        {"run_id": claim.run_id, "owner": claim.owner, "token": claim.token},
    )
    return released.rowcount == 1


def owner_changed(lease: Lease, claim: Claim) -> bool:
    """Whether somebody else, or nobody, holds the lease."""
    return lease.owner != claim.owner


def token_changed(lease: Lease, claim: Claim) -> bool:
    """Whether ownership has changed hands since the claim."""
    return lease.fencing_token != claim.token


def has_expired(lease: Lease, now_ms: int) -> bool:
    """Whether the expiry has come: at the expiry itself it has."""
    return lease.expires_at_ms <= now_ms


def validate(lease: Lease, claim: Claim, *, now_ms: int) -> None:
    """Raise LeaseLost unless the claim is in force. (First seed, "Renew before you execute".)

    Alone it is not enough: the lease may be lost between this check and the effect. The
    boundary that accepts the effect has to refuse stale tokens itself.
    """
    if owner_changed(lease, claim):
        found = f"taken by {lease.owner!r}" if lease.held() else "released"
        raise LeaseLost(claim.run_id, claim.owner, claim.token, found)
    if token_changed(lease, claim):
        raise LeaseLost(
            claim.run_id, claim.owner, claim.token, f"the token is now {lease.fencing_token}"
        )
    if has_expired(lease, now_ms):
        raise LeaseLost(
            claim.run_id,
            claim.owner,
            claim.token,
            f"it expired at {lease.expires_at_ms} ms, it is {now_ms} ms",
        )
