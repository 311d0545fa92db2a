"""Schedules about operators, janitors, slots, keys, clocks and old files."""

from __future__ import annotations

from .model import Schedule
from .schedules import told

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
