"""The schedules that mutants are played on. Each passes on the true reference runtime.

In the reference's first life a worker's transactions are: 1 the claim or take-over, 2 the start of
the charge (of a take-over: the decision about it), then the charge itself, its outcome, the same
two for the mail, and the end.
"""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.scenarios import classic, owners, repeats
from pytest_leasecheck.testkit.scenario import Scenario

from .model import Schedule
from .subjects import Plain

CLASSIC: Final = {
    one.name: one for one in (*classic.SCENARIOS, *owners.SCENARIOS, *repeats.SCENARIOS)
}


def told(name: str, subject: str = "Plain") -> Schedule:
    """A scenario of the suite as a schedule."""
    scenario: Scenario = CLASSIC[name]
    return Schedule(
        name, scenario.story, str(scenario.script_for(Plain())), tuple(scenario.requires), subject
    )


def overtaken(
    point: str, *, name: str, story: str, rival: str = "", subject: str = "Plain",
    requires: tuple[str, ...] = (),
) -> Schedule:  # fmt: skip
    """A is held at a point and loses its run to B, who is held too; then A goes on, then B."""
    text = f"""
        submit r1
        spawn A
        until A {point}
        stop A
        expire
        spawn B
        until B {rival or point}
        cont A
        run A
        run B
        heal
        drain
    """
    needs = ("take-over by B", "stale attempt by A", *requires)
    return Schedule(name, story, text, needs, subject)


def lapsed(
    point: str, *, name: str, story: str, subject: str = "Plain", then: str = "run A"
) -> Schedule:
    """A is held at a point past its own expiry, and goes on with nobody having taken the run."""
    text = f"""
        submit r1
        spawn A
        until A {point}
        stop A
        expire
        cont A
        {then}
        heal
        drain
    """
    return Schedule(name, story, text, ("woke past expiry: A",), subject)


AT_START: Final = "txn:begin#2 before"

WAKES_AT_START = overtaken(
    AT_START, name="wakes_before_its_start",
    story="A is frozen before it records the start of a tool call, and wakes up while B holds.",
)  # fmt: skip
LAPSED_AT_START = lapsed(
    AT_START, name="lapsed_before_its_start",
    story="A is frozen past its expiry before it records the start of a tool call.",
)  # fmt: skip
MODEL_WAKES_AT_START = overtaken(
    AT_START, name="wakes_before_its_model_call", subject="ModelCalls",
    story="A is frozen before it reserves a model call, and wakes up while B holds.",
)  # fmt: skip
MODEL_LAPSED_AT_START = lapsed(
    AT_START, name="lapsed_before_its_model_call", subject="ModelCalls",
    story="A is frozen past its expiry before it reserves a model call.",
)  # fmt: skip
WAKES_BEFORE_ITS_EFFECT = told("wakes_while_the_new_owner_holds")
LAPSED_BEFORE_ITS_EFFECT = told("frozen_past_expiry_with_no_rival")
WAKES_AFTER_ITS_EFFECT = told("wakes_after_its_effect")
WAKES_WITH_AN_OUTCOME = overtaken(
    "effect:charge after", rival="effect:charge before", name="wakes_with_an_outcome",
    story="A's call has returned; B has taken over and is retrying the same call.",
    subject="Retrying",
)  # fmt: skip
AT_ITS_END: Final = "txn:begin#7 before"
WAKES_AT_ITS_END = overtaken(
    AT_ITS_END, rival=AT_START, name="wakes_before_its_end",
    story="A is frozen before it finishes the run; B has taken over and is about to finish it.",
)  # fmt: skip
LAPSED_AT_ITS_END = lapsed(
    AT_ITS_END, name="lapsed_before_its_end",
    story="A is frozen past its expiry before it finishes the run.",
)  # fmt: skip
WAKES_AT_ITS_PAUSE = overtaken(
    AT_START, name="wakes_before_its_pause", subject="Approval",
    story="A is frozen before it pauses the run for an approval; B has taken over.",
)  # fmt: skip
LAPSED_AT_ITS_PAUSE = lapsed(
    AT_START, name="lapsed_before_its_pause", subject="Approval",
    story="A is frozen past its expiry before it pauses the run for an approval.",
)  # fmt: skip

