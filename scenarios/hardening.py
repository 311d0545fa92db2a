"""Hardening: connections that trust no schema, and hostile ids and payloads."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import broken, says

_HOSTILE: Final = "r'1\"; DROP TABLE runs; --\u001b[2J\n\u202e/#*"


def _finished_under_its_id(_history: History, verdict: Verdict) -> tuple[Finding, ...]:
    """In whatever words the subject says so: everybody's runtime plays this."""
    ended = [(one.run_id, one.who, one.ended) for one in verdict.tenures]
    if ended[-1:] == [(_HOSTILE, "B#1", "finished")]:
        return ()
    return (broken("how the run ends", f"run {_HOSTILE!r} was held and ended so: {ended}"),)


SCENARIOS: Final = (
    Scenario(
        name="every_connection_is_hardened",
        story=(
            "The store's connection and the heartbeat's own are opened alike: the schema is not"
            " trusted, and SQLite's defensive mode is on where Python offers it."
        ),
        script="""
            submit r1
            spawn A to inspect_connections
            until A holding
            advance {half_ttl}
            run A
            heal
            drain
        """,
        requires=("renewal by A",),
        variant="hardened",
        also=(says("A", "2 connections, all hardened"),),
    ),
    Scenario(
        name="hostile_run_id",
        story=(
            "A run's id is made to break SQL, shells and terminals. It is stored as it is, leased,"
            " lost, taken over and finished like any other."
        ),
        script=r"""
            submit "r'1\"; DROP TABLE runs; --\u001b[2J\n\u202e/#*"
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
        requires=("take-over by B", "stale attempt by A", "finish by B"),
        also=(_finished_under_its_id,),
    ),
    Scenario(
        name="hostile_ids_and_payloads",
        story=(
            "Ids and payloads of every bad kind: those that can be stored come back as they were;"
            " a NUL or a lone surrogate in an id, and what JSON would harm, are refused in words,"
            " with nothing stored."
        ),
        script="""
            spawn A to try_hostile
            run A
            heal
            drain
        """,
        requires=("finish by A",),
        variant="hardened",
        also=(says("A", {
            "ids": "5 of 5 came back", "refused ids": "InvalidRunId x5",
            "payloads": "6 of 6 came back", "refused payloads": "InvalidPayload x4",
        }),),
    ),
)  # fmt: skip
