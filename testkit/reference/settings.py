"""What a driver was configured with, and what people and policies say about steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .clock import Clock
from .errors import UnknownTool
from .records import StepRow
from .tools import Tool


class Verdict(StrEnum):
    """What a policy says about a step that is about to start."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Answered(StrEnum):
    """What an operator can say about a waiting run.

    The first two answer whether a step may start; the others what became of a call whose
    outcome is unknown.
    """

    APPROVE = "approve"
    REJECT = "reject"
    APPLIED = "applied"
    RETRY = "retry"
    COMPENSATE = "compensate"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Approval:
    """An operator's answer: who gave it, and for APPLIED the call's ``result``."""

    by: str
    answer: Answered = Answered.APPROVE
    result: object = None


StepPolicy = Callable[[StepRow, Approval | None], Verdict]


def ask_if_needed(step: StepRow, approval: Approval | None) -> Verdict:
    """The default policy: a step that needs approval starts with one, and not without."""
    if approval is not None and approval.answer is Answered.REJECT:
        return Verdict.DENY
    return Verdict.ASK if step.needs_approval and approval is None else Verdict.ALLOW


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a driver that doesn't change while it lives.

    ``clock`` is the lease's time; ``now`` stamps events and is read for nothing else.
    """

    owner: str
    ttl_ms: int
    clock: Clock
    now: Callable[[], int]
    tools: Mapping[str, Tool]
    policy: StepPolicy

    def tool(self, name: str) -> Tool:
        """The tool of this name. Raises UnknownTool."""
        try:
            return self.tools[name]
        except KeyError:
            raise UnknownTool(name, tuple(sorted(self.tools))) from None
