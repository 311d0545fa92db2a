"""What to do about a finding: for each title one sentence to a reader of the code under test.

Where a fence belongs is Kleppmann's advice (*How to do distributed locking*, 2016): where the write
lands, in the same transaction; not before it, where a pause can come between.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from .verdict import Finding

_FENCE: Final = "compare owner and fencing token in the statement that writes, and look at rowcount"
_EXPIRY: Final = "compare the stored expiry with the clock in the statement itself"
_STORE: Final = "give it a unique index, or a condition that the row is still empty"
_DECIDE: Final = "record the decision in one transaction with the claim's token, once per loss"
_ONCE: Final = "send one idempotency key for each step, the same at every attempt"
_DECLARED: Final = (
    "if none ought to, that state is an end or a rest which the subject does not declare: add it to"
    " `terminal` or `waiting` of its RunTable"
)

#: What the kit judges every history by. Any other name comes with somebody's own check.
INVARIANTS: Final = frozenset(f"V{number}" for number in range(1, 12))

#: Title -> advice.
ADVICE: Final = MappingProxyType(
    {
        "a stale write landed": f"{_FENCE}, in every write of a run, its results too",
        "a stale effect was accepted": "let whoever carries the effect out compare its token; and"
        f" {_ONCE}: what comes through before the new token was ever shown is then not done twice",
        "the window of a highest-seen fence": "show the provider the new token right after a claim",
        "a token was used twice": "increment the token in the statement that claims, nowhere else",
        "a token fell": "take the token from the run's own row, and keep it through every release",
        "a finished run was changed": "exclude terminal statuses in each update's condition",
        "the result was recorded twice": f"{_STORE}; {_FENCE}",
        "the effect ran twice": _ONCE,
        "an interruption was never reconciled": "after a claim, look for steps that were started",
        "an interruption was reconciled twice": _DECIDE,
        "an effect was retried unasked": "ask the provider about the key before asking again",
        "a lease outlived its run's end": "clear the lease in the commit that ends the run",
        "a resting run held a lease": "clear the lease in the commit that puts the run to rest",
        "a call left its lease behind": "release the lease on every way out, errors included",
        "a run stayed leased": "see that a lease can expire, and that somebody claims it then",
        "a run never finished": "see that a worker's claim finds runs in the state it was left in;"
        f" {_DECLARED}",
        "a run was lost": "keep a run's row until it has ended, and delete it in that commit",
        "a step stayed in flight": "finish or mark a run's steps in the commit that ends the run",
        "a lease grew with its renewals": "renew to now plus the TTL, not from the last expiry on",
        "an expired lease was renewed": f"{_EXPIRY}; a lapsed lease is claimed, not renewed",
        "another's lease was renewed": f"{_FENCE}, in the renewal as well",
        "a live lease was taken": f"{_EXPIRY}, for one's own name as for others'",
        "a lease was released by another": f"{_FENCE}, or, in a janitor, {_EXPIRY}",
        "a run was written without its lease": "claim a run before anything of it is written",
        "a late write": f"{_EXPIRY}, in writes as in claims",
        "a late start": "look at the lease right before the effect, and go by it",
        "an unchecked start": "look at the lease right before the effect",
        "lapsed in the gap": "no guard can close the gap before its commit; a fence holds",
        "a live owner lost its lease": "renew in a thread of its own, well within the TTL",
        "a count was wrong": "change the counter in the commit that takes or ends the lease",
        "one run id, two runs": "give the run's id a unique index",
        "one key, two runs": "give the key a unique index",
        "one key, two effects": "give the key a unique index, and answer from what is stored",
        "a row vanished": "look for what writes past SQLite's commits: copies, restores, journals",
        "a row came back": "look for what writes past SQLite's commits: copies, restores, journals",
        "a row changed without a commit": "look for writers that the kit does not see",
    }
)


def advice_on(findings: Iterable[Finding]) -> tuple[str, ...]:
    """What to do about these findings, one line for each title."""
    titles = dict.fromkeys(finding.title for finding in findings)
    return tuple(f"{title}: {ADVICE[title]}." for title in titles if title in ADVICE)


def whose(invariant: str) -> str:
    """What a name is that is none of the kit's invariants; empty for one that is."""
    if invariant in INVARIANTS:
        return ""
    return "none of V1 to V11: a check that comes with the scenario, or yours (a hook, or `also`)"
