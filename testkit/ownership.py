"""Folds a history into tenures and classified acts (who held what, and who did what to it).

Commits are folded, not rows: the state before a commit is compared with the state after it, run by
run, so that an owner that is cleared and a status that is set in one transaction are one finish in
either order, and what a commit undoes itself was never there. Tables are updated in place.

Who an author is: its incarnation, and the tenure that the incarnation acts from. A configured
owner name is no identity. Two executions in one process are told apart by the owner or token that
their statements name, by the token in a declared effect row, and by receipts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from . import footprints as facts
from .counting import Counting
from .history import (
    Acted,
    Blind,
    Change,
    ClockMoved,
    ClockRead,
    Commit,
    EffectAsked,
    EffectDecided,
    Event,
    History,
    LookedUp,
    Passed,
    Returned,
    RolledBack,
    Row,
    Settled,
    Statement,
    Value,
)
from .lives import lives_of
from .looks import Looks
from .ownership_state import Claim, Run, freeze
from .readings import Readings
from .receipts import Receipts
from .rows import Reader, View, as_token, index_beats, without_moves
from .subject import Declaration
from .tenancy import Tenancy

_COLLECTED: Final = (
    "acts", "touches", "asks", "decisions", "lapses", "wakes", "misfits", "token_faults",
    "growths", "edge_takes", "skew_takes", "miscounts", "twins", "left",
)  # fmt: skip


def fold(history: History, declaration: Declaration) -> facts.Ownership:
    """Tenures, acts and everything else that the checkers go by. Raises `SubjectError`."""
    return _Fold(history, declaration).run()


class _Fold:
    """One pass over the events."""

    def __init__(self, history: History, declaration: Declaration) -> None:
        self.history: Final = history
        self.reader: Final = Reader(declaration)
        self.lives: Final = lives_of(history)
        self.times: Final = Readings()
        self.receipts: Final = Receipts()
        self.tables: Final = {table: dict(rows) for table, rows in history.header.tables.items()}
        self.runs: Final[dict[str, Run]] = {}
        self.found: Final[dict[str, list[Any]]] = {name: [] for name in _COLLECTED}
        self.tenancy: Final = Tenancy(
            self.reader, lives=self.lives, times=self.times, found=self.found, history=history
        )
        self.asks: Final[dict[tuple[str, int], facts.Ask]] = {}
        #: Keys that a process asked the provider about: what it found it may store again.
        self.looked_up: Final[set[tuple[str, str]]] = set()
        self.beats: Final = index_beats(self.reader, self.tables)
        #: Calls that a thread is inside of: (who, thread) -> names of points.
        self.inside: Final[dict[tuple[str, str], list[str]]] = {}
        self.moved_by = ""
        self.commits, self.clock_seen = 0, False
        self._reapers: Final = {f"call:{name}" for name in declaration.reapers}
        self._counts: Final = Counting(declaration.counters) if declaration.counters else None
        self.looks: Final = Looks(self.reader.lease_table)
        #: The run that each key started, and the runs that were a second one of their key.
        self.keys: Final[dict[Value, str]] = {}
        self.second: Final[set[str]] = set()
        #: Whether the script holds the write lock; who waited for it and wrote nothing since.
        self.locked, self.starved, self.returned = False, set[str](), dict[str, int]()
        self._open()

    def _open(self) -> None:
        """Runs and leases that stand before the first event."""
        reader = self.reader
        for table in dict.fromkeys((reader.runs_table, reader.lease_table)):
            run_of = reader.run_of[table]
            for key, row in self.tables.setdefault(table, {}).items():
                run_id = run_of(row)
                if run_id is not None:
                    run = self._run(run_id)
                    (run.rows if table == reader.runs_table else run.leases)[key] = row
        for run in self.runs.values():
            run.known = bool(run.rows)
            run.view = self._view(run)
            run.highest = reader.token_of((run.leases if reader.separate else run.rows).values())
            if run.view.held:
                run.before_history = run.view.owner
                token = as_token(run.view.token)
                if token is not None:
                    run.tokens[token] = 0

    def run(self) -> facts.Ownership:
        handlers = self._handlers()
        tenancy = self.tenancy
        for event in self.history.events:
            if event.at_ns >= tenancy.soonest:
                tenancy.lapse(event.n, event.at_ns, self.moved_by)
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)
        return self._finish()

    def _handlers(self) -> Mapping[type[Event], Callable[[Any], None]]:
        return {
            Commit: self._commit,
            Statement: self._statement,
            ClockRead: self._clock_read,
            ClockMoved: self._clock_moved,
            Passed: self._passed,
            Returned: self._returned,
            RolledBack: self.times.over,
            EffectAsked: self._asked,
            EffectDecided: self._decided,
            LookedUp: self._looked_up,
            Acted: self._acted,
            Settled: self._settled,
        }

    def _finish(self) -> facts.Ownership:
        tenures, by_number = freeze(self.tenancy.claims)
        ends = {
            run.run_id: facts.RunEnd(
                run.run_id, run.view, run.current.number if run.current else None,
                run.touched, run.last,
            )
            for run in self.runs.values()
        }  # fmt: skip
        return facts.Ownership(
            tenures=tenures,
            runs=ends,
            lives=self.lives,
            by_number=by_number,
            commits=self.commits,
            clock_seen=self.clock_seen,
            before_history={
                run.run_id: run.before_history
                for run in self.runs.values()
                if run.before_history is not None
            },
            **{name: tuple(items) for name, items in self.found.items()},
        )

    # --- events that only tell the time, or where somebody is

    def _clock_read(self, event: ClockRead) -> None:
        self.clock_seen = True
        self.times.read(event)
        self.looks.looked(event)
        self._woke(event)

    def _clock_moved(self, event: ClockMoved) -> None:
        self.moved_by = event.why
        if event.to_ns >= self.tenancy.soonest:
            self.tenancy.lapse(event.n, event.to_ns, event.why)

    def _acted(self, event: Acted) -> None:
        self.times.acted(event)
        verb = event.text.split(" ", 1)[0]
        self.locked = verb == "lock" or (self.locked and verb not in ("unlock", "heal"))

    def _settled(self, event: Settled) -> None:
        if "write lock" in event.state:
            self.starved.add(event.who)

    def _returned(self, event: Returned) -> None:
        """A call returned: what of its own it holds, unless the lock kept it from releasing it."""
        starved = self.locked or event.who in self.starved
        began, self.returned[event.who] = self.returned.get(event.who, 0), event.n
        for run in () if starved else self.runs.values():
            claim, expiry = run.current, run.view.expiry
            if claim is None or claim.who != event.who or claim.since < began:
                continue
            if expiry is None or expiry.live(event.at_ns + self.times.skew(event.who)):
                self.found["left"].append(facts.Left(event.n, run.run_id, claim.number))
        self._woke(event)

    def _statement(self, event: Statement) -> None:
        self.times.stated(event)
        self.looks.looked(event)
        self._woke(event)

    def _looked_up(self, event: LookedUp) -> None:
        self.looked_up.add((event.who, event.key))
        self.looks.looked_up(event)
        self._woke(event)

    def _passed(self, event: Passed) -> None:
        self.looks.passed(event)
        point = event.point
        if point.startswith(("txn:", "sql:")):
            if event.phase == "before":
                self.times.begins(event)
        elif point.startswith("call:") or point == "heartbeat":
            inside = self.inside.setdefault((event.who, event.thread), [])
            if event.phase == "before":
                inside.append(point)
            elif point in inside:
                inside.remove(point)
        self._woke(event)

    def _woke(self, event: Any) -> None:
        if self.tenancy.asleep:
            self.tenancy.woke(event.n, event.who)

    # --- effects

    def _asked(self, event: EffectAsked) -> None:
        run_id = event.run_id if event.run_id is not None else self._only_run_of(event.who)
        run = self.runs.get(run_id) if run_id is not None else None
        claim = self._claim_behind(run, event) if run is not None else None
        over = claim is not None and run is not None and run.current is not claim
        late = False
        if claim is not None and run is not None and not over and run.view.expiry is not None:
            read = self.times.last_read(event.who, event.thread)
            now = read.value_ns if read else event.at_ns + self.times.skew(event.who)
            late = run.view.expiry.lapsed(now)
        unlooked = self.looks.unlooked(event, run, claim, skew_ns=self.times.skew(event.who))
        asked_about = self.looks.asked_about(event.key)
        ask = facts.Ask(
            event, run_id, claim.number if claim else None, over, late, unlooked, asked_about
        )  # fmt: skip
        self.asks[event.who, event.request] = ask
        self.found["asks"].append(ask)
        self.receipts.issue(ask)
        self._woke(event)

    def _claim_behind(self, run: Run, event: EffectAsked) -> Claim | None:
        """The tenure that a request is made from: by its token, else its worker's latest."""
        own = run.by_who.get(event.who, ())
        named = (claim for claim in reversed(own) if claim.token == event.token)
        latest = own[-1] if own else None
        return next(named, latest) if event.token is not None else latest

    def _only_run_of(self, who: str) -> str | None:
        """The run that a worker surely means when it names none."""
        held = [run.run_id for run in self.runs.values() if run.current and run.current.who == who]
        if not held:
            held = list(
                dict.fromkeys(claim.run_id for claim in self.tenancy.claims if claim.who == who)
            )
        return held[0] if len(held) == 1 else None

    def _decided(self, event: EffectDecided) -> None:
        ask = self.asks.get((event.who, event.request))
        if ask is None:
            return
        run = self.runs.get(ask.run_id or "")
        current = run.current.number if run and run.current else None
        over = ask.tenure is not None and current != ask.tenure
        self.found["decisions"].append(facts.Decision(event, ask, over))

    # --- commits

    def _commit(self, event: Commit) -> None:
        self.commits += 1
        self.starved.discard(event.who)
        grouped = self._group(event)
        before = {run.run_id: run.view for run, _changes in grouped.values()}
        if self.reader.beat is not None:  # an expiry may have moved with another row
            before = {run.run_id: self._view(run) for run, _changes in grouped.values()}
        for change in event.changes:
            self._apply(change, event)
        landed = [
            ask
            for ask in self.receipts.land(event.changes, n=event.n)
            if ask.event.key is None or (event.who, ask.event.key) not in self.looked_up
        ]
        inside = self.inside.get((event.who, event.thread), ())
        life = self.lives.get(event.who)
        reaper = (life is not None and life.job == "reap") or not self._reapers.isdisjoint(inside)
        for run, changes in grouped.values():
            run.view = self._view(run)
            run.known = run.known or run.view.exists
            self.tenancy.judge(
                event, run, changes=changes, before=before[run.run_id], landed=landed,
                reaper=reaper, beating="heartbeat" in inside,
            )  # fmt: skip
            run.touched, run.last = True, event.n
        if self._counts is not None:
            self.found["miscounts"] += self._counts.after(event, self.tables, self.runs.values())
        self.times.over(event)
        self._woke(event)

    def _group(self, event: Commit) -> dict[str, tuple[Run, list[Change]]]:
        """The changes of a commit by the runs that they belong to."""
        grouped: dict[str, tuple[Run, list[Change]]] = {}
        for change in without_moves(event.changes):
            if change.old == change.new:
                continue
            for run_id in self._runs_of(change):
                if run_id not in grouped:
                    grouped[run_id] = (self._run(run_id), [])
                grouped[run_id][1].append(change)
        return grouped

    def _runs_of(self, change: Change) -> tuple[str, ...]:
        beat = self.reader.beat
        if beat is not None and change.table == beat.table:
            names = {row.get(beat.key) for row in (change.old, change.new) if row is not None}
            return tuple(
                run.run_id
                for run in self.runs.values()
                if run.view.lease is not None and run.view.lease.get(beat.by) in names
            )
        run_of = self.reader.run_of.get(change.table)
        if run_of is None:
            return ()
        ids = [run_of(row) for row in (change.old, change.new) if row is not None]
        return tuple(dict.fromkeys(run_id for run_id in ids if run_id is not None))

    def _apply(self, change: Change, event: Commit) -> None:
        table = self.tables.setdefault(change.table, {})
        known = table.get(change.key)
        if known != change.old or not event.who:
            self._misfit(change, event, known=known is not None)
        reader = self.reader
        if change.new is None:
            table.pop(change.key, None)
        else:
            table[change.key] = change.new
        if reader.beat is not None and change.table == reader.beat.table:
            for one in filter(None, (change.old, change.new)):
                self.beats.pop(one.get(reader.beat.key), None)
            if change.new is not None:
                self.beats[change.new.get(reader.beat.key)] = change.new
        if change.table not in (reader.runs_table, reader.lease_table):
            return
        run_of = reader.run_of[change.table]
        own = change.table == reader.runs_table
        for row, keep in ((change.old, False), (change.new, True)):
            run_id = run_of(row) if row is not None else None
            if run_id is None or row is None:
                continue
            rows = self._run(run_id).rows if own else self._run(run_id).leases
            if not keep:
                rows.pop(change.key, None)
                continue
            if own and rows and change.key not in rows:
                self.found["twins"].append(facts.Twin(event.n, run_id, event.who))
            if own:
                self._note_key(event, run_id, row)
            rows[change.key] = row

    def _note_key(self, event: Commit, run_id: str, row: Row) -> None:
        """A run whose key has started another one, which is still there."""
        column = self.reader.declaration.runs.key
        key = row.get(column) if column else None
        if key is None or run_id in self.second:
            return
        if (first := self.keys.setdefault(key, run_id)) == run_id:
            return
        if not self._run(first).rows:  # deleted, and its key with it
            self.keys[key] = run_id
            return
        self.second.add(run_id)
        self.found["twins"].append(facts.Twin(event.n, run_id, event.who, key, first))

    def _misfit(self, change: Change, event: Commit, *, known: bool) -> None:
        if not event.who and any(type(one) is Blind for one in self.history.events[: event.n]):
            return  # its author was not seen
        run_of = self.reader.run_of.get(change.table)
        row = change.new or change.old
        run_id = run_of(row) if run_of and row else None
        what = facts.what_became(
            change, author=bool(event.who), known=known, run_known=run_id in self.runs
        )
        misfit = facts.Misfit(event.n, event.who, change.table, run_id, what, change)
        self.found["misfits"].append(misfit)

    def _run(self, run_id: str) -> Run:
        run = self.runs.get(run_id)
        if run is None:
            run = self.runs[run_id] = Run(run_id)
        return run

    def _view(self, run: Run) -> View:
        return self.reader.view(
            run.rows.values(), run.leases.values(), known=run.known, beats=self.beats
        )
