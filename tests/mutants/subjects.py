"""The reference runtime as mutants are played on it: with a switch, and in several set-ups.

Each class is the reference runtime with what one family of schedules needs of it; what a set-up
adds (a janitor, an operator who answers at once) is right, so that every schedule passes on it.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pytest_leasecheck.scenarios.reference_subject import (
    ReferenceSubject,
    ask,
    outside_tool,
    own_tool,
    stage_clock,
)
from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.reference import lease, migrations
from pytest_leasecheck.testkit.subject import Counter
from pytest_leasecheck.testkit.worker import Worker

from .model import apply_the_one_in_force


def mutate(db: Path) -> None:
    """Put the mutant in force, if there is one, into this process."""
    apply_the_one_in_force(db, catalogue.FAULTS)


class Plain(ReferenceSubject):
    """The reference runtime itself, and all that it can be held to."""

    runs = replace(ReferenceSubject.runs, key="start_key")

    def submit(self, db: Path, run_id: str) -> None:
        mutate(db)
        super().submit(db, run_id)

    def cancel(self, db: Path, run_id: str) -> None:
        mutate(db)
        with suppress(reference.RunStateError):  # an end is not rewritten
            super().cancel(db, run_id)

    def work(self, worker: Worker) -> Any:
        mutate(worker.db)
        return super().work(worker)


class ModelCalls(Plain):
    """Its first step is a model call."""

    plan = (reference.Step("charge", kind="model"), reference.Step("mail"))


class Approval(Plain):
    """Its first step needs an approval; whoever finds the run waiting has one."""

    plan = (reference.Step("charge", needs_approval=True), reference.Step("mail"))

    def pursue(self, driver: reference.Driver, run: reference.Run) -> str:
        if run.status is not reference.RunStatus.WAITING_FOR_APPROVAL:
            return super().pursue(driver, run)
        try:
            return str(driver.resume(run.run_id, approval=reference.Approval("ada")).status)
        except reference.RuntimeRefusal as error:
            return type(error).__name__


class Retrying(Plain):
    """Its charge is idempotent under its key, so an interrupted one is retried unasked."""

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        charge = own_tool("charge", worker, store, policy=reference.Policy.RETRY)
        return (charge, outside_tool("mail", worker))


class HeldConnection(Plain):
    """A tool that keeps the store's connection to itself while it works."""

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        def charge(call: reference.Call) -> object:
            with store.db():
                return ask("charge", worker, call)

        outside = outside_tool("charge", worker)
        return (reference.Tool("charge", charge, lookup=outside.lookup),
                outside_tool("mail", worker))  # fmt: skip


class Starting(Plain):
    """Whoever comes first starts the run by its id: nobody submits it."""

    def work(self, worker: Worker) -> Any:
        mutate(worker.db)
        with reference.Store(worker.db, clock=worker.clock) as store:
            driver = self.driver(worker, store)
            if not store.runs() or not worker.name.startswith("drain"):
                with suppress(reference.RunExists, reference.LeaseLost):
                    return str(driver.start("r1", self.plan).status)
        return super().work(worker)


class StartingByKey(Plain):
    """Each worker starts a run of its own id, for one and the same order."""

    def work(self, worker: Worker) -> Any:
        mutate(worker.db)
        with reference.Store(worker.db, clock=worker.clock) as store:
            driver = self.driver(worker, store)
            if not worker.name.startswith("drain"):
                with suppress(reference.RuntimeRefusal):
                    driver.start(f"order-of-{worker.name}", self.plan, key="order 7")
        return super().work(worker)


class Slots(Plain):
    """At most one run may be in its charge at a time, by a counter."""

    counters = (Counter("tool_slots", "in_use", most=1, of={"steps": {"holds_slot": {1}}}),)

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        return (own_tool("charge", worker, store, limit=1), outside_tool("mail", worker))

    def pursue(self, driver: reference.Driver, run: reference.Run) -> str:
        try:
            return super().pursue(driver, run)
        except reference.ToolBusy:
            return "busy"


class Janitor(Plain):
    """It has a janitor, who puts runs with an expired lease back into the queue."""

    capabilities = Plain.capabilities | {"reaps"}
    #: Looks and writes in one statement.
    careful: ClassVar[bool] = True

    def reap(self, worker: Worker) -> int:
        mutate(worker.db)
        with reference.Store(worker.db, clock=worker.clock) as store:
            return reap(store, worker.clock.now_ms())


def reap(store: reference.Store, now_ms: int) -> int:
    """Release what has expired; how many that were."""
    with store.db() as connection:
        expired = [
            run_id
            for (run_id,) in connection.execute(
                "SELECT run_id FROM runs WHERE status = 'RUNNING' AND lease_expires_at_ms <= ?",
                (now_ms,),
            )
        ]
        return sum(put_back(connection, run_id, now_ms) for run_id in expired)


