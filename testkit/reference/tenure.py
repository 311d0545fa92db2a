"""What a loop writes while it holds a run: each write fenced, each in one transaction.

A write is refused when its claim is no longer in force, and then nothing of its transaction
stays. Which clauses fence which write is in ``guards``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from . import guards, rows, slots
from .clock import Clock
from .errors import LeaseLost, RunLeased, RunNotFound, RunStateError, RuntimeRefusal
from .lease import Claim, read_lease, validate
from .payload import encode
from .records import MODEL, RunStatus, StepRow, StepStatus
from .store import Store
from .tools import Call


class CancelledMeanwhile(RunStateError):
    """An operator cancelled the run under its loop's feet."""


@dataclass(frozen=True, slots=True)
class Started:
    """A call whose start is recorded: the tool's own, or that of its compensation."""

    call: Call
    kind: str
    compensating: bool = False

    @property
    def finished_event(self) -> str:
        """How the event of its outcome is called."""
        if self.compensating:
            return "step.compensation_finished"
        return "step.model_finished" if self.kind == MODEL else "step.tool_finished"


def fence(
    connection: sqlite3.Connection,
    claim: Claim,
    *clauses: str,
    now_ms: int,
    assign: str = "",
) -> None:
    """Touch the run's row under these clauses, or raise what they found instead."""
    touched = connection.execute(
        f"UPDATE runs SET revision = revision + 1{assign} WHERE run_id = :run_id AND "
        + guards.where(*clauses),
        {
            "run_id": claim.run_id,
            "owner": claim.owner,
            "token": claim.token,
            "now_ms": now_ms,
        },
    )
    if touched.rowcount != 1:
        raise refusal(connection, claim, now_ms=now_ms)


def refusal(connection: sqlite3.Connection, claim: Claim, *, now_ms: int) -> RuntimeRefusal:
    """Why a claim's write was refused: the first thing that is no longer as it was."""
    try:
        run = rows.run(connection, claim.run_id)
    except RunNotFound as error:
        return error
    lease = run.lease
    if run.status is RunStatus.CANCELLED and lease.fencing_token == claim.token:
        return CancelledMeanwhile(claim.run_id, run.status, "an operator cancelled it")
    if lease.held() and (lease.owner, lease.fencing_token) != (claim.owner, claim.token):
        return RunLeased(claim.run_id, lease.owner, lease.expires_at_ms)
    if lease.fencing_token != claim.token:
        return RunStateError(
            claim.run_id, run.status, f"the token is now {lease.fencing_token}, not {claim.token}"
        )
    if not lease.held():
        return RunStateError(claim.run_id, run.status, "its lease was released")
    return LeaseLost(
        claim.run_id,
        claim.owner,
        claim.token,
        f"it expired at {lease.expires_at_ms} ms, it is {now_ms} ms",
    )


