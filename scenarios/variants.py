"""The reference runtime with what the run lease's own scenarios need: more jobs, more points.

A job is a method that takes the worker; a script names it: `spawn B to recover`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.reference.heartbeat import Heartbeat
from pytest_leasecheck.testkit.worker import Worker

from .reference_subject import ReferenceSubject, ask, own_tool

_REFERENCE = "pytest_leasecheck.testkit.reference"


class RunLease(ReferenceSubject):
    """The reference runtime itself, with jobs that look, retry, and answer for an operator."""

    calls: ClassVar[tuple[str, ...]] = (
        f"{_REFERENCE}.driver:validate_before_effect",
        f"{_REFERENCE}.driver:release_lease",
    )

    @contextlib.contextmanager
    def opened(self, worker: Worker) -> Iterator[reference.Store]:
        """The store, under the stage's clock."""
        with reference.Store(worker.db, clock=worker.clock) as store:
            yield store

    def start(self, worker: Worker) -> str:
        """Start `r1` by its plan: inserted as running."""
        with self.opened(worker) as store:
            try:
                return str(self.driver(worker, store).start("r1", self.plan).status)
            except reference.RuntimeRefusal as error:
                return type(error).__name__

    def start_by_key(self, worker: Worker) -> str:
        """Start a run under an id of this worker's own, by the key that everybody uses."""
        with self.opened(worker) as store:
            run = self.driver(worker, store).start(worker.name, self.plan, key="order 7")
            return f"{run.run_id} {run.status}"

    def resume(self, worker: Worker) -> dict[str, str]:
        """Resume each run, whatever its state: what came of it, and whether anything changed."""
        told: dict[str, str] = {}
        readings: list[int] = []
        with self.opened(worker) as store:

            def now() -> int:
                readings.append(0)
                return 7  # a consumer's deterministic clock: it stands still

            driver = self.driver(worker, store, now=now)
            for run_id in store.runs():
                before = everything(store)
                try:
                    outcome = str(driver.resume(run_id).status)
                except reference.RuntimeRefusal as error:
                    outcome = type(error).__name__
                changed = "all rows as before" if everything(store) == before else "changed"
                told[run_id] = f"{outcome}, {changed}, now read {len(readings)} times"
        return told

    def look(self, worker: Worker) -> dict[str, str]:
        """Read each lease, and one of a run that isn't there."""
        told: dict[str, str] = {}
        with self.opened(worker) as store:
            before = everything(store)
            for run_id in (*store.runs(), "no such run"):
                try:
                    told[run_id] = described(store.lease(run_id), worker.clock.now_ms())
                except reference.RunNotFound as error:
                    told[run_id] = type(error).__name__
            if everything(store) != before:
                told["changed"] = "something"
        return told

    def recover(self, worker: Worker) -> list[str]:
        """What a consumer does at its start: resume, and retry when a live lease has expired."""
        told: list[str] = []
        with self.opened(worker) as store:
            driver = self.driver(worker, store)
            while True:
                try:
                    told.append(str(driver.resume("r1").status))
                    return told
                except reference.RunLeased as error:
                    left_ms = error.expires_at_ms - worker.clock.now_ms()
                    told.append("leased")
                    worker.clock.wait(threading.Event(), max(left_ms, 0))
                except reference.RunStateError as error:
                    told.append(str(error.status))
                    return told

    def twice(self, worker: Worker) -> list[str]:
        """One driver: a second resume of the run from inside its own call, and another start."""
        told: list[str] = []
        with self.opened(worker) as store:

            def during(call: reference.Call) -> object:
                receipt = ask("mail", worker, call)
                for again in (driver.resume, driver.start):
                    before = everything(store)
                    try:
                        again(call.run_id)
                        told.append("accepted")
                    except reference.RuntimeRefusal as error:
                        told.append(type(error).__name__)
                    if everything(store) != before:
                        told.append("changed")
                return receipt

            tools = (own_tool("charge", worker, store), reference.Tool("mail", during))
            driver = self.driver(worker, store, tools=tools)
            told.append(str(self.pursue(driver, store.run("r1"))))
        return told

    def twice_in_turn(self, worker: Worker) -> list[str]:
        """One driver, one call after the other, and a point between them."""
        with self.opened(worker) as store:
            driver = self.driver(worker, store)
            told = [attempt(lambda: self.pursue(driver, store.run("r1")))]
            worker.point("between calls")
            told.append(attempt(lambda: self.pursue(driver, store.run("r1"))))
        return told

    def work_and_say_why(self, worker: Worker) -> str:
        """One pass over `r1`; the error it ends with, and the refusal that showed it."""
        with self.opened(worker) as store:
            driver = self.driver(worker, store)
            try:
                return str(driver.start("r1").status)
            except reference.RuntimeRefusal as error:
                return f"{type(error).__name__} by {type(error.__cause__).__name__}"

    def work_with_own_now(self, worker: Worker) -> str:
        """Do the work under a consumer's own `now`, which stands still; count its readings."""
        readings: list[int] = []

        def now() -> int:
            readings.append(0)
            return 7

        with self.opened(worker) as store:
            driver = self.driver(worker, store, now=now)
            outcome = self.pursue(driver, store.run("r1"))
        return f"{outcome}, now read {len(readings)} times"

    def tell_states(self, worker: Worker) -> list[str]:
        """Do the work, and tell at each point `tell` and at the end what the driver is of it."""
        told: list[str] = []
        with self.opened(worker) as store:

            def tell() -> None:
                told.append(" ".join(sorted(driver.ownership("r1"))))

            def run(call: reference.Call) -> object:
                tell()
                receipt = ask("mail", worker, call)
                worker.point("tell")
                tell()
                return receipt

            mail = reference.Tool("mail", run, lookup=outside(worker))
            tools = (own_tool("charge", worker, store), mail)
            driver = self.driver(worker, store, tools=tools)
            told.append(attempt(lambda: self.pursue(driver, store.run("r1"))))
            tell()
        return told

    def say_approve(self, worker: Worker) -> str:
        """An operator approves, and this process resumes with it."""
        return self.answer(worker, reference.Answered.APPROVE)

    def say_reject(self, worker: Worker) -> str:
        """An operator rejects."""
        return self.answer(worker, reference.Answered.REJECT)

    def say_applied(self, worker: Worker) -> str:
        """An operator has found out that the effect was applied."""
        return self.answer(worker, reference.Answered.APPLIED)

    def say_retry(self, worker: Worker) -> str:
        """An operator wants the call made again."""
        return self.answer(worker, reference.Answered.RETRY)

    def say_compensate(self, worker: Worker) -> str:
        """An operator wants the effect undone."""
        return self.answer(worker, reference.Answered.COMPENSATE)

    def say_fail(self, worker: Worker) -> str:
        """An operator gives the run up."""
        return self.answer(worker, reference.Answered.FAIL)

    def answer(self, worker: Worker, answer: reference.Answered) -> str:
        """Resume `r1` with an operator's answer."""
        with self.opened(worker) as store:
            driver = self.driver(worker, store)
            approval = reference.Approval("ada", answer)
            return attempt(lambda: str(driver.resume("r1", approval=approval).status))

    def question(self, worker: Worker) -> dict[str, object]:
        """What an operator sees of a waiting run."""
        with self.opened(worker) as store:
            asked = store.question("r1")
            if asked is None:
                return {}
            return {
                "name": asked.name,
                "key": asked.idempotency_key,
                "attempt": asked.attempt,
                "outcome_unknown": asked.outcome_unknown,
            }


def attempt(call: Callable[[], str]) -> str:
    """What a call comes back with, or the name of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def outside(worker: Worker) -> Callable[[str], reference.Found | reference.NotFound]:
    """The provider's answer about a key."""
    from .reference_subject import look_up

    return lambda key: look_up(worker, key)  # type: ignore[return-value]


def described(lease: reference.Lease, now_ms: int) -> str:
    """A lease in a word, as a tool beside a consumer would show it."""
    if not lease.held():
        return f"released, token {lease.fencing_token}"
    return f"{'live' if lease.live(now_ms) else 'stale'}, {lease.owner}"


def everything(store: reference.Store) -> list[str]:
    """Every row of every table, and the schema."""
    with store.db() as connection:
        return list(connection.iterdump())


def beating() -> int:
    """How many heartbeats are running in this process."""
    return sum("lease-heartbeat" in thread.name for thread in threading.enumerate())


__all__ = ["Heartbeat", "RunLease", "attempt", "beating", "described", "everything"]
