"""What a driver can call: tools, the call that a tool gets, and what to do when a call's
outcome was lost. (First seed: "query the provider with a stable idempotency key where
possible, and only then decide whether to retry, compensate, or ask for approval".)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from .payload import checked_name


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool is called with.

    ``token`` and ``owner`` are to be presented to whatever accepts the effect;
    ``idempotency_key`` is the same at every attempt of this step.
    """

    run_id: str
    idx: int
    name: str
    args: object
    token: int
    idempotency_key: str
    owner: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Found:
    """The provider knows the key: the effect was applied, and this was its result."""

    result: object = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """The provider does not know the key: the effect was not applied."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider can't say."""

    reason: str = ""


Answer = Found | NotFound | Unknown


class Provider(Protocol):
    """The world outside, where an effect lands: a payment API, a mail server.

    At most it refuses a token lower than the highest it has seen, so a stale request that
    arrives before the new owner's first one is accepted. Only an effect in one transaction
    with the lease is fenced completely (``EffectStore``).
    """

    def perform(self, call: Call) -> object:
        """Apply the effect once per idempotency key, and return its result."""
        ...

    def lookup(self, key: str) -> Answer:
        """Whether the effect of this key was applied."""
        ...


class Policy(StrEnum):
    """How a step with an unknown outcome is settled."""

    #: Ask by idempotency key: applied is recorded, not applied is retried; else an operator.
    ASK_PROVIDER = "ask-provider"
    #: The tool itself is idempotent under its key.
    RETRY = "retry"
    #: Undo what may have been applied, and fail the run; retried if surely not applied.
    COMPENSATE = "compensate"
    #: Wait for a person.
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Tool:
    """A callable that has an effect, and how to find out about it afterwards.

    ``policy`` defaults to asking the provider when there is a ``lookup``, else to waiting for
    an operator. A ``read_only`` tool may simply run again. ``limit`` bounds how many runs of
    the store may be in this tool at once. ``compensate`` may be called more than once with the
    same key, and when nothing was applied. Raises ValueError when these don't fit together.
    """

    name: str
    run: Callable[[Call], object]
    read_only: bool = False
    lookup: Callable[[str], Answer] | None = None
    compensate: Callable[[Call], object] | None = None
    policy: Policy | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)
        if self.policy is Policy.ASK_PROVIDER and self.lookup is None:
            raise ValueError(f"tool {self.name!r} asks its provider, but has no lookup")
        if self.policy is Policy.COMPENSATE and self.compensate is None:
            raise ValueError(f"tool {self.name!r} compensates, but has no compensate")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"tool {self.name!r} has limit={self.limit}; at least 1 must fit")

    @property
    def on_unknown(self) -> Policy:
        """The policy that is in force."""
        if self.policy is not None:
            return self.policy
        return Policy.OPERATOR if self.lookup is None else Policy.ASK_PROVIDER


def provider_tool(name: str, provider: Provider, *, policy: Policy | None = None) -> Tool:
    """A tool whose effect is the provider's."""
    return Tool(name, provider.perform, lookup=provider.lookup, policy=policy)


class Decision(StrEnum):
    """What came of an interruption."""

    ALREADY_APPLIED = "already-applied"
    RETRY = "retry"
    COMPENSATE = "compensate"
    ASK_OPERATOR = "ask-operator"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Settled:
    """A decision, on what answer it rests, and which policy or person made it."""

    decision: Decision
    decided_by: str
    asked: str = ""
    result: object = None


def described(answer: Answer | None) -> str:
    """The answer in a word, as it is recorded."""
    match answer:
        case None:
            return ""
        case Found():
            return "found"
        case NotFound():
            return "not-found"
        case Unknown(reason):
            return f"unknown: {reason}" if reason else "unknown"


def decide(tool: Tool, answer: Answer | None, *, compensating: bool = False) -> Settled:
    """The policy's decision about an interrupted step; ``answer`` None: nothing was asked."""
    asked = described(answer)
    if compensating:
        # The undoing was interrupted: it may be called twice, so it is.
        return Settled(Decision.COMPENSATE, "policy:compensate", asked)
    if tool.read_only:
        return Settled(Decision.RETRY, "policy:read-only", asked)
    policy = tool.on_unknown
    by = f"policy:{policy}"
    if policy is Policy.RETRY:
        return Settled(Decision.RETRY, by, asked)
    if policy is Policy.COMPENSATE:
        surely_not = isinstance(answer, NotFound)
        return Settled(Decision.RETRY if surely_not else Decision.COMPENSATE, by, asked)
    if policy is Policy.ASK_PROVIDER:
        if isinstance(answer, Found):
            return Settled(Decision.ALREADY_APPLIED, by, asked, answer.result)
        if isinstance(answer, NotFound):
            return Settled(Decision.RETRY, by, asked)
    return Settled(Decision.ASK_OPERATOR, by, asked)


def must_ask(tool: Tool) -> bool:
    """Whether the policy wants the provider's answer."""
    return (
        not tool.read_only
        and tool.lookup is not None
        and tool.on_unknown in (Policy.ASK_PROVIDER, Policy.COMPENSATE)
    )
