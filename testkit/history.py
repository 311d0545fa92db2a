"""Everything that happened on a stage, in one order. Evidence.

A history is a `Header` (what was played, on what, under which declaration) and events. One
counter, `n`, orders all of them: clocks are too coarse to order an effect and a write. `at_ns`
is the stage's clock. `who` is an incarnation (`A#1`); it was found out by the lane, from the
process a message came from, and never told by the code under test.

Saved as JSON Lines: the header first, then an event a line. Jepsen's split of history and
checker is the model: nothing here judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

#: A value as SQLite stores it.
Value = None | int | float | str | bytes
#: One row of a table, column by column, in the table's order.
Row = Mapping[str, Value]
#: What identifies a row in its table: the primary key's values, else the rowid.
Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """What every event has: its place in the order and the stage's time in nanoseconds."""

    n: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Acted(Event):
    """The script's next action began. `text` is the action as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Spawned(Event):
    """An incarnation began to live. `name` is its configured name, which may not be unique."""

    who: str
    pid: int
    name: str
    job: str


@dataclass(frozen=True, slots=True)
class Passed(Event):
    """A point was passed, or the worker is `held` there. `point` reads `txn:commit`."""

    who: str
    thread: str
    point: str
    ordinal: int
    phase: str
    held: bool


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A move ended; `state` tells where its worker is: `held at …`, `waits for …`, `returned`."""

    who: str
    state: str


@dataclass(frozen=True, slots=True)
class Signalled(Event):
    """SIGSTOP, SIGCONT or SIGKILL, confirmed by the kernel. `write_lock`: free, held, unknown."""

    who: str
    signal: str
    write_lock: str


@dataclass(frozen=True, slots=True)
class Returned(Event):
    """The subject's `work` came back: `value` is its repr, `error` the exception's text or ''."""

    who: str
    thread: str
    value: str
    error: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """An incarnation is over: `how` is `returned`, `exit 3`, `signal 9`."""

    who: str
    how: str


@dataclass(frozen=True, slots=True)
class ClockRead(Event):
    """A worker read its clock and saw `value_ns` (with its skew)."""

    who: str
    thread: str
    value_ns: int


@dataclass(frozen=True, slots=True)
class ClockMoved(Event):
    """The stage's clock was set to `to_ns`; `why` is `expire`, `advance`, `drain`."""

    to_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class Statement(Event):
    """A statement on a declared table finished.

    `sql` has its bound values in place. `rows` is how many rows it changed (0 for one that failed
    or matched nothing; None for a read). `txn` numbers the transactions of one `connection`;
    whether it was committed or rolled back is told by the `Commit` or `RolledBack` of that number,
    neither when the process died first.
    """

    who: str
    thread: str
    connection: int
    txn: int
    verb: str
    table: str
    sql: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class RolledBack(Event):
    """A transaction was rolled back."""

    who: str
    thread: str
    connection: int
    txn: int


@dataclass(frozen=True, slots=True)
class Change:
    """One row's net change in one commit; `old` is None for a new row, `new` for a deleted one."""

    table: str
    key: Key
    old: Row | None
    new: Row | None


@dataclass(frozen=True, slots=True)
class Commit(Event):
    """What one commit changed in the declared tables, read by the observer.

    `who` is empty when the change was found outside every commit that the kit saw.
    """

    who: str
    thread: str
    connection: int
    txn: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class EffectAsked(Event):
    """A worker is about to do what can't be taken back.

    `store` is `provider` (a message to the stage's provider) or `own` (the subject's own effect
    store; whether it landed is read from the commits). What was not given is None.
    """

    who: str
    thread: str
    request: int
    name: str
    run_id: str | None
    token: int | None
    key: str | None
    receipt: str
    store: str


@dataclass(frozen=True, slots=True)
class EffectDecided(Event):
    """The provider decided about a request: `accepted`, `refused`, `replayed` (same key), `failed`.

    `who` is the incarnation that asked. A request that the network delivered twice is decided
    twice. `why` says it in words.
    """

    who: str
    request: int
    outcome: str
    why: str


@dataclass(frozen=True, slots=True)
class EffectAnswered(Event):
    """The response reached its worker (`delivered`), or never will (`lost`).

    For `own` stores: `returned`, or `raised ERROR`.
    """

    who: str
    request: int
    how: str


@dataclass(frozen=True, slots=True)
class LookedUp(Event):
    """A worker asked the provider what became of a key: `found` is accepted, nothing, unknown."""

    who: str
    thread: str
    key: str
    found: str


@dataclass(frozen=True, slots=True)
class Blind(Event):
    """The kit lost sight of part of a worker: nothing may be called clean after that."""

    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Noted(Event):
    """A remark of the kit for the reader of the history."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """What a history is a history of.

    `declaration` is `subject.declaration_to_json`'s output; `tables` are the declared tables' rows
    before the first event, keyed like `Change.key`; `schema` is every CREATE statement of the
    database, so that an attempt can be asked again on a scratch copy; `requires` are the moments
    without which the script proves nothing, None where that was not said.
    """

    subject: str
    script: str
    kit: str = ""
    python: str = ""
    sqlite: str = ""
    clock: str = "virtual"
    attribution: str = "commit"
    start_ns: int = 0
    declaration: Mapping[str, object] = field(default_factory=dict)
    schema: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[Key, Row]] = field(default_factory=dict)
    requires: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A header and its events, in order of `n`."""

    header: Header
    events: tuple[Event, ...]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)


#: Every kind of event under its name in a file and on the wire.
KINDS: Mapping[str, type[Event]] = {
    "acted": Acted,
    "spawned": Spawned,
    "passed": Passed,
    "settled": Settled,
    "signalled": Signalled,
    "returned": Returned,
    "ended": Ended,
    "clock-read": ClockRead,
    "clock-moved": ClockMoved,
    "statement": Statement,
    "rolled-back": RolledBack,
    "commit": Commit,
    "effect-asked": EffectAsked,
    "effect-decided": EffectDecided,
    "effect-answered": EffectAnswered,
    "looked-up": LookedUp,
    "blind": Blind,
    "noted": Noted,
}
