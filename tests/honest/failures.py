"""Failures by name: who plays what, and which title it must have. Twins are failures, too."""

from __future__ import annotations

from typing import Final

from .catalogue import CASES
from .model import Honest


def _wrong(name: str, subject: str, text: str, title: str) -> Honest:
    return Honest(name, "", f"programs_wrong:{subject}", text, (), "", "", title)


_TAKEN: Final = "until A working; expire; spawn B; until B working; run A; heal"
_TWINS: Final = (
    "crosses its expiry", "renewal with its time bound", "owner cleared, then done",
    "done, then owner cleared", "former owner, new process", "reaper requeues",
    "operator edits and cancels", "reads and gives up", "done as done", "two drivers",
    "recovery killed, decided again", "finished jobs are deleted", "foreign keys",
)  # fmt: skip

FAILURES: Final = (
    *(case for case in CASES if case.name in _TWINS),
    _wrong("same token", "Wrong", "submit a; spawn A to same_token; until A working; expire;"
           " spawn B to same_token; run B", "a token was used twice"),
    _wrong("lower token", "Wrong", "submit a; spawn A to lower_token; until A working; expire;"
           " spawn B to lower_token; run B", "a token fell"),
    _wrong("waits with a lease", "Wrong", "submit a; spawn A to waits_with_lease; run A",
           "a resting run held a lease"),
    _wrong("leased for good", "Wrong", "submit a; spawn A to leases_for_good; until A working;"
           " kill A; drain 2", "a run stayed leased"),
    _wrong("stuck", "Wrong", "submit a; spawn A to gets_stuck; run A; drain 2",
           "a run never finished"),
    _wrong("renews another's", "Wrong", f"submit a; spawn A to renews_anothers; {_TAKEN}",
           "another's lease was renewed"),
    _wrong("adds up", "Wrong", "submit a; spawn A to adds_up; run A",
           "a lease grew with its renewals"),
    _wrong("starts late", "Wrong", "submit a; spawn A to starts_late; until A working; expire;"
           " run A", "a late start"),
    _wrong("robs", "Wrong", "submit a; spawn A to works_slowly; until A working; spawn B to robs;"
           " run B; run A", "a live lease was taken"),
    _wrong("window", "WindowOpen", "submit a; spawn A to asks_late; until A effect:send before;"
           " expire; spawn B; until B working; run A; run B", "the window of a highest-seen fence"),
    _wrong("no fence", "NoFence", "submit a; spawn A to asks_late; until A effect:send before;"
           " expire; spawn B; until B working; run A; run B", "a stale effect was accepted"),
    _wrong("no heartbeat", "Beating", "submit a; spawn A to works_slowly; until A working;"
           " advance 10s; advance 40s", "a live owner lost its lease"),
    _wrong("left behind", "Beating", "submit a; spawn A to comes_back; run A",
           "a call left its lease behind"),
    _wrong("unchecked", "Beating", "submit a; spawn A to goes_on; until A working; expire; run A",
           "an unchecked start"),
    _wrong("skew", "Skewed", "submit a; spawn A to works_slowly; until A working; spawn B;"
           " skew B +31s; run B; run A", "a live lease was taken"),
    _wrong("counts", "Counting", "submit a; submit b; spawn A to counts_up; run A; run A",
           "a count was wrong"),
    _wrong("no key", "WrongSteps", "submit a; spawn A to without_key; until A effect:send after;"
           " kill A; expire; spawn B to without_key; run B", "the effect ran twice"),
    _wrong("unasked", "WrongSteps", "submit a; spawn A; until A effect:send after; kill A; expire;"
           " spawn B; run B", "an effect was retried unasked"),
    _wrong("undecided", "WrongSteps", "submit a; spawn A; until A effect:send after; kill A;"
           " expire; spawn B to decides_not; run B; drain",
           "an interruption was never reconciled"),
    _wrong("left step", "WrongSteps", "submit a; spawn A to leaves_step; run A; drain",
           "a step stayed in flight"),
    _wrong("stores over", "WrongSteps", "submit a; spawn A to stores_over; until A working; expire;"
           " spawn B; run B; run A", "the result was recorded twice"),
    _wrong("stores twice", "WrongSteps", "submit a; spawn A to stores_twice; run A",
           "one key, two effects"),
    _wrong("stores stale", "WrongSteps", "submit a; spawn A to stores_stale; until A working;"
           " expire; spawn B to stores_stale; until B working; run A; run B",
           "a stale effect was accepted"),
)  # fmt: skip
