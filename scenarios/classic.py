"""The classic failure: a worker freezes before its side effect, is replaced, and wakes up.

The first scenario is the eight steps of the first seed's failure-injection test, in its order;
the others vary when the old worker wakes.
"""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        name="eight_steps",
        story=(
            "A holds the lease and is frozen immediately before a side effect. The lease expires,"
            " B takes over and performs the effect. A wakes up and attempts the same effect. It"
            " must be refused, and the run must end with one owner and one reconciliation."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            stop A
            expire
            spawn B
            run B
            cont A
            run A
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A"),
    ),
    Scenario(
        name="wakes_while_the_new_owner_holds",
        story=(
            "A is frozen before its side effect and loses the lease to B. A wakes up while B is"
            " still before the same effect: nothing of A's may land, and B finishes undisturbed."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            stop A
            expire
            spawn B
            until B {danger}
            cont A
            run A
            run B
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A"),
    ),
    Scenario(
        name="wakes_after_its_effect",
        story=(
            "A has performed its side effect and is frozen before it can record that. B takes"
            " over, must find out that the effect was applied, and finishes. A's late outcome must"
            " not be written."
        ),
        script="""
            submit r1
            spawn A
            until A {danger_after}
            stop A
            expire
            spawn B
            run B
            cont A
            run A
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A"),
    ),
    Scenario(
        name="killed_before_its_effect",
        story=(
            "A is killed immediately before its side effect. B waits the lease out, takes over"
            " and finishes the run; the effect happens once."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            spawn B
            run B
            expire
            run B
            heal
            drain
        """,
        requires=("killed: A", "take-over by B"),
    ),
)