@dataclass(frozen=True, slots=True)
class Tenure:
    """A claim, and what is needed to write under it. ``now`` stamps events, nothing else."""

    store: Store
    claim: Claim
    clock: Clock
    now: Callable[[], int]

    def start_step(self, step: StepRow, *, limit: int | None) -> Started:
        """Record that a step's tool is started, or its model call reserved.

        Needs the lease held and unexpired. Raises ToolBusy when no slot is free.
        """
        clauses = (
            (guards.MODEL_START_STATUS, guards.MODEL_START_HOLDER, guards.MODEL_START_UNEXPIRED)
            if step.kind == MODEL
            else (guards.TOOL_START_STATUS, guards.TOOL_START_HOLDER, guards.TOOL_START_UNEXPIRED)
        )
        with self.store.transaction() as connection:
            fence(connection, self.claim, *clauses, now_ms=self.clock.now_ms())
            return begin_call(
                connection, self.claim, step, was=guards.STEP_START, limit=limit, now=self.now
            )

    def validate(self) -> None:
        """Read the lease again, immediately before an effect. Raises LeaseLost."""
        validate(self.store.lease(self.claim.run_id), self.claim, now_ms=self.clock.now_ms())

    def ended(self, reason: str) -> RuntimeRefusal:
        """The error of a loop whose heartbeat found the lease lost for this reason."""
        claim = self.claim
        with self.store.db() as connection:
            found = refusal(connection, claim, now_ms=self.clock.now_ms())
        if isinstance(found, CancelledMeanwhile):
            return found
        return LeaseLost(claim.run_id, claim.owner, claim.token, reason)

    def record_outcome(self, started: Started, result: object, *, failed: bool) -> bool:
        """Record how a call came out; whether the lease was still unexpired then.

        A lease that merely lapsed does not keep the outcome out: it is known, and nobody else
        has taken the run. Raises when somebody has; the step then stays the new owner's.
        """
        call = started.call
        done = StepStatus.COMPENSATED if started.compensating else StepStatus.DONE
        status = StepStatus.FAILED if failed else done
        with self.store.transaction() as connection:
            now_ms = self.clock.now_ms()
            fence(
                connection,
                self.claim,
                guards.OUTCOME_STATUS,
                guards.OUTCOME_HOLDER,
                now_ms=now_ms,
            )
            move_step(
                connection,
                call,
                guards.OUTCOME_STEP,
                self.claim,
                assign="status = :status, result = :result, unknown_since_ms = NULL",
                status=status,
                result=encode(result),
            )
            slots.give_back(connection, call.run_id, call.idx)
            lapsed = not read_lease(connection, call.run_id).live(now_ms)
            body = _outcome(started, self.claim, status)
            if lapsed:
                body["lapsed"] = True
            rows.record(connection, call.run_id, started.finished_event, body, at_ms=self.now())
        return not lapsed

    def record_late(self, started: Started, result: object, *, failed: bool) -> bool:
        """Append the outcome of a call that ran when an operator cancelled; whether it was one.

        The run and its step stay as the cancel left them.
        """
        call = started.call
        names = {"run_id": call.run_id, "idx": call.idx, "token": self.claim.token}
        with self.store.transaction() as connection:
            ran = connection.execute(
                f"SELECT 1 FROM runs WHERE run_id = :run_id AND {guards.LATE_RUN} AND EXISTS ("
                "SELECT 1 FROM steps WHERE run_id = :run_id AND idx = :idx AND "
                f"{guards.LATE_STEP})",
                names,
            ).fetchone()
            if ran is None:
                return False
            slots.give_back(connection, call.run_id, call.idx)
            status = StepStatus.FAILED if failed else StepStatus.DONE
            body = {**_outcome(started, self.claim, status), "late": True, "result": result}
            rows.record(connection, call.run_id, started.finished_event, body, at_ms=self.now())
        return True

    def pause(self, step: StepRow) -> None:
        """Wait for an operator's approval of a step, and release the lease with it."""
        with self.store.transaction() as connection:
            fence(
                connection,
                self.claim,
                guards.PAUSE_STATUS,
                guards.PAUSE_HOLDER,
                guards.PAUSE_UNEXPIRED,
                now_ms=self.clock.now_ms(),
                assign=paused(),
            )
            rows.record(
                connection,
                self.claim.run_id,
                "run.paused",
                {"idx": step.idx, "name": step.name},
                at_ms=self.now(),
            )

    def finish(self, status: RunStatus, *, reason: str = "") -> None:
        """End the run, and release the lease with it."""
        body: dict[str, object] = {"status": status}
        if reason:
            body["reason"] = reason
        with self.store.transaction() as connection:
            fence(
                connection,
                self.claim,
                guards.FINISH_STATUS,
                guards.FINISH_HOLDER,
                guards.FINISH_UNEXPIRED,
                now_ms=self.clock.now_ms(),
                assign=f", status = '{status}', {guards.RELEASED}",
            )
            rows.record(connection, self.claim.run_id, "run.finished", body, at_ms=self.now())


def paused() -> str:
    """The assignments that pause a run: with its lease released."""
    return f", status = '{RunStatus.WAITING_FOR_APPROVAL}', {guards.RELEASED}"


def begin_call(
    connection: sqlite3.Connection,
    claim: Claim,
    step: StepRow,
    *,
    was: str,
    limit: int | None,
    now: Callable[[], int],
    compensating: bool = False,
) -> Started:
    """Move a step into flight, in the transaction that has checked or taken the lease."""
    call = Call(
        run_id=step.run_id,
        idx=step.idx,
        name=step.name,
        args=step.args,
        token=claim.token,
        idempotency_key=step.idempotency_key + ("/compensate" if compensating else ""),
        owner=claim.owner,
        attempt=step.attempt + 1,
    )
    into = StepStatus.COMPENSATING if compensating else StepStatus.EXECUTING
    move_step(
        connection,
        call,
        was,
        claim,
        attempt=step.attempt,
        assign="status = :status, attempt = attempt + 1, fencing_token = :token,"
        " compensating = :compensating, unknown_since_ms = NULL",
        status=into,
        compensating=compensating,
    )
    if limit is not None:
        slots.take(connection, step, limit=limit)
    started = Started(call, step.kind, compensating)
    kind = (
        "step.compensation_started"
        if compensating
        else ("step.model_reserved" if step.kind == MODEL else "step.tool_started")
    )
    rows.record(connection, step.run_id, kind, _body(call), at_ms=now())
    return started


def move_step(
    connection: sqlite3.Connection,
    call: Call,
    was: str,
    claim: Claim,
    *,
    assign: str,
    attempt: int | None = None,
    **values: object,
) -> None:
    """One guarded UPDATE of a step. Raises RunStateError when it isn't as it ``was``."""
    moved = connection.execute(
        f"UPDATE steps SET {assign} WHERE run_id = :run_id AND idx = :idx AND {was}",
        {
            "run_id": call.run_id,
            "idx": call.idx,
            "token": claim.token,
            "attempt": call.attempt if attempt is None else attempt,
            **values,
        },
    )
    if moved.rowcount != 1:
        found = rows.step(connection, call.run_id, call.idx)
        raise RunStateError(
            call.run_id,
            RunStatus.RUNNING,
            f"step {call.idx} is {found.status} in attempt {found.attempt}",
        )


def _body(call: Call) -> dict[str, object]:
    return {
        "idx": call.idx,
        "name": call.name,
        "attempt": call.attempt,
        "token": call.token,
        "owner": call.owner,
    }


def _outcome(started: Started, claim: Claim, status: StepStatus) -> dict[str, object]:
    return {**_body(started.call), "token": claim.token, "status": status}
