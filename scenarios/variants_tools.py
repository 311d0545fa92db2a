"""The reference runtime with other plans and other tools: approval, policies, limits, TTLs."""

from __future__ import annotations

from typing import ClassVar

from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.subject import Counter
from pytest_leasecheck.testkit.worker import Worker

from .reference_subject import ask, outside_tool, own_tool
from .variants import RunLease


class NeedsApproval(RunLease):
    """The first step waits for an operator."""

    plan: ClassVar[tuple[reference.Step, ...]] = (
        reference.Step("charge", needs_approval=True),
        reference.Step("mail"),
    )


class NeedsApprovalTwice(RunLease):
    """Both steps wait for an operator."""

    plan: ClassVar[tuple[reference.Step, ...]] = (
        reference.Step("charge", needs_approval=True),
        reference.Step("mail", needs_approval=True),
    )


class AsksOperator(RunLease):
    """A tool whose provider can't be asked what became of a call: an operator must."""

    plan: ClassVar[tuple[reference.Step, ...]] = (reference.Step("wire"), reference.Step("mail"))

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        """`wire` has no look-up, but can be undone."""
        return (
            reference.Tool(
                "wire",
                lambda call: ask("wire", worker, call),
                compensate=lambda call: ask("unwire", worker, call),
            ),
            outside_tool("mail", worker),
        )


class SilentProvider(RunLease):
    """A provider that can't say what became of a call."""

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        """Its answer is that it has none."""
        mail = outside_tool("mail", worker, lookup=lambda _key: reference.Unknown("no records"))
        return (own_tool("charge", worker, store), mail)


class Compensates(RunLease):
    """A booking that is undone when nobody knows whether it was made."""

    # An undoing may be carried out twice: when it was interrupted it is asked for again, unasked.
    capabilities = RunLease.capabilities - {"asks_first"}

    plan: ClassVar[tuple[reference.Step, ...]] = (reference.Step("book"), reference.Step("mail"))

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        """Booking and its undoing, both under keys."""
        return (
            reference.Tool(
                "book",
                lambda call: ask("book", worker, call),
                compensate=lambda call: ask("unbook", worker, call),
                policy=reference.Policy.COMPENSATE,
            ),
            outside_tool("mail", worker),
        )


class ReadsOnly(RunLease):
    """A tool that only reads, and a mail."""

    plan: ClassVar[tuple[reference.Step, ...]] = (reference.Step("search"), reference.Step("mail"))

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        """Reading has no effect, and simply runs again."""

        def search(call: reference.Call) -> str:
            worker.point("reading")
            return f"found in attempt {call.attempt}"

        return (reference.Tool("search", search, read_only=True), outside_tool("mail", worker))


class Limited(RunLease):
    """One run at a time may be in `charge`: its slots are counted."""

    counters: ClassVar[tuple[Counter, ...]] = (
        Counter("tool_slots", "in_use", most=1, of={"steps": {"holds_slot": {1}}}),
    )

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        """`charge` with a limit."""
        return (own_tool("charge", worker, store, limit=1), outside_tool("mail", worker))


class ShortTtl(RunLease):
    """A lease of six seconds: recovery is faster, and the heartbeat writes more."""

    lease_ttl_ms = 6_000


class DefaultTtl(RunLease):
    """A TTL of zero: the default."""

    def work(self, worker: Worker) -> dict[str, str]:
        """Nothing is said about the TTL."""
        with self.opened(worker) as store:
            driver = reference.Driver(
                store, tools=self.tools(worker, store), name=worker.name, lease_ttl_ms=0,
                clock=worker.clock, suffix=worker.unique,
            )  # fmt: skip
            return {run_id: self.pursue(driver, store.run(run_id)) for run_id in store.runs()}

    def configure_wrongly(self, worker: Worker) -> list[str]:
        """TTLs that no heartbeat could keep."""
        told = []
        with self.opened(worker) as store:
            for ttl_ms in (-1, 1, 2, True, 30.0):
                try:
                    reference.Driver(store, lease_ttl_ms=ttl_ms)  # type: ignore[arg-type]  # wrong
                    told.append("accepted")
                except reference.InvalidTtl as error:
                    told.append(type(error).__name__)
        return told