def put_back(connection: Any, run_id: str, now_ms: int) -> int:
    """Release one run, if its lease is still expired."""
    done = connection.execute(
        "UPDATE runs SET lease_owner = NULL, lease_expires_at_ms = NULL WHERE run_id = ?"
        " AND status = 'RUNNING' AND lease_expires_at_ms <= ?",
        (run_id, now_ms),
    )
    return int(done.rowcount)


class UsedAgain(Plain):
    """An id that is submitted again: the operator forgets the finished run first."""

    def submit(self, db: Path, run_id: str) -> None:
        mutate(db)
        with reference.Store(db, clock=stage_clock()) as store:
            if run_id in store.runs(reference.RunStatus.SUCCEEDED):
                store.delete(run_id)
        super().submit(db, run_id)


class Forgotten(UsedAgain):
    """An id whose finished run the operator forgets, and that a worker starts again by its plan."""

    def submit(self, db: Path, run_id: str) -> None:
        mutate(db)
        db.with_name("id").write_text(run_id, encoding="utf-8")
        with reference.Store(db, clock=stage_clock()) as store:
            if run_id in store.runs():
                store.delete(run_id)
            else:
                store.submit(run_id, self.plan)

    def start(self, worker: Worker) -> str:
        mutate(worker.db)
        run_id = worker.db.with_name("id").read_text(encoding="utf-8")
        with reference.Store(worker.db, clock=worker.clock) as store:
            return str(self.driver(worker, store).start(run_id, self.plan).status)

    def work(self, worker: Worker) -> Any:
        mutate(worker.db)
        with reference.Store(worker.db, clock=worker.clock) as store:
            nothing = not store.runs()
        return self.start(worker) if nothing else super().work(worker)


class Restored(Plain):
    """The operator's `approve` restores the backup that was made when the run was submitted."""

    def submit(self, db: Path, run_id: str) -> None:
        super().submit(db, run_id)
        with reference.Store(db) as store:
            store.backup(_backup_of(db))

    def approve(self, db: Path, run_id: str) -> None:
        mutate(db)
        with reference.Store(db) as store:
            highest = store.highest_token()
            with reference.Store(_backup_of(db)) as old, store.db() as live, old.db() as kept:
                kept.backup(live)
            store.raise_tokens(highest)


def _backup_of(db: Path) -> Path:
    return db.with_name(f"{db.name}.backup")


class Reentrant(Plain):
    """A tool that resumes its own run, by its own driver, while it is in its call."""

    def driver(self, worker: Worker, store: reference.Store, **options: Any) -> reference.Driver:
        made = super().driver(worker, store, **options)
        self._made = made
        return made

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        real = own_tool("charge", worker, store)

        def charge(call: reference.Call) -> object:
            receipt = real.run(call)
            with suppress(reference.RuntimeRefusal):
                self._made.resume(call.run_id)
            return receipt

        return (
            reference.Tool("charge", charge, lookup=real.lookup),
            outside_tool("mail", worker),
        )


class OldFile(Plain):
    """A file from before the lease, and a process of that time, whose mails have no key."""

    # Whoever migrates leaves a lease behind on purpose: the placeholder's.
    capabilities = Plain.capabilities - {"releases", "asks_first"}

    def prepare(self, db: Path) -> None:
        connection = sqlite3.connect(db, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in migrations.BEFORE_THE_LEASE:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO runs (run_id, status, plan) VALUES ('old', 'RUNNING', '[\"mail\"]')"
        )
        connection.execute(
            "INSERT INTO steps (run_id, idx, name, kind, args, status, attempt, idempotency_key)"
            " VALUES ('old', 0, 'mail', 'tool', 'null', 'EXECUTING', 1, 'old/0')"
        )
        connection.close()

    def work_old(self, worker: Worker) -> None:
        """What the old version does with its run, up to the outcome; it dies before the end."""
        receipt = worker.effect("mail", run_id="old")
        connection = sqlite3.connect(worker.db, isolation_level=None)
        connection.execute(
            "UPDATE steps SET status = 'DONE', result = ? WHERE run_id = 'old'", (f'"{receipt}"',)
        )
        connection.close()

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        def mail(call: reference.Call) -> object:
            return worker.effect("mail", run_id=call.run_id, token=call.token)

        return (reference.Tool("mail", mail, policy=reference.Policy.RETRY),)


class Skewed(Plain):
    """It says how much skew it bears: what is left on a lease that is renewed in time."""

    bears_skew_ms = lease.skew_borne_ms(reference.DEFAULT_LEASE_TTL_MS)


# Last, since it needs the names above. In the lane, once: a worker that had to import it would take
# three times as long to start.
from . import catalogue  # noqa: E402
