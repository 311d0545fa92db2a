"""What the rows of a runtime say: of which run they are, who holds it, under what, until when.

A `Reader` is a declaration made ready for reading. Times are nanoseconds since 1970 in here,
however the subject stores them: seconds, milliseconds, microseconds or nanoseconds (told apart by
size), ISO 8601 or SQLite's text (UTC where no zone is written), Julian days. A stored time is only
as fine as it was written: its *grain* is how far a comparison with it can be trusted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from .errors import Problem, SubjectError
from .history import Change, Commit, History, Key, Row, Value
from .run_function import run_function
from .subject import After, Beat, Declaration
from .zone import Zone, since_1970_s

_SECOND: Final = 1_000_000_000
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FRACTION: Final = re.compile(r":\d\d[.,](\d+)")
_UNIT_NS: Final[Mapping[str, int]] = {"s": _SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
_JULIAN_1970: Final = 2440587.5
#: SQLite's own clock ticks in milliseconds; floats are trusted no further.
_TICK: Final = 1_000_000


class Expiry(NamedTuple):
    """When a lease ends, in nanoseconds, and how finely that was written."""

    at_ns: int
    grain_ns: int

    def live(self, at_ns: int) -> bool:
        """Surely before its end."""
        return at_ns <= self.at_ns - self.grain_ns

    def lapsed(self, at_ns: int) -> bool:
        """Surely after its end. At the very edge it is neither."""
        return at_ns >= self.at_ns + self.grain_ns


class View(NamedTuple):
    """One run as its rows stand between two commits.

    `done` covers a terminal status and a row that was deleted at its end. `held` says that the
    rows name a holder; `owner`, `token` and `generation` are then what tells claims apart.
    """

    exists: bool
    status: Value
    done: bool
    waiting: bool
    held: bool
    owner: Value
    token: Value
    generation: tuple[Value, ...]
    expiry: Expiry | None
    lease: Row | None

    @property
    def identity(self) -> tuple[Value, Value, tuple[Value, ...]]:
        """What is new at each claim, as far as the subject writes it."""
        return (self.owner, self.token, self.generation)


ABSENT: Final = View(False, None, False, False, False, None, None, (), None, None)


@lru_cache(maxsize=4096, typed=True)
def read_time(value: Value, unit: str | None = None, *, zone: Zone = ()) -> Expiry | None:
    """A stored time, None for NULL or ''. Raises ValueError for what is no time.

    `zone`: how local time was kept where it was stored; like this machine's, when empty.
    """
    if value is None or value == "" or value == b"":
        return None
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            return _read_text(value, local=unit == "local iso", zone=zone)
        value = float(value) if any(mark in value for mark in ".eE") else int(value)
    if unit == "julian" or (unit is None and 2.4e6 < value < 2.6e6):
        return Expiry(round((value - _JULIAN_1970) * 86_400 * _SECOND), _TICK)
    if unit in (None, "iso", "local iso"):
        size = abs(value)
        unit = "ns" if size > 1e17 else "us" if size > 1e14 else "ms" if size > 1e11 else "s"
    factor = _UNIT_NS[unit]
    if isinstance(value, int):
        return Expiry(value * factor, factor)
    whole = int(value)  # multiplied as an integer: a float has too few digits for nanoseconds
    return Expiry(whole * factor + round((value - whole) * factor), min(_TICK, factor))


def _read_text(text: str, *, local: bool, zone: Zone) -> Expiry:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:80]!r} can't be read as a time") from None
    fraction = _FRACTION.search(text)
    at_ns = _seconds(moment, local=local, zone=zone) * _SECOND + moment.microsecond * 1_000
    grain = _SECOND // 10 ** min(len(fraction[1]), 6) if fraction else _SECOND
    return Expiry(at_ns, grain if text.count(":") > 1 or "T" in text else 60 * _SECOND)


def _seconds(moment: datetime, *, local: bool, zone: Zone) -> int:
    """Whole seconds since 1970."""
    if moment.tzinfo is None and local and zone:
        return since_1970_s(moment, zone)
    if moment.tzinfo is None:
        moment = moment.astimezone() if local else moment.replace(tzinfo=UTC)
    since = moment.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * 86_400 + since.seconds


def matches(row: Row, conditions: Mapping[str, Collection[str | int]]) -> bool:
    """Whether every named column has one of its values."""
    return all(row.get(column) in values for column, values in conditions.items())


class Reader:
    """A declaration, ready to read rows with."""

    def __init__(self, declaration: Declaration) -> None:
        runs, lease = declaration.runs, declaration.runs.lease
        self.declaration: Final = declaration
        self.runs_table: Final = runs.table
        self.lease_table: Final = lease.table or runs.table
        #: Whether leases are rows of their own and not columns of the run's row.
        self.separate: Final = self.lease_table != runs.table
        self.beat: Final = lease.expires_at if isinstance(lease.expires_at, Beat) else None
        self.tells_claims_apart: Final = bool(lease.token or lease.generation)
        #: Whether the owner's column is the time itself: a renewal is then no new owner.
        self._owned_by_time: Final = lease.owner is not None and lease.owner == (
            lease.expires_at.column if isinstance(lease.expires_at, After) else lease.expires_at
        )
        self.lease_columns: Final = _lease_columns(declaration)
        self.run_of: Final = _run_keys(declaration)
        self._terminal: Final = frozenset(runs.terminal)
        self._waiting: Final = frozenset(runs.waiting)

    def view(
        self,
        rows: Collection[Row],
        leases: Collection[Row],
        *,
        known: bool,
        beats: Mapping[Value, Row],
    ) -> View:
        """A run as its rows stand; `known`: it was there before."""
        runs = self.declaration.runs
        row = next(iter(rows), None)
        status = row.get(runs.status) if row is not None and runs.status else None
        candidates = reversed(list(leases if self.separate else rows))
        lease = next((one for one in candidates if self._is_held(one)), None)
        done = (row is not None and status in self._terminal) or (
            # a row that is gone while its lease stands was moved: some queues claim like that
            runs.gone and row is None and known and lease is None
        )
        waiting = status in self._waiting and not done
        if lease is None:
            return View(
                row is not None, status, done, waiting, False, None, None, (), None, None
            )  # fmt: skip
        spec = runs.lease
        return View(
            row is not None, status, done, waiting, True,
            lease.get(spec.owner) if spec.owner and not self._owned_by_time else None,
            lease.get(spec.token) if spec.token else None,
            tuple(lease.get(column) for column in spec.generation),
            self.expiry(lease, beats), lease,
        )  # fmt: skip

    def _is_held(self, row: Row) -> bool:
        spec = self.declaration.runs.lease
        if spec.owner and row.get(spec.owner) in (None, ""):
            return False
        if not spec.owner and not spec.held:
            return True
        return matches(row, spec.held)

    def expiry(self, lease: Row, beats: Mapping[Value, Row]) -> Expiry | None:
        """When a lease's row says that it ends; None: never. Raises `SubjectError`."""
        spec = self.declaration.runs.lease
        form = spec.expires_at
        if form is None:
            return None
        if isinstance(form, str):
            return self._time(lease, form, table=self.lease_table)
        if isinstance(form, After):
            begin = self._time(lease, form.column, table=self.lease_table)
            length = lease.get(form.seconds) if isinstance(form.seconds, str) else form.seconds
        else:
            row = beats.get(lease.get(form.by))
            if row is None:  # nobody of that name is alive
                return Expiry(0, 1)
            begin, length = self._time(row, form.column, table=form.table), form.seconds
        if begin is None or length is None:
            return None
        return Expiry(begin.at_ns + round(float(length) * _SECOND), begin.grain_ns)

    def _time(self, row: Row, column: str, *, table: str) -> Expiry | None:
        if column not in row:
            have = ", ".join(row)
            raise self._error(f"{table}.{column}", f"there is no such column; there are {have}")
        try:
            unit, zone = self.declaration.runs.lease.unit, self.declaration.zone
            return read_time(row[column], unit, zone=zone)
        except ValueError as error:
            raise self._error(f"{table}.{column}", f"{error}; say its unit") from None

    def token_of(self, leases: Iterable[Row]) -> int | None:
        """The highest token that a run's rows show, held or not."""
        column = self.declaration.runs.lease.token
        if not column:
            return None
        return max(
            (token for row in leases if (token := as_token(row.get(column))) is not None),
            default=None,
        )

    def _error(self, where: str, what: str) -> SubjectError:
        return SubjectError(self.declaration.subject, [Problem(where, what)])


