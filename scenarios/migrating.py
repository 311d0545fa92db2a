"""Databases of other versions: from before the lease, and from a later time."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.reference import PRE_LEASE_OWNER
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import broken, commits_by, ends, rows_of, says, story_of, writes_nothing


def _grace_then_take_over(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The old running run was taken over from the placeholder owner, once its grace had passed."""
    taken = [event for event in story_of(history, "old") if event["kind"] == "lease.taken_over"]
    if [event["previous_owner"] for event in taken] == [PRE_LEASE_OWNER]:
        return ()
    return (broken("a run from before the lease has a grace lease", f"taken over: {taken}"),)


def _migrated_once(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """One process migrated; the other found it done."""
    granted = [
        commit.who
        for worker in ("A", "B")
        for commit in commits_by(history, worker)
        for change in commit.changes
        if change.table == "runs"
        and (change.new or {}).get("lease_owner") == PRE_LEASE_OWNER
        and not (change.old or {}).get("lease_owner")
    ]
    owners = [row["lease_owner"] for row in rows_of(history, "runs")]
    if len(granted) == 1:
        return ()
    return (broken("two that migrate migrate once", f"granted by {granted}; owners {owners}"),)


SCENARIOS: Final = (
    Scenario(
        name="grace_lease",
        story=(
            "A database from before the lease has a running run: the process of the old version may"
            " be alive, and knows nothing of leases. Opening it grants the run a lease of the"
            " default length under a placeholder's name. A is refused until that has passed, and"
            " then takes it over, which is recorded."
        ),
        script="""
            spawn A
            run A
            advance 29s
            run A
            advance 1s
            run A
            heal
            drain
        """,
        requires=("take-over by A", "finish by A"),
        variant="old database",
        also=(
            says("A", {"old": "leased"}, {"old": "leased"}, {"old": "SUCCEEDED"}),
            _grace_then_take_over,
            ends("SUCCEEDED", "old"),
        ),
    ),
    Scenario(
        name="two_migrate_at_once",
        story=(
            "Two processes open the old database at the same moment. B is about to migrate when A"
            " does. The grace lease is granted once, and both find the run leased."
        ),
        script="""
            spawn A
            spawn B
            until B txn:begin before
            run A
            run B
            expire
            run B
            heal
            drain
        """,
        requires=("take-over by B", "finish by B"),
        variant="old database",
        also=(
            says("A", {"old": "leased"}),
            says("B", {"old": "leased"}, {"old": "SUCCEEDED"}),
            _migrated_once,
            _grace_then_take_over,
        ),
    ),
    Scenario(
        name="two_migrate_for_real",
        story="The same with nobody holding anybody back.",
        script="""
            spawn A
            spawn B
            free A B
            expire
            run A
            heal
            drain
        """,
        requires=("take-over by A", "finish by A"),
        variant="old database",
        also=(_migrated_once, _grace_then_take_over),
    ),
    Scenario(
        name="killed_while_migrating",
        story=(
            "A is killed in the middle of the migration. The database is the old one still, with"
            " nothing of the new; B migrates it."
        ),
        script="""
            spawn A
            until A txn:commit before
            kill A
            spawn B
            run B
            expire
            run B
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "finish by B"),
        variant="old database",
        also=(writes_nothing("A"), _migrated_once, _grace_then_take_over),
    ),
    Scenario(
        name="newer_database",
        story=(
            "The file was written by a later version of the runtime. It is refused with an error"
            " that says both versions, and not a byte of it is changed."
        ),
        script="""
            spawn A to open_newer
            run A
        """,
        requires=(),
        variant="newer database",
        also=(
            says("A", "NewerDatabase: its schema is version 99, this runtime knows up to 2;"
                      " the file is as it was"),
            writes_nothing("A"),
        ),
    ),
)  # fmt: skip
