"""How a run is started: under a lease from its first row on, once per id, once per key."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import broken, commits_by, events_are, kinds_of, rows_of, says, writes_nothing

#: What an undisturbed run records, and nothing else: neither acquire, renewal nor release.
UNDISTURBED: Final = (
    "run.started",
    "step.tool_started",
    "step.tool_finished",
    "step.tool_started",
    "step.tool_finished",
    "run.finished",
)


def _stamped_at_birth(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The commit that inserts the run has the lease in it."""
    first = next(iter(commits_by(history, "A")), None)
    born = [] if first is None else [one for one in first.changes if one.table == "runs"]
    row = born[0].new if born and born[0].old is None else None
    if row and row["status"] == "RUNNING" and row["lease_owner"] and row["lease_expires_at_ms"]:
        return ()
    text = f"the first commit of A left the run {row}"
    return (broken("start stamps the lease in the inserting transaction", text),)


def _one_run(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """Whoever asks by the same key gets the same run."""
    found = [str(row["run_id"]) for row in rows_of(history, "runs")]
    if len(found) == 1:
        return ()
    return (broken("one run an idempotency key", f"there are {len(found)}: {found}"),)


def _renewed_in_silence(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    found = kinds_of(history)
    if found == ["run.queued", *UNDISTURBED]:
        return ()
    text = f"renewals left their mark in the run's events: {found}"
    return (broken("the event sequence of an undisturbed run", text),)


SCENARIOS: Final = (
    Scenario(
        name="lease_from_the_first_row",
        story=(
            "A starts a run that was not submitted before: the transaction that inserts the run as"
            " running stamps A's lease, so there is no moment at which it runs under nobody's. The"
            " run's record says what happened to the run, and nothing of leases."
        ),
        script="""
            spawn A to start
            until A {danger}
            spawn B
            run B
            run A
            heal
            drain
        """,
        requires=("claim by A", "refused claim by B", "finish by A"),
        variant="run lease",
        also=(_stamped_at_birth, events_are(*UNDISTURBED), says("A", "SUCCEEDED")),
    ),
    Scenario(
        name="killed_while_it_inserts",
        story=(
            "A is killed between the run's insertion and the commit. Nothing of the run is there"
            " for anybody to find half done, and B may start it."
        ),
        script="""
            spawn A to start
            until A sql:INSERT events before
            kill A
            spawn B to start
            run B
            heal
            drain
        """,
        requires=("killed: A", "finish by B"),
        variant="run lease",
        also=(writes_nothing("A"), events_are(*UNDISTURBED)),
    ),
    Scenario(
        name="two_start_one_id",
        story=(
            "Two processes start a run of one id. One inserts it, the other is told that the id is"
            " taken, and executes nothing."
        ),
        script="""
            spawn A to start
            spawn B to start
            until A txn:begin before
            until B {danger}
            run A
            run B
            heal
            drain
        """,
        requires=("claim by B", "finish by B"),
        variant="run lease",
        also=(writes_nothing("A"), says("A", "RunExists"), events_are(*UNDISTURBED)),
    ),
    Scenario(
        name="two_claim_one_queued_run",
        story=(
            "A has read the queue and is just about to take the run. B takes it first. A must find"
            " it taken, in the very statement that would have taken it."
        ),
        script="""
            submit r1
            spawn A
            until A txn:begin before
            spawn B
            until B {danger}
            run A
            run B
            heal
            drain
        """,
        requires=("claim by B", "finish by B"),
        variant="run lease",
        also=(writes_nothing("A"), says("A", {"r1": "leased"})),
    ),
    Scenario(
        name="two_start_by_one_key",
        story=(
            "The same request reaches two processes, each of which starts a run under an id of its"
            " own. The idempotency key is the same: there is one run, and both are told which."
        ),
        script="""
            spawn A to start_by_key
            spawn B to start_by_key
            until A txn:begin before
            run B
            run A
            heal
            drain
        """,
        requires=("finish by B",),
        variant="run lease",
        also=(_one_run, writes_nothing("A"), says("A", "B SUCCEEDED"), says("B", "B SUCCEEDED")),
    ),
    Scenario(
        name="renewals_leave_no_mark",
        story=(
            "A runs through a call that is longer than several leases, undisturbed. Consumers"
            " compare and replay the events of a run: they are the same as without a renewal."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            run A
            heal
            drain
        """,
        requires=("renewal by A", "finish by A"),
        variant="run lease",
        also=(_renewed_in_silence,),
    ),
)
