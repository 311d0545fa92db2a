"""What the rows in a history's commits say about leases, steps, effects and decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from .declaration_json import declaration_from_json
from .errors import HistoryError, SubjectError
from .history import Change, Commit, EffectAsked, History, Key, Row
from .rows import Expiry, Reader, index_beats
from .subject import Declaration


class Reconciled(NamedTuple):
    """A commit that wrote a decision."""

    event: Commit
    run_id: str
    step: str
    decision: str
    decided_by: str


def declared(history: History) -> Declaration | None:
    """The declaration that a history carries, None when it carries none that can be read."""
    try:
        return declaration_from_json(history.header.declaration)
    except HistoryError:
        return None


def reconciled_in(history: History, declaration: Declaration | None) -> Iterator[Reconciled]:
    """Each decision as it was first written; a row that changes later is the same decision."""
    spec = declaration.reconciliations if declaration is not None else None
    if declaration is None or spec is None:
        return
    run_of = Reader(declaration).run_of[spec.table]
    for event in history:
        for change in event.changes if isinstance(event, Commit) else ():
            row = change.new
            if change.table != spec.table or row is None or change.old is not None:
                continue
            assert isinstance(event, Commit)
            by = row.get(spec.decided_by) if spec.decided_by else None
            yield Reconciled(
                event, run_of(row) or "", step_name(row, spec.step),
                str(row.get(spec.decision)), "" if by is None else str(by),
            )  # fmt: skip


def step_name(row: Row, columns: tuple[str, ...]) -> str:
    """A step's name out of the columns that tell the steps of a run apart."""
    return "/".join(str(row.get(column)) for column in columns)


@dataclass(frozen=True, slots=True)
class Leases:
    """Answers about rows, by run and event number."""

    _declaration: Declaration | None
    _commits: tuple[Commit, ...]
    _run_ids: Mapping[int, tuple[str | None, ...]]
    _expiries: Mapping[str, Mapping[int, Expiry | None]]

    def expiry(self, run_id: str, n: int) -> Expiry | None:
        """Until when the lease of a run lasts after the commit that is event `n`."""
        found = None
        for at, expiry in self._expiries.get(run_id, {}).items():
            if at > n:
                break
            found = expiry
        return found

    def expiries(self, run_id: str) -> Mapping[int, Expiry | None]:
        """Every commit that changed when a run's lease ends, and to when."""
        return self._expiries.get(run_id, {})

    def landed(self, asked: EffectAsked, *, before: int | None) -> Commit | None:
        """The commit that took a request into the subject's own effect store, if one did."""
        spec = self._declaration.effects if self._declaration is not None else None
        if spec is None:
            return None
        for event, change, run_id in self._changes(spec.table):
            if before is not None and event.n > before:
                return None
            row = change.new
            mine = event.n > asked.n and (event.who, event.thread) == (asked.who, asked.thread)
            if not mine or row is None or run_id != asked.run_id:
                continue
            same_key = spec.key is None or asked.key is None or row.get(spec.key) == asked.key
            if same_key and _is_taken(change, spec.token):
                return event
        return None

    def finished(self, run_id: str, step: str, *, after: int) -> Commit | None:
        """The first commit after event `after` in which a step came to its end."""
        spec = self._declaration.steps if self._declaration is not None else None
        if spec is None:
            return None
        for event, change, owner in self._changes(spec.table):
            row = change.new
            if event.n <= after or row is None or owner != run_id:
                continue
            if step_name(row, spec.id) == step and row.get(spec.status) in spec.finished:
                return event
        return None

    def _changes(self, table: str) -> Iterator[tuple[Commit, Change, str | None]]:
        for event in self._commits:
            for change, run_id in zip(event.changes, self._run_ids[event.n], strict=True):
                if change.table == table:
                    yield event, change, run_id


def _is_taken(change: Change, token: str | None) -> bool:
    """A new row, or one whose token is new."""
    if change.old is None or change.new is None:
        return change.new is not None
    return token is not None and change.old.get(token) != change.new.get(token)


def leases_of(history: History, declaration: Declaration | None) -> Leases:
    """Read a history's commits once."""
    commits = tuple(event for event in history if isinstance(event, Commit))
    if declaration is None:
        nobody = {event.n: (None,) * len(event.changes) for event in commits}
        return Leases(None, commits, nobody, {})
    reader: Final = Reader(declaration)
    tables: dict[str, dict[Key, Row]] = {
        name: dict(rows) for name, rows in history.header.tables.items()
    }
    runs: dict[int, tuple[str | None, ...]] = {}
    expiries: dict[str, dict[int, Expiry | None]] = {}
    for event in commits:
        runs[event.n] = tuple(_run_of(reader, change) for change in event.changes)
        for change in event.changes:
            rows = tables.setdefault(change.table, {})
            if change.new is None:
                rows.pop(change.key, None)
            else:
                rows[change.key] = change.new
        beats = index_beats(reader, tables)
        for change, run_id in zip(event.changes, runs[event.n], strict=True):
            if change.table == reader.lease_table and run_id is not None:
                expiry = reader.expiry(change.new, beats) if change.new is not None else None
                seen = expiries.setdefault(run_id, {})
                if not seen or next(reversed(seen.values())) != expiry:
                    seen[event.n] = expiry
    return Leases(declaration, commits, runs, expiries)


def _run_of(reader: Reader, change: Change) -> str | None:
    read = reader.run_of.get(change.table)
    row = change.new if change.new is not None else change.old
    if read is None or row is None:
        return None
    try:
        return read(row)
    except SubjectError:
        return None
