"""More schedules: claims and take-overs, tokens, operators, slots, keys, clocks."""

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
OLD_AND_ALIVE = Schedule(
    "old_and_alive",
    "A is a process of the version before the lease, alive and in a call. B opens the file with"
    " the present version, which migrates it.",
    """
    spawn A to work_old
    until A effect:mail before
    spawn B
    run B
    run A
    expire
    run B
    heal
    drain
    """,
    ("effect by A", "claim by B", "finish by B"),
    "OldFile",
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
CANCELLED_AFTER_ITS_END = Schedule(
    "cancelled_after_its_end",
    "A has finished the run; then an operator cancels it.",
    """
    submit r1
    spawn A
    run A
    cancel r1
    heal
    drain
    """,
    ("finish by A",),
)
CANCELLED_IN_A_CALL = Schedule(
    "cancelled_in_a_call",
    "An operator cancels the run while A is in a call; A's outcome comes late.",
    """
    submit r1
    spawn A
    until A effect:charge after
    cancel r1
    run A
    heal
    drain
    """,
    ("cancel of A",),
)
CANCELLED_BEFORE_ITS_END = Schedule(
    "cancelled_before_its_end",
    "An operator cancels the run while A is about to finish it.",
    """
    submit r1
    spawn A
    until A txn:begin#7 before
    cancel r1
    run A
    heal
    drain
    """,
    ("cancel of A",),
)
CANCELLED_UNDER_ANOTHER = Schedule(
    "cancelled_under_another",
    "A loses its run in a call; an operator cancels it under B; then A's outcome comes.",
    """
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
    ("take-over by B", "cancel of B", "stale attempt by A"),
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
TWO_IN_ONE_TOOL = Schedule(
    "two_in_one_tool",
    "At most one run may be in a tool; A is in it with one run, B comes with another.",
    """
    submit r1
    spawn A
    until A effect:charge before
    submit r2
    spawn B
    run B
    run A
    heal
    drain
    """,
    ("effect by A", "claim by B"),
    "Slots",
)
SLOT_AFTER_A_CANCEL = Schedule(
    "slot_after_a_cancel",
    "An operator cancels a run whose call holds a tool's only slot; then the call returns.",
    """
    submit r1
    spawn A
    until A effect:charge after
    cancel r1
    run A
    heal
    drain
    """,
    ("cancel of A", "effect by A"),
    "Slots",
)
SLOT_AFTER_A_TAKE_OVER = Schedule(
    "slot_after_a_take_over",
    "A is taken for dead, and its slot is given back; A is alive, and finishes its call too.",
    """
    submit r1
    spawn A
    until A effect:charge after
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
    "Slots",
)
TWO_START_ONE_ID = Schedule(
    "two_start_one_id",
    "A and B both start a run under one id; A is in a call when B comes.",
    """
    spawn A
    until A effect:charge before
    spawn B
    run B
    run A
    heal
    drain
    """,
    ("claim by A",),
    "Starting",
)
TWO_START_ONE_KEY = Schedule(
    "two_start_one_key",
    "A and B start runs of their own ids by one key; A is in a call when B comes.",
    """
    spawn A
    until A effect:charge before
    spawn B
    run B
    run A
    heal
    drain
    """,
    ("claim by A",),
    "StartingByKey",
)
REAPED_WHILE_IT_FINISHES = Schedule(
    "reaped_while_it_finishes",
    "A janitor finds A's lease expired; before it writes, A's run is taken over and finished.",
    """
    submit r1
    spawn A
    until A effect:charge before
    stop A
    expire
    spawn J to reap
    until J sql:UPDATE runs before
    spawn B
    run B
    run J
    cont A
    heal
    drain
    """,
    ("take-over by B", "finish by B"),
    "Janitor",
)
REAPED_WHILE_CLAIMED = Schedule(
    "reaped_while_claimed",
    "A janitor finds A's lease expired; before it writes, B has taken the run over.",
    """
    submit r1
    spawn A
    until A effect:charge before
    stop A
    expire
    spawn J to reap
    until J sql:UPDATE runs before
    spawn B
    until B effect:charge before
    run J
    run B
    cont A
    heal
    drain
    """,
    ("take-over by B",),
    "Janitor",
)
AT_THE_VERY_EXPIRY = Schedule(
    "at_the_very_expiry",
    "A acts at the very instant at which its lease expires; at the same instant B takes over.",
    """
    submit r1
    spawn A
    until A txn:begin#2 before
    stop A
    advance 30s
    cont A
    until A txn:commit#2 after
    spawn B
    run B
    run A
    heal
    drain
    """,
    ("claim by B",),
)
LIVE_LEASE = told("two_under_one_name")
CLOCK_AHEAD = Schedule(
    "clock_ahead",
    "B's clock runs ahead of A's by less than the runtime says it bears. A renews in time.",
    """
    submit r1
    spawn A
    until A effect:charge before
    beat A
    spawn B
    skew B +15s
    run B
    run A
    heal
    drain
    """,
    ("renewal by A", "refused claim by B"),
    "Skewed",
)
