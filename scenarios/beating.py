"""A heartbeat that comes too late, on any runtime that claims to have one."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        name="late_beat_takes_nothing_back",
        story=(
            "A is frozen in a long call until its lease is gone and B owns the run. When A goes on,"
            " its heartbeat fires first: it must not renew, take back or shorten what is B's."
        ),
        script="""
            submit r1
            spawn A
            until A {long_call}
            stop A
            expire
            spawn B
            until B {long_call}
            advance 1s
            cont A
            beat A
            run B
            run A
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A"),
        needs=frozenset({"heartbeats"}),
    ),
)
