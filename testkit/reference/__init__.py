"""The reference runtime: a run lease, complete and small, on one SQLite file.

It does what the two descriptions of a run lease promise, and is a subject of the kit like
any other. It imports nothing of the kit, so it can be lifted out.
"""

from __future__ import annotations

from .clock import Clock, WallClock
from .driver import Driver
from .effects import EffectStore
from .errors import (
    ForeignDatabase,
    InvalidPayload,
    InvalidRunId,
    InvalidTtl,
    LeaseLost,
    NetworkFilesystem,
    NewerDatabase,
    RunExists,
    RunLeased,
    RunNotFound,
    RunStateError,
    RuntimeRefusal,
    StaleToken,
    StoreError,
    ToolBusy,
    ToolFailed,
    UnknownTool,
)
from .lease import DEFAULT_LEASE_TTL_MS, Claim, Lease, skew_borne_ms
from .migrations import PRE_LEASE_OWNER
from .records import (
    Effect,
    Event,
    Question,
    Reconciliation,
    Run,
    RunStatus,
    Step,
    StepRow,
    StepStatus,
)
from .settings import Answered, Approval, Verdict
from .states import Ownership, ownership
from .store import Store
from .tools import (
    Call,
    Decision,
    Found,
    NotFound,
    Policy,
    Provider,
    Tool,
    Unknown,
    provider_tool,
)

__all__ = [
    "DEFAULT_LEASE_TTL_MS",
    "PRE_LEASE_OWNER",
    "Answered",
    "Approval",
    "Call",
    "Claim",
    "Clock",
    "Decision",
    "Driver",
    "Effect",
    "EffectStore",
    "Event",
    "ForeignDatabase",
    "Found",
    "InvalidPayload",
    "InvalidRunId",
    "InvalidTtl",
    "Lease",
    "LeaseLost",
    "NetworkFilesystem",
    "NewerDatabase",
    "NotFound",
    "Ownership",
    "Policy",
    "Provider",
    "Question",
    "Reconciliation",
    "Run",
    "RunExists",
    "RunLeased",
    "RunNotFound",
    "RunStateError",
    "RunStatus",
    "RuntimeRefusal",
    "StaleToken",
    "Step",
    "StepRow",
    "StepStatus",
    "Store",
    "StoreError",
    "Tool",
    "ToolBusy",
    "ToolFailed",
    "Unknown",
    "UnknownTool",
    "Verdict",
    "WallClock",
    "ownership",
    "provider_tool",
    "skew_borne_ms",
]
