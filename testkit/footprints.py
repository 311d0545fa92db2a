"""The facts that a fold leaves for the checkers, beside tenures and classified acts.

Each is something that was seen, at an event; none is a judgement yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .history import Change, EffectAsked, EffectDecided, Value
from .lives import Life
from .rows import View
from .verdict import Act, Tenure


class Touch(NamedTuple):
    """What one commit changed of one run, with the run as it stood before and after.

    `kinds` are those of its acts; `tenure` and `holder` as in `Act`.
    """

    n: int
    run_id: str
    who: str
    thread: str
    changes: tuple[Change, ...]
    before: View
    after: View
    kinds: tuple[str, ...]
    tenure: int | None
    holder: int | None
    at_ns: int


class Ask(NamedTuple):
    """A request for an effect; `tenure` it was made from, and whether that was `over` by then.

    `late`: by the clock that its worker read last, the lease had lapsed. `unlooked`: the worker
    came to it with its lease lost since this event, its last look; 0 when it had looked.
    `asked_about`: when the provider was last asked what became of its key; 0 for never.
    """

    event: EffectAsked
    run_id: str | None
    tenure: int | None
    over: bool
    late: bool
    unlooked: int = 0
    asked_about: int = 0


class Decision(NamedTuple):
    """What the provider made of a request, and whether the asker's tenure was `over` by then."""

    event: EffectDecided
    ask: Ask
    over: bool


class Lapse(NamedTuple):
    """The stored expiry of a tenure passed with nobody having taken it. `why` moved the clock."""

    n: int
    run_id: str
    tenure: int
    why: str


class Wake(NamedTuple):
    """A worker moved under a lease that had lapsed, and that nobody had taken."""

    n: int
    run_id: str
    tenure: int


class Misfit(NamedTuple):
    """A change whose row was not as it was last seen: something changed it in between."""

    n: int
    who: str
    table: str
    run_id: str | None
    what: str
    change: Change


def what_became(change: Change, *, author: bool, known: bool, run_known: bool) -> str:
    """What must have happened to a row that isn't as it was seen last.

    `author`: a commit brought the change; `known`: the row was there; `run_known`: its run was.
    """
    if not author:
        if change.old is None and run_known:
            return "came back"
        return "vanished" if change.new is None else "changed"
    if known and change.old is None:
        return "vanished"
    return "changed" if known or change.old is None else "came back"


class TokenFault(NamedTuple):
    """A claim under a token that was used (`earlier` claim) or that is lower than one before."""

    n: int
    run_id: str
    tenure: int
    token: int
    earlier: int | None
    highest: int


class Growth(NamedTuple):
    """A renewal after which a lease runs longer than after the one before, again."""

    n: int
    run_id: str
    tenure: int
    lengths_ns: tuple[int, ...]


class EdgeTake(NamedTuple):
    """At the very instant of its expiry its holder wrote (`acted`), and it was taken."""

    n: int
    run_id: str
    loser: int
    acted: tuple[int, ...]


class SkewTake(NamedTuple):
    """A lease was taken that its live holder's clock still called live; only the clocks differ."""

    n: int
    run_id: str
    loser: int
    who: str
    skew_ns: int


class Miscount(NamedTuple):
    """A counter that says another number than there are holders, or leaves its bounds."""

    n: int
    who: str
    table: str
    column: str
    says: int
    holders: int
    most: int | None


class Twin(NamedTuple):
    """A second row appeared for a run's id, or with a `key` a second run, beside the `first`."""

    n: int
    run_id: str
    who: str
    key: Value = None
    first: str = ""


class Left(NamedTuple):
    """A call returned, and its worker still held a run under a live lease."""

    n: int
    run_id: str
    tenure: int


@dataclass(frozen=True, slots=True)
class RunEnd:
    """One run at the end of the history. `touched`: some commit of the history changed it."""

    run_id: str
    view: View
    tenure: int | None
    touched: bool
    last: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """Everything that a fold found out, in the order in which it happened."""

    tenures: tuple[Tenure, ...]
    acts: tuple[Act, ...]
    touches: tuple[Touch, ...]
    asks: tuple[Ask, ...]
    decisions: tuple[Decision, ...]
    lapses: tuple[Lapse, ...]
    wakes: tuple[Wake, ...]
    misfits: tuple[Misfit, ...]
    token_faults: tuple[TokenFault, ...]
    growths: tuple[Growth, ...]
    edge_takes: tuple[EdgeTake, ...]
    skew_takes: tuple[SkewTake, ...]
    miscounts: tuple[Miscount, ...]
    twins: tuple[Twin, ...]
    left: tuple[Left, ...]
    runs: Mapping[str, RunEnd]
    lives: Mapping[str, Life]
    #: Tenure by run and number.
    by_number: Mapping[tuple[str, int], Tenure]
    #: Number of commits, and whether any worker's clock reading was seen.
    commits: int
    clock_seen: bool
    #: Owner values of leases that stood before the first claim that was seen, by run.
    before_history: Mapping[str, Value]

    def tenure(self, run_id: str | None, number: int | None) -> Tenure | None:
        """The tenure of that number, if there is one."""
        if run_id is None or number is None:
            return None
        return self.by_number.get((run_id, number))

    def last_tenure_of(self, who: str, run_id: str, *, before: int) -> Tenure | None:
        """The last tenure of an incarnation over a run that began before event `before`."""
        found = None
        for tenure in self.tenures:
            if tenure.who == who and tenure.run_id == run_id and tenure.since < before:
                found = tenure
        return found
