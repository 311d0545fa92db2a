"""The fold's working state: a run as it stands now, and the claims of it so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .history import Key, Row, Value
from .rows import ABSENT, View
from .verdict import Tenure


@dataclass(slots=True)
class Claim:
    """A tenure under way. `until` 0: in force.

    `again_at`: the last renewal of its lapsed lease that may as well have been a new claim, where
    the subject writes nothing that tells them apart. `live_until_ns`/`live_at`: it acted at the
    very edge of its expiry, by which clock value and at which event. `lengths_ns`: for how long
    the lease was to run after the claim and after each renewal.
    """

    run_id: str
    number: int
    who: str
    thread: str
    owner: Value
    token: int | None
    identity: tuple[Value, Value, tuple[Value, ...]]
    since: int
    until: int = 0
    ended: str = ""
    ended_by: str = ""
    again_at: int = 0
    edge_ns: int = -1
    edge_at: tuple[int, ...] = ()
    lapsed: bool = False
    woke: bool = False
    lengths_ns: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """One run: its rows, how they read, its claims, and who was robbed of one by whom."""

    run_id: str
    rows: dict[Key, Row] = field(default_factory=dict)
    leases: dict[Key, Row] = field(default_factory=dict)
    known: bool = False
    view: View = ABSENT
    current: Claim | None = None
    claims: list[Claim] = field(default_factory=list)
    by_who: dict[str, list[Claim]] = field(default_factory=dict)
    robbed: dict[str, str] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)
    highest: int | None = None
    before_history: Value = None
    touched: bool = False
    last: int = 0


def freeze(
    claims: Sequence[Claim],
) -> tuple[tuple[Tenure, ...], dict[tuple[str, int], Tenure]]:
    """The claims as tenures, in order, and by run and number."""
    tenures = tuple(
        Tenure(
            claim.run_id, claim.number, claim.who, claim.thread, claim.owner, claim.token,
            claim.since, claim.until or None, claim.ended, claim.ended_by,
        )
        for claim in claims
    )  # fmt: skip
    return tenures, {(tenure.run_id, tenure.number): tenure for tenure in tenures}
