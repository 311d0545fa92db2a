"""A small lease library, as a third party would write it: plain `sqlite3`, nothing of the kit.

A task belongs to whoever holds its unexpired lease. Each claim gets the next token, and every
later transaction of the claimant looks first whether its token is still the task's.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'ready',
    owner TEXT,
    token INTEGER NOT NULL DEFAULT 0,
    expires_at REAL NOT NULL DEFAULT 0
);
CREATE TABLE steps (
    task TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'ready',
    token INTEGER,
    outcome TEXT,
    PRIMARY KEY (task, number)
);
CREATE TABLE payments (
    key TEXT PRIMARY KEY,
    task TEXT NOT NULL,
    token INTEGER NOT NULL,
    owner TEXT NOT NULL
);
"""

#: What a payment is made through: gets the call that makes it.
Paying = Callable[[Callable[[], None]], object]


class LeaseLost(Exception):
    """Another claim of the task has been made since."""


class Leases:
    """One owner's connection to the tasks."""

    def __init__(
        self,
        path: Path | str,
        *,
        owner: str,
        clock: Callable[[], float] = time.time,
        lease_ttl_s: float = 30.0,
    ) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._owner = owner
        self._clock = clock
        self._lease_ttl_s = lease_ttl_s
        self.task = ""
        self.token = 0

    def close(self) -> None:
        self._db.close()

    def claim(self) -> bool:
        """Take a task that nobody holds; False when there is none."""
        db, now = self._db, self._clock()
        db.execute("BEGIN IMMEDIATE")
        found = db.execute(
            "SELECT id, token FROM tasks"
            " WHERE state <> 'done' AND (owner IS NULL OR expires_at <= ?) LIMIT 1",
            (now,),
        ).fetchone()
        if found is None:
            db.execute("ROLLBACK")
            return False
        self.task, self.token = found[0], found[1] + 1
        db.execute(
            "UPDATE tasks SET state = 'running', owner = ?, token = ?, expires_at = ? WHERE id = ?",
            (self._owner, self.token, now + self._lease_ttl_s, self.task),
        )
        db.execute("COMMIT")
        return True

    @contextmanager
    def _as_holder(self) -> Iterator[sqlite3.Connection]:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        (token,) = db.execute("SELECT token FROM tasks WHERE id = ?", (self.task,)).fetchone()
        if token != self.token:
            db.execute("ROLLBACK")
            raise LeaseLost(f"token {self.token}, now {token}")
        yield db
        db.execute("COMMIT")

    def unfinished(self) -> list[int]:
        """The numbers of the task's steps that are not done."""
        rows = self._db.execute(
            "SELECT number FROM steps WHERE task = ? AND state <> 'done' ORDER BY number",
            (self.task,),
        )
        return [number for (number,) in rows]

    def begin(self, number: int) -> None:
        """A step starts."""
        with self._as_holder() as db:
            db.execute(
                "UPDATE steps SET state = 'running', token = ? WHERE task = ? AND number = ?",
                (self.token, self.task, number),
            )

    def pay(self, number: int) -> None:
        """The step's effect, once."""
        with self._as_holder() as db:
            db.execute(
                "INSERT OR IGNORE INTO payments (key, task, token, owner) VALUES (?, ?, ?, ?)",
                (f"{self.task}/{number}", self.task, self.token, self._owner),
            )

    def end(self, number: int) -> None:
        """A step is done."""
        with self._as_holder() as db:
            db.execute(
                "UPDATE steps SET state = 'done', outcome = ? WHERE task = ? AND number = ?",
                (self._owner, self.task, number),
            )

    def finish(self) -> None:
        """The task is done, and nobody's."""
        with self._as_holder() as db:
            db.execute("UPDATE tasks SET state = 'done', owner = NULL WHERE id = ?", (self.task,))


def work(leases: Leases, *, paying: Paying = lambda pay: pay()) -> str:
    """Claim a task and do it: `done`, `nothing` to claim, or `lost`."""
    if not leases.claim():
        return "nothing"
    try:
        for number in leases.unfinished():
            leases.begin(number)
            paying(lambda number=number: leases.pay(number))
            leases.end(number)
        leases.finish()
    except LeaseLost:
        return "lost"
    return "done"


def submit(path: Path | str, task: str, *, steps: int = 1) -> None:
    """One more task that is ready."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO tasks (id) VALUES (?)", (task,))
    for number in range(1, steps + 1):
        db.execute("INSERT INTO steps (task, number) VALUES (?, ?)", (task, number))
    db.execute("COMMIT")
    db.close()


def create(path: Path | str) -> None:
    """A new file without a task."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = wal")
    db.executescript(SCHEMA)
    db.close()


def prepare(path: Path | str, *, steps: int = 1) -> None:
    """A new file with one task that is ready."""
    create(path)
    submit(path, "t1", steps=steps)


def state_of(path: Path | str) -> tuple[list[tuple[object, ...]], ...]:
    """Payments, steps and tasks as they stand."""
    db = sqlite3.connect(path, isolation_level=None)
    found = tuple(
        db.execute(query).fetchall()
        for query in (
            "SELECT key, token, owner FROM payments ORDER BY key",
            "SELECT number, state, outcome FROM steps ORDER BY number",
            "SELECT state, owner, token FROM tasks",
        )
    )
    db.close()
    return found


#: What must stand there when a second owner took over before the first one's payment.
AFTER_TAKEOVER = ([("t1/1", 2, "B")], [(1, "done", "B")], [("done", None, 2)])
