"""Guards that can be taken out alone with nothing wrong coming of it: second walls, and why."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.reference import guards

from . import schedules as when
from . import schedules_claims as claims
from . import schedules_others as others
from .model import Equivalent, Schedule


def cancelled_at(point: str, *, name: str, what: str, subject: str = "Plain") -> Schedule:
    """An operator cancels the run while A is at a point."""
    text = f"""
        submit r1
        spawn A
        until A {point}
        cancel r1
        run A
        heal
        drain
    """
    return Schedule(
        name, f"An operator cancels the run while A is about to {what}.", text,
        ("cancel of A",), subject,
    )  # fmt: skip


CANCELLED_AT_ITS_START: Final = cancelled_at(
    when.AT_START, name="cancelled_before_its_start", what="start a tool call"
)
CANCELLED_AT_ITS_MODEL_CALL: Final = cancelled_at(
    when.AT_START, name="cancelled_before_its_model_call", what="reserve a model call",
    subject="ModelCalls",
)  # fmt: skip
CANCELLED_AT_ITS_PAUSE: Final = cancelled_at(
    when.AT_START, name="cancelled_before_its_pause", what="pause", subject="Approval"
)
CANCELLED_AT_ITS_EFFECT: Final = cancelled_at(
    "effect:charge before", name="cancelled_before_its_effect", what="apply an effect"
)
CANCELLED_AT_ITS_DECISION: Final = Schedule(
    "cancelled_before_its_decision",
    "An operator cancels the run while B is about to decide about an interrupted step.",
    """
    submit r1
    spawn A
    until A effect:charge before
    kill A
    expire
    spawn B
    until B txn:begin#2 before
    cancel r1
    run B
    heal
    drain
    """,
    ("interruption of A", "cancel of B"),
)
RESUMES_ITS_OWN_RUN: Final = Schedule(
    "resumes_its_own_run",
    "A's lease expires in a call, and within that call A resumes the run by the same driver.",
    """
    submit r1
    spawn A
    until A effect:charge after
    stop A
    expire
    cont A
    run A
    heal
    drain
    """,
    ("woke past expiry: A",),
    "Reentrant",
)

_STATUS: Final = (
    "A run that isn't running holds no lease, and every change of its status releases it in the"
    " same transaction; so the holder clause beside this one refuses whatever this one would."
)
_STEP: Final = (
    "The transaction has checked the holder of the run before, and since its claim nobody but the"
    " holder has changed the run's steps; a cancel, which may, releases the lease with it."
)


def _second_wall(name: str, why: str, *schedules: Schedule) -> Equivalent:
    return Equivalent(f"guards.{name}", {f"guards.{name}": "1"}, schedules, why)


def _all_holders(clause: str) -> dict[str, object]:
    return {f"guards.{name}": clause for name in vars(guards) if name.endswith("_HOLDER")}


EQUIVALENT: Final[tuple[Equivalent, ...]] = (
    _second_wall("TOOL_START_STATUS", _STATUS, CANCELLED_AT_ITS_START),
    _second_wall("MODEL_START_STATUS", _STATUS, CANCELLED_AT_ITS_MODEL_CALL),
    _second_wall("OUTCOME_STATUS", _STATUS, others.CANCELLED_IN_A_CALL),
    _second_wall("FINISH_STATUS", _STATUS, others.CANCELLED_BEFORE_ITS_END),
    _second_wall("PAUSE_STATUS", _STATUS, CANCELLED_AT_ITS_PAUSE),
    _second_wall("RECONCILE_STATUS", _STATUS, CANCELLED_AT_ITS_DECISION),
    _second_wall("EFFECT_STATUS", _STATUS, CANCELLED_AT_ITS_EFFECT),
    _second_wall("STEP_START", _STEP, when.WAKES_AT_START, CANCELLED_AT_ITS_START),
    _second_wall("OUTCOME_STEP", _STEP, when.WAKES_WITH_AN_OUTCOME, others.CANCELLED_IN_A_CALL),
    _second_wall("RECONCILE_STEP", _STEP, when.DECIDED_ALREADY, CANCELLED_AT_ITS_DECISION),
    _second_wall(
        "RESUME_STEP",
        "Of two who resume a waiting run, one wins the compare-and-set on the run's revision in"
        " the same transaction, and nothing changes a waiting run's steps without a new revision.",
        claims.TWO_RESUME,
    ),
    _second_wall(
        "LATE_STEP",
        "The step of a call that is under way is executing until the cancel, which makes it"
        " cancelled in the transaction that makes the run so; and a call has one outcome.",
        others.CANCELLED_IN_A_CALL,
        others.CANCELLED_UNDER_ANOTHER,
    ),
    Equivalent(
        "owner without a token",
        _all_holders("lease_owner = :owner"),
        (when.WAKES_AT_START, when.STALE_BEAT, when.WAKES_WITH_AN_OUTCOME, claims.TWIN),
        "No two drivers ever share an owner, because of the suffix, and a driver that has lost a"
        " run refuses a second call for it; so the owner alone tells claims apart. With the"
        " configured name as the owner it does not: that is a mutant.",
    ),
    Equivalent(
        "token without an owner",
        _all_holders("fencing_token = :token"),
        (when.WAKES_AT_START, when.STALE_BEAT, when.WAKES_WITH_AN_OUTCOME),
        "The token grows at every change of ownership, so it alone tells claims apart. A release"
        " keeps it, so after its own release a call could write again, but it has returned.",
    ),
    Equivalent(
        "driver.owner_identity",
        {"driver.owner_identity": lambda name, suffix: name},
        (claims.TWIN, claims.TWIN_BEATS, when.told("two_under_one_name")),
        "Every guard compares the token too, and a live lease is refused whoever asks; the suffix"
        " is the second wall. Without the token it is the only one: that is a mutant.",
    ),
    Equivalent(
        "driver.Driver.executes",
        {"driver.Driver.executes": lambda self, run_id: False},
        (RESUMES_ITS_OWN_RUN,),
        "While the lease is live, a second call is refused by it. When it has expired, the second"
        " call takes the run over under a new token like any other process, and the first one is"
        " fenced like any other loser. What the guard saves is a process that works against"
        " itself; its unit test shows that.",
    ),
    Equivalent(
        "take-over only after the expiry",
        {"guards.TAKE_OVER_EXPIRED": "(lease_owner IS NULL OR lease_expires_at_ms < :now_ms)"},
        (others.AT_THE_VERY_EXPIRY, when.WAKES_AT_START),
        "At the very instant of its expiry the lease is then nobody's: its holder may not go on,"
        " and no rival may take it. A take-over comes a millisecond later. The other way round,"
        " where it is both's, is a mutant.",
    ),
)
