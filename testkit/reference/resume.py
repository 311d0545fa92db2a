"""Taking a run that somebody else began: take-over, reconciliation, an operator's answer.

An interruption gets exactly one reconciliation record, because the record is inserted in the
transaction that moves the step out of INTERRUPTED, and that move is a compare-and-set. A
recovery that is killed before that commit leaves the interruption to the next; one that is
killed after it leaves a new interruption, if a call was in flight again.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from . import guards, rows, slots
from .errors import RunLeased, RunStateError
from .lease import Claim, Lease, claimed, read_lease, stamp
from .payload import encode
from .records import RunStatus, StepRow, StepStatus
from .settings import Answered, Approval, Settings, Verdict
from .store import Store
from .tenure import Started, Tenure, begin_call, fence, paused
from .tools import Answer, Decision, Settled, Tool, Unknown, decide, must_ask


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that was taken, and the call that was started in the same transaction, if any."""

    claim: Claim
    started: Started | None = None


# --- a RUNNING run whose lease has expired, or that has none ---------------------------------


def take_over(store: Store, settings: Settings, run_id: str) -> Claim:
    """Take the run and mark its steps in flight interrupted, in one transaction.

    An expired lease's owner is named in a ``lease.taken_over`` event, be it this driver
    itself; a released run has no previous owner and gets no event. Raises RunLeased when a
    live lease is found after all, RunStateError when the run is no longer RUNNING.
    """
    with store.transaction() as connection:
        previous = read_lease(connection, run_id)
        now_ms = settings.clock.now_ms()
        taken = connection.execute(
            f"UPDATE runs SET {stamp()}, revision = revision + 1 WHERE run_id = :run_id AND "
            + guards.where(guards.TAKE_OVER_STATUS, guards.TAKE_OVER_EXPIRED),
            {
                "run_id": run_id,
                "owner": settings.owner,
                "now_ms": now_ms,
                "ttl_ms": settings.ttl_ms,
            },
        )
        if taken.rowcount != 1:
            raise not_taken(connection, run_id)
        claim = claimed(connection, run_id)
        if previous.held():
            rows.record(
                connection,
                run_id,
                "lease.taken_over",
                {
                    "previous_owner": previous.owner,
                    "previous_expires_at_ms": previous.expires_at_ms,
                    "owner": claim.owner,
                    "token": claim.token,
                },
                at_ms=settings.now(),
            )
        interrupt_steps(connection, settings, claim, previous=previous, now_ms=now_ms)
    return claim


def not_taken(connection: sqlite3.Connection, run_id: str) -> RunStateError:
    """Why a run could not be taken."""
    run = rows.run(connection, run_id)
    if run.status is RunStatus.RUNNING and run.lease.held():
        return RunLeased(run_id, run.lease.owner, run.lease.expires_at_ms)
    return RunStateError(run_id, run.status, "another process was faster")


def interrupt_steps(
    connection: sqlite3.Connection,
    settings: Settings,
    claim: Claim,
    *,
    previous: Lease,
    now_ms: int,
) -> None:
    """Mark what was in flight: from the lost lease's expiry on, its outcome is unknown."""
    unknown_since_ms = min(previous.expires_at_ms, now_ms) if previous.held() else now_ms
    for step in rows.steps(connection, claim.run_id):
        if step.status not in (StepStatus.EXECUTING, StepStatus.COMPENSATING):
            continue
        connection.execute(
            "UPDATE steps SET status = 'INTERRUPTED', unknown_since_ms = :since "
            "WHERE run_id = :run_id AND idx = :idx",
            {"since": unknown_since_ms, "run_id": claim.run_id, "idx": step.idx},
        )
        slots.give_back(connection, claim.run_id, step.idx)
        rows.record(
            connection,
            claim.run_id,
            "step.interrupted",
            {
                "idx": step.idx,
                "name": step.name,
                "attempt": step.attempt,
                "token": step.fencing_token,
            },
            at_ms=settings.now(),
        )


# --- an interrupted step, by its policy ------------------------------------------------------


