"""aiq-runtime 0.5.2, declared. Needs the environment that `python -m tests.wild.envs aiq` builds.

A run is one effect request on a stream of its own. Its lease is a row of `effect_leases`, which the
first claim makes and nobody deletes; what a worker commits for it are events of its stream. A
handler isn't told its token, so what it asks of the provider carries none.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

from aiq import (
    AgentDefinition,
    DurableEffectDispatcher,
    EffectContext,
    EffectLeaseOptions,
    EffectRegistry,
    Event,
    SQLiteEventStore,
    effect_request,
)
from aiq.leases import LeaseLostError

from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject, Writes
from pytest_leasecheck.testkit.worker import Worker

_STORE = "aiq.sqlite:SQLiteEventStore."
_COMMIT = f"{_STORE}_commit_fenced_subscription_batch_sync"


class AiqQueue(Subject):
    """One dispatcher per worker; it goes on until nothing is left that it can have."""

    runs = RunTable(
        "effect_leases",
        id="stream_id",
        status="status",
        terminal={"completed"},
        lease=Lease(
            owner="worker_id",
            held={"status": {"claimed"}},
            expires_at="lease_expires_at_unix",
            unit="s",
            token="fencing_token",
            generation=("lease_id",),
        ),
    )
    writes = (Writes("events", run="stream_id"), Writes("effect_attempts", run="stream_id"))
    claims = (f"{_STORE}_try_claim_effect_sync",)
    heartbeats = (f"{_STORE}_renew_effect_claim_sync",)
    calls = (_COMMIT, f"{_STORE}_release_effect_claim_sync")
    capabilities = frozenset({"checks_expiry", "heartbeats", "releases"})
    # Its expiry is SQLite's 'now', its heartbeat an event loop's timer: both can be moved. The
    # lease is short for those who play it on the wall clock all the same.
    clock = "patched"
    lease_ttl_ms = 2_000
    # Held inside its handler, a worker that was replaced reads that the work is done and gives up
    # without trying to write. Here it does try. Its heartbeat has been cancelled by then.
    # The effect was carried out by then, and nothing is recorded yet.
    danger = f"call:{_COMMIT} before"
    danger_after = danger

    #: The worker id of every worker; None: the name that it was configured with.
    worker_id: ClassVar[str | None] = None

    def prepare(self, db: Path) -> None:
        """The schema."""
        asyncio.run(SQLiteEventStore.open(db))

    def submit(self, db: Path, run_id: str) -> None:
        """An effect request, first event of its stream."""
        asyncio.run(_request(db, run_id))

    def work(self, worker: Worker) -> str:
        """Dispatch until there is no progress."""
        return asyncio.run(self._dispatch(worker))

    async def _dispatch(self, worker: Worker) -> str:
        ttl_s = self.lease_ttl_ms / 1000
        dispatcher = DurableEffectDispatcher(
            agent=_agent(),
            store=await SQLiteEventStore.open(worker.db),
            effects=_effects(worker),
            context=EffectContext({}),
            subscription_name="charges",
            owns_stream=lambda _stream: True,
            lease_options=EffectLeaseOptions(self.worker_id or worker.name, ttl_s, ttl_s / 3),
        )
        progress = 0
        try:
            while await dispatcher.run_once():
                progress += 1
        except LeaseLostError as error:
            return f"lease lost: {error}"
        return f"made progress {progress} times"


class AiqOneName(AiqQueue):
    """The same, with one worker id for all workers: a name is no identity."""

    worker_id = "worker"


async def _request(db: Path, run_id: str) -> None:
    store = await SQLiteEventStore.open(db)
    await store.append(run_id, -1, [effect_request("ChargeRequested", {"run": run_id})])


def _agent() -> Any:
    agent = AgentDefinition("charge", initial_state=dict, terminal_event_types={"Charged"})
    agent.reducer(lambda state, _event: state)
    return agent


def _effects(worker: Worker) -> Any:
    effects = EffectRegistry()

    @effects.effect("ChargeRequested")
    async def charge(event: Any, _state: Any, _context: Any) -> list[Any]:
        key = event.metadata["operation_id"]
        receipt = await worker.aeffect("charge", run_id=event.data["run"], key=key)
        return [Event("Charged", {"receipt": receipt})]

    return effects
