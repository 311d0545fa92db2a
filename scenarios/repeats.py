"""The first seed's three repeats: a delayed network response, a restart, a duplicate request."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        name="delayed_response",
        story=(
            "The provider carries A's request out, but the response is delayed until A's lease"
            " is gone and B owns the run. B must ask the provider instead of doing it again; A's"
            " late outcome must not be written."
        ),
        script="""
            submit r1
            spawn A
            provider delay-response *
            run A
            stop A
            expire
            spawn B
            run B
            provider deliver *
            cont A
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A"),
        needs=frozenset({"asks_provider"}),
    ),
    Scenario(
        name="lost_response",
        story=(
            "The provider carries the request out and the response is lost: A can't know what"
            " became of it. The effect must not be repeated blindly."
        ),
        script="""
            submit r1
            spawn A
            provider lose-response *
            run A
            expire
            spawn B
            run B
            heal
            drain
        """,
        requires=("response lost",),
        needs=frozenset({"asks_provider"}),
    ),
    Scenario(
        name="restarted_before_its_effect",
        story=(
            "A is killed before its side effect and restarted under the same configured name."
            " The new life is not the old one: it waits the old lease out, then takes over."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            restart A
            run A
            expire
            run A
            heal
            drain
        """,
        requires=("killed: A", "refused claim by A", "take-over by A"),
    ),
    Scenario(
        name="duplicated_request",
        story=(
            "The network delivers A's request to the provider twice. The effect is applied once."
        ),
        script="""
            submit r1
            spawn A
            provider twice *
            run A
            heal
            drain
        """,
        requires=("request delivered twice",),
        needs=frozenset({"asks_provider"}),
    ),
)