def without_moves(changes: Sequence[Change]) -> Sequence[Change]:
    """Changes without rows that only moved: same content, under another key.

    Where rows have no key of their own, VACUUM and a table that is written anew number them afresh.
    What is left of a change is what its rows lost and got.
    """
    tables = {one.table for one in changes if one.old is None}
    tables &= {one.table for one in changes if one.new is None}
    if not tables:
        return changes
    left: list[Change] = []
    for table in tables:
        own = [one for one in changes if one.table == table]
        gone = Counter(_content(one.old) for one in own if one.old is not None)
        come = Counter(_content(one.new) for one in own if one.new is not None)
        moved = gone & come
        out, back = moved.copy(), moved.copy()
        for one in own:
            old = None if one.old is None or _taken(out, one.old) else one.old
            new = None if one.new is None or _taken(back, one.new) else one.new
            if old is not None or new is not None:
                left.append(Change(table, one.key, old, new))
    return [*(one for one in changes if one.table not in tables), *left]


def _content(row: Row) -> tuple[tuple[str, Value], ...]:
    return tuple(row.items())


def _taken(counts: Counter[tuple[tuple[str, Value], ...]], row: Row) -> bool:
    """Whether there is one left of such rows; then it is taken."""
    content = _content(row)
    if counts[content] <= 0:
        return False
    counts[content] -= 1
    return True


