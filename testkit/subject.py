"""What a consumer declares: where a runtime keeps its runs, its leases and its results.

A subject says where things are; everything else is derived from what was seen to be committed.
The tables that no part of a declaration names don't count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from .zone import Zone, zone_here

if TYPE_CHECKING:
    from .worker import Worker

#: How a stored time is written. None means: recognised from the value. Text without a zone is UTC,
#: unless the unit is `local iso` (what `datetime.now().isoformat()` writes).
TimeUnit = Literal["s", "ms", "us", "ns", "iso", "local iso", "julian"] | None

#: What a subject may claim. What it doesn't claim is `not claimed`, never passed.
CAPABILITIES = frozenset(
    {
        "checks_expiry",  # nothing starts, and nothing is renewed, under a lapsed lease
        "fences_effects",  # an effect is fenced in one transaction with the lease
        "reconciles",  # an interrupted step gets one recorded decision
        "releases",  # a call that returns releases its lease at once
        "cancels",  # an operator may cancel a run: `cancel(db, run_id)`
        "reaps",  # a janitor may requeue expired leases: `reap(worker)`
        "asks_approval",  # a run may wait for an operator
        "heartbeats",  # a live owner keeps its lease through a long call
        "asks_provider",  # its effects go to the stage's provider, which is asked when in doubt
        "asks_first",  # no lost request is made again before the provider was asked about its key
        "validates",  # the lease is looked at again immediately before each effect
    }
)


@dataclass(frozen=True, slots=True)
class After:
    """An expiry that is `column` plus `seconds` (a number, or the column that has it).

    NULL in either column: the lease never ends.
    """

    column: str
    seconds: float | str


@dataclass(frozen=True, slots=True)
class Beat:
    """An expiry that lies with the owner: row `key` = our `by` of `table`, plus `seconds`.

    No such row: the lease is over. NULL in its `column`: it never ends.
    """

    table: str
    key: str
    by: str
    column: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Lease:
    """Where ownership of a run is written.

    `held` are the column values under which the row counts as a lease (`{"status": {"running"}}`);
    with none, an owner that is not NULL and not '' does. `table`/`run` when it isn't on the run's
    own row. `token` fences; `generation` is whatever else is new at each claim.
    """

    owner: str | None = None
    held: Mapping[str, Collection[str | int]] = field(default_factory=dict)
    expires_at: str | After | Beat | None = None
    token: str | None = None
    generation: tuple[str, ...] = ()
    renewed_at: str | None = None
    table: str | None = None
    run: str | None = None
    unit: TimeUnit = None


@dataclass(frozen=True, slots=True)
class RunTable:
    """The table of runs. `terminal` statuses are final; in `waiting` ones a run rightly rests.

    `gone`: a finished run's row is deleted. `id` may be several columns (its run id is then their
    values joined by '/'). `key`: the column with the idempotency key that started the run, of which
    there may be one run only.
    """

    table: str
    id: str | tuple[str, ...]
    lease: Lease
    status: str | None = None
    terminal: Collection[str | int] = frozenset()
    waiting: Collection[str | int] = frozenset()
    gone: bool = False
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Writes:
    """A table whose rows only a run's holder may change.

    `run` is the column with the run's id, or a function's dotted name (`pkg.mod:fn`) from a row
    (a dict) to the id or None. `late_ok`: rows may be *added* after the end (the outcome of a call
    that ran when an operator cancelled).
    """

    table: str
    run: str
    late_ok: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """The table of steps, for runtimes that record when a step starts.

    A row is started in one of `started`, was marked in one of `interrupted`, is over in one of
    `finished`. `id` columns tell the steps of one run apart.
    """

    table: str
    run: str
    id: tuple[str, ...]
    status: str
    started: Collection[str | int]
    finished: Collection[str | int]
    interrupted: Collection[str | int] = frozenset()
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Reconciliations:
    """The table with the recorded decisions about interrupted steps: a row a decision."""

    table: str
    run: str
    step: tuple[str, ...]
    decision: str
    decided_by: str | None = None


@dataclass(frozen=True, slots=True)
class EffectRows:
    """The subject's own effect store: an accepted effect is a row (or a row's changed token)."""

    table: str
    run: str
    key: str | None = None
    token: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Counter:
    """A count that must equal the live holders: `column` of `table`, summed over its rows.

    In no row is it more than `most`, a number or another column. Holders are the runs that are
    held, or with `of` the rows of those tables that have such column values
    (`{"steps": {"holds_slot": {1}}}`).
    """

    table: str
    column: str
    most: str | int | None = None
    of: Mapping[str, Mapping[str, Collection[str | int]]] = field(default_factory=dict)


class Subject:
    """The system under test, as the kit drives it. Override what differs.

    `prepare`, `submit` and `cancel` run in a process of their own with the database's path; `work`
    and `reap` run in a worker: one pass that claims or resumes what it can, executes it, returns.
    """

    runs: RunTable
    writes: ClassVar[Sequence[Writes]] = ()
    steps: ClassVar[Steps | None] = None
    reconciliations: ClassVar[Reconciliations | None] = None
    effects: ClassVar[EffectRows | None] = None
    counters: ClassVar[Sequence[Counter]] = ()
    #: Dotted names (`pkg.mod:Class.method`) that become `call:` points, and what they are.
    claims: ClassVar[Sequence[str]] = ()
    reapers: ClassVar[Sequence[str]] = ()
    heartbeats: ClassVar[Sequence[str]] = ()
    calls: ClassVar[Sequence[str]] = ()
    #: What is claimed, out of `CAPABILITIES`.
    capabilities: ClassVar[Collection[str]] = frozenset()
    delivery: ClassVar[Literal["at-least-once", "exactly-once"]] = "at-least-once"
    #: `given`: it takes `worker.clock`; `patched`: the patched `time` serves it; else `wall`.
    clock: ClassVar[Literal["given", "patched", "wall"]] = "wall"
    #: How long a lease lasts, and how much skew between workers' clocks the subject says it bears.
    lease_ttl_ms: ClassVar[int] = 30_000
    bears_skew_ms: ClassVar[int] = 0
    #: The provider's fence: all that an outside system can do is refuse lower than highest seen.
    provider_fence: ClassVar[Literal["none", "highest seen"]] = "none"
    #: Where a worker is held before what can't be taken back; scenarios stop it here.
    danger: ClassVar[str] = "effect:* before"
    #: Where it is held after that, with nothing recorded yet; empty: as `danger`, but `after`, or
    #: after an effect where `danger` is a `point()`, which has no after.
    danger_after: ClassVar[str] = ""
    #: Where a worker is inside a long call: alive, with its heartbeat going.
    long_call: ClassVar[str] = "effect:* before"
    #: Other set-ups of the same runtime that scenarios may ask for by name (a run that waits for
    #: approval, an old database): name -> `pkg.mod:Class`. One that isn't there is not claimed.
    variants: ClassVar[Mapping[str, str]] = {}
    #: `brief`: the observer opens the file anew for each read and lets it go.
    observer: ClassVar[Literal["kept", "brief"]] = "kept"

    def prepare(self, db: Path) -> None:
        """Make a fresh database at `db`: its schema."""
        raise NotImplementedError(f"{type(self).__name__} has no prepare(db)")

    def submit(self, db: Path, run_id: str) -> None:
        """Enqueue one run."""
        raise NotImplementedError(f"{type(self).__name__} has no submit(db, run_id)")

    def work(self, worker: Worker) -> object:
        """Claim or resume what can be had, execute it, return."""
        raise NotImplementedError(f"{type(self).__name__} has no work(worker)")

    def cancel(self, db: Path, run_id: str) -> None:
        """Cancel a run with an operator's authority (capability `cancels`)."""
        raise NotImplementedError(f"{type(self).__name__} has no cancel(db, run_id)")

    def approve(self, db: Path, run_id: str) -> None:
        """Let a run that waits for an operator go on (capability `asks_approval`)."""
        raise NotImplementedError(f"{type(self).__name__} has no approve(db, run_id)")

    def reap(self, worker: Worker) -> object:
        """Release or requeue what expired (capability `reaps`)."""
        raise NotImplementedError(f"{type(self).__name__} has no reap(worker)")


