"""The lease library, declared like any runtime, and the schedule that all ways play."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from pytest_leasecheck.testkit.script import parse_script
from pytest_leasecheck.testkit.subject import EffectRows, Lease, RunTable, Steps, Subject
from pytest_leasecheck.testkit.worker import Worker

from . import tinylease


class TinyLease(Subject):
    """One task of one step, ready to be claimed."""

    runs = RunTable(
        "tasks",
        id="id",
        status="state",
        terminal={"done"},
        lease=Lease(owner="owner", expires_at="expires_at", token="token", unit="s"),
    )
    steps = Steps(
        "steps",
        run="task",
        id=("number",),
        status="state",
        started={"running"},
        finished={"done"},
        result="outcome",
    )
    effects = EffectRows("payments", run="task", key="key", token="token")
    capabilities = frozenset({"fences_effects", "releases"})
    clock = "given"
    lease_ttl_ms: ClassVar[int] = 30_000

    def prepare(self, db: Path) -> None:
        tinylease.prepare(db)

    def work(self, worker: Worker) -> object:
        leases = tinylease.Leases(worker.db, owner=worker.name, clock=worker.clock.time)
        try:
            return tinylease.work(
                leases,
                paying=lambda pay: worker.effect(
                    "pay", run_id=leases.task, token=leases.token, apply=lambda _receipt: pay()
                ),
            )
        finally:
            leases.close()

    def check(self, worker: Worker) -> object:
        """What stands there, for a way that doesn't read along."""
        return tinylease.state_of(worker.db)


CLASSIC: Final = parse_script(
    """
    spawn A
    until A effect:pay before
    stop A
    expire
    spawn B
    run B
    cont A
    run A
    heal
    drain
    """
)


class TinyQueue(TinyLease):
    """The same with no task at first: tasks are submitted."""

    def prepare(self, db: Path) -> None:
        tinylease.create(db)

    def submit(self, db: Path, run_id: str) -> None:
        tinylease.submit(db, run_id)


#: The same, and a look at the end for who has no observer.
CLASSIC_CHECKED: Final = parse_script(
    "spawn A\nuntil A effect:pay before\nstop A\nadvance 31s\nspawn B\nrun B\ncont A\nrun A\n"
    "spawn C to check\nrun C\n"
)
