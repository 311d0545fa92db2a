"""Schedules about claims, take-overs, releases and tokens."""

from __future__ import annotations

from .model import Schedule
from .schedules import told

LOSER_RETURNS = told("wakes_while_the_new_owner_holds")
KILLED = told("killed_before_its_effect")
TWIN = told("twin_takes_over")

TWIN_BEATS = Schedule(
    "twin_beats",
    "Two processes have one configured name. The second has taken over; the first one's heartbeat"
    " is due.",
    """
    submit r1
    spawn A as worker
    until A effect:charge before
    stop A
    expire
    duplicate A as B
    until B effect:charge before
    advance 5s
    cont A
    beat A
    run A
    run B
    heal
    drain
    """,
    ("two alive under one name", "take-over by B", "stale write attempt by A"),
)
KILLED_AFTER_ITS_DECISION = Schedule(
    "killed_after_its_decision",
    "A was killed in a call; B takes over, begins to settle it, and is killed after its next"
    " commit. C takes over.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    expire
    spawn B
    until B txn:commit#2 after
    kill B
    expire
    spawn C
    run C
    heal
    drain
    """,
    ("interruption of A", "killed: B", "take-over by C"),
)
FAILS_AND_RELEASES = Schedule(
    "fails_and_releases",
    "A's call fails with nothing done; A returns and gives the run back. B goes on at once.",
    """
    submit r1
    spawn A
    provider fail mail
    run A
    spawn B
    run B
    heal
    drain
    """,
    ("release by A", "claim by B"),
)
TWO_START = Schedule(
    "two_start",
    "A and B both find the queued run; B claims it while A is still about to.",
    """
    submit r1
    spawn A
    until A txn:begin#1 before
    spawn B
    until B effect:charge before
    run A
    run B
    heal
    drain
    """,
    ("claim by B", "refused claim by A"),
)
TWO_TAKE_OVER = Schedule(
    "two_take_over",
    "A is dead. B and C both find its lease expired; C takes over while B is still about to.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    expire
    spawn B
    until B txn:begin#1 before
    spawn C
    until C effect:charge before
    run B
    run C
    heal
    drain
    """,
    ("take-over by C", "refused claim by B"),
)
ENDED_BEFORE_THE_TAKE_OVER = Schedule(
    "ended_before_the_take_over",
    "A is dead. B finds its lease expired; before B takes over, an operator cancels the run.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    expire
    spawn B
    until B txn:begin#1 before
    cancel r1
    run B
    heal
    drain
    """,
    ("killed: A", "cancel of A"),
)
TWO_RESUME = Schedule(
    "two_resume",
    "A run waits for an approval. B and C both have one; C resumes while B is still about to.",
    """
    submit r1
    spawn A
    run A
    spawn B
    until B txn:begin#1 before
    spawn C
    until C effect:charge before
    run B
    run C
    heal
    drain
    """,
    ("claim by C", "refused claim by B"),
    "Approval",
)
STALLED_BEFORE_ITS_CALL = Schedule(
    "stalled_before_its_call",
    "A has recorded the start of a call, and freezes before it makes it. B takes over.",
    """
    submit r1
    spawn A
    until A txn:commit#2 after
    stop A
    expire
    spawn B
    until B txn:begin#2 before
    cont A
    run A
    run B
    heal
    drain
    """,
    ("take-over by B", "stale attempt by A"),
)
ANSWER_LOST = Schedule(
    "killed_with_the_answer",
    "The provider has carried out A's request, and A is killed before it can record that. B must"
    " ask the provider before it does anything about it.",
    """
    submit r1
    spawn A
    until A effect:mail after
    kill A
    expire
    spawn B
    run B
    heal
    drain
    """,
    ("killed: A", "interruption of A", "effect by A"),
)
ID_USED_AGAIN = Schedule(
    "id_used_again",
    "A run is finished, deleted, and submitted again under its old id.",
    """
    submit r1
    spawn A
    run A
    submit r1
    spawn B
    run B
    heal
    drain
    """,
    ("claim by A", "claim by B"),
    "UsedAgain",
)
ID_STARTED_AGAIN = Schedule(
    "id_started_again",
    "A run is finished and deleted, and B starts another one under its id.",
    """
    submit r1
    spawn A
    run A
    submit r1
    spawn B to start
    run B
    heal
    drain
    """,
    ("claim by A", "claim by B"),
    "Forgotten",
)
RESTORED = Schedule(
    "restored",
    "A is killed with the run; a backup from before it is restored, and B starts the run.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    approve r1
    spawn B
    run B
    heal
    drain
    """,
    ("claim by A", "killed: A", "claim by B"),
    "Restored",
)
