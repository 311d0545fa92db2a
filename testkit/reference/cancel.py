"""An operator's cancel: it needs no lease, and releases the lease along with the run."""

from __future__ import annotations

from . import guards, rows, slots
from .errors import RunStateError
from .records import IN_FLIGHT, RunStatus, StepStatus
from .settings import Settings
from .store import Store

_OPEN = (
    StepStatus.PENDING,
    StepStatus.EXECUTING,
    StepStatus.INTERRUPTED,
    StepStatus.WAITING,
    StepStatus.COMPENSATING,
)


def cancel_run(store: Store, settings: Settings, run_id: str, *, by: str) -> None:
    """Cancel a run that has not ended, in one transaction.

    What was in flight is named in the event: its outcome is unknown until the call that runs
    it appends it, late. An interruption that nobody had settled is settled by this: by the
    operator, as cancelled. Raises RunNotFound, RunStateError.
    """
    with store.transaction() as connection:
        run = rows.run(connection, run_id)
        cancelled = connection.execute(
            f"UPDATE runs SET status = 'CANCELLED', {guards.RELEASED}, revision = revision + 1"
            f" WHERE run_id = :run_id AND {guards.CANCEL_STATUS}",
            {"run_id": run_id},
        )
        if cancelled.rowcount != 1:
            raise RunStateError(run_id, run.status, "it has ended")
        now_ms = settings.clock.now_ms()
        operator = f"operator:{by}"
        in_flight = []
        for step in rows.steps(connection, run_id):
            if step.status not in _OPEN:
                continue
            since = step.unknown_since_ms
            if step.status in IN_FLIGHT:
                in_flight.append(step.idx)
                since = now_ms
            if step.status is StepStatus.INTERRUPTED:
                connection.execute(
                    "INSERT INTO reconciliations (run_id, idx, attempt, decision, asked,"
                    " outcome, decided_by, fencing_token, unknown_since_ms, settled_at_ms)"
                    " VALUES (?, ?, ?, 'cancel', '', 'cancelled', ?, ?, ?, ?)",
                    (
                        run_id,
                        step.idx,
                        step.attempt,
                        operator,
                        run.lease.fencing_token,
                        now_ms if since is None else since,
                        now_ms,
                    ),
                )
            if step.status is StepStatus.WAITING:
                connection.execute(
                    "UPDATE reconciliations SET outcome = 'cancelled', decided_by = ?,"
                    " settled_at_ms = ? WHERE run_id = ? AND idx = ? AND outcome = 'waiting'",
                    (operator, now_ms, run_id, step.idx),
                )
            connection.execute(
                "UPDATE steps SET status = 'CANCELLED', unknown_since_ms = ?"
                " WHERE run_id = ? AND idx = ?",
                (since, run_id, step.idx),
            )
            slots.give_back(connection, run_id, step.idx)
        rows.record(
            connection,
            run_id,
            "run.finished",
            {"status": RunStatus.CANCELLED, "by": operator, "in_flight": in_flight},
            at_ms=settings.now(),
        )