STALE_RECONCILER = Schedule(
    "stale_reconciler",
    "A was killed in a call. B takes over, and freezes before it records its decision; C takes"
    " over and is about to decide. B wakes up.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    expire
    spawn B
    until B txn:begin#2 before
    stop B
    expire
    spawn C
    until C txn:begin#2 before
    cont B
    run B
    run C
    heal
    drain
    """,
    ("take-over by C", "interruption of A", "stale write attempt by B"),
)
DECIDED_ALREADY = Schedule(
    "decided_already",
    "Two recoverers about one interrupted step: B freezes before it decides, C decides and"
    " retries. B wakes up and decides again.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    expire
    spawn B
    until B txn:begin#2 before
    stop B
    expire
    spawn C
    until C effect:charge before
    cont B
    run B
    run C
    heal
    drain
    """,
    ("take-over by C", "interruption of A", "stale write attempt by B"),
)
LAPSED_RECONCILER = Schedule(
    "lapsed_reconciler",
    "A was killed in a call. B takes over and freezes past its own expiry before it decides.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    expire
    spawn B
    until B txn:begin#2 before
    stop B
    expire
    cont B
    run B
    heal
    drain
    """,
    ("interruption of A", "woke past expiry: B"),
)

# --- the heartbeat ---------------------------------------------------------------------------

STALE_BEAT = Schedule(
    "stale_beat",
    "A loses its run to B; then A's heartbeat is due.",
    """
    submit r1
    spawn A
    until A effect:charge before
    stop A
    expire
    spawn B
    until B effect:charge before
    advance 5s
    cont A
    beat A
    run A
    run B
    heal
    drain
    """,
    ("take-over by B", "stale write attempt by A"),
)
HELD_IN_ITS_BEAT = Schedule(
    "held_in_its_beat",
    "A's heartbeat has begun and is held; B takes over; the heartbeat goes on.",
    """
    submit r1
    spawn A
    until A effect:charge before
    hold A heartbeat before
    beat A
    stop A
    expire
    spawn B
    until B effect:charge before
    cont A
    run A
    run B
    heal
    drain
    """,
    ("take-over by B", "stale write attempt by A"),
)
HELD_BETWEEN_LOOK_AND_WRITE = Schedule(
    "held_between_look_and_write",
    "A's heartbeat is held right before its UPDATE; B takes over; the heartbeat goes on.",
    """
    submit r1
    spawn A
    until A effect:charge before
    hold A sql:UPDATE runs before
    beat A
    stop A
    expire
    spawn B
    until B effect:charge before
    cont A
    run A
    run B
    heal
    drain
    """,
    ("take-over by B", "stale write attempt by A"),
)
LATE_BEAT = lapsed(
    "effect:charge before", name="late_beat", then="beat A",
    story="A's lease expires and nobody takes the run; then A's heartbeat is due.",
)  # fmt: skip
BEATS_AND_DIES = Schedule(
    "beats_and_dies",
    "A renews its lease several times and is killed: its run is free again a lease later.",
    """
    submit r1
    spawn A
    until A effect:charge before
    beat A
    beat A
    beat A
    kill A
    expire
    spawn B
    run B
    heal
    drain
    """,
    ("renewal by A", "killed: A", "take-over by B"),
)
BUSY_OWNER = told("busy_owner_keeps_its_run")
BUSY_OWNER_HOLDS_THE_CONNECTION = Schedule(
    "busy_owner_holds_the_connection",
    "A's tool keeps the store's only connection to itself for longer than a lease lasts.",
    """
    submit r1
    spawn A
    until A effect:charge before
    advance 15s
    advance 15s
    advance 15s
    spawn B
    run B
    run A
    heal
    drain
    """,
    ("effect by A", "refused claim by B"),
    "HeldConnection",
)
BUSY_OWNER_BESIDE_A_READER = Schedule(
    "busy_owner_beside_a_reader",
    "A is in a call for longer than its lease lasts; B rests on a read, which hinders nobody.",
    """
    submit r1
    spawn A
    until A effect:mail before
    spawn B
    until B sql:SELECT runs before
    advance 15s
    advance 15s
    advance 15s
    run B
    run A
    heal
    drain
    """,
    ("renewal by A", "effect by A"),
)
ONE_BUSY_BEAT = Schedule(
    "one_busy_beat",
    "A's first heartbeat finds the database locked for longer than it waits; then it is free.",
    """
    submit r1
    spawn A
    until A effect:charge before
    lock
    advance 15s
    unlock
    advance 4s
    advance 15s
    spawn B
    run B
    run A
    heal
    drain
    """,
    ("lock held", "renewal by A", "refused claim by B"),
)
