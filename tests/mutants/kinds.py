"""Faults that real projects had, each as a mutant: claims, take-overs, operators, clocks."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from pytest_leasecheck.testkit.reference import guards, migrations
from pytest_leasecheck.testkit.reference.lease import Lease

from . import schedules as when
from . import schedules_claims as claims
from . import schedules_others as others
from .beats import HEARTBEATS
from .model import Mutant
from .recoveries import RECOVERIES

OWNER_ALONE: Final = "lease_owner = :owner"
HOLDERS: Final = (
    "RENEW_HOLDER", "RELEASE_HOLDER", "TOOL_START_HOLDER", "MODEL_START_HOLDER",
    "OUTCOME_HOLDER", "FINISH_HOLDER", "PAUSE_HOLDER", "RECONCILE_HOLDER", "EFFECT_HOLDER",
)  # fmt: skip
BY_NAME: Final[dict[str, object]] = {
    "driver.owner_identity": lambda name, suffix: name,
    "lease.token_changed": lambda lease, claim: False,
    **{f"guards.{name}": OWNER_ALONE for name in HOLDERS},
}
UNEXPIRED: Final[dict[str, object]] = {
    "lease.has_expired": lambda lease, now_ms: False,
    **{
        f"guards.{name}_UNEXPIRED": "1"
        for name in ("TOOL_START", "MODEL_START", "FINISH", "PAUSE", "RECONCILE", "EFFECT")
    },
}


def _without_looking_again(connection: Any, run_id: str, now_ms: int) -> int:
    """Puts back what was expired when it looked."""
    done = connection.execute(
        "UPDATE runs SET status = 'QUEUED', lease_owner = NULL, lease_expires_at_ms = NULL"
        " WHERE run_id = ?",
        (run_id,),
    )
    return int(done.rowcount)


def _live_as_text(self: Lease, now_ms: int) -> bool:
    """Whether it is live, with the two times written in two formats."""
    with sqlite3.connect(":memory:") as scratch:
        (live,) = scratch.execute(
            "SELECT datetime(? / 1000, 'unixepoch') >"
            " strftime('%Y-%m-%dT%H:%M:%S', ? / 1000, 'unixepoch')",
            (self.expires_at_ms, now_ms),
        ).fetchone()
    return self.held() and bool(live)


_AS_TEXT: Final = (
    "(lease_owner IS NULL OR datetime(lease_expires_at_ms / 1000, 'unixepoch') <="
    " strftime('%Y-%m-%dT%H:%M:%S', :now_ms / 1000, 'unixepoch'))"
)
_HOUR_MS: Final = 3_600_000
_REAL_MIGRATE: Final = migrations.migrate


def _without_the_index(connection: sqlite3.Connection, path: str, *, now_ms: int) -> None:
    """A file whose starts by key are looked up, but not unique."""
    _REAL_MIGRATE(connection, path, now_ms=now_ms)
    connection.execute("DROP INDEX IF EXISTS runs_by_start_key")


KINDS: Final = (
    Mutant("ownership by a stable worker name",
           "The owner is the configured name, and every guard compares it alone.", BY_NAME,
           claims.TWIN, frozenset({"V1", "V5", "V6"}), "a stale write landed",
           seen_in="aegra/aegra/issues/502"),
    Mutant("heartbeat by a stable worker name",
           "The owner is the configured name: the loser's heartbeat renews for its namesake.",
           BY_NAME, claims.TWIN_BEATS, frozenset({"V6"}), "another's lease was renewed",
           seen_in="procrastinate-org/procrastinate/issues/1518"),
    Mutant("release by a stable worker name",
           "The owner is the configured name: the loser's release strips its namesake's lease.",
           {**BY_NAME, "guards.OUTCOME_HOLDER": guards.OUTCOME_HOLDER,
            "guards.EFFECT_HOLDER": guards.EFFECT_HOLDER},
           claims.TWIN, frozenset({"V1", "V5", "V6"}), "a stale write landed",
           seen_in="aegra/aegra/issues/547"),
    Mutant("completes under an expired lease",
           "Starting, finishing and the effect store look at the owner, never at the time.",
           UNEXPIRED, when.LAPSED_BEFORE_ITS_EFFECT, frozenset({"V7"}), "a late write",
           seen_in="imtms/tagent-core/issues/56"),
    Mutant("release by the loser",
           "A call that returns empties the lease columns of its run.",
           {"guards.RELEASE_HOLDER": "1"}, claims.LOSER_RETURNS, frozenset({"V1", "V5", "V6"}),
           "a stale write landed", seen_in="aegra/aegra/issues/547"),
    Mutant("reaper writes over a finished run",
           "The janitor reads what is expired, and puts it back without looking again.",
           {"janitor.put_back": _without_looking_again}, others.REAPED_WHILE_IT_FINISHES,
           frozenset({"V1", "V3"}), "a finished run was changed", "J#1",
           "riverqueue/river/issues/1302"),
    Mutant("reaper strips a new claim",
           "The janitor reads what is expired, and puts it back without looking again.",
           {"janitor.put_back": _without_looking_again}, others.REAPED_WHILE_CLAIMED,
           frozenset({"V7", "V1", "V3"}), "a lease was released by another", "J#1",
           "riverqueue/river/issues/1302"),
    Mutant("late result after a cancel",
           "A call's outcome is recorded without looking at the run.",
           {"guards.OUTCOME_STATUS": "1", "guards.OUTCOME_HOLDER": "1",
            "guards.OUTCOME_STEP": "1"},
           others.CANCELLED_IN_A_CALL, frozenset({"V3"}), "a finished run was changed",
           seen_in="dagster-io/dagster/issues/34175"),
    Mutant("late end after a cancel",
           "A run is finished without looking at it.",
           {"guards.FINISH_STATUS": "1", "guards.FINISH_HOLDER": "1",
            "guards.FINISH_UNEXPIRED": "1"},
           others.CANCELLED_BEFORE_ITS_END, frozenset({"V3"}), "a finished run was changed",
           seen_in="dagster-io/dagster/issues/34175"),
    Mutant("two starts of one id",
           "A start under an id that is taken replaces the run and executes it again.",
           {"guards.INSERT_RUN": "INSERT OR REPLACE INTO runs"}, others.TWO_START_ONE_ID,
           frozenset({"V7", "V9"}), "a live lease was taken", "B#1",
           "dbos-inc/dbos-transact-py/issues/544"),
    Mutant("two starts of one key",
           "A start by key looks whether the key is known, and nothing keeps two apart.",
           {"migrations.migrate": _without_the_index, "store.migrate": _without_the_index},
           others.TWO_START_ONE_KEY, frozenset({"V9"}), "one key, two runs", "B#1",
           "dbos-inc/dbos-transact-py/issues/544"),
    Mutant("slot given back twice",
           "The cancel gives the slot back, and the call that it cancelled does so again.",
           {"guards.SLOT_HELD": "1"}, others.SLOT_AFTER_A_CANCEL, frozenset({"V8"}),
           "a count was wrong", seen_in="rails/solid_queue/issues/761"),
    Mutant("slot given back by the dead",
           "A worker that was taken for dead finishes its call, and gives the slot back again.",
           {"guards.SLOT_HELD": "1", "guards.OUTCOME_HOLDER": "1", "guards.OUTCOME_STEP": "1"},
           others.SLOT_AFTER_A_TAKE_OVER, frozenset({"V8"}), "a count was wrong",
           seen_in="rails/solid_queue/issues/761"),
    Mutant("released before swept",
           "A sweep looks for leases whose time has passed, and a released run has none.",
           {"guards.TAKE_OVER_EXPIRED":
            "lease_owner IS NOT NULL AND lease_expires_at_ms <= :now_ms"},
           claims.FAILS_AND_RELEASES, frozenset({"V5"}), "a run never finished",
           seen_in="procrastinate-org/procrastinate/issues/1518"),
    Mutant("token restarts after a release",
           "A release empties the row, token and all, so the next claim is number 1 again.",
           {"guards.RELEASED":
            "lease_owner = NULL, lease_expires_at_ms = NULL, fencing_token = 0"},
           claims.FAILS_AND_RELEASES, frozenset({"V2"}), "a token was used twice", "B#1",
           "wavect/semaprax/issues/192"),
    Mutant("token comes back with a deleted id",
           "Nothing is kept of a deleted run, so its next life begins with its first token.",
           {"guards.RETIRED_TOKEN": "0"}, claims.ID_USED_AGAIN, frozenset({"V2"}),
           "a token was used twice", "B#1", "dotnet/efcore/issues/2432"),
    Mutant("expiry compared as text",
           "The expiry and the time are compared as texts of two formats.",
           {"guards.TAKE_OVER_EXPIRED": _AS_TEXT, "lease.Lease.live": _live_as_text},
           others.LIVE_LEASE, frozenset({"V5", "V7"}), "a live lease was taken", "B#1",
           "getsentry/taskbroker/issues/106"),
    Mutant("live at its own expiry",
           "The holder counts a lease as live at its expiry, and a rival as expired.",
           {"guards.TOOL_START_UNEXPIRED": "lease_expires_at_ms >= :now_ms",
            "lease.has_expired": lambda lease, now_ms: lease.expires_at_ms < now_ms,
            "guards.TAKE_OVER_EXPIRED":
            "(lease_owner IS NULL OR lease_expires_at_ms <= :now_ms)",
            "lease.Lease.live":
            lambda self, now_ms: self.held() and self.expires_at_ms > now_ms},
           others.AT_THE_VERY_EXPIRY, frozenset({"V5", "V7"}), "a live lease was taken",
           seen_in="getsentry/taskbroker/issues/106"),
    Mutant("expiry judged on another clock",
           "The expiry is written in one time zone, and judged in another, an hour ahead.",
           {"guards.TAKE_OVER_EXPIRED":
            f"(lease_owner IS NULL OR lease_expires_at_ms <= :now_ms + {_HOUR_MS})",
            "lease.Lease.live":
            lambda self, now_ms: self.held() and self.expires_at_ms > now_ms + _HOUR_MS},
           others.LIVE_LEASE, frozenset({"V7", "V10"}), "a live lease was taken", "B#1",
           "johanhaleby/occurrent/issues/659"),
    Mutant("no room for skew",
           "A renewal leaves a third of the TTL, less than the skew that is said to be borne.",
           {"guards.RENEW_EXPIRY": ":now_ms + :ttl_ms / 3 + 1"}, others.CLOCK_AHEAD,
           frozenset({"V10"}), "a live lease was taken", "B#1",
           "johanhaleby/occurrent/issues/659"),
    Mutant("no grace at the migration",
           "A run from before the lease is free for the taking as soon as the file is migrated.",
           {"migrations.GRANT_GRACE": "SELECT :owner, :now_ms, :ttl_ms"}, others.OLD_AND_ALIVE,
           frozenset({"V4", "V7"}), "the effect ran twice",
           seen_in="seed 2, The grace lease at migration"),
    *RECOVERIES,
    *HEARTBEATS,
)  # fmt: skip
