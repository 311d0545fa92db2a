"""The five states of ownership that a mere timeout blurs into one.

"Is this process responding?" and "is this process still authorized?" are different
questions with different answers. (First seed, "Separate liveness from ownership".)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

from .lease import Claim, Lease, has_expired
from .records import IN_FLIGHT, RunStatus, StepRow, StepStatus


class Ownership(StrEnum):
    """What can be true of a run and one process that claimed it, several at a time."""

    PROCESS_ALIVE = "PROCESS_ALIVE"
    LEASE_VALID = "LEASE_VALID"
    LEASE_LOST = "LEASE_LOST"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    RECONCILIATION_REQUIRED = "RECONCILIATION_REQUIRED"


def ownership(
    status: RunStatus,
    *,
    lease: Lease,
    steps: Iterable[StepRow],
    claim: Claim | None,
    now_ms: int,
    process_alive: bool,
    read_only: Collection[str] = (),
    reported: Collection[int] = (),
) -> frozenset[Ownership]:
    """All states that hold for this run and the process with this claim.

    ``process_alive`` is the answer of a liveness probe: nothing about the lease follows from
    it, nor the other way round. ``claim`` is None for a process that never claimed the run.
    A run that ended or waits is nobody's: its last owner neither holds nor has lost it, if
    the token is still the last owner's. ``read_only`` names the tools that may simply run
    again: their outcome needn't be known; ``reported`` the steps (by idx) whose outcome came
    late, after a cancel.
    """
    rows = tuple(steps)
    found = set()
    if process_alive:
        found.add(Ownership.PROCESS_ALIVE)
    if claim is not None:
        if _valid(status, lease, claim, now_ms):
            found.add(Ownership.LEASE_VALID)
        elif status is RunStatus.RUNNING or lease.fencing_token != claim.token:
            found.add(Ownership.LEASE_LOST)
    executed = status is RunStatus.RUNNING and lease.live(now_ms)
    for row in rows:
        settled = row.name in read_only or row.idx in reported
        if _unknown(row, executed=executed) and not settled:
            found.add(Ownership.OUTCOME_UNKNOWN)
        if row.status in (StepStatus.INTERRUPTED, StepStatus.WAITING):
            found.add(Ownership.RECONCILIATION_REQUIRED)
    return frozenset(found)


def _valid(status: RunStatus, lease: Lease, claim: Claim, now_ms: int) -> bool:
    return (
        status is RunStatus.RUNNING
        and lease.owner == claim.owner
        and lease.fencing_token == claim.token
        and not has_expired(lease, now_ms)
    )


def _unknown(row: StepRow, *, executed: bool) -> bool:
    """In flight with nobody entitled to report it, or interrupted and not yet settled.

    A call that ran when an operator cancelled counts until its late outcome has come.
    """
    if row.status in IN_FLIGHT:
        return not executed
    if row.status is StepStatus.CANCELLED:
        return row.unknown_since_ms is not None
    return row.status in (StepStatus.INTERRUPTED, StepStatus.WAITING)
