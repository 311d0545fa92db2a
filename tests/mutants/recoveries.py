"""Recoveries that real projects had: decisions that are made twice, or by nobody, or half."""

from __future__ import annotations

from typing import Any, Final

from pytest_leasecheck.testkit.reference import guards, lease, resume, tools
from pytest_leasecheck.testkit.reference.lease import Claim
from pytest_leasecheck.testkit.reference.tenure import fence

from . import schedules as when
from . import schedules_claims as claims
from .model import Mutant


def _take_over_unclaimed(store: Any, settings: Any, run_id: str) -> Claim:
    """Recovers from the list it has read, as whoever holds the run, without claiming it."""
    with store.transaction() as connection:
        previous = lease.read_lease(connection, run_id)
        now_ms = settings.clock.now_ms()
        connection.execute(
            f"UPDATE runs SET {lease.stamp()}, revision = revision + 1 WHERE run_id = :run_id AND "
            + guards.where(guards.TAKE_OVER_STATUS, guards.TAKE_OVER_EXPIRED),
            {"run_id": run_id, "owner": settings.owner, "now_ms": now_ms,
             "ttl_ms": settings.ttl_ms},
        )  # fmt: skip
        claim = lease.claimed(connection, run_id)
        resume.interrupt_steps(connection, settings, claim, previous=previous, now_ms=now_ms)
    return claim


def _reconcile_in_two(tenure: Any, step: Any, tool: Any) -> resume.Reconciled:
    """Moves the step in one transaction, and records the decision in the next."""
    settled = tools.decide(tool, resume.ask(tool, step), compensating=step.compensating)
    now_ms = tenure.clock.now_ms()
    with tenure.store.transaction() as connection:
        fence(connection, tenure.claim, guards.RECONCILE_HOLDER, now_ms=now_ms)
        started = resume.settle(connection, tenure, step, tool, settled, was=guards.RECONCILE_STEP)
    with tenure.store.transaction() as connection:
        connection.execute(
            "INSERT INTO reconciliations (run_id, idx, attempt, decision, asked, outcome,"
            " decided_by, fencing_token, unknown_since_ms, settled_at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (step.run_id, step.idx, step.attempt, settled.decision, settled.asked,
             settled.decision, settled.decided_by, tenure.claim.token, now_ms, now_ms),
        )  # fmt: skip
    return resume.Reconciled(started, False)


def _put_back(connection: Any, settings: Any, claim: Claim, *, previous: Any, now_ms: int) -> None:
    """Makes what was in flight pending again."""
    connection.execute(
        "UPDATE steps SET status = 'PENDING' WHERE run_id = ? AND status = 'EXECUTING'",
        (claim.run_id,),
    )


def _keyed_by_attempt(**fields: Any) -> tools.Call:
    """A call whose key is another one at each attempt."""
    key = f"{fields['idempotency_key']}/attempt-{fields['attempt']}"
    return tools.Call(**{**fields, "idempotency_key": key})


RECOVERIES: Final = (
    Mutant("recovery without a claim",
           "A recoverer does not look whether its take-over changed a row, and goes on.",
           {"driver.take_over": _take_over_unclaimed}, claims.TWO_TAKE_OVER, frozenset({"V4"}),
           "an interruption was reconciled twice", "B#1", "dbos-inc/dbos-transact-py/issues/742"),
    Mutant("stale resume reconciles again",
           "A decision is recorded for the step as it was read, without looking again.",
           {"guards.RECONCILE_STATUS": "1", "guards.RECONCILE_HOLDER": "1",
            "guards.RECONCILE_UNEXPIRED": "1", "guards.RECONCILE_STEP": "1"},
           when.DECIDED_ALREADY, frozenset({"V4"}), "an interruption was reconciled twice", "B#1",
           "discovery-ukraine/saga-lara-flow/issues/64"),
    Mutant("decision recorded after the step was moved",
           "A step is moved in one transaction, and the decision recorded in the next.",
           {"driver.reconcile": _reconcile_in_two}, claims.KILLED_AFTER_ITS_DECISION,
           frozenset({"V4"}), "an interruption was never reconciled", "B#1",
           "discovery-ukraine/saga-lara-flow/issues/64"),
    Mutant("retry under a new key",
           "The idempotency key has the number of the attempt in it, so each attempt is new.",
           {"tenure.Call": _keyed_by_attempt}, claims.ANSWER_LOST, frozenset({"V4"}),
           "the effect ran twice", "B#1", "seed 1, Separate liveness from ownership"),
    Mutant("retry with no decision",
           "An interrupted step is put back to be started again, and no decision is recorded.",
           {"resume.interrupt_steps": _put_back}, claims.KILLED,
           frozenset({"V4"}), "an interruption was never reconciled", "B#1",
           "seed 1, A minimal failure-injection test"),
)  # fmt: skip
