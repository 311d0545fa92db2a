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
    by = f" by {tenure.ended_by or 'somebody unseen'}"
    if tenure.ended_by == tenure.who:
        by = " by its own next claim" if tenure.ended == "taken over" else ""
    return f"was {tenure.ended}{by} at event {tenure.until}"


def acts_of(given: Facts) -> Iterator[tuple[Act, facts.Touch]]:
    """Every act with the commit that it came from."""
    touches = {(touch.n, touch.run_id): touch for touch in given.owned.touches}
    for act in given.owned.acts:
        yield act, touches[act.n, act.run_id]


def its(act: Act, lost: Tenure) -> str:
    """Which lease of the author's it was, and how that is known."""
    known = f"; {act.detail}" if "tenure" in act.detail or "token" in act.detail else ""
    return f"its lease ({tokened(lost)}{known})"


def since(given: Facts, lost: Tenure, n: int) -> str:
    """Who has held the run since, for a sentence."""
    for tenure in reversed(given.owned.tenures):
        if tenure.run_id == lost.run_id and tenure.number > lost.number and tenure.since < n:
            if tenure.until is None or tenure.until >= n:
                return f"; {tenure.who} held the run by then ({tokened(tenure)})"
            return f"; {tenure.who} had held the run since ({tokened(tenure)})"
    return ""


def victims_of(given: Facts, act: Act, lost: Tenure) -> tuple[str, ...]:
    """Those whose tenure the act fell into, or who had the run after the culprit."""
    later = [
        tenure.who
        for tenure in given.owned.tenures
        if tenure.run_id == lost.run_id and tenure.number > lost.number and tenure.since < act.n
    ]
    return tuple(dict.fromkeys(who for who in later if who and who != act.who))


def named(given: Facts, who: str, number: int | None, run_id: str) -> str:
    """Somebody with the tenure it acted from: `A#1 (tenure 1, token 1)`."""
    tenure = given.owned.tenure(run_id, number)
    return f"{who} ({tokened(tenure)})" if tenure is not None else who


def named_at(given: Facts, who: str, n: int, run_id: str) -> str:
    """The author of commit `n` with the tenure it acted from."""
    touches = given.owned.touches
    number = next((one.tenure for one in touches if (one.n, one.run_id) == (n, run_id)), None)
    return named(given, who, number, run_id)


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


def lasting(seconds: float) -> str:
    """A time that passes, in the unit that people would say it in."""
    for size, unit in ((31_557_600, "years"), (86_400, "days"), (3_600, "hours")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.6g} s"


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
