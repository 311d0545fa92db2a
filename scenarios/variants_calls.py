"""The reference runtime in calls that break, that hold its connection, that are model calls."""

from __future__ import annotations

from typing import ClassVar

from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.worker import Worker

from .reference_subject import ReferenceSubject, ask, outside_tool, own_tool
from .variants import RunLease, beating


class Breaking(RunLease):
    """Calls that end in every way there is; each job says how, and what still beats."""

    def work(self, worker: Worker) -> str | dict[str, str]:  # type: ignore[override]  # says more
        """One pass; whether a heartbeat is left is told of a worker named A."""
        told = super().work(worker)
        return f"{told['r1']}, {beating()} heartbeats" if worker.name == "A" else told

    def work_and_break(self, worker: Worker) -> str:
        """The first call raises an exception that no runtime has heard of."""
        return self._ending(worker, RuntimeError("broken"))

    def work_and_exit(self, worker: Worker) -> str:
        """The first call ends the interpreter."""
        return self._ending(worker, SystemExit(3))

    def work_and_interrupt(self, worker: Worker) -> str:
        """The first call is interrupted from the keyboard."""
        return self._ending(worker, KeyboardInterrupt())

    def _ending(self, worker: Worker, how: BaseException) -> str:
        with self.opened(worker) as store:
            charge = own_tool("charge", worker, store)

            def run(call: reference.Call) -> object:
                charge.run(call)
                raise how

            tools = (reference.Tool("charge", run), outside_tool("mail", worker))
            driver = self.driver(worker, store, tools=tools)
            try:
                return self.pursue(driver, store.run("r1"))
            except BaseException as error:
                return f"{type(error).__name__}, {beating()} heartbeats"


class Holding(RunLease):
    """A consumer whose own code holds the store's connection while a call of it is under way."""

    def work_holding(self, worker: Worker) -> dict[str, str]:
        """An open transaction that reads, and rows that are not read to the end."""
        return self._holding(worker, "BEGIN")

    def work_holding_the_lock(self, worker: Worker) -> dict[str, str]:
        """An open transaction that holds the write lock."""
        return self._holding(worker, "BEGIN IMMEDIATE")

    def _holding(self, worker: Worker, begin: str) -> dict[str, str]:
        with self.opened(worker) as store:

            def run(call: reference.Call) -> object:
                with store.db() as connection:
                    connection.execute(begin)
                    rows = connection.execute("SELECT * FROM steps")
                    rows.fetchone()
                    worker.point("holding")
                    rows.close()
                    connection.execute("COMMIT")
                return charge.run(call)

            charge = own_tool("charge", worker, store)
            tools = (
                reference.Tool("charge", run, lookup=charge.lookup),
                outside_tool("mail", worker),
            )
            driver = self.driver(worker, store, tools=tools)
            return {"r1": self.pursue(driver, store.run("r1"))}

    def work_in_memory(self, worker: Worker) -> str:
        """A run in a store that no other process can reach."""
        opened: list[object] = []

        class Watched(reference.Store):
            def own_connection(self, *, busy_timeout_ms: int) -> object:  # type: ignore[override]
                connection = super().own_connection(busy_timeout_ms=busy_timeout_ms)
                opened.append(connection)
                return connection

        with Watched(":memory:", clock=worker.clock) as store:
            hold = reference.Tool("charge", lambda call: worker.point("holding"))
            driver = self.driver(worker, store, tools=(hold,))
            status = driver.start("r1", [reference.Step("charge")]).status
        return f"{status}, {1 + len(opened)} connection"


class Models(RunLease):
    """A run of model calls and a tool: the other write that starts a side effect."""

    # A model is asked again without a question: two answers do no harm.
    capabilities = RunLease.capabilities - {"asks_first"}

    plan: ClassVar[tuple[reference.Step, ...]] = (
        reference.Step("think", kind="model"),
        reference.Step("charge"),
        reference.Step("answer", kind="model"),
    )

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        """Model calls go outside, under their key; a model may be asked again."""
        return (
            reference.Tool(
                "think", lambda call: ask("think", worker, call), policy=reference.Policy.RETRY
            ),
            own_tool("charge", worker, store),
            reference.Tool(
                "answer", lambda call: ask("answer", worker, call), policy=reference.Policy.RETRY
            ),
        )


__all__ = ["Breaking", "Holding", "Models", "ReferenceSubject"]
