"""The store: one SQLite file with runs, steps, events, effects and reconciliations.

It has one connection, shared by its users under a lock; the heartbeat brings its own. What
the loop writes is in ``tenure``, what a take-over writes in ``resume``.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Literal, Self

from . import guards, rows
from .clock import Clock, WallClock
from .connection import DEFAULT_BUSY_TIMEOUT_MS, connect, immediate, use_wal
from .errors import (
    InvalidPayload,
    NetworkFilesystem,
    RunExists,
    RunStateError,
    StoreError,
)
from .filesystem import network_filesystem
from .lease import Lease, read_lease
from .migrations import migrate
from .payload import checked_name, checked_run_id, encode
from .records import (
    KINDS,
    TERMINAL,
    Effect,
    Event,
    Question,
    Reconciliation,
    Run,
    RunStatus,
    Step,
    StepRow,
)

MEMORY: Final = ":memory:"
#: More steps than this are surely a mistake in the plan.
MAX_STEPS: Final = 10_000


class Store:
    """The runs of one database file, or of ``:memory:``, where no other process can reach.

    ``network`` says what to do on a network filesystem. Raises NewerDatabase,
    ForeignDatabase or NetworkFilesystem, and then has changed nothing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        busy_timeout_ms: int = DEFAULT_BUSY_TIMEOUT_MS,
        network: Literal["refuse", "warn"] = "refuse",
    ) -> None:
        self.path: Final = os.fspath(path)
        self.clock: Final[Clock] = WallClock() if clock is None else clock
        self.busy_timeout_ms: Final = busy_timeout_ms
        self._lock: Final = threading.RLock()
        self._pid: Final = os.getpid()
        if not self.path:
            raise StoreError("''", "an empty path would be a database that nobody can reopen")
        if not self.in_memory:
            _check_filesystem(self.path, network)
        self._connection: Final = connect(self.path, busy_timeout_ms=busy_timeout_ms)
        try:
            migrate(self._connection, self.path, now_ms=self.clock.now_ms())
            use_wal(self._connection)
        except BaseException:
            self._connection.close()
            raise

    @property
    def in_memory(self) -> bool:
        """Whether the one connection is the whole database."""
        return self.path == MEMORY

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Leases stay as they are stored."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def db(self) -> Iterator[sqlite3.Connection]:
        """The store's only connection, to the caller alone while the block lasts.

        Other users of this store wait; the heartbeat of a file-backed store does not, as long
        as the caller doesn't hold SQLite's write lock.
        """
        if os.getpid() != self._pid:
            raise StoreError(self.path, "was opened before a fork; open it again in the child")
        with self._lock:
            yield self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it or nothing."""
        with self.db() as connection, immediate(connection):
            yield connection

    def own_connection(self, *, busy_timeout_ms: int) -> sqlite3.Connection | None:
        """A second connection, as hardened as the first; None for ``:memory:``.

        It waits for the write lock as long as it is told, and no longer than the first does.
        """
        if self.in_memory:
            return None
        return connect(self.path, busy_timeout_ms=min(busy_timeout_ms, self.busy_timeout_ms))

    def run(self, run_id: str) -> Run:
        """The stored run. Raises RunNotFound."""
        with self.db() as connection:
            return rows.run(connection, run_id)

    def runs(self, status: RunStatus | None = None) -> tuple[str, ...]:
        """The ids of all runs, or of those with this status, in order."""
        with self.db() as connection:
            return rows.run_ids(connection, status)

    def lease(self, run_id: str) -> Lease:
        """The stored lease, taken nor changed: writes nothing. Raises RunNotFound.

        Owner "" and expiry 0: nobody holds the run. A named owner with a past expiry is a
        stale lease, not a released one; a resume takes it over.
        """
        with self.db() as connection:
            return read_lease(connection, run_id)

    def steps(self, run_id: str) -> tuple[StepRow, ...]:
        """The steps of a run, in order."""
        with self.db() as connection:
            return rows.steps(connection, run_id)

    def events(self, run_id: str) -> tuple[Event, ...]:
        """What happened to a run, in order."""
        with self.db() as connection:
            return rows.events(connection, run_id)

    def effects(self, run_id: str) -> tuple[Effect, ...]:
        """The effects of a run that the fenced store has accepted."""
        with self.db() as connection:
            return rows.effects(connection, run_id)

    def reconciliations(self, run_id: str) -> tuple[Reconciliation, ...]:
        """The decisions about the interruptions of a run, in order."""
        with self.db() as connection:
            return rows.reconciliations(connection, run_id)

    def question(self, run_id: str) -> Question | None:
        """What an operator is asked; None when the run isn't waiting. Raises RunNotFound."""
        with self.db() as connection:
            return rows.question(connection, run_id)

    def submit(
        self,
        run_id: str,
        plan: Sequence[Step],
        *,
        key: str | None = None,
        now: Callable[[], int] | None = None,
    ) -> str:
        """Insert a QUEUED run for some driver to start; the id of the run.

        With a ``key`` that has submitted or started a run before, nothing is inserted, and
        the id is that run's. Raises RunExists, InvalidRunId, InvalidPayload.
        """
        at = self.clock.now_ms if now is None else now
        with self.transaction() as connection:
            known = insert_run(connection, run_id, plan, key=key, claim=None)
            if known is None:
                rows.record(connection, run_id, "run.queued", {}, at_ms=at())
        return run_id if known is None else known

    def delete(self, run_id: str) -> None:
        """Forget a finished run, but not its last token: no later run of this id repeats one.

        The key that started it is forgotten too, and may start a run again.

        Raises RunNotFound, or RunStateError for a run that isn't finished.
        """
        with self.transaction() as connection:
            run = rows.run(connection, run_id)
            if run.status not in TERMINAL:
                raise RunStateError(run_id, run.status, "only a finished run can be deleted")
            connection.execute(
                "INSERT INTO retired_tokens (run_id, fencing_token) VALUES (?, ?) "
                "ON CONFLICT (run_id) DO UPDATE SET fencing_token = excluded.fencing_token",
                (run_id, run.lease.fencing_token),
            )
            for table in ("events", "effects", "reconciliations", "steps", "runs"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))

    def highest_token(self) -> int:
        """The highest token that this file knows to have been issued to any run."""
        with self.db() as connection:
            (highest,) = connection.execute(
                "SELECT max(coalesce((SELECT max(fencing_token) FROM runs), 0),"
                " coalesce((SELECT max(fencing_token) FROM retired_tokens), 0),"
                f" {guards.TOKEN_FLOOR})"
            ).fetchone()
            return int(highest)

    def raise_tokens(self, minimum: int) -> None:
        """Issue only tokens above ``minimum`` from now on, and put every leased run's there.

        For a restored backup, which cannot know what was issued after it was made: pass the
        highest token that the lost file or any provider has seen. Whoever holds a lease in
        the restored file loses it: its token is no longer the run's. The lease itself is left
        to expire, since nothing proves that its owner's call isn't still running.
        """
        if minimum < 0:
            raise ValueError(f"minimum={minimum}: a token is never negative")
        with self.transaction() as connection:
            connection.execute(
                "INSERT INTO meta (key, value) VALUES ('token_floor', :minimum) "
                "ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
                {"minimum": minimum + 1},
            )
            # One above all that were issued: not even the last owner of the lost file has it.
            connection.execute(
                "UPDATE runs SET fencing_token = :above, revision = revision + 1 "
                "WHERE lease_owner IS NOT NULL AND fencing_token < :above",
                {"above": minimum + 1},
            )

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the database to a new file, consistent even under live drivers."""
        path = os.fspath(target)
        if os.path.exists(path):
            raise StoreError(path, "exists already; a backup never overwrites")
        copy = sqlite3.connect(path, isolation_level=None)
        try:
            with self.db() as connection:
                connection.backup(copy)
        finally:
            copy.close()


def insert_run(
    connection: sqlite3.Connection,
    run_id: str,
    plan: Sequence[Step],
    *,
    key: str | None,
    claim: tuple[str, int, int] | None,
) -> str | None:
    """Insert a run with its steps, inside the caller's transaction.

    ``claim`` is the owner, the time and the TTL for a run that is RUNNING under a lease from
    its first row on; None for a QUEUED one. Returns None, or the id of the run that ``key``
    had started before (and then has inserted nothing).
    """
    checked_run_id(run_id)
    if key is not None:
        checked_run_id(key)
    steps = [checked_step(step) for step in plan]
    if len(steps) > MAX_STEPS:
        raise InvalidPayload(f"the plan has {len(steps)} steps, {MAX_STEPS} at most")
    owner, now_ms, ttl_ms = (None, 0, 0) if claim is None else claim
    lease = "NULL, NULL" if claim is None else ":now_ms + :ttl_ms, :now_ms"
    token = guards.unborn_token() if claim is None else guards.first_token()
    try:
        connection.execute(
            f"{guards.INSERT_RUN} (run_id, status, plan, lease_owner, lease_expires_at_ms,"
            " last_renewed_at_ms, fencing_token, revision, start_key) VALUES (:run_id, :status,"
            f" :plan, :owner, {lease}, {token}, 1, :key)",
            {
                "run_id": run_id,
                "status": RunStatus.QUEUED if claim is None else RunStatus.RUNNING,
                "plan": encode([step.name for step in steps]),
                "owner": owner,
                "now_ms": now_ms,
                "ttl_ms": ttl_ms,
                "key": key,
            },
        )
    except sqlite3.IntegrityError:
        known = connection.execute("SELECT run_id FROM runs WHERE start_key = ?", (key,)).fetchone()
        if known is not None:
            return str(known[0])
        raise RunExists(run_id, rows.run(connection, run_id).status, "the id is taken") from None
    born = rows.retired_token(connection, run_id)
    connection.executemany(
        "INSERT INTO steps (run_id, idx, name, kind, args, status, idempotency_key,"
        " needs_approval) VALUES (?, ?, ?, ?, ?, 'PENDING', ?, ?)",
        [
            (
                run_id,
                idx,
                step.name,
                step.kind,
                encode(step.args),
                idempotency_key(run_id, idx, born=born),
                step.needs_approval,
            )
            for idx, step in enumerate(steps)
        ],
    )
    return None


def idempotency_key(run_id: str, idx: int, *, born: int) -> str:
    """The key of a step, the same at all its attempts, and no other step's.

    ``born`` is the last token of a deleted run of the same id, or 0: its effects must not
    pass for this run's.
    """
    return f"{run_id}/{born}.{idx}" if born else f"{run_id}/{idx}"


def checked_step(step: Step) -> Step:
    """The step, if a driver can make something of it. Raises ValueError (InvalidRunId)."""
    checked_name(step.name)
    if step.kind not in KINDS:
        raise ValueError(f"step {step.name!r} has kind {step.kind!r}; it is one of {KINDS}")
    return step


def _check_filesystem(path: str, network: Literal["refuse", "warn"]) -> None:
    found = network_filesystem(path)
    if found:
        refusal = NetworkFilesystem(path, found)
        if network == "refuse":
            raise refusal
        warnings.warn(str(refusal), RuntimeWarning, stacklevel=4)