@dataclass(frozen=True, slots=True)
class Declaration:
    """The part of a subject that is pure data: what the checkers need, and a history carries.

    `zone` is how the machine that recorded the history keeps local time; empty (also in a history
    that was saved before there was such a field): it is read as this machine keeps it.
    """

    subject: str
    runs: RunTable
    writes: tuple[Writes, ...] = ()
    steps: Steps | None = None
    reconciliations: Reconciliations | None = None
    effects: EffectRows | None = None
    counters: tuple[Counter, ...] = ()
    capabilities: frozenset[str] = frozenset()
    delivery: str = "at-least-once"
    provider_fence: str = "none"
    lease_ttl_ms: int = 30_000
    bears_skew_ms: int = 0
    waits_ok: bool = False
    claims: tuple[str, ...] = ()
    reapers: tuple[str, ...] = ()
    heartbeats: tuple[str, ...] = ()
    zone: Zone = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """Every table that the declaration names, each once, in order."""
        lease = self.runs.lease
        named = [self.runs.table, lease.table]
        named += [lease.expires_at.table] if isinstance(lease.expires_at, Beat) else []
        named += [writes.table for writes in self.writes]
        named += [name for counter in self.counters for name in (counter.table, *counter.of)]
        parts: tuple[Steps | Reconciliations | EffectRows | None, ...] = (
            self.steps,
            self.reconciliations,
            self.effects,
        )
        named += [part.table for part in parts if part is not None]
        return tuple(dict.fromkeys(name for name in named if name))


def declaration_of(subject: Subject) -> Declaration:
    """The declaration of a subject; with this machine's zone, when its times need one."""
    return Declaration(
        subject=type(subject).__name__,
        runs=subject.runs,
        writes=tuple(subject.writes),
        steps=subject.steps,
        reconciliations=subject.reconciliations,
        effects=subject.effects,
        counters=tuple(subject.counters),
        capabilities=frozenset(subject.capabilities),
        delivery=subject.delivery,
        provider_fence=subject.provider_fence,
        lease_ttl_ms=subject.lease_ttl_ms,
        bears_skew_ms=subject.bears_skew_ms,
        waits_ok="asks_approval" in subject.capabilities,
        claims=tuple(subject.claims),
        reapers=tuple(subject.reapers),
        heartbeats=tuple(subject.heartbeats),
        zone=zone_here() if subject.runs.lease.unit == "local iso" else (),
    )
