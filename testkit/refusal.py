"""Which guard refused a stale attempt: found by asking the database again.

The attempt's statement is replayed on a scratch copy of the database as it stood. A *facet* is
one thing in which the database differs from what it was while the attempt's tenure was in force:
the owner, the token, the expiry, the status, a row whose key conflicts. With every facet put back
the statement must go through; then a facet that is left as it is now, all others put back, and
still refuses, is a guard that is enough by itself. Several may be: the defence is redundant.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

from . import scratch
from .facets import Edit, Facet, World, facets_of
from .history import EffectDecided, History, Statement
from .subject import Declaration
from .verdict import Attempt, Tenure

_Answer = Literal["through", "refused", "constraint", "unknown"]
#: What is replayed.
_VERBS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE")
#: Said of a facet that a program read, which gave up after that: it is no SQL that refused.
IN_PROGRAM: Final = "(in the program)"
#: Facets that refuse only together are looked for up to this many.
_MOST_TOGETHER: Final = 3


def with_guards(
    history: History,
    declaration: Declaration,
    attempts: Iterable[Attempt],
    *,
    tenures: Sequence[Tenure] = (),
) -> tuple[Attempt, ...]:
    """The attempts, each with what refused it."""
    return tuple(
        replace(attempt, guards=guards_of(history, declaration, attempt, tenures=tenures))
        for attempt in attempts
    )


def guards_of(
    history: History,
    declaration: Declaration,
    attempt: Attempt,
    *,
    tenures: Sequence[Tenure] = (),
) -> tuple[str, ...]:
    """What refused the attempt: `owner`, `token`, `generation`, `expiry`, `status`, `key`, a
    column's own name, or `constraint`; each enough by itself.

    `token and owner`: only both together refused. `token (in the program)`: what the worker read
    last, before it gave up, had another token than its own; which of those it compared is known to
    the program alone. Empty when nothing refused it, or when it can't be told: the guard is no SQL,
    or this SQLite can't run the statement. `tenures` say exactly
    when the attempt's tenure ended; without them, the last lease of that incarnation is taken.
    """
    if attempt.outcome == "landed":
        return ()
    if attempt.what.startswith("effect "):
        return attempt.guards or _by_provider(history, attempt)
    statements, asked = _to_replay(history, attempt)
    if not statements:
        return ()
    tenure = _tenure_of(attempt, tenures)
    now = scratch.tables_before(history, statements[0].n)
    then = _tables_then(history, declaration, attempt, tenure)
    world = World(declaration, run_id=attempt.run_id, table=statements[asked].table)
    connection = scratch.empty(
        history.header.schema, at_ns=statements[asked].at_ns, zone=declaration.zone
    )
    try:
        scratch.fill(connection, now)
        now, then = world.of_run(now), world.of_run(then)  # thousands of others' rows lie about
        facets = facets_of(world, now=now, then=then)
        trial = _Trial(connection, history.header.schema, statements, asked, world, now, then)
        return _search(trial, facets)
    finally:
        connection.close()


def _search(trial: _Trial, facets: tuple[Facet, ...]) -> tuple[str, ...]:
    if trial.is_read and trial.ask(()) == "through":
        # It got its row, and gave up: the guard is in the program.
        return tuple(
            f"{facet.name} {IN_PROGRAM}" for facet in facets if trial.rows((facet,)) != trial.rows()
        )
    if trial.ask(()) == "through":
        # Nothing that is in the tables refused it: a foreign key may, which is off unless asked.
        trial.connection.execute("PRAGMA foreign_keys = ON")
        return ("constraint",) if trial.ask(()) == "constraint" else ()
    # Taking rows away lets an upsert through that a token refused: only where nothing else helps.
    without_key = tuple(facet for facet in facets if facet.name != "key")
    whole = trial.ask(without_key)
    if whole == "through":
        facets = without_key
    else:
        whole = trial.ask(facets)
    if whole != "through":
        return ("constraint",) if whole == "constraint" else ()
    for size in range(1, min(_MOST_TOGETHER, len(facets)) + 1):
        enough = [
            " and ".join(facet.name for facet in left)
            for left in combinations(facets, size)
            if trial.ask([facet for facet in facets if facet not in left]) != "through"
        ]
        if enough:
            return tuple(enough)
    return ()


@dataclass(frozen=True, slots=True)
class _Trial:
    """One database, filled with what stands there now, and the statements to ask again."""

    connection: sqlite3.Connection
    schema: Sequence[str]
    statements: Sequence[Statement]
    asked: int
    world: World
    now: scratch.Tables
    then: scratch.Tables

    def ask(self, put_back: Sequence[Facet]) -> _Answer:
        """What becomes of the statement with these facets put back; nothing of it stays."""
        answers: list[_Answer] = []
        for edits in self.world.edits(put_back, now=self.now, then=self.then):
            answers.append(self._replay(edits))
            if answers[-1] in ("through", "unknown"):
                return answers[-1]
        return "constraint" if "constraint" in answers else "refused"

    @property
    def is_read(self) -> bool:
        """Whether the statement only reads."""
        return self.statements[self.asked].rows is None

    def rows(self, put_back: Sequence[Facet] = ()) -> list[tuple[object, ...]] | None:
        """What the statement reads with these facets as they were; None when it can't be had."""
        edits = next(iter(self.world.edits(put_back, now=self.now, then=self.then)))
        self.connection.execute("BEGIN")
        try:
            self._put(edits)
            return self.connection.execute(self.statements[self.asked].sql).fetchall()
        except (sqlite3.Error, sqlite3.Warning, UnicodeError, ValueError):
            return None
        finally:
            self.connection.execute("ROLLBACK")

    def _put(self, edits: Iterable[Edit]) -> None:
        for table, key, row in edits:
            if row is None:
                scratch.remove(self.connection, table, key)
            else:
                scratch.put(self.connection, table, key, row)

    def _replay(self, edits: Iterable[Edit]) -> _Answer:
        self.connection.execute("BEGIN")
        try:
            self._put(edits)
            # Not before: putting a row back is none of the subject's triggers' business.
            scratch.add_triggers(self.connection, self.schema)
            answer: _Answer = "refused"
            for statement in self.statements:
                answer = _execute(self.connection, statement)
                if statement is self.statements[self.asked]:
                    break
            return answer
        finally:
            if self.connection.in_transaction:  # RAISE(ROLLBACK) has ended it already
                self.connection.execute("ROLLBACK")


