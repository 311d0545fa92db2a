"""The driver: starts, resumes and cancels runs, and executes their steps in the caller's thread.

One driver is one owner. While a call of it executes a run, a heartbeat renews the lease; when
the call returns, whatever the way, the lease is released unless it was lost.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from . import guards, rows
from .cancel import cancel_run
from .clock import Clock
from .errors import (
    LeaseLost,
    RunLeased,
    RunNotFound,
    RunStateError,
    StaleToken,
    ToolFailed,
)
from .heartbeat import Heartbeat
from .lease import (
    DEFAULT_LEASE_TTL_MS,
    Claim,
    checked_ttl_ms,
    claimed,
    owner_identity,
    random_suffix,
    release,
    stamp,
)
from .payload import checked_run_id
from .records import Event, Run, RunStatus, Step, StepRow, StepStatus
from .resume import reconcile, resume_waiting, take_over
from .settings import Approval, Settings, StepPolicy, Verdict, ask_if_needed
from .states import Ownership, ownership
from .store import Store, insert_run
from .tenure import CancelledMeanwhile, Started, Tenure
from .tools import Tool


class Driver:
    """Executes runs of one store under leases of its own.

    ``name`` is for the operator who reads the row; the random suffix makes the owner.
    ``lease_ttl_ms`` is how long a crash blocks a run (0: the default, 30 s). ``clock`` is the
    lease's time and ``now`` stamps events (default: the clock's). Raises InvalidTtl.
    """

    def __init__(
        self,
        store: Store,
        *,
        tools: Iterable[Tool] = (),
        name: str = "",
        lease_ttl_ms: int = DEFAULT_LEASE_TTL_MS,
        clock: Clock | None = None,
        now: Callable[[], int] | None = None,
        policy: StepPolicy = ask_if_needed,
        suffix: Callable[[], str] = random_suffix,
    ) -> None:
        lease_clock = store.clock if clock is None else clock
        self.store: Final = store
        self.settings: Final = Settings(
            owner=owner_identity(name, suffix),
            ttl_ms=checked_ttl_ms(lease_ttl_ms),
            clock=lease_clock,
            now=lease_clock.now_ms if now is None else now,
            tools={tool.name: tool for tool in tools},
            policy=policy,
        )
        self._executing: Final[set[str]] = set()
        self._guard: Final = threading.Lock()
        #: What is held, or was lost and not taken again: what `ownership` speaks of.
        self._claims: Final[dict[str, Claim]] = {}

    @property
    def owner(self) -> str:
        """The owner as stored: ``name/suffix``, or the suffix alone."""
        return self.settings.owner

    def start(
        self, run_id: str, plan: Sequence[Step] | None = None, *, key: str | None = None
    ) -> Run:
        """Start a new run by its ``plan``, or a submitted one without, and execute it.

        Returns the run when it ended or waits for approval. With a ``key`` that started a run
        before, that run is returned as it is. Raises RunExists, RunStateError, RunLeased,
        RunNotFound, LeaseLost, ToolBusy, UnknownTool, InvalidRunId, InvalidPayload.
        """
        checked_run_id(run_id)
        with self._only_call(run_id):
            claim = self._claim_queued(run_id) if plan is None else self._insert(run_id, plan, key)
            if isinstance(claim, str):
                return self.store.run(claim)
            return self._execute(claim)

    def resume(self, run_id: str, *, approval: Approval | None = None) -> Run:
        """Go on with a run that waits for approval, or whose process has died.

        A refused resume changes nothing and does not read ``now``. Raises RunNotFound,
        RunStateError, RunLeased (retry after its expiry), LeaseLost, ToolBusy, UnknownTool.
        """
        with self._only_call(run_id):
            run = self.store.run(run_id)
            if run.status is RunStatus.WAITING_FOR_APPROVAL:
                self._check_tools(run_id)
                taken = resume_waiting(self.store, self.settings, run_id, approval)
                if taken is None:
                    return self.store.run(run_id)
                return self._execute(taken.claim, taken.started)
            if run.status is not RunStatus.RUNNING:
                advice = "start it" if run.status is RunStatus.QUEUED else "it has ended"
                raise RunStateError(run_id, run.status, advice)
            if run.lease.live(self.settings.clock.now_ms()):
                raise RunLeased(run_id, run.lease.owner, run.lease.expires_at_ms)
            self._check_tools(run_id)
            return self._execute(take_over(self.store, self.settings, run_id))

    def cancel(self, run_id: str, *, by: str = "operator") -> Run:
        """Cancel a run by an operator's authority: no lease is needed, whoever holds it.

        A live loop stops at its next write. Raises RunNotFound, or RunStateError for a run
        that has ended.
        """
        cancel_run(self.store, self.settings, run_id, by=by)
        return self.store.run(run_id)

    def ownership(self, run_id: str, *, process_alive: bool = True) -> frozenset[Ownership]:
        """Which of the five states hold for this run and this driver; writes nothing.

        Whoever asks from inside is alive; a probe from outside says so with
        ``process_alive``. Raises RunNotFound.
        """
        run = self.store.run(run_id)
        return ownership(
            run.status,
            lease=run.lease,
            steps=self.store.steps(run_id),
            claim=self._claims.get(run_id),
            now_ms=self.settings.clock.now_ms(),
            process_alive=process_alive,
            read_only=[tool.name for tool in self.settings.tools.values() if tool.read_only],
            reported=reported_late(self.store.events(run_id)),
        )

    # --- claiming ----------------------------------------------------------------------------

    @contextmanager
    def _only_call(self, run_id: str) -> Iterator[None]:
        """Refuse a run that this driver executes in another call: it would rob itself."""
        with self._guard:
            ours = self.executes(run_id)
            if not ours:
                self._executing.add(run_id)
        if ours:
            try:
                lease = self.store.lease(run_id)
            except RunNotFound:
                # The other call is just about to insert it.
                raise RunLeased(run_id, self.owner, 0) from None
            raise RunLeased(run_id, lease.owner or self.owner, lease.expires_at_ms)
        try:
            yield
        finally:
            with self._guard:
                self._executing.discard(run_id)

    def _check_tools(self, run_id: str) -> None:
        """Find a missing tool before anything is changed. Raises UnknownTool."""
        for step in self.store.steps(run_id):
            self.settings.tool(step.name)

    def executes(self, run_id: str) -> bool:
        """Whether a call of this driver is executing the run."""
        return run_id in self._executing

    def _insert(self, run_id: str, plan: Sequence[Step], key: str | None) -> Claim | str:
        """Insert the run as RUNNING under this driver's lease, in one transaction."""
        for step in plan:
            self.settings.tool(step.name)
        with self.store.transaction() as connection:
            now_ms = self.settings.clock.now_ms()
            known = insert_run(
                connection,
                run_id,
                plan,
                key=key,
                claim=(self.owner, now_ms, self.settings.ttl_ms),
            )
            if known is not None:
                return known
            rows.record(connection, run_id, "run.started", {}, at_ms=self.settings.now())
            return claimed(connection, run_id)

    def _claim_queued(self, run_id: str) -> Claim:
        """Move a QUEUED run to RUNNING under this driver's lease, in one transaction."""
        self._check_tools(run_id)
        with self.store.transaction() as connection:
            taken = connection.execute(
                f"UPDATE runs SET status = 'RUNNING', {stamp()}, revision = revision + 1 "
                f"WHERE run_id = :run_id AND {guards.CLAIM_QUEUED}",
                {
                    "run_id": run_id,
                    "owner": self.owner,
                    "now_ms": self.settings.clock.now_ms(),
                    "ttl_ms": self.settings.ttl_ms,
                },
            )
            if taken.rowcount != 1:
                run = rows.run(connection, run_id)
                if run.status is RunStatus.RUNNING and run.lease.held():
                    raise RunLeased(run_id, run.lease.owner, run.lease.expires_at_ms)
                raise RunStateError(run_id, run.status, "only a queued run can be started")
            rows.record(connection, run_id, "run.started", {}, at_ms=self.settings.now())
            return claimed(connection, run_id)

    # --- executing ---------------------------------------------------------------------------

    def _execute(self, claim: Claim, started: Started | None = None) -> Run:
        """Run the loop under a heartbeat; release the lease however it ends."""
        tenure = Tenure(self.store, claim, self.settings.clock, self.settings.now)
        self._claims[claim.run_id] = claim
        try:
            with Heartbeat(
                self.store, claim, clock=self.settings.clock, ttl_ms=self.settings.ttl_ms
            ) as heartbeat:
                self._loop(tenure, heartbeat, started)
            self._claims.pop(claim.run_id, None)
        except CancelledMeanwhile:
            # The operator's word: the run is where the operator wants it.
            self._claims.pop(claim.run_id, None)
        except (RunStateError, RunNotFound, StaleToken) as error:
            if error.run_id != claim.run_id:
                raise  # a tool's own business with another run
            raise lease_lost(claim, str(error)) from error
        finally:
            # An error here would hide the call's own; unreleased, the lease expires.
            with suppress(sqlite3.Error):
                release_lease(self.store, claim)
        return self.store.run(claim.run_id)

    def _loop(self, tenure: Tenure, heartbeat: Heartbeat, started: Started | None) -> None:
        """One step after the other, until the run ends or waits."""
        while True:
            if started is not None:
                self._perform(tenure, started)
                started = None
            if heartbeat.lost is not None:
                raise tenure.ended(heartbeat.lost)
            step = next_step(self.store.steps(tenure.claim.run_id))
            if step is None:
                return tenure.finish(RunStatus.SUCCEEDED)
            if step.status in (StepStatus.FAILED, StepStatus.COMPENSATED):
                reason = f"step {step.idx} ({step.name}) {step.status.lower()}"
                return tenure.finish(RunStatus.FAILED, reason=reason)
            tool = self.settings.tool(step.name)
            if step.status is StepStatus.INTERRUPTED:
                reconciled = reconcile(tenure, step, tool)
                if reconciled.paused:
                    return None
                started = reconciled.started
                continue
            verdict = self.settings.policy(step, None)
            if verdict is Verdict.ASK:
                return tenure.pause(step)
            if verdict is Verdict.DENY:
                return tenure.finish(RunStatus.FAILED, reason=f"policy denied step {step.idx}")
            started = tenure.start_step(step, limit=tool.limit)

    def _perform(self, tenure: Tenure, started: Started) -> None:
        """Call the tool, and record what came of it, as far as that is still ours to record."""
        tool = self.settings.tool(started.call.name)
        function = tool.compensate if started.compensating else tool.run
        assert function is not None  # nothing starts a compensation that a tool doesn't have
        try:
            validate_before_effect(tenure)
            result, failed = function(started.call), False
        except ToolFailed as error:
            result, failed = str(error), True
        except (LeaseLost, StaleToken) as error:
            # Refused for the lease's sake. After a cancel that is the call's outcome, and is told.
            if error.run_id == tenure.claim.run_id and tenure.record_late(
                started, str(error), failed=True
            ):
                raise CancelledMeanwhile(
                    error.run_id, RunStatus.CANCELLED, "an operator cancelled it"
                ) from error
            raise
        try:
            in_time = tenure.record_outcome(started, result, failed=failed)
        except CancelledMeanwhile:
            tenure.record_late(started, result, failed=failed)
            raise
        if not in_time:
            raise lease_lost(tenure.claim, "it expired while a call was in flight")


def validate_before_effect(tenure: Tenure) -> None:
    """The last look at the lease before a call that can't be taken back. Raises LeaseLost."""
    tenure.validate()


def release_lease(store: Store, claim: Claim) -> None:
    """Give back what the call still holds, so that nobody needs to wait the TTL out."""
    with store.db() as connection:
        release(connection, claim)


def lease_lost(claim: Claim, reason: str) -> LeaseLost:
    """The error of a loop that found its lease lost."""
    return LeaseLost(claim.run_id, claim.owner, claim.token, reason)


def reported_late(events: Iterable[Event]) -> frozenset[int]:
    """The steps whose outcome was appended after an operator's cancel."""
    late = (event.body.get("idx") for event in events if event.body.get("late"))
    return frozenset(idx for idx in late if isinstance(idx, int))


def next_step(steps: Sequence[StepRow]) -> StepRow | None:
    """The first step that isn't done; None when the run has succeeded."""
    return next((step for step in steps if step.status is not StepStatus.DONE), None)