def as_token(value: object) -> int | None:
    """A token as a number; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None


def stored_expiries(
    declaration: Declaration, tables: Mapping[str, Mapping[Key, Row]]
) -> tuple[Expiry, ...]:
    """Every stored expiry of the leases that are held in `tables`.

    A clock past `at_ns + grain_ns` of them all is surely past every lease.
    """
    reader = Reader(declaration)
    beats = index_beats(reader, tables)
    leases = tables.get(reader.lease_table, {}).values()
    found = (reader.expiry(row, beats) for row in leases if reader._is_held(row))
    return tuple(expiry for expiry in found if expiry is not None)


def index_beats(reader: Reader, tables: Mapping[str, Mapping[Key, Row]]) -> dict[Value, Row]:
    """The rows that heartbeats go to, by the value that leases refer to them with."""
    if reader.beat is None:
        return {}
    rows = tables.get(reader.beat.table, {}).values()
    return {row.get(reader.beat.key): row for row in rows}


def _lease_columns(declaration: Declaration) -> frozenset[str]:
    """Columns that say who holds what: a change in them alone is about the lease."""
    spec = declaration.runs.lease
    named = [spec.owner, spec.token, spec.renewed_at, *spec.generation]
    if isinstance(spec.expires_at, str):
        named.append(spec.expires_at)
    elif isinstance(spec.expires_at, After):
        seconds = spec.expires_at.seconds
        named += [spec.expires_at.column, seconds if isinstance(seconds, str) else None]
    return frozenset(name for name in named if name)


def _run_keys(declaration: Declaration) -> Mapping[str, Callable[[Row], str | None]]:
    """For each table whose rows belong to runs: from a row to the run's id."""
    runs = declaration.runs
    keys: dict[str, Callable[[Row], str | None]] = {}
    if runs.lease.table and runs.lease.table != runs.table:
        keys[runs.lease.table] = _by_column(runs.lease.run or runs.id)
    parts = [*declaration.writes, declaration.steps, declaration.reconciliations]
    for part in (*parts, declaration.effects):
        if part is not None and part.table not in keys:
            keys[part.table] = (
                run_function(part.run, subject=declaration.subject)
                if ":" in part.run
                else _by_column(part.run)
            )
    keys[runs.table] = _by_column(runs.id)
    return keys


def _by_column(column: str | tuple[str, ...]) -> Callable[[Row], str | None]:
    if isinstance(column, str):
        return lambda row: None if (value := row.get(column)) is None else str(value)
    return lambda row: "/".join(str(row.get(name)) for name in column)


def rows_of_runs(
    history: History, declaration: Declaration, runs: Collection[str]
) -> dict[tuple[str, str], dict[Key, Row]]:
    """Rows of these runs and of their leases, by table and run, as they were seen last."""
    reader = Reader(declaration)
    found: dict[tuple[str, str], dict[Key, Row]] = {}
    for table in dict.fromkeys((reader.runs_table, reader.lease_table)):
        seen = list(history.header.tables.get(table, {}).items())
        for event in history.events:
            for change in event.changes if type(event) is Commit else ():
                if change.table == table and change.new is not None:
                    seen.append((change.key, change.new))
        for key, row in seen:
            run_id = reader.run_of[table](row)
            if run_id is not None and run_id in runs:
                found.setdefault((table.lower(), run_id), {})[key] = row
    return found