def _execute(connection: sqlite3.Connection, statement: Statement) -> _Answer:
    try:
        cursor = connection.execute(statement.sql)
        if cursor.description is not None:
            # A read, or RETURNING: a row is what the subject waits for.
            rows = len(cursor.fetchall())
        else:
            # Not `rowcount`, which is -1 for a statement that begins with a comment or WITH.
            rows = connection.execute("SELECT changes()").fetchone()[0]
    except sqlite3.IntegrityError:
        return "constraint"
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, ValueError):
        return "unknown"
    return "through" if rows > 0 else "refused"


def _to_replay(history: History, attempt: Attempt) -> tuple[list[Statement], int]:
    """The transaction's statements up to the one that refused, and which one that is.

    Usually the attempt's own; in a transaction that was rolled back although the attempt's
    statement changed rows, the last one after it that changed none.
    """
    own = _statement_of(history, attempt)
    if own is None:
        return [], 0
    together = [
        event
        for event in history.events
        if isinstance(event, Statement)
        and (event.who, event.connection, event.txn) == (own.who, own.connection, own.txn)
        and event.verb.upper() in _VERBS
    ]
    at = next((index for index, event in enumerate(together) if event is own), None)
    if at is None:
        return [], 0
    if own.rows:
        later = [index for index in range(at, len(together)) if together[index].rows == 0]
        if not later:
            reads = [index for index in range(at, len(together)) if together[index].rows is None]
            later = reads[-1:]
        if not later:
            return [], 0
        at = later[-1]
    before = [event for event in together[:at] if event.rows]
    return [*before, together[at]], len(before)


def _statement_of(history: History, attempt: Attempt) -> Statement | None:
    """The statement of the attempt: of its number, else the last one of its text before it."""
    found: Statement | None = None
    for event in history.events:
        if isinstance(event, Statement) and event.who == attempt.who:
            if event.n == attempt.n:
                return event
            if event.n < attempt.n and event.sql == attempt.sql:
                found = event
    return found


def _tenure_of(attempt: Attempt, tenures: Iterable[Tenure]) -> Tenure | None:
    return next(
        (
            tenure
            for tenure in tenures
            if (tenure.run_id, tenure.number) == (attempt.run_id, attempt.tenure)
        ),
        None,
    )


def _tables_then(
    history: History, declaration: Declaration, attempt: Attempt, tenure: Tenure | None
) -> scratch.Tables:
    """The tables at the end of the attempt's tenure: the last moment when all of it was right."""
    if tenure is not None and tenure.until is not None:
        return scratch.tables_before(history, tenure.until)
    world = World(declaration, run_id=attempt.run_id, table="")
    ended = world.end_of_lease(history, attempt)
    return scratch.tables_before(history, ended)


def _by_provider(history: History, attempt: Attempt) -> tuple[str, ...]:
    """The provider has one guard: the token that it has seen. Its failures are no refusals."""
    decided = any(
        isinstance(event, EffectDecided)
        and event.n == attempt.n
        and event.who == attempt.who
        and event.outcome == "refused"
        for event in history.events
    )
    return ("token",) if decided or attempt.outcome == "refused by the provider" else ()
