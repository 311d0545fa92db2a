"""Taking over: who may, when, all at once, and what is recorded about it."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import Ended, History
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import (
    broken,
    kinds_of,
    says,
    story_of,
    tables_after,
    writes_nothing,
)


def _names_both_owners(history: History, verdict: Verdict) -> tuple[Finding, ...]:
    """`lease.taken_over` names the previous owner, its expiry, and the new owner."""
    taken = [event for event in story_of(history) if event["kind"] == "lease.taken_over"]
    lost = [tenure for tenure in verdict.tenures if tenure.ended == "taken over"]
    if len(taken) != len(lost) or not taken:
        text = f"{len(lost)} leases were taken over and {len(taken)} of it recorded"
        return (broken("a take-over is recorded", text),)
    found = []
    for event, tenure in zip(taken, lost, strict=True):
        following = verdict.tenures[verdict.tenures.index(tenure) + 1]
        row = tables_after(history, (tenure.until or 1) - 1)["runs"][(tenure.run_id,)]
        expected = (tenure.owner, row["lease_expires_at_ms"], following.owner, following.token)
        told = tuple(
            event.get(key) for key in ("previous_owner", "previous_expires_at_ms", "owner", "token")
        )
        if told != expected:
            found.append(broken("a take-over is recorded", f"it says {told}, not {expected}"))
    return tuple(found)


def _not_recorded(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """Taking a released lease writes no `lease.taken_over`."""
    if "lease.taken_over" not in kinds_of(history):
        return ()
    return (broken("a released lease is not taken over", f"{kinds_of(history)}"),)


def _all_or_nothing(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """Where B died, its take-over had happened with all that belongs to it, or not at all."""
    died = next(e.n for e in history.events if isinstance(e, Ended) and e.who == "B#1")
    tables = tables_after(history, died)
    owner = str(tables["runs"][("r1",)]["lease_owner"])
    interrupted = tables["steps"][("r1", 0)]["status"] == "INTERRUPTED"
    kinds = kinds_of(history, n=died)
    told = ("lease.taken_over" in kinds, "step.interrupted" in kinds)
    if len({owner.startswith("B/"), interrupted, *told}) == 1:
        return ()
    text = f"the owner is {owner}, the step interrupted: {interrupted}, recorded: {told}"
    return (broken("a take-over is all or nothing", text, at=(died,)),)


def _killed_at(name: str, point: str) -> Scenario:
    """The take-over, its process killed at one point of its transaction."""
    return Scenario(
        name=f"killed_at_{name}",
        story=(
            "A died with a step in flight. B takes the run over, which changes the owner, records"
            " it, and marks the step as interrupted; B is killed in the middle of that"
            f" ({point}). It is all there or nothing of it, and C recovers."
        ),
        script=f"""
            submit r1
            spawn A
            until A {{danger}}
            kill A
            expire
            spawn B
            until B {point}
            kill B
            expire
            spawn C
            run C
            heal
            drain
        """,
        requires=("killed: A", "killed: B", "take-over by C", "reconciliation by C"),
        variant="run lease",
        also=(_all_or_nothing, _names_both_owners),
    )


#: Between any two statements of the take-over: each of its points.
_POINTS: Final = (
    ("begin", "txn:begin before"),
    ("begun", "txn:begin after"),
    ("looking", "sql:SELECT runs#6 after"),
    ("taking", "sql:UPDATE runs before"),
    ("taken", "sql:UPDATE runs after"),
    ("claimed", "sql:SELECT runs#7 after"),
    ("recording", "sql:INSERT events before"),
    ("recorded", "sql:INSERT events after"),
    ("reading_steps", "sql:SELECT steps#2 after"),
    ("interrupting", "sql:UPDATE steps before"),
    ("interrupted", "sql:UPDATE steps after"),
    ("giving_a_slot_back", "sql:UPDATE steps#2 before"),
    ("gave_a_slot_back", "sql:UPDATE steps#2 after"),
    ("telling_interrupted", "sql:INSERT events#2 before"),
    ("told_interrupted", "sql:INSERT events#2 after"),
    ("commit", "txn:commit before"),
    ("committed", "txn:commit after"),
)

SCENARIOS: Final = (
    Scenario(
        name="dead_owner_is_replaced",
        story=(
            "A dies with a step in flight. B is refused as long as A's lease counts, then takes"
            " over: an event names the previous owner, when its lease expired, and the new owner,"
            " because that is the moment an operator will ask who ran what."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            spawn B
            run B
            expire
            run B
            heal
            drain
        """,
        requires=("killed: A", "refused claim by B", "take-over by B", "interruption"),
        variant="run lease",
        also=(_names_both_owners,),
    ),
    Scenario(
        name="released_lease_is_just_taken",
        story=(
            "A's call ends with an error, and releases its lease. B needs not wait, and takes"
            " the run at once; nothing was taken over from anybody, so nothing says so."
        ),
        script="""
            submit r1
            spawn A
            provider fail mail
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("release by A", "effect failed", "finish by B"),
        variant="run lease",
        also=(_not_recorded, says("B", {"r1": "SUCCEEDED"})),
    ),
    Scenario(
        name="two_take_over_at_once",
        story=(
            "A is dead and its lease has expired. B and C have both seen that, and both are about"
            " to take over. One of them does; the other finds a live lease, and changes nothing."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            expire
            spawn B
            until B txn:begin before
            spawn C
            until C {danger}
            run B
            run C
            heal
            drain
        """,
        requires=("killed: A", "take-over by C", "finish by C"),
        variant="run lease",
        also=(writes_nothing("B"), says("B", {"r1": "leased"}), _names_both_owners),
    ),
    Scenario(
        name="many_race_to_take_over",
        story=(
            "A is dead and its lease has expired. Three processes race for the run, for real. One"
            " of them gets it, and the step is decided about once."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            expire
            spawn B
            spawn C
            spawn D
            free B C D
            heal
            drain
        """,
        requires=("killed: A", "take-over", "reconciliation"),
        variant="run lease",
        also=(_names_both_owners,),
    ),
    Scenario(
        name="own_expired_lease_is_recorded_too",
        story=(
            "A's call fails because somebody holds the database's write lock for long; not even the"
            " release can be written. A second call of the same driver takes over its own expired"
            " lease, and that is recorded like any other take-over."
        ),
        script="""
            submit r1
            spawn A to twice_in_turn
            until A call:*validate_before_effect before
            hold A "between calls"
            lock
            run A
            advance 6s
            advance 6s
            unlock
            expire
            run A
            heal
            drain
        """,
        requires=("lock held", "lapse: A", "take-over by A"),
        variant="run lease",
        also=(_names_both_owners, says("A", ["OperationalError", "SUCCEEDED"])),
    ),
    *(_killed_at(name, point) for name, point in _POINTS),
)
