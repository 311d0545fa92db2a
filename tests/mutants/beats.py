"""Heartbeats that real projects had: the family of renewals that fail those they serve."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any, Final

from pytest_leasecheck.testkit.reference import driver, heartbeat
from pytest_leasecheck.testkit.reference.lease import Claim, read_lease

from . import schedules as when
from .model import Mutant


def _steal_back(connection: sqlite3.Connection, claim: Claim, *, now_ms: int, ttl_ms: int) -> bool:
    """Writes itself in again, whoever is there."""
    taken = connection.execute(
        "UPDATE runs SET lease_owner = ?, fencing_token = ?, lease_expires_at_ms = ?,"
        " last_renewed_at_ms = ? WHERE run_id = ? AND status = 'RUNNING'",
        (claim.owner, claim.token, now_ms + ttl_ms, now_ms, claim.run_id),
    )
    return taken.rowcount == 1


def _look_then_write(
    connection: sqlite3.Connection, claim: Claim, *, now_ms: int, ttl_ms: int
) -> bool:
    """Looks whose the lease is, and then renews without looking again."""
    lease = read_lease(connection, claim.run_id)
    if (lease.owner, lease.fencing_token) != (claim.owner, claim.token):
        return False
    renewed = connection.execute(
        "UPDATE runs SET lease_expires_at_ms = ?, last_renewed_at_ms = ? WHERE run_id = ?"
        " AND status = 'RUNNING'",
        (now_ms + ttl_ms, now_ms, claim.run_id),
    )
    return renewed.rowcount == 1


def _revive(connection: sqlite3.Connection, claim: Claim, *, now_ms: int, ttl_ms: int) -> bool:
    """Renews what is its own by name, expired or not."""
    renewed = connection.execute(
        "UPDATE runs SET lease_expires_at_ms = ?, last_renewed_at_ms = ?"
        " WHERE run_id = ? AND lease_owner = ?",
        (now_ms + ttl_ms, now_ms, claim.run_id, claim.owner),
    )
    return renewed.rowcount == 1


def _on_the_shared_connection(self: Any, now_ms: int) -> bool:
    """Renews on the store's one connection, behind whoever has it."""
    with self._store.db() as connection:
        return bool(self._renew_on(connection, now_ms))


def _once(self: Any) -> None:
    """One beat, and the loop is over."""
    if not self._clock.wait(self._stop, heartbeat.heartbeat_interval_ms(self._ttl_ms)):
        self.beat()


def _never(self: Any) -> None:
    """No beat at all: the lease is renewed between the steps, if at all."""


def _until_an_error(self: Any) -> None:
    """The first error ends the loop."""
    while not self._clock.wait(self._stop, heartbeat.heartbeat_interval_ms(self._ttl_ms)):
        before = self._expires_at_ms
        self.beat()
        if self._expires_at_ms == before:
            return


def _within_a_transaction(self: Any, tenure: Any, started: Any) -> None:
    """Calls what is outside with a transaction of its own open, to have all or nothing."""
    settings, name = self.settings, started.call.name
    if name == "mail":
        own = self.store.own_connection(busy_timeout_ms=1)
        tool = settings.tool(name)

        def run(call: Any) -> object:
            own.execute("BEGIN IMMEDIATE")
            try:
                return tool.run(call)
            finally:
                own.execute("COMMIT")

        self.settings = replace(settings, tools={**settings.tools, name: replace(tool, run=run)})
    try:
        _PERFORM(self, tenure, started)
    finally:
        self.settings = settings


_PERFORM: Final = driver.Driver._perform

HEARTBEATS: Final = (
    Mutant("delayed beat steals the lease back",
           "A heartbeat writes its owner and token back, whoever holds the run by then.",
           {"heartbeat.renew": _steal_back}, when.HELD_IN_ITS_BEAT, frozenset({"V6"}),
           "another's lease was renewed", seen_in="brendanlong/lion-reader/issues/917"),
    Mutant("beat that looks and then writes",
           "A heartbeat looks whose the lease is, and renews it without looking again.",
           {"heartbeat.renew": _look_then_write}, when.HELD_BETWEEN_LOOK_AND_WRITE,
           frozenset({"V6"}), "another's lease was renewed",
           seen_in="brendanlong/lion-reader/issues/917"),
    Mutant("renewal revives an expired lease",
           "A renewal goes by the owner alone, so it revives a lease that has expired.",
           {"heartbeat.renew": _revive}, when.LATE_BEAT, frozenset({"V6"}),
           "an expired lease was renewed",
           seen_in="melodic-software/claude-code-plugins/issues/370"),
    Mutant("expiry grows with every renewal",
           "A renewal adds a TTL to what is left instead of beginning a new one.",
           {"guards.RENEW_EXPIRY": "lease_expires_at_ms + :ttl_ms"}, when.BEATS_AND_DIES,
           frozenset({"V5"}), "a lease grew with its renewals",
           seen_in="resonatehq/resonate/issues/280"),
    Mutant("renewal loop ends early",
           "The renewal loop ends after its first beat, while the call goes on.",
           {"heartbeat.Heartbeat._live": _once}, when.BUSY_OWNER, frozenset({"V7"}),
           "a live owner lost its lease", seen_in="agronholm/apscheduler/issues/1030"),
    Mutant("renewal loop ends at one busy lock",
           "The renewal loop ends when one beat finds the database locked.",
           {"heartbeat.Heartbeat._live": _until_an_error}, when.ONE_BUSY_BEAT, frozenset({"V7"}),
           "a live owner lost its lease", seen_in="CodeandoGuadalajara/dof-rag/issues/84"),
    Mutant("no renewal within a call",
           "The lease is renewed between steps only, so a long call outlasts it.",
           {"heartbeat.Heartbeat._live": _never}, when.BUSY_OWNER, frozenset({"V7"}),
           "a live owner lost its lease", seen_in="owainlewis/machinist/issues/162"),
    Mutant("beat at the very expiry",
           "The heartbeat beats once in a TTL, so it comes when the lease has just expired.",
           {"heartbeat.heartbeat_interval_ms": lambda ttl_ms: ttl_ms}, when.BUSY_OWNER,
           frozenset({"V7"}), "a live owner lost its lease",
           seen_in="seed 2, When it is renewed"),
    Mutant("heartbeat on the shared connection",
           "The heartbeat renews on the store's one connection, and starves behind who holds it.",
           {"heartbeat.Heartbeat._renew": _on_the_shared_connection},
           when.BUSY_OWNER_HOLDS_THE_CONNECTION, frozenset({"V7"}),
           "a live owner lost its lease", seen_in="agronholm/apscheduler/issues/1116"),
    Mutant("call within a transaction",
           "A call is made with a transaction open, and the heartbeat waits for its lock.",
           {"driver.Driver._perform": _within_a_transaction}, when.BUSY_OWNER_BESIDE_A_READER,
           frozenset({"V7"}), "a live owner lost its lease",
           seen_in="seed 2, The renewal connection"),
)  # fmt: skip
