"""What the rules go by, and the parts that the sentences of their findings are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from . import footprints as facts
from .rows import Reader
from .subject import Declaration
from .verdict import Act, Finding, Interruption, Tenure


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the rules go by."""

    declaration: Declaration
    owned: facts.Ownership
    interruptions: tuple[Interruption, ...]
    drained: bool

    def claims(self, capability: str) -> bool:
        """Whether the subject claims it."""
        return capability in self.declaration.capabilities


Rule = Callable[[Facts], Iterable[Finding]]


def tokened(tenure: Tenure) -> str:
    """`tenure 2, token 2`, for a sentence."""
    token = f", token {tenure.token}" if tenure.token is not None else ""
    return f"tenure {tenure.number}{token}"


def ending(tenure: Tenure) -> str:
    """How a tenure ended, for a sentence about what came after."""
    if tenure.until is None:
        return "is still in force"
    by = "" if tenure.ended_by == tenure.who else f" by {tenure.ended_by or 'somebody unseen'}"
    return f"was {tenure.ended}{by} at event {tenure.until}"


def acts_of(given: Facts) -> Iterator[tuple[Act, facts.Touch]]:
    """Every act with the commit that it came from."""
    touches = {(touch.n, touch.run_id): touch for touch in given.owned.touches}
    for act in given.owned.acts:
        yield act, touches[act.n, act.run_id]


def its(act: Act, lost: Tenure) -> str:
    """Which tenure of the author's it was, and how that is known."""
    known = f" ({act.detail})" if "tenure" in act.detail or "token" in act.detail else ""
    return f"its {tokened(lost)}{known}"


def since(given: Facts, lost: Tenure, n: int) -> str:
    """Who has held the run since, for a sentence."""
    for tenure in reversed(given.owned.tenures):
        if tenure.run_id == lost.run_id and tenure.number > lost.number and tenure.since < n:
            if tenure.until is None or tenure.until >= n:
                return f"; {tenure.who} held it then ({tokened(tenure)})"
            return f"; {tenure.who} held it after that ({tokened(tenure)})"
    return ""


def victims_of(given: Facts, act: Act, lost: Tenure) -> tuple[str, ...]:
    """Those whose tenure the act fell into, or who had the run after the culprit."""
    later = [
        tenure.who
        for tenure in given.owned.tenures
        if tenure.run_id == lost.run_id and tenure.number > lost.number and tenure.since < act.n
    ]
    return tuple(dict.fromkeys(who for who in later if who and who != act.who))


def author_of(given: Facts, n: int) -> str:
    """Who made commit `n`."""
    return next((touch.who for touch in given.owned.touches if touch.n == n), "")


def left(touch: facts.Touch) -> str:
    """How long the lease would have lasted, for a sentence."""
    expiry = touch.before.expiry
    left = f", {(expiry.at_ns - touch.at_ns) / 1e9:g} s before it expired" if expiry else ""
    return left if expiry and expiry.at_ns > touch.at_ns else ""


def ago(touch: facts.Touch) -> str:
    """How long the lease had been lapsed, for a sentence."""
    expiry = touch.before.expiry
    if expiry is None or touch.at_ns <= expiry.at_ns:
        return ""
    return f" {(touch.at_ns - expiry.at_ns) / 1e9:g} s before"


def event_no(n: int) -> str:
    """When it happened, for a sentence."""
    return f" at event {n}" if n else ""


def numbers(*given: int | None) -> tuple[int, ...]:
    """The event numbers that there are."""
    return tuple(number for number in given if number)


def lease_names(declaration: Declaration) -> frozenset[str]:
    """The columns that a lease is written in."""
    return Reader(declaration).lease_columns


def cancelled(given: Facts, run_id: str) -> bool:
    """Whether an operator ended the run: what ran then stays as it was."""
    operators = {who for who, life in given.owned.lives.items() if life.is_operator}
    return any(
        touch.run_id == run_id and touch.after.done and touch.who in operators
        for touch in given.owned.touches
    )
