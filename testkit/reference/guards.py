"""Every guard of the lease, one name each: the clauses that the runtime's SQL is built from.

A guarded write is one ``UPDATE runs ... WHERE`` made of these clauses inside one
``BEGIN IMMEDIATE`` transaction; when it changes no row, the transaction is rolled back. The
clauses are looked up when a statement is built, so a test can take out exactly one of them
and see what breaks. (A run that isn't RUNNING holds no lease, so a status clause beside a
holder clause is a second wall: taken out alone, nothing breaks.)

Parameters: ``:owner`` and ``:token`` of the claim that writes, ``:now_ms`` of the lease's
clock, ``:ttl_ms``, ``:attempt`` of a step. A lease is expired *at* its expiry, not after it.
"""

from __future__ import annotations

from typing import Final

_HOLDER: Final = "lease_owner = :owner AND fencing_token = :token"
_UNEXPIRED: Final = "lease_expires_at_ms > :now_ms"
_RUNNING: Final = "status = 'RUNNING'"

# The token. It lives on after a release, and a deleted run leaves its last one behind.
TOKEN_FLOOR = "coalesce((SELECT value FROM meta WHERE key = 'token_floor'), 0)"
RETIRED_TOKEN = "coalesce((SELECT fencing_token FROM retired_tokens WHERE run_id = :run_id), 0)"
FIRST_TOKEN = "{unborn} + 1"
NEXT_TOKEN = "max(fencing_token, {floor}) + 1"

# What a release takes away: never the token.
RELEASED = "lease_owner = NULL, lease_expires_at_ms = NULL"

# The heartbeat's renewal: never another's lease, never an expired one, never `+=`.
RENEW_HOLDER = _HOLDER
RENEW_UNEXPIRED = _UNEXPIRED
RENEW_EXPIRY = "max(lease_expires_at_ms, :now_ms + :ttl_ms)"

# A call gives back only the lease that it holds.
RELEASE_HOLDER = _HOLDER

# The two writes that start a side effect need the lease held *and* unexpired.
TOOL_START_STATUS = _RUNNING
TOOL_START_HOLDER = _HOLDER
TOOL_START_UNEXPIRED = _UNEXPIRED
MODEL_START_STATUS = _RUNNING
MODEL_START_HOLDER = _HOLDER
MODEL_START_UNEXPIRED = _UNEXPIRED
STEP_START = "status = 'PENDING' AND attempt = :attempt"

# An outcome in flight is recorded as long as nobody else has taken the run.
OUTCOME_STATUS = _RUNNING
OUTCOME_HOLDER = _HOLDER
OUTCOME_STEP = "status IN ('EXECUTING', 'COMPENSATING')"

# Pausing and finishing.
FINISH_STATUS = _RUNNING
FINISH_HOLDER = _HOLDER
FINISH_UNEXPIRED = _UNEXPIRED
PAUSE_STATUS = _RUNNING
PAUSE_HOLDER = _HOLDER
PAUSE_UNEXPIRED = _UNEXPIRED

# A decision about an interrupted step: by the present owner, and once.
RECONCILE_STATUS = _RUNNING
RECONCILE_HOLDER = _HOLDER
RECONCILE_UNEXPIRED = _UNEXPIRED
RECONCILE_STEP = "status = 'INTERRUPTED' AND attempt = :attempt"

# Changes of ownership.
CLAIM_QUEUED = "status = 'QUEUED'"
TAKE_OVER_STATUS = _RUNNING
TAKE_OVER_EXPIRED = "(lease_owner IS NULL OR lease_expires_at_ms <= :now_ms)"
RESUME_WAITING = "status = 'WAITING_FOR_APPROVAL' AND revision = :revision"
# Who wins the run has its step; only what is done is never done again.
RESUME_STEP = "status <> 'DONE'"

# An operator's cancel needs no lease, but it doesn't rewrite an end.
CANCEL_STATUS = "status NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"

# A late outcome after a cancel: of the call that ran when the operator cancelled, only.
LATE_RUN = "status = 'CANCELLED' AND fencing_token = :token"
LATE_STEP = "status = 'CANCELLED'"

# The fence of the effect store, in the transaction that applies the effect.
EFFECT_STATUS = _RUNNING
EFFECT_HOLDER = _HOLDER
EFFECT_UNEXPIRED = _UNEXPIRED

# A tool's slots: taken within the bound, given back once.
SLOT_FREE = "in_use < :most"
SLOT_HELD = "holds_slot = 1"

# One run per id.
INSERT_RUN = "INSERT INTO runs"


def unborn_token() -> str:
    """SQL for the token below the first one of a run that is new under its id."""
    return f"max({RETIRED_TOKEN}, {TOKEN_FLOOR})"


def first_token() -> str:
    """SQL for the token of a run that is claimed as it is inserted."""
    return FIRST_TOKEN.format(unborn=unborn_token())


def next_token() -> str:
    """SQL for the token of the next owner of a run."""
    return NEXT_TOKEN.format(floor=TOKEN_FLOOR)


def where(*clauses: str) -> str:
    """The clauses, all of which must hold."""
    return " AND ".join(clauses)
