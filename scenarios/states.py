"""The five states that a mere timeout blurs: each told apart, where a real process meets it."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.scenario import Scenario

from .looking import says

_WORKING: Final = "LEASE_VALID PROCESS_ALIVE"

SCENARIOS: Final = (
    Scenario(
        name="alive_and_entitled",
        story=(
            "A works undisturbed. While its call is in flight it is alive and its lease is valid;"
            " what will come of the call is not known yet, but who will tell is. When the run has"
            " ended A has lost nothing."
        ),
        script="""
            submit r1
            spawn A to tell_states
            run A
            heal
            drain
        """,
        requires=("finish by A",),
        variant="run lease",
        also=(says("A", [_WORKING, _WORKING, "SUCCEEDED", "PROCESS_ALIVE"]),),
    ),
    Scenario(
        name="alive_and_lapsed",
        story=(
            "A's lease has lapsed under a call that nobody else has taken. A is alive, and the"
            " lease is lost: a process that answers is not one that is entitled. The outcome of the"
            " call is unknown to everybody but A."
        ),
        script="""
            submit r1
            spawn A to tell_states
            until A tell
            stop A
            expire
            cont A
            run A
            heal
            drain
        """,
        requires=("woke past expiry: A", "late outcome by A"),
        variant="run lease",
        also=(says("A", [
            _WORKING, "LEASE_LOST OUTCOME_UNKNOWN PROCESS_ALIVE", "LeaseLost",
            "LEASE_LOST PROCESS_ALIVE",
        ]),),
    ),
    Scenario(
        name="alive_and_replaced",
        story=(
            "B has taken A's run over and has not decided yet about the step that A left in flight:"
            " its outcome is unknown, and a reconciliation is required. A, alive, sees all that."
        ),
        script="""
            submit r1
            spawn A to tell_states
            until A tell
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
        requires=("take-over by B", "interruption of A", "stale attempt by A"),
        variant="run lease",
        also=(says("A", [
            _WORKING, "LEASE_LOST OUTCOME_UNKNOWN PROCESS_ALIVE RECONCILIATION_REQUIRED",
            "LeaseLost", "LEASE_LOST OUTCOME_UNKNOWN PROCESS_ALIVE RECONCILIATION_REQUIRED",
        ]),),
    ),
    Scenario(
        name="alive_and_settled_by_another",
        story=(
            "B has decided and finished. A, alive, has lost the lease for good; nothing about the"
            " run is unknown any more."
        ),
        script="""
            submit r1
            spawn A to tell_states
            until A tell
            stop A
            expire
            spawn B
            run B
            cont A
            run A
            heal
            drain
        """,
        requires=("take-over by B", "interruption of A", "stale attempt by A", "finish by B"),
        variant="run lease",
        also=(says("A", [
            _WORKING, "LEASE_LOST PROCESS_ALIVE", "LeaseLost", "LEASE_LOST PROCESS_ALIVE",
        ]),),
    ),
    Scenario(
        name="busy_and_late_but_entitled",
        story=(
            "A misses a beat: it is stopped for half a lease. It did not answer for that time, and"
            " its lease was valid all the same. The two questions have different answers."
        ),
        script="""
            submit r1
            spawn A to tell_states
            until A tell
            stop A
            advance {half_ttl}
            spawn B
            run B
            cont A
            run A
            heal
            drain
        """,
        requires=("refused claim by B", "continued: A", "finish by A"),
        variant="run lease",
        also=(
            says("A", [_WORKING, _WORKING, "SUCCEEDED", "PROCESS_ALIVE"]),
            says("B", {"r1": "leased"}),
        ),
    ),
)  # fmt: skip
