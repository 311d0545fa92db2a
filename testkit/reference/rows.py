"""Reading rows into values, and appending events: the store's queries, inside any transaction."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from .errors import RunNotFound
from .lease import read_lease
from .payload import decode, encode
from .records import (
    Effect,
    Event,
    Question,
    Reconciliation,
    Run,
    RunStatus,
    StepRow,
    StepStatus,
)

_STEP = (
    "run_id, idx, name, kind, args, needs_approval, status, attempt, fencing_token,"
    " idempotency_key, compensating, unknown_since_ms, result"
)


def run(connection: sqlite3.Connection, run_id: str) -> Run:
    """The run. Raises RunNotFound."""
    row = connection.execute(
        "SELECT status, revision FROM runs WHERE run_id = ?", (run_id,)
    ).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return Run(run_id, RunStatus(row[0]), read_lease(connection, run_id), row[1])


def run_ids(connection: sqlite3.Connection, status: RunStatus | None) -> tuple[str, ...]:
    """The ids of the runs with this status, or of all."""
    found = connection.execute(
        "SELECT run_id FROM runs WHERE status = ? OR ? IS NULL ORDER BY run_id", (status, status)
    )
    return tuple(run_id for (run_id,) in found)


def steps(connection: sqlite3.Connection, run_id: str) -> tuple[StepRow, ...]:
    """The steps of a run, in order."""
    found = connection.execute(
        f"SELECT {_STEP} FROM steps WHERE run_id = ? ORDER BY idx", (run_id,)
    )
    return tuple(_step(row) for row in found)


def step(connection: sqlite3.Connection, run_id: str, idx: int) -> StepRow:
    """One step, which must be there."""
    return _step(
        connection.execute(
            f"SELECT {_STEP} FROM steps WHERE run_id = ? AND idx = ?", (run_id, idx)
        ).fetchone()
    )


def _step(row: tuple[Any, ...]) -> StepRow:
    (
        run_id,
        idx,
        name,
        kind,
        args,
        approval,
        status,
        attempt,
        token,
        key,
        compensating,
        unknown_since_ms,
        result,
    ) = row
    return StepRow(
        run_id=run_id,
        idx=idx,
        name=name,
        kind=kind,
        args=decode(args),
        needs_approval=bool(approval),
        status=StepStatus(status),
        attempt=attempt,
        fencing_token=token,
        idempotency_key=key,
        compensating=bool(compensating),
        unknown_since_ms=unknown_since_ms,
        result=decode(result),
    )


def events(connection: sqlite3.Connection, run_id: str) -> tuple[Event, ...]:
    """The events of a run, in order."""
    found = connection.execute(
        "SELECT seq, run_id, kind, body, at_ms FROM events WHERE run_id = ? ORDER BY seq",
        (run_id,),
    )
    return tuple(
        Event(seq, owner, kind, json.loads(body), at_ms) for seq, owner, kind, body, at_ms in found
    )


def record(
    connection: sqlite3.Connection,
    run_id: str,
    kind: str,
    body: dict[str, object],
    *,
    at_ms: int,
) -> None:
    """Append an event, in the transaction that makes it true."""
    connection.execute(
        "INSERT INTO events (run_id, kind, body, at_ms) VALUES (?, ?, ?, ?)",
        (run_id, kind, encode(body), at_ms),
    )


def effects(connection: sqlite3.Connection, run_id: str) -> tuple[Effect, ...]:
    """The accepted effects of a run, in the order of their steps."""
    found = connection.execute(
        "SELECT idempotency_key, run_id, idx, name, owner, fencing_token, result FROM effects"
        " WHERE run_id = ? ORDER BY idx, idempotency_key",
        (run_id,),
    )
    return tuple(
        Effect(key, owner_run, idx, name, owner, token, decode(result))
        for key, owner_run, idx, name, owner, token, result in found
    )


def reconciliations(connection: sqlite3.Connection, run_id: str) -> tuple[Reconciliation, ...]:
    """The decisions about the interruptions of a run, in order."""
    found = connection.execute(
        "SELECT id, run_id, idx, attempt, decision, asked, outcome, decided_by, fencing_token,"
        " unknown_since_ms, settled_at_ms FROM reconciliations WHERE run_id = ? ORDER BY id",
        (run_id,),
    )
    return tuple(Reconciliation(*row) for row in found)


def question(connection: sqlite3.Connection, run_id: str) -> Question | None:
    """What the operator of a waiting run is asked. Raises RunNotFound."""
    if run(connection, run_id).status is not RunStatus.WAITING_FOR_APPROVAL:
        return None
    waiting = awaited(steps(connection, run_id))
    unknown = waiting.status is StepStatus.WAITING
    asked = ""
    if unknown:
        asked = next(
            (
                known.asked
                for known in reversed(reconciliations(connection, run_id))
                if (known.idx, known.attempt) == (waiting.idx, waiting.attempt)
            ),
            "",
        )
    return Question(
        run_id,
        waiting.idx,
        waiting.name,
        waiting.args,
        waiting.idempotency_key,
        waiting.attempt,
        unknown,
        asked,
    )


def awaited(found: tuple[StepRow, ...]) -> StepRow:
    """The step over which a waiting run waits: the first that isn't done."""
    return next(step for step in found if step.status is not StepStatus.DONE)


def retired_token(connection: sqlite3.Connection, run_id: str) -> int:
    """The last token of a deleted run of this id; 0 when there was none."""
    row = connection.execute(
        "SELECT fencing_token FROM retired_tokens WHERE run_id = ?", (run_id,)
    ).fetchone()
    return 0 if row is None else int(row[0])
