"""Who may own a run: names are no identities, and a live owner is not to be robbed."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        name="two_under_one_name",
        story=(
            "Two live processes have the same configured name, as two replicas often do. The"
            " second one must not take the first one's live run for its own."
        ),
        script="""
            submit r1
            spawn A as worker
            until A {danger}
            duplicate A as B
            run B
            run A
            heal
            drain
        """,
        requires=("two alive under one name", "refused claim by B"),
    ),
    Scenario(
        name="twin_takes_over",
        story=(
            "Two processes share a configured name. The first freezes before its side effect, the"
            " second takes over after expiry. The first wakes up: its name still matches, but it"
            " owns nothing any more."
        ),
        script="""
            submit r1
            spawn A as worker
            until A {danger}
            stop A
            expire
            duplicate A as B
            until B {danger}
            cont A
            run A
            run B
            heal
            drain
        """,
        requires=("two alive under one name", "take-over by B", "stale attempt by A"),
    ),
    Scenario(
        name="busy_owner_keeps_its_run",
        story=(
            "A is in a call that takes longer than its lease lasts, alive and renewing. B must"
            " find the run leased, however long it takes."
        ),
        script="""
            submit r1
            spawn A
            until A {long_call}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            spawn B
            run B
            run A
            heal
            drain
        """,
        requires=("renewal by A", "refused claim by B"),
        needs=frozenset({"heartbeats"}),
    ),
    Scenario(
        name="frozen_past_expiry_with_no_rival",
        story=(
            "A is frozen past its own expiry, and nobody takes the run. When it wakes up its lease"
            " is void all the same: it starts nothing, and the run goes on under a new claim."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            stop A
            expire
            cont A
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("woke past expiry: A",),
        needs=frozenset({"checks_expiry"}),
    ),
)
