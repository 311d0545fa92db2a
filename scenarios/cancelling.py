"""An operator's cancel: it needs no lease, and the call that runs meanwhile is told as late."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import acted_at, broken, decided, ends, kinds_of, rows_of, says, story_of


def _released_with_the_run(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """Right after the cancel, the run is cancelled and nobody holds it."""
    following = next(
        (e.n for e in history.events if e.n > acted_at(history, "cancel r1") and _is_act(e)), None
    )
    row = rows_of(history, "runs", following)[0]
    if row["status"] == "CANCELLED" and row["lease_owner"] is None:
        return ()
    text = f"after the cancel the run is {row['status']}, held by {row['lease_owner']}"
    return (broken("a cancel releases the lease", text),)


def _is_act(event: object) -> bool:
    return type(event).__name__ == "Acted"


def _told_late(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The outcome of the call that ran is appended as late, after the run's end."""
    kinds = kinds_of(history)
    last = story_of(history)[-1]
    if kinds[-2:] == ["run.finished", "step.tool_finished"] and last.get("late") is True:
        return ()
    return (broken("a late outcome is recorded as late", f"the run's events end {kinds[-2:]}"),)


def _settled_in_the_stages_time(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The cancel settles what was unknown, after it became so."""
    for row in rows_of(history, "reconciliations"):
        if int(row["settled_at_ms"]) < int(row["unknown_since_ms"]):
            return (broken("time in outcome-unknown is measured", f"{row}"),)
    return ()


def _ends_with_the_cancel(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """Nothing is recorded after the run's end."""
    kinds = kinds_of(history)
    if kinds[-1] == "run.finished" and kinds.count("run.finished") == 1:
        return ()
    return (broken("nothing follows a cancel", f"the run's events are {kinds}"),)


SCENARIOS: Final = (
    Scenario(
        name="cancel_during_a_call",
        story=(
            "A's tool call has gone out when an operator cancels the run. The cancel needs no"
            " lease, and releases A's with the run. The call can't be recalled: its outcome is"
            " recorded as late, after the run's end, and the run stays cancelled."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail after
            cancel r1
            run A
            heal
            drain
        """,
        requires=("cancel", "claim by A"),
        needs=frozenset({"cancels"}),
        variant="run lease",
        also=(_released_with_the_run, _told_late, ends("CANCELLED"),
              says("A", {"r1": "CANCELLED"})),
    ),
    Scenario(
        name="cancel_before_the_effect_lands",
        story=(
            "The operator cancels when A is about to perform a fenced effect. The effect is"
            " refused, since nobody holds the run any more; that this is what came of the call is"
            " recorded, as late."
        ),
        script="""
            submit r1
            spawn A
            until A effect:charge before
            cancel r1
            run A
            heal
            drain
        """,
        requires=("cancel", "stale effect attempt by A"),
        variant="run lease",
        also=(_released_with_the_run, _told_late, ends("CANCELLED")),
    ),
    Scenario(
        name="live_loop_stops_at_its_next_write",
        story=(
            "The operator cancels between two steps of A's. A stops at its next write, which is the"
            " one that would start the next tool."
        ),
        script="""
            submit r1
            spawn A
            until A txn:begin#5 before
            cancel r1
            run A
            heal
            drain
        """,
        requires=("cancel", "stale write attempt by A"),
        variant="run lease",
        also=(_released_with_the_run, _ends_with_the_cancel, ends("CANCELLED"),
              says("A", {"r1": "CANCELLED"})),
    ),
    Scenario(
        name="heartbeat_sees_the_cancel_first",
        story=(
            "The first of A's writes after the cancel is a renewal. It renews nothing, and A does"
            " not take the cancel for a lost lease: it returns the run as the operator left it."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail after
            cancel r1
            beat A
            run A
            heal
            drain
        """,
        requires=("cancel", "stale write attempt by A"),
        variant="run lease",
        also=(_told_late, ends("CANCELLED"), says("A", {"r1": "CANCELLED"})),
    ),
    Scenario(
        name="loser_appends_nothing",
        story=(
            "A lost the run to B before the operator cancelled B's. A's call is refused: A was not"
            " the one whose call ran when the operator cancelled, and appends nothing."
        ),
        script="""
            submit r1
            spawn A
            until A effect:charge before
            stop A
            expire
            spawn B
            until B txn:begin#2 before
            cancel r1
            cont A
            run A
            run B
            heal
            drain
        """,
        requires=("take-over by B", "cancel", "stale effect attempt by A"),
        variant="run lease",
        also=(_ends_with_the_cancel, ends("CANCELLED"),
              decided(("cancelled", "operator:operator")), _settled_in_the_stages_time),
    ),
    Scenario(
        name="cancel_of_what_nobody_holds",
        story=(
            "A died with a step in flight; its lease has not expired. The operator cancels, and"
            " nobody needs to wait the lease out: the run is over, and nobody recovers it."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            cancel r1
            spawn B
            run B
            expire
            run B
            heal
            drain
        """,
        requires=("killed: A", "cancel"),
        variant="run lease",
        also=(_released_with_the_run, _ends_with_the_cancel, says(
            "B", {"r1": "CANCELLED"}, {"r1": "CANCELLED"}
        )),
    ),
    Scenario(
        name="killed_during_the_cancelled_call",
        story=(
            "The operator cancels during A's call, and A dies before it can tell what came of it."
            " The run stays cancelled, and nobody holds it."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail after
            cancel r1
            kill A
            heal
            drain
        """,
        requires=("cancel", "killed: A"),
        variant="run lease",
        also=(_ends_with_the_cancel, ends("CANCELLED")),
    ),
)  # fmt: skip
