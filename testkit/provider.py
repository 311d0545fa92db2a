"""The side-effect boundary, played by the lane: a payment API, a mail server, the world outside.

Faults it models: a response that is delayed or lost after the effect was carried out, a request
that is delayed in the network, one that the network delivers twice, one that fails with nothing
done. It outlives every worker and keeps its ledger in order. What it does not model: a provider
that forgets, answers wrongly, or sees the runtime's lease (its fence, when it has one, is the
highest token it has seen, which is all that an outside system can know; Kleppmann 2016).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one effect. What the worker did not give is None."""

    number: int
    who: str
    name: str
    run_id: str | None
    token: int | None
    key: str | None
    receipt: str


@dataclass(frozen=True, slots=True)
class Decision:
    """`accepted`, `refused`, `replayed` (the key was known: nothing done again) or `failed`."""

    outcome: str
    why: str


@dataclass(slots=True)
class Delayed:
    """A request or a response that is under way; `decision` None: the request has not arrived."""

    request: Request
    decision: Decision | None


@dataclass(slots=True)
class Provider:
    """The ledger and the faults that wait for their request."""

    fence: str
    highest_seen: dict[str, int] = field(default_factory=dict)
    by_key: dict[str, Request] = field(default_factory=dict)
    ledger: list[Request] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    delayed: list[Delayed] = field(default_factory=list)

    def decide(self, request: Request) -> Decision:
        """Carry a request out, or don't."""
        run = request.run_id or ""
        if self.fence == "highest seen" and request.token is not None:
            highest = self.highest_seen.get(run, request.token)
            if request.token < highest:
                return Decision("refused", f"token {request.token} is lower than {highest}")
            self.highest_seen[run] = request.token
        if request.key is not None and request.key in self.by_key:
            first = self.by_key[request.key]
            return Decision("replayed", f"key {request.key!r} was applied for {first.who}")
        if request.key is not None:
            self.by_key[request.key] = request
        self.ledger.append(request)
        return Decision("accepted", "")

    def take_fault(self, name: str) -> str:
        """The fault that is waiting for a request of this name, or ''. Each strikes once."""
        for index, (fault, effect) in enumerate(self.faults):
            if fnmatchcase(name, effect):
                del self.faults[index]
                return fault
        return ""

    def take_delayed(self, name: str) -> list[Delayed]:
        """What is under way for effects of this name; it arrives now."""
        arriving = [item for item in self.delayed if fnmatchcase(item.request.name, name)]
        self.delayed = [item for item in self.delayed if item not in arriving]
        return arriving

    def lookup(self, key: str) -> str:
        """What became of a key: `accepted`, or `nothing` as far as is known now."""
        return "accepted" if key in self.by_key else "nothing"


#: Faults that a script may name, and what its request meets.
FAULTS: Final = ("lose-response", "delay-response", "delay-request", "twice", "fail")
