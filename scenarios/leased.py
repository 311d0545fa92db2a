"""Reading a lease, being refused for one, and what a consumer does with that."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import ClockRead, History, Statement
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import broken, ends, events_are, says, writes_nothing


def _no_busy_loop(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """A consumer that was told when to come back looks as often as it was told, not more."""
    looks = sum(isinstance(e, Statement) and e.who == "B#1" for e in history.events)
    reads = sum(isinstance(e, ClockRead) and e.who == "B#1" for e in history.events)
    if looks <= 60 and reads <= 60:
        return ()
    text = f"it made {looks} statements and {reads} readings of the clock"
    return (broken("no busy loop", text),)


_REFUSED: Final = "RunLeased, all rows as before, now read 0 times"

SCENARIOS: Final = (
    Scenario(
        name="refused_resume_changes_nothing",
        story=(
            "B resumes a run that A is executing. It is told who holds it and until when; no row"
            " of any table is another, and the consumer's own clock was not read."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            spawn B to resume
            run B
            run A
            heal
            drain
        """,
        requires=("claim by A", "finish by A"),
        variant="run lease",
        also=(says("B", {"r1": _REFUSED}), writes_nothing("B")),
    ),
    Scenario(
        name="refused_resume_of_a_dead_owner",
        story=(
            "The same when A is dead and its lease has not expired: nothing proves that the old"
            " process is gone."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            spawn B to resume
            run B
            expire
            heal
            drain
        """,
        requires=("killed: A", "take-over"),
        variant="run lease",
        also=(says("B", {"r1": _REFUSED}), writes_nothing("B")),
    ),
    Scenario(
        name="refused_resume_of_an_ended_run",
        story="A run that has ended, or was never started, is not resumed, and nothing changes.",
        script="""
            submit r1
            spawn A
            run A
            submit r2
            spawn B to resume
            run B
            heal
            drain
        """,
        requires=("finish by A",),
        variant="run lease",
        also=(
            says("B", {
                "r1": "RunStateError, all rows as before, now read 0 times",
                "r2": "RunStateError, all rows as before, now read 0 times",
            }),
            writes_nothing("B"),
        ),
    ),
    Scenario(
        name="now_is_the_consumers",
        story=(
            "A consumer stamps its records by a clock of its own, which stands still and whose"
            " readings are counted. Lease time is not taken from it: A's lease is renewed and"
            " expires all the same; and renewals read it as little as refusals do."
        ),
        script="""
            submit r1
            spawn A to work_with_own_now
            until A {danger}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            spawn B
            run B
            run A
            heal
            drain
        """,
        requires=("renewal by A", "refused claim by B", "finish by A"),
        variant="run lease",
        also=(says("A", "SUCCEEDED, now read 6 times"),),
    ),
    Scenario(
        name="now_does_not_keep_a_dead_lease",
        story=(
            "A consumer's own clock stands still. Its process dies: the lease expires by the clock"
            " of the lease, and the run is taken over."
        ),
        script="""
            submit r1
            spawn A to work_with_own_now
            until A {danger}
            kill A
            expire
            spawn B to work_with_own_now
            run B
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "finish by B"),
        variant="run lease",
        also=(says("B", "SUCCEEDED, now read 8 times"),),
    ),
    Scenario(
        name="reading_a_lease_changes_nothing",
        story=(
            "A tool beside the consumer reads the leases: of a run that is held, of one whose owner"
            " died and whose time has passed (stale), of one that was released, and of none. It"
            " tells them apart, and writes nothing."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            spawn L to look
            run L
            kill A
            run L
            expire
            run L
            spawn B
            run B
            run L
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "finish by B"),
        variant="run lease",
        also=(
            says(
                "L",
                {"r1": "live, A/A.1-1", "no such run": "RunNotFound"},
                {"r1": "live, A/A.1-1", "no such run": "RunNotFound"},
                {"r1": "stale, A/A.1-1", "no such run": "RunNotFound"},
                {"r1": "released, token 2", "no such run": "RunNotFound"},
            ),
            writes_nothing("L"),
        ),
    ),
    Scenario(
        name="consumer_waits_for_a_dead_owner",
        story=(
            "A process died and restarts. Its consumer resumes at start-up, is told until when the"
            " run is leased, comes back then, and has it. It looked twice."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            spawn B to recover
            run B
            advance {half_ttl}
            advance {half_ttl}
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "finish by B"),
        variant="run lease",
        also=(says("B", ["leased", "SUCCEEDED"]), ends("SUCCEEDED")),
    ),
    Scenario(
        name="consumer_waits_for_a_live_owner",
        story=(
            "The same, but A is alive and busy. B comes back when A's lease would have expired, and"
            " is told again, because A has renewed it by then. B neither spins nor cancels; when A"
            " is done, B finds the run done."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            spawn B to recover
            run B
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            run A
            advance {half_ttl}
            advance {half_ttl}
            heal
            drain
        """,
        requires=("renewal by A", "finish by A"),
        variant="run lease",
        also=(
            says("B", ["leased", "leased", "leased", "SUCCEEDED"]),
            writes_nothing("B"),
            _no_busy_loop,
            events_are(
                "run.queued", "run.started", "step.tool_started", "step.tool_finished",
                "step.tool_started", "step.tool_finished", "run.finished",
            ),
        ),
    ),
    Scenario(
        name="driver_does_not_rob_itself",
        story=(
            "From inside a call of its own, a driver resumes and starts the run that it is"
            " executing. It is told that the run is leased: by itself, in another call."
        ),
        script="""
            submit r1
            spawn A to twice
            run A
            heal
            drain
        """,
        requires=("finish by A",),
        variant="run lease",
        also=(says("A", ["RunLeased", "RunLeased", "SUCCEEDED"]),),
    ),
    Scenario(
        name="driver_does_not_rob_itself_past_expiry",
        story=(
            "The same when its lease has expired under the call: anybody else might take the run"
            " over now, but the call is known to be alive."
        ),
        script="""
            submit r1
            spawn A to twice
            until A effect:mail after
            stop A
            expire
            cont A
            run A
            heal
            drain
        """,
        requires=("woke past expiry: A", "late outcome by A"),
        variant="run lease",
        also=(says("A", ["RunLeased", "RunLeased", "LeaseLost"]),),
    ),
)  # fmt: skip
