"""What the store keeps and gives back: runs, steps, events, reconciliations, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .lease import Lease


class RunStatus(StrEnum):
    """Where a run is. Only a RUNNING run holds a lease."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    WAITING_FOR_APPROVAL = "WAITING_FOR_APPROVAL"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


TERMINAL: Final = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})


class StepStatus(StrEnum):
    """Where a step is.

    EXECUTING and COMPENSATING are in flight. INTERRUPTED was in flight under an owner who
    lost the lease. WAITING is an interrupted step whose outcome an operator must settle.
    """

    PENDING = "PENDING"
    EXECUTING = "EXECUTING"
    INTERRUPTED = "INTERRUPTED"
    WAITING = "WAITING"
    COMPENSATING = "COMPENSATING"
    COMPENSATED = "COMPENSATED"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


IN_FLIGHT: Final = frozenset({StepStatus.EXECUTING, StepStatus.COMPENSATING})

#: The kinds of steps; each has a guarded start of its own.
TOOL: Final = "tool"
MODEL: Final = "model"
KINDS: Final = (TOOL, MODEL)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: which tool to call with what.

    A ``kind`` of "model" reserves a model call instead of starting a tool. A step that
    needs approval pauses the run before it starts.
    """

    name: str
    args: object = None
    kind: str = TOOL
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A run as stored."""

    run_id: str
    status: RunStatus
    lease: Lease
    revision: int

    @property
    def finished(self) -> bool:
        """Whether the run has reached an end that is never rewritten."""
        return self.status in TERMINAL


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step as stored. ``attempt`` counts its starts; the key is the same for all of them."""

    run_id: str
    idx: int
    name: str
    kind: str
    args: object
    needs_approval: bool
    status: StepStatus
    attempt: int
    fencing_token: int
    idempotency_key: str
    compensating: bool
    unknown_since_ms: int | None
    result: object


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the run's record; ``at_ms`` is a reading of the consumer's own ``now``."""

    seq: int
    run_id: str
    kind: str
    body: dict[str, object]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The one decision about one interruption: attempt ``attempt`` of step ``idx``.

    ``asked`` is what the provider answered ("" when it wasn't asked), ``decided_by`` a policy
    or a person. The outcome became unknown at ``unknown_since_ms`` and was settled at
    ``settled_at_ms`` (None while an operator is asked), both by the lease's clock.
    """

    id: int
    run_id: str
    idx: int
    attempt: int
    decision: str
    asked: str
    outcome: str
    decided_by: str
    fencing_token: int
    unknown_since_ms: int
    settled_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect that the fenced store has accepted."""

    idempotency_key: str
    run_id: str
    idx: int
    name: str
    owner: str
    fencing_token: int
    result: object


@dataclass(frozen=True, slots=True)
class Question:
    """What an operator is asked about a waiting run: the call, and whether it may have run."""

    run_id: str
    idx: int
    name: str
    args: object
    idempotency_key: str
    attempt: int
    outcome_unknown: bool
    asked: str
