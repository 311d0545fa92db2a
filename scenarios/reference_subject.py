"""The reference runtime, declared like any stranger's: where it keeps what, and how it is driven.

A run has two steps. `charge` goes to the runtime's own effect store, fenced in one transaction with
the lease; `mail` goes to a provider outside, which can only refuse a token lower than one it has
seen, and is asked by idempotency key what became of an interrupted call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.subject import (
    EffectRows,
    Lease,
    Reconciliations,
    RunTable,
    Steps,
    Subject,
    Writes,
)
from pytest_leasecheck.testkit.worker import EffectFailed, Worker, present_worker

_PACKAGE = "pytest_leasecheck.scenarios"
#: What scenarios may ask for by name.
VARIANTS = {
    "run lease": f"{_PACKAGE}.variants:RunLease",
    "breaking": f"{_PACKAGE}.variants_calls:Breaking",
    "holding": f"{_PACKAGE}.variants_calls:Holding",
    "model calls": f"{_PACKAGE}.variants_calls:Models",
    "approval": f"{_PACKAGE}.variants_tools:NeedsApproval",
    "approval twice": f"{_PACKAGE}.variants_tools:NeedsApprovalTwice",
    "asks operator": f"{_PACKAGE}.variants_tools:AsksOperator",
    "silent provider": f"{_PACKAGE}.variants_tools:SilentProvider",
    "compensates": f"{_PACKAGE}.variants_tools:Compensates",
    "reads only": f"{_PACKAGE}.variants_tools:ReadsOnly",
    "limited": f"{_PACKAGE}.variants_tools:Limited",
    "short ttl": f"{_PACKAGE}.variants_tools:ShortTtl",
    "default ttl": f"{_PACKAGE}.variants_tools:DefaultTtl",
    "old database": f"{_PACKAGE}.variants_files:OldDatabase",
    "newer database": f"{_PACKAGE}.variants_files:NewerDatabase",
    "older binary": f"{_PACKAGE}.variants_files:OlderBinary",
    "on network": f"{_PACKAGE}.variants_files:OnNetwork",
    "hardened": f"{_PACKAGE}.variants_hard:Hardened",
    "bears skew": f"{_PACKAGE}.variants_hard:BearsSkew",
}


class ReferenceSubject(Subject):
    """The reference runtime with a run of two steps, `charge` and `mail`."""

    runs = RunTable(
        "runs",
        id="run_id",
        status="status",
        terminal={"SUCCEEDED", "FAILED", "CANCELLED"},
        waiting={"WAITING_FOR_APPROVAL"},
        lease=Lease(
            owner="lease_owner",
            expires_at="lease_expires_at_ms",
            token="fencing_token",
            renewed_at="last_renewed_at_ms",
            unit="ms",
        ),
    )
    writes: ClassVar[tuple[Writes, ...]] = (Writes("events", run="run_id", late_ok=True),)
    steps = Steps(
        "steps",
        run="run_id",
        id=("idx",),
        status="status",
        started={"EXECUTING"},
        finished={"DONE", "FAILED", "COMPENSATED"},
        interrupted={"INTERRUPTED"},
        result="result",
    )
    reconciliations = Reconciliations(
        "reconciliations", run="run_id", step=("idx",), decision="decision", decided_by="decided_by"
    )
    effects = EffectRows(
        "effects", run="run_id", key="idempotency_key", token="fencing_token", name="name"
    )
    heartbeats = ("pytest_leasecheck.testkit.reference.heartbeat:Heartbeat.beat",)
    capabilities = frozenset(
        {
            "checks_expiry", "fences_effects", "reconciles", "releases", "cancels",
            "asks_approval", "heartbeats", "asks_provider", "asks_first", "validates",
        }
    )  # fmt: skip
    delivery = "exactly-once"
    clock = "given"
    lease_ttl_ms = reference.DEFAULT_LEASE_TTL_MS
    provider_fence = "highest seen"

    variants: ClassVar[Mapping[str, str]] = VARIANTS

    plan: ClassVar[tuple[reference.Step, ...]] = (
        reference.Step("charge"),
        reference.Step("mail"),
    )

    def prepare(self, db: Path) -> None:
        """A fresh store, migrated to the latest version."""
        reference.Store(db).close()

    def submit(self, db: Path, run_id: str) -> None:
        """One queued run with the plan."""
        with reference.Store(db, clock=stage_clock()) as store:
            store.submit(run_id, self.plan)

    def cancel(self, db: Path, run_id: str) -> None:
        """The operator cancels."""
        with reference.Store(db, clock=stage_clock()) as store:
            reference.Driver(store, name="operator").cancel(run_id)

    def approve(self, db: Path, run_id: str) -> None:
        """The operator's word is kept beside the runs, for whoever resumes the run next."""
        with reference.Store(db, clock=stage_clock()) as store, store.transaction() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS words (run_id TEXT PRIMARY KEY, revision INTEGER)"
            )
            connection.execute(
                "REPLACE INTO words SELECT run_id, revision FROM runs WHERE run_id = ?", (run_id,)
            )

    def work(self, worker: Worker) -> dict[str, str]:
        """Start or resume every run that can be had; what came of each, in a word."""
        outcomes: dict[str, str] = {}
        with reference.Store(worker.db, clock=worker.clock) as store:
            driver = self.driver(worker, store)
            for run_id in store.runs():
                outcomes[run_id] = self.pursue(driver, store.run(run_id))
        return outcomes

    def driver(self, worker: Worker, store: reference.Store, **options: Any) -> reference.Driver:
        """This worker's driver: one owner, with a suffix that no other incarnation has."""
        options.setdefault("tools", self.tools(worker, store))
        return reference.Driver(
            store,
            name=worker.name,
            lease_ttl_ms=self.lease_ttl_ms,
            clock=worker.clock,
            suffix=worker.unique,
            **options,
        )

    def pursue(self, driver: reference.Driver, run: reference.Run) -> str:
        """Go on with one run as far as it goes."""
        status = reference.RunStatus
        try:
            if run.status is status.QUEUED:
                return str(driver.start(run.run_id).status)
            if run.status is status.RUNNING:
                return str(driver.resume(run.run_id).status)
            approval = word_of(driver.store, run.run_id)
            if run.status is status.WAITING_FOR_APPROVAL and approval is not None:
                return str(driver.resume(run.run_id, approval=approval).status)
            return str(run.status)
        except reference.RunLeased:
            return "leased"
        except (reference.LeaseLost, reference.RunStateError) as error:
            return type(error).__name__

    def tools(self, worker: Worker, store: reference.Store) -> tuple[reference.Tool, ...]:
        """The two tools: one with the fenced effect store, one with the provider outside."""
        return (own_tool("charge", worker, store), outside_tool("mail", worker))


