"""What must hold, V1 to V11 (design section 8): pure functions from facts to findings.

Rules about runs are in `run_rules`, about leases in `lease_rules`, about effects and interrupted
steps in `effects_rules`, about owners at work in `live_owners`, about the end in `liveness`. A
finding is one sentence that a stranger understands, with the culprit, the victims, tokens and
tenures. What a subject does not claim is not judged, and `not_claimed` says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from . import effects_rules, lease_rules, liveness, run_rules
from .history import History
from .live_owners import live_owners
from .sentences import Facts, Rule
from .subject import Declaration
from .verdict import Finding

#: Every title that a finding may have, with what it stands for.
TITLES: Final[Mapping[str, str]] = {
    "a stale write landed": "a commit by an execution whose tenure was over changed the run",
    "a stale effect was accepted": "an effect was accepted from an execution whose tenure was over",
    "the window of a highest-seen fence": "a stale effect came before the new owner's first one",
    "a token was used twice": "two claims of one run have the same fencing token",
    "a token fell": "a claim has a lower fencing token than one before",
    "a finished run was changed": "a terminal state was left, or rewritten after a cancel",
    "the result was recorded twice": "a second result was stored over the first",
    "the effect ran twice": "the provider carried one effect out more than once",
    "an interruption was never reconciled": "no decision about an interrupted step was recorded",
    "an interruption was reconciled twice": "two decisions about one interruption were recorded",
    "an effect was retried unasked": "a lost request was made again with nobody having asked",
    "a lease outlived its run's end": "a finished run still names a holder",
    "a resting run held a lease": "a run that waits still names a holder",
    "a call left its lease behind": "a call returned, and its worker still holds a live lease",
    "a run stayed leased": "the end came, and a run still names a holder",
    "a run never finished": "the end came, nobody holds the run, and it isn't finished",
    "a run was lost": "a worker deleted a run's row before the run's end",
    "a step stayed in flight": "the end came, and a finished run has a step under way",
    "a lease grew with its renewals": "each renewal makes the lease longer than the one before",
    "an expired lease was renewed": "a holder extended its lease after it had lapsed",
    "another's lease was renewed": "an execution whose tenure was over extended or retook a lease",
    "a live lease was taken": "a lease was taken before its expiry",
    "a lease was released by another": "a live lease was ended by one who doesn't hold it",
    "a run was written without its lease": "a stranger wrote what only a run's holder may write",
    "a late write": "something was written, or finished, under a lapsed lease",
    "a late start": "an effect was started under a lapsed lease",
    "an unchecked start": "an effect was started with no look at the lease since it was lost",
    "lapsed in the gap": "the lease lapsed between a guard and its commit",
    "a live owner lost its lease": "a working owner's heartbeat let its lease lapse",
    "a count was wrong": "a counter differs from the number of holders, or leaves its bounds",
    "one run id, two runs": "a second row appeared for a run's id",
    "one key, two runs": "a second run was started by one idempotency key",
    "one key, two effects": "two effects were accepted under one idempotency key",
    "a row vanished": "a committed row was gone without a commit",
    "a row came back": "a deleted row was there again without a commit",
    "a row changed without a commit": "a row was no longer as it had been committed",
}


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "V1": (run_rules.stale_writes, effects_rules.stale_effects),
    "V2": (lease_rules.tokens,),
    "V3": (run_rules.terminal,),
    "V4": (
        effects_rules.reconciliations,
        effects_rules.ran_twice,
        effects_rules.ran_again_under_another_key,
        effects_rules.unasked,
    ),
    "V5": (run_rules.safety, run_rules.growth, lease_rules.left_behind),
    "V6": (lease_rules.renewals,),
    "V7": (
        lease_rules.takes,
        lease_rules.strangers_writes,
        lease_rules.late_writes,
        effects_rules.late_starts,
    ),
    "V8": (run_rules.counts,),
    "V9": (run_rules.twins, effects_rules.one_per_key),
    "V10": (lease_rules.skew,),
    "V11": (run_rules.committed,),
}


def findings_of(given: Facts, history: History, *, holds: Collection[str]) -> tuple[Finding, ...]:
    """Every finding of the invariants in `holds`, in the order of the events that decide them."""
    found: list[Finding] = []
    for name, rules in RULES.items():
        if name in holds:
            for rule in rules:
                found += rule(given)
    if "V5" in holds:
        found += liveness.at_the_end(given, history)
    if "V7" in holds:
        found += live_owners(given, history)
    return tuple(sorted(found, key=lambda one: (one.severity, one.at[-1] if one.at else 0)))


def not_claimed(declaration: Declaration, *, holds: Collection[str]) -> dict[str, str]:
    """Which invariants, or parts of them, are not judged for this subject, and why."""
    lease = declaration.runs.lease
    reasons = {
        "V2": None if lease.token else "no token column is declared",
        "V4": _v4(declaration),
        "V6": _v6(declaration),
        "V7": None
        if lease.expires_at is not None
        else "no expiry is declared: a live lease and a dead one look alike",
        "V8": None if declaration.counters else "no counters are declared",
        "V10": None if declaration.bears_skew_ms else "no skew is claimed to be borne",
    }
    return {name: why for name, why in reasons.items() if why and name in holds}


def _v4(declaration: Declaration) -> str | None:
    decides = (
        "reconciles" in declaration.capabilities
        and declaration.steps is not None
        and declaration.reconciliations is not None
    )
    if decides or declaration.delivery == "exactly-once":
        return None
    missing = "'reconciles' is not claimed"
    if "reconciles" in declaration.capabilities:
        missing = "'reconciles' is claimed, but steps or reconciliations are not declared"
    return f"{missing}, and effects are delivered at least once"


def _v6(declaration: Declaration) -> str | None:
    lease = declaration.runs.lease
    if lease.expires_at is None:
        return "no expiry is declared: there is nothing to renew"
    if not lease.token and not lease.generation:
        return (
            "neither token nor generation is declared: 'renewed its own expired lease' and"
            " 'claimed it again' look alike"
        )
    if "checks_expiry" not in declaration.capabilities:
        return "'checks_expiry' is not claimed: only renewals of another's lease are judged"
    return None
