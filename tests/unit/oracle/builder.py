"""Histories written by hand: each call is one thing that happens, in the order of the lines.

`Story` keeps the tables' rows, so that a commit names only what it sets. The default declaration
is a small runtime with a lease on the run's own row; `s.now` is the stage's clock in seconds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_leasecheck.testkit.footprints import Ownership
from pytest_leasecheck.testkit.history import (
    Acted,
    Blind,
    Change,
    ClockMoved,
    ClockRead,
    Commit,
    EffectAnswered,
    EffectAsked,
    EffectDecided,
    Ended,
    Event,
    Header,
    History,
    LookedUp,
    Passed,
    Returned,
    RolledBack,
    Signalled,
    Spawned,
    Statement,
)
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.ownership import fold
from pytest_leasecheck.testkit.subject import (
    Declaration,
    EffectRows,
    Lease,
    Reconciliations,
    RunTable,
    Steps,
    Writes,
)
from pytest_leasecheck.testkit.verdict import Verdict

TTL = 30.0

#: A runtime that claims everything.
FULL = Declaration(
    subject="Small",
    runs=RunTable(
        "runs",
        id="id",
        status="status",
        terminal=frozenset({"done", "failed", "cancelled"}),
        waiting=frozenset({"waiting"}),
        lease=Lease(owner="owner", expires_at="expires", token="token", unit="s"),
    ),
    writes=(Writes("events", run="run_id"),),
    steps=Steps(
        "steps",
        run="run_id",
        id=("name",),
        status="status",
        started=frozenset({"started"}),
        finished=frozenset({"finished"}),
        interrupted=frozenset({"interrupted"}),
        result="result",
    ),
    reconciliations=Reconciliations(
        "decisions", run="run_id", step=("name",), decision="decision", decided_by="by"
    ),
    effects=EffectRows("effects", run="run_id", key="key", token="token", name="name"),
    capabilities=frozenset({"checks_expiry", "reconciles", "releases", "cancels", "reaps"}),
)

#: The same without anything that is new at each claim.
PLAIN = replace(
    FULL,
    runs=replace(FULL.runs, lease=Lease(owner="owner", expires_at="expires", unit="s")),
    steps=None,
    reconciliations=None,
    effects=None,
    capabilities=frozenset(),
)

KEYS = {"runs": ("id",), "steps": ("run_id", "name"), "effects": ("key",)}


def declare(base: Declaration = FULL, **lease: Any) -> Declaration:
    """A declaration with other lease columns."""
    return replace(base, runs=replace(base.runs, lease=replace(base.runs.lease, **lease)))


class Story:
    """One history under construction."""

    def __init__(self, declaration: Declaration = FULL, *, now: float = 1_000_000.0) -> None:
        self.declaration = declaration
        self.now = now
        self.start = now
        self.events: list[Event] = []
        self.tables: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {
            table: {} for table in declaration.tables
        }
        self.before: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        self.txn = 0
        self.request = 0
        self.skews: dict[str, float] = {}
        self.rowid = 0

    # --- the stage

    @property
    def n(self) -> int:
        """The number of the last event."""
        return len(self.events)

    @property
    def at_ns(self) -> int:
        return round(self.now * 1e9)

    def add(self, kind: type[Event], *fields: Any) -> int:
        self.events.append(kind(self.n + 1, self.at_ns, *fields))
        return self.n

    def act(self, text: str) -> None:
        self.add(Acted, text)

    def spawn(self, *whos: str, name: str | None = None, job: str = "work") -> None:
        for who in whos:
            self.add(Spawned, who, 100 + self.n, name or who.partition("#")[0], job)

    def advance(self, seconds: float, why: str = "advance") -> None:
        self.now += seconds
        self.add(ClockMoved, self.at_ns, why)

    def expire(self) -> None:
        self.act("expire")
        self.advance(TTL + 1, why="expire")

    def skew(self, worker: str, seconds: float) -> None:
        self.act(f"skew {worker} {seconds:+g}s")
        self.skews[worker] = seconds

    def signal(self, who: str, signal: str) -> None:
        self.add(Signalled, who, signal, "free")

    def kill(self, who: str) -> None:
        self.signal(who, "SIGKILL")
        self.add(Ended, who, "signal 9")

    def returned(self, who: str, error: str = "", thread: str = "main") -> None:
        self.add(Returned, who, thread, "None", error)

    def blind(self, who: str, why: str = "its trace callback was replaced") -> None:
        self.add(Blind, who, why)

    def passed(
        self, who: str, point: str, phase: str = "before", *, held: bool = False,
        thread: str = "main",
    ) -> None:  # fmt: skip
        self.add(Passed, who, thread, point, 1, phase, held)

    def reads(self, who: str, thread: str = "main") -> float:
        """A worker looks at its clock; returns what it saw."""
        seen = self.now + self.skews.get(who.partition("#")[0], 0)
        self.add(ClockRead, who, thread, round(seen * 1e9))
        return seen

    # --- rows and commits

    def set(self, table: str, key: Any, **values: Any) -> Change:
        """A row's columns are set; the row appears when there is none."""
        full = key if isinstance(key, tuple) else (key,)
        old = self.tables[table].get(full)
        names = KEYS.get(table, ("id",))
        new = dict(old) if old is not None else dict(zip(names, full, strict=True))
        new.update(values)
        return Change(table, full, old, new)

    def add_row(self, table: str, **values: Any) -> Change:
        """A new row, with the next rowid as its key."""
        self.rowid += 1
        return Change(table, (self.rowid,), None, dict(values))

    def delete(self, table: str, key: Any) -> Change:
        full = key if isinstance(key, tuple) else (key,)
        return Change(table, full, self.tables[table][full], None)

    def given(self, *changes: Change) -> None:
        """Rows that were there before the first event."""
        for change in changes:
            assert change.new is not None
            self.tables[change.table][change.key] = dict(change.new)
        self.before = {table: dict(rows) for table, rows in self.tables.items()}

    def commit(
        self, who: str, *changes: Change, thread: str = "main", sql: tuple[str, ...] = ()
    ) -> int:
        """One transaction of one thread, with the statements that made it when they matter."""
        self.txn += 1
        for text in sql:
            self._statement(who, text, rows=1, thread=thread)
        for change in changes:
            if change.new is None:
                self.tables[change.table].pop(change.key, None)
            else:
                self.tables[change.table][change.key] = dict(change.new)
        return self.add(Commit, who, thread, 1, self.txn, changes)

    def tries(
        self, who: str, sql: str, *, rows: int | None = 0, thread: str = "main",
        rolls_back: bool = False,
    ) -> int:  # fmt: skip
        """A statement in a transaction that changes nothing for good."""
        self.txn += 1
        n = self._statement(who, sql, rows=rows, thread=thread)
        if rolls_back:
            self.add(RolledBack, who, thread, 1, self.txn)
        return n

    def _statement(self, who: str, sql: str, *, rows: int | None, thread: str) -> int:
        verb = sql.split()[0]
        after = {"UPDATE": 1, "INSERT": 2, "DELETE": 2}
        table = sql.split("FROM ")[1].split()[0] if verb == "SELECT" else sql.split()[after[verb]]
        return self.add(Statement, who, thread, 1, self.txn, verb, table, sql, rows)

    # --- the small runtime

    def submit(self, run_id: str = "r1", **values: Any) -> int:
        self.spawn(f"operator#{self.n}", name="operator", job="submit")
        row = {"status": "queued", "owner": None, "expires": None, "token": 0, "result": None}
        who = f"operator#{self.n - 1}"
        return self.commit(who, self.set("runs", run_id, **(row | values)))

    def operator(self, *changes: Change, job: str = "cancel") -> int:
        self.spawn(f"operator#{self.n}", name="operator", job=job)
        return self.commit(f"operator#{self.n - 1}", *changes)

    def leased(self, who: str, token: int, **values: Any) -> dict[str, Any]:
        owner = values.pop("owner", who)
        return {
            "status": "running", "owner": owner, "token": token, "expires": self.now + TTL
        } | values  # fmt: skip

    def claim(self, who: str, run_id: str = "r1", token: int = 1, **values: Any) -> int:
        """A worker looks at its clock and claims."""
        self.reads(who)
        return self.commit(who, self.set("runs", run_id, **self.leased(who, token, **values)))

    def renew(self, who: str, run_id: str = "r1", *, thread: str = "main") -> int:
        now = self.reads(who, thread)
        return self.commit(who, self.set("runs", run_id, expires=now + TTL), thread=thread)

    def start_step(self, who: str, name: str = "pay", run_id: str = "r1") -> int:
        self.reads(who)
        return self.commit(who, self.set("steps", (run_id, name), status="started"))

    def end_step(self, who: str, name: str = "pay", run_id: str = "r1", result: str = "ok") -> int:
        self.reads(who)
        row = self.set("steps", (run_id, name), status="finished", result=result)
        return self.commit(who, row)

    def finish(self, who: str, run_id: str = "r1", **values: Any) -> int:
        self.reads(who)
        ended = {"status": "done", "owner": None, "expires": None} | values
        return self.commit(who, self.set("runs", run_id, **ended))

    def release(self, who: str, run_id: str = "r1", **values: Any) -> int:
        self.reads(who)
        free = {"status": "queued", "owner": None, "expires": None} | values
        return self.commit(who, self.set("runs", run_id, **free))

    def take_over(
        self, who: str, run_id: str = "r1", *, token: int = 2, decide: bool = True
    ) -> int:
        """Claim, mark what was in flight as interrupted, decide about it: in one transaction."""
        self.reads(who)
        changes = [self.set("runs", run_id, **self.leased(who, token))]
        for key, row in self.tables.get("steps", {}).items():
            if row["run_id"] == run_id and row["status"] == "started":
                changes.append(self.set("steps", key, status="interrupted"))
                if decide:
                    changes.append(self.decision(who, key[1], run_id))
        return self.commit(who, *changes)

    def decision(
        self, by: str, name: str = "pay", run_id: str = "r1", what: str = "retry"
    ) -> Change:
        return self.add_row("decisions", run_id=run_id, name=name, decision=what, by=by)

    # --- effects

    def ask(
        self, who: str, name: str = "charge", *, run_id: str | None = "r1",
        token: int | None = None, key: str | None = None, store: str = "provider",
        thread: str = "main",
    ) -> int:  # fmt: skip
        """A request; returns its number. Its receipt is `receipt(number)`."""
        self.request += 1
        self.add(
            EffectAsked, who, thread, self.request, name, run_id, token, key,
            self.receipt(self.request), store,
        )  # fmt: skip
        return self.request

    @staticmethod
    def receipt(request: int) -> str:
        return f"rcpt-x{request}z"

    def decide(self, who: str, request: int, outcome: str = "accepted", why: str = "") -> None:
        self.add(EffectDecided, who, request, outcome, why)

    def answer(self, who: str, request: int, how: str = "delivered") -> None:
        self.add(EffectAnswered, who, request, how)

    def effect(
        self, who: str, name: str = "charge", outcome: str = "accepted", **fields: Any
    ) -> int:
        request = self.ask(who, name, **fields)
        self.decide(who, request, outcome)
        self.answer(who, request)
        return request

    def look_up(self, who: str, key: str, found: str = "accepted") -> None:
        self.add(LookedUp, who, "main", key, found)

    # --- what it comes to

    def history(self, **header: Any) -> History:
        return History(
            Header("Small", "", start_ns=round(self.start * 1e9), tables=self.before, **header),
            tuple(self.events),
        )

    def fold(self) -> Ownership:
        return fold(self.history(), self.declaration)

    def kinds(self, run_id: str = "r1") -> list[str]:
        """Every act on a run, as `A#1 acquire`."""
        return [f"{act.who} {act.kind}" for act in self.fold().acts if act.run_id == run_id]

    def judge(self, **options: Any) -> Verdict:
        return judge(self.history(), declaration=self.declaration, **options)

    def titles(self, **options: Any) -> list[str]:
        """The faults, each title once."""
        faults = [item for item in self.judge(**options).findings if item.severity == "fault"]
        return list(dict.fromkeys(item.title for item in faults))

    def notes(self, **options: Any) -> list[str]:
        notes = [item for item in self.judge(**options).findings if item.severity == "note"]
        return list(dict.fromkeys(item.title for item in notes))