def stage_clock() -> reference.Clock:
    """The stage's clock, for what an operator's process writes."""
    worker = present_worker()
    return reference.WallClock() if worker is None else worker.clock


def word_of(store: reference.Store, run_id: str) -> reference.Approval | None:
    """The operator's word about a run as it waits now: go on, by a retry where none knows."""
    with store.db() as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone():
            return None
        if not connection.execute(
            "SELECT 1 FROM words JOIN runs USING (run_id, revision) WHERE run_id = ?", (run_id,)
        ).fetchone():
            return None
    question = store.question(run_id)
    unknown = question is not None and question.outcome_unknown
    answer = reference.Answered.RETRY if unknown else reference.Answered.APPROVE
    return reference.Approval("operator", answer)


def own_tool(name: str, worker: Worker, store: reference.Store, **options: Any) -> reference.Tool:
    """A tool whose effect goes to the runtime's own store, fenced in one transaction."""
    effects = reference.EffectStore(store, clock=worker.clock)

    def run(call: reference.Call) -> object:
        return worker.effect(
            name,
            run_id=call.run_id,
            token=call.token,
            key=call.idempotency_key,
            apply=lambda receipt: effects.apply(call, result=receipt),
        )

    return reference.Tool(name, run, lookup=effects.lookup, **options)


def outside_tool(name: str, worker: Worker, **options: Any) -> reference.Tool:
    """A tool whose effect goes to the provider outside, which can be asked about it by its key."""
    options.setdefault("lookup", lambda key: look_up(worker, key))
    return reference.Tool(name, lambda call: ask(name, worker, call), **options)


def ask(name: str, worker: Worker, call: reference.Call) -> object:
    """A request to the provider, with token and key."""
    return worker.effect(name, run_id=call.run_id, token=call.token, key=call.idempotency_key)


def look_up(worker: Worker, key: str) -> reference.Found | reference.NotFound | reference.Unknown:
    """What the provider says became of a key."""
    try:
        receipt = worker.lookup(key)
    except EffectFailed as error:
        return reference.Unknown(str(error))
    return reference.NotFound() if receipt is None else reference.Found(receipt)
