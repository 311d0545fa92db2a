"""Each guard of the reference runtime taken out, one at a time."""

from __future__ import annotations

from typing import Any, Final

from pytest_leasecheck.testkit.reference import tools

from . import schedules as when
from . import schedules_claims as claims
from . import schedules_others as others
from .model import Mutant, Schedule

GONE: Final = "1"
STALE: Final = frozenset({"V1"})


def guard(
    name: str, schedule: Schedule, invariants: set[str], title: str, *, fault: str,
    value: object = GONE, culprit: str = "A#1", seen_in: str = "",
) -> Mutant:  # fmt: skip
    """A mutant in which one name of the reference stands for something else."""
    return Mutant(
        name, fault, {name: value}, schedule, frozenset(invariants), title, culprit, seen_in
    )


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Does nothing instead."""


def _not_applied(tool: tools.Tool, step: Any) -> tools.Answer:
    """Assumes instead of asking."""
    return tools.NotFound()


STARTS: Final = (
    guard("guards.TOOL_START_HOLDER", when.WAKES_AT_START, {"V1"}, "a stale write landed",
          fault="The start of a tool call is recorded whoever holds the run."),
    guard("guards.TOOL_START_UNEXPIRED", when.LAPSED_AT_START, {"V7"}, "a late write",
          fault="The start of a tool call is recorded under an expired lease.",
          seen_in="seed 2, What happens to a tool call when the lease is lost"),
    guard("guards.MODEL_START_HOLDER", when.MODEL_WAKES_AT_START, {"V1"}, "a stale write landed",
          fault="A model call is reserved whoever holds the run."),
    guard("guards.MODEL_START_UNEXPIRED", when.MODEL_LAPSED_AT_START, {"V7"}, "a late write",
          fault="A model call is reserved under an expired lease.",
          seen_in="seed 2, What happens to a tool call when the lease is lost"),
    guard("driver.validate_before_effect", claims.STALLED_BEFORE_ITS_CALL, {"V7"},
          "an unchecked start", value=_nothing,
          fault="The lease is not looked at again immediately before a call.",
          seen_in="seed 1, Renew before you execute"),
)  # fmt: skip

WRITES: Final = (
    guard("guards.OUTCOME_HOLDER", when.WAKES_WITH_AN_OUTCOME, {"V1"}, "a stale write landed",
          fault="A call's outcome is recorded whoever holds the run.",
          seen_in="seed 2, What happens to a tool call when the lease is lost"),
    guard("guards.FINISH_HOLDER", when.WAKES_AT_ITS_END, {"V1"}, "a stale write landed",
          fault="A run is finished whoever holds it."),
    guard("guards.FINISH_UNEXPIRED", when.LAPSED_AT_ITS_END, {"V7"}, "a late write",
          fault="A run is finished under an expired lease."),
    guard("guards.PAUSE_HOLDER", when.WAKES_AT_ITS_PAUSE, {"V1"}, "a stale write landed",
          fault="A run is paused whoever holds it."),
    guard("guards.PAUSE_UNEXPIRED", when.LAPSED_AT_ITS_PAUSE, {"V7"}, "a late write",
          fault="A run is paused under an expired lease."),
    guard("guards.RECONCILE_HOLDER", when.STALE_RECONCILER, {"V1", "V4"}, "a stale write landed",
          fault="An interrupted step is decided about whoever holds the run.", culprit="B#1"),
    guard("guards.RECONCILE_UNEXPIRED", when.LAPSED_RECONCILER, {"V7"}, "a late write",
          fault="An interrupted step is decided about under an expired lease.", culprit="B#1"),
    guard("guards.EFFECT_HOLDER", when.WAKES_BEFORE_ITS_EFFECT, {"V1"},
          "a stale effect was accepted",
          fault="The effect store accepts an effect whoever holds the run.",
          seen_in="seed 1, Renew before you execute"),
    guard("guards.EFFECT_UNEXPIRED", when.LAPSED_BEFORE_ITS_EFFECT, {"V7"}, "a late write",
          fault="The effect store accepts an effect under an expired lease."),
    guard("guards.LATE_RUN", others.CANCELLED_UNDER_ANOTHER, {"V1"}, "a stale write landed",
          fault="A late outcome is appended to any run, also by one who had lost it before.",
          seen_in="seed 2, What happens to a tool call when the lease is lost"),
)  # fmt: skip

LEASES: Final = (
    guard("guards.RENEW_HOLDER", when.STALE_BEAT, {"V6"}, "another's lease was renewed",
          fault="The heartbeat renews the lease of whoever holds the run."),
    guard("guards.RENEW_UNEXPIRED", when.LATE_BEAT, {"V6"}, "an expired lease was renewed",
          fault="The heartbeat renews an expired lease."),
    guard("guards.RENEW_EXPIRY", when.BEATS_AND_DIES, {"V5"}, "a lease grew with its renewals",
          fault="A renewal adds a TTL to the expiry, not to the time.",
          value="lease_expires_at_ms + :ttl_ms"),
    guard("guards.RELEASE_HOLDER", claims.LOSER_RETURNS, {"V1", "V5", "V6"},
          "a stale write landed",
          fault="A call that returns releases the lease of whoever holds the run."),
    guard("driver.release_lease", claims.FAILS_AND_RELEASES, {"V5"}, "a call left its lease behind",
          fault="A call that returns keeps its lease until it expires.", value=_nothing,
          seen_in="seed 2, When it is released"),
    Mutant("guards.RELEASED (owner)", "A run that ends or rests keeps its lease.",
           {"guards.RELEASED": "lease_owner = lease_owner"}, others.CANCELLED_AFTER_ITS_END,
           frozenset({"V5"}), "a lease outlived its run's end", seen_in="seed 2, What it is"),
    guard("guards.CLAIM_QUEUED", claims.TWO_START, {"V7"}, "a live lease was taken",
          fault="A queued run is claimed without looking whether it still is queued."),
    guard("guards.TAKE_OVER_STATUS", claims.ENDED_BEFORE_THE_TAKE_OVER, {"V3", "V5"},
          "a lease outlived its run's end", culprit="B#1",
          fault="A run is taken over without looking whether it still is running."),
    guard("guards.TAKE_OVER_EXPIRED", claims.TWO_TAKE_OVER, {"V7"}, "a live lease was taken",
          fault="A run is taken over without looking whether its lease still is expired.",
          culprit="B#1"),
    guard("guards.RESUME_WAITING", claims.TWO_RESUME, {"V7"}, "a live lease was taken",
          fault="A waiting run is resumed without looking whether it still waits.",
          culprit="B#1", seen_in="seed 2, When it is taken"),
    guard("resume.interrupt_steps", claims.KILLED, {"V4", "V5"},
          "an interruption was never reconciled", culprit="B#1", value=_nothing,
          fault="A take-over does not mark the steps in flight as interrupted.",
          seen_in="seed 2, When it is taken"),
    guard("resume.ask", claims.ANSWER_LOST, {"V4"}, "an effect was retried unasked",
          fault="A recovery assumes that an interrupted call was not applied.",
          value=_not_applied, culprit="B#1", seen_in="seed 1, Separate liveness from ownership"),
)  # fmt: skip

TOKENS: Final = (
    guard("guards.RELEASED", claims.FAILS_AND_RELEASES, {"V2"}, "a token was used twice",
          fault="A release takes the token back too.", culprit="B#1",
          value="lease_owner = NULL, lease_expires_at_ms = NULL, fencing_token = 0"),
    guard("guards.NEXT_TOKEN", claims.KILLED, {"V2"}, "a token was used twice",
          fault="A take-over keeps the token.", value="fencing_token", culprit="B#1",
          seen_in="seed 1, The lease contract"),
    guard("guards.FIRST_TOKEN", claims.ID_STARTED_AGAIN, {"V2"}, "a token was used twice",
          fault="The first token of a run is 1, whatever its id has seen.", value="1",
          culprit="B#1"),
    guard("guards.RETIRED_TOKEN", claims.ID_USED_AGAIN, {"V2"}, "a token was used twice",
          fault="A deleted run leaves no token behind.", value="0", culprit="B#1"),
    guard("guards.TOKEN_FLOOR", claims.RESTORED, {"V2"}, "a token was used twice",
          fault="A restored backup issues its tokens again.", value="0", culprit="B#1",
          seen_in="seed 1, Run-lease checklist"),
)  # fmt: skip

OTHERS: Final = (
    guard("guards.CANCEL_STATUS", others.CANCELLED_AFTER_ITS_END, {"V3"},
          "a finished run was changed", culprit="operator",
          fault="An operator's cancel rewrites the end of a finished run."),
    guard("guards.SLOT_FREE", others.TWO_IN_ONE_TOOL, {"V8"}, "a count was wrong",
          fault="A tool's slot is taken without looking whether one is free.", culprit="B#1"),
    guard("guards.SLOT_HELD", others.SLOT_AFTER_A_CANCEL, {"V8"}, "a count was wrong",
          fault="A tool's slot is given back without looking whether the step has one."),
    guard("guards.INSERT_RUN", others.TWO_START_ONE_ID, {"V7", "V9"}, "a live lease was taken",
          fault="A second start under one id replaces the run.", culprit="B#1",
          value="INSERT OR REPLACE INTO runs"),
)  # fmt: skip

GUARDS: Final = (*STARTS, *WRITES, *LEASES, *TOKENS, *OTHERS)