def ask(tool: Tool, step: StepRow) -> Answer | None:
    """Ask the provider with the step's key, if the policy wants it; None: not asked."""
    if step.compensating or not must_ask(tool) or tool.lookup is None:
        return None
    try:
        return tool.lookup(step.idempotency_key)
    except Exception as error:  # whatever keeps it from answering: it can't say
        return Unknown(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a decision led to: a call that was started, or a run that waits, or neither."""

    started: Started | None
    paused: bool


def reconcile(tenure: Tenure, step: StepRow, tool: Tool) -> Reconciled:
    """Settle one interrupted step by policy, in one transaction with the decision's record.

    When the decision is to ask an operator, the run is paused in the same transaction.
    """
    settled = decide(tool, ask(tool, step), compensating=step.compensating)
    asking = settled.decision is Decision.ASK_OPERATOR
    with tenure.store.transaction() as connection:
        now_ms = tenure.clock.now_ms()
        fence(
            connection,
            tenure.claim,
            guards.RECONCILE_STATUS,
            guards.RECONCILE_HOLDER,
            guards.RECONCILE_UNEXPIRED,
            now_ms=now_ms,
            assign=paused() if asking else "",
        )
        started = settle(connection, tenure, step, tool, settled, was=guards.RECONCILE_STEP)
        connection.execute(
            "INSERT INTO reconciliations (run_id, idx, attempt, decision, asked, outcome,"
            " decided_by, fencing_token, unknown_since_ms, settled_at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                step.run_id,
                step.idx,
                step.attempt,
                settled.decision,
                settled.asked,
                "waiting" if asking else settled.decision,
                settled.decided_by,
                tenure.claim.token,
                unknown_since(step, now_ms),
                None if asking else now_ms,
            ),
        )
        _record_settled(connection, tenure, step, settled)
        if asking:
            rows.record(
                connection,
                step.run_id,
                "run.paused",
                {"idx": step.idx, "name": step.name, "outcome_unknown": True},
                at_ms=tenure.now(),
            )
    return Reconciled(started, asking)


def unknown_since(step: StepRow, now_ms: int) -> int:
    """Since when a step's outcome is unknown."""
    return now_ms if step.unknown_since_ms is None else step.unknown_since_ms


def settle(
    connection: sqlite3.Connection,
    tenure: Tenure,
    step: StepRow,
    tool: Tool,
    settled: Settled,
    *,
    was: str,
) -> Started | None:
    """Move an interrupted step to where the decision says; the call that this starts, if any."""
    if settled.decision in (Decision.RETRY, Decision.COMPENSATE):
        return begin_call(
            connection,
            tenure.claim,
            step,
            was=was,
            limit=tool.limit,
            now=tenure.now,
            compensating=settled.decision is Decision.COMPENSATE,
        )
    into = {
        Decision.ALREADY_APPLIED: StepStatus.DONE,
        Decision.ASK_OPERATOR: StepStatus.WAITING,
        Decision.FAIL: StepStatus.FAILED,
    }[settled.decision]
    since = None if into is not StepStatus.WAITING else step.unknown_since_ms
    moved = connection.execute(
        "UPDATE steps SET status = :status, result = :result, unknown_since_ms = :since "
        f"WHERE run_id = :run_id AND idx = :idx AND {was}",
        {
            "status": into,
            "result": encode(settled.result),
            "since": since,
            "run_id": step.run_id,
            "idx": step.idx,
            "attempt": step.attempt,
        },
    )
    if moved.rowcount != 1:
        raise RunStateError(
            step.run_id, RunStatus.RUNNING, f"step {step.idx} was settled by somebody else"
        )
    return None


def _record_settled(
    connection: sqlite3.Connection, tenure: Tenure, step: StepRow, settled: Settled
) -> None:
    rows.record(
        connection,
        step.run_id,
        "step.reconciled",
        {
            "idx": step.idx,
            "name": step.name,
            "attempt": step.attempt,
            "decision": settled.decision,
            "asked": settled.asked,
            "decided_by": settled.decided_by,
            "token": tenure.claim.token,
        },
        at_ms=tenure.now(),
    )


# --- a run that waits for an operator --------------------------------------------------------


def resume_waiting(
    store: Store, settings: Settings, run_id: str, approval: Approval | None
) -> Taken | None:
    """Act on an operator's answer; None when the answer ended the run.

    One transaction takes the lease, records the decision, and starts the tool. Of two
    resumers one wins that compare-and-set, the other gets RunStateError.
    """
    run = store.run(run_id)
    if run.status is not RunStatus.WAITING_FOR_APPROVAL:
        raise RunStateError(run_id, run.status, "another process was faster")
    step = rows.awaited(store.steps(run_id))
    tool = settings.tool(step.name)
    if step.status is StepStatus.WAITING:
        settled = answer_about_outcome(step, tool, approval)
        return _take_waiting(store, settings, step, run.revision, settled, tool)
    if approval is not None and approval.answer not in (Answered.APPROVE, Answered.REJECT):
        raise RunStateError(
            run_id,
            run.status,
            f"step {step.idx} has not started: approve or reject it, not {approval.answer!r}",
        )
    verdict = settings.policy(step, approval)
    if verdict is Verdict.ASK:
        raise RunStateError(run_id, run.status, f"step {step.idx} needs an approval")
    by = "policy" if approval is None else f"operator:{approval.by}"
    decision = Decision.RETRY if verdict is Verdict.ALLOW else Decision.FAIL
    return _take_waiting(
        store, settings, step, run.revision, Settled(decision, by), tool, verdict=verdict
    )


def answer_about_outcome(step: StepRow, tool: Tool, approval: Approval | None) -> Settled:
    """An operator's word on a call whose outcome is unknown. Raises RunStateError."""
    decisions = {
        Answered.APPLIED: Decision.ALREADY_APPLIED,
        Answered.RETRY: Decision.RETRY,
        Answered.COMPENSATE: Decision.COMPENSATE,
        Answered.FAIL: Decision.FAIL,
    }
    status = RunStatus.WAITING_FOR_APPROVAL
    if approval is None or approval.answer not in decisions:
        raise RunStateError(
            step.run_id,
            status,
            f"the outcome of step {step.idx} ({step.name!r}) is unknown; an operator must say "
            f"one of: {', '.join(decisions)}",
        )
    if approval.answer is Answered.COMPENSATE and tool.compensate is None:
        raise RunStateError(step.run_id, status, f"tool {tool.name!r} can't compensate")
    return Settled(decisions[approval.answer], f"operator:{approval.by}", result=approval.result)


def _take_waiting(
    store: Store,
    settings: Settings,
    step: StepRow,
    revision: int,
    settled: Settled,
    tool: Tool,
    *,
    verdict: Verdict | None = None,
) -> Taken | None:
    """The compare-and-set on the waiting run, and all that follows from the answer with it."""
    run_id = step.run_id
    ends = settled.decision is Decision.FAIL
    with store.transaction() as connection:
        now_ms = settings.clock.now_ms()
        assign = f"status = '{RunStatus.FAILED}'" if ends else f"status = 'RUNNING', {stamp()}"
        taken = connection.execute(
            f"UPDATE runs SET {assign}, revision = revision + 1 "
            f"WHERE run_id = :run_id AND {guards.RESUME_WAITING}",
            {
                "run_id": run_id,
                "revision": revision,
                "owner": settings.owner,
                "now_ms": now_ms,
                "ttl_ms": settings.ttl_ms,
            },
        )
        if taken.rowcount != 1:
            raise RunStateError(
                run_id, rows.run(connection, run_id).status, "another process was faster"
            )
        claim = claimed(connection, run_id)
        tenure = Tenure(store, claim, settings.clock, settings.now)
        rows.record(
            connection,
            run_id,
            "policy.decided",
            {
                "idx": step.idx,
                "name": step.name,
                "decided_by": settled.decided_by,
                "verdict": verdict or settled.decision,
            },
            at_ms=settings.now(),
        )
        if verdict is None:
            _settle_record(connection, step, settled, now_ms=now_ms)
            _record_settled(connection, tenure, step, settled)
        started = settle(connection, tenure, step, tool, settled, was=guards.RESUME_STEP)
        if ends:
            rows.record(
                connection,
                run_id,
                "run.finished",
                {"status": RunStatus.FAILED, "reason": f"{settled.decided_by}: no"},
                at_ms=settings.now(),
            )
    return None if ends else Taken(claim, started)


def _settle_record(
    connection: sqlite3.Connection, step: StepRow, settled: Settled, *, now_ms: int
) -> None:
    """Write the operator's word into the interruption's one record."""
    connection.execute(
        "UPDATE reconciliations SET outcome = ?, decided_by = ?, settled_at_ms = ?"
        " WHERE run_id = ? AND idx = ? AND attempt = ? AND outcome = 'waiting'",
        (settled.decision, settled.decided_by, now_ms, step.run_id, step.idx, step.attempt),
    )
