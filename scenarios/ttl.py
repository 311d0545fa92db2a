"""The TTL: how long a crash keeps a run from others, and how many runs a tool takes."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import Ended, History
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import Check, broken, says, writes_nothing


def _recovered_after(ttl_ms: int) -> Check:
    """The time from A's death to the take-over: at most the TTL, and not less either, here."""

    def check(history: History, verdict: Verdict) -> tuple[Finding, ...]:
        at = {event.n: event.at_ns for event in history.events}
        died = next(e.at_ns for e in history.events if isinstance(e, Ended) and e.who == "A#1")
        lost = next((one for one in verdict.tenures if one.ended == "taken over"), None)
        taken = at[lost.until] if lost is not None and lost.until is not None else 0
        found_ms = (taken - died) // 1_000_000
        if found_ms == ttl_ms:
            return ()
        text = f"the run was taken over {found_ms} ms after A's death, with a TTL of {ttl_ms} ms"
        return (broken("a shorter TTL recovers sooner", text),)

    return check


def _renewals(times: int) -> Check:
    """How often the lease was renewed."""

    def check(_history: History, verdict: Verdict) -> tuple[Finding, ...]:
        found = sum(act.kind == "renew" for act in verdict.acts)
        if found == times:
            return ()
        return (broken("a heartbeat every third of the TTL", f"{found} renewals, not {times}"),)

    return check


def _renews(name: str, variant: str, ttl_ms: int) -> Scenario:
    times = 60_000 * 3 // ttl_ms
    return Scenario(
        name=name,
        story=(
            f"A lease lasts {ttl_ms // 1000} seconds, and its owner is in a call for a minute. The"
            f" heartbeat beats every third of a TTL: it writes {times} times. That is the price of"
            " a shorter TTL."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            advance 60s
            spawn B
            run B
            run A
            heal
            drain
        """,
        requires=("renewal by A", "refused claim by B", "finish by A"),
        variant=variant,
        also=(_renewals(times), says("A", {"r1": "SUCCEEDED"})),
    )


def _recovers(name: str, variant: str, ttl_ms: int) -> Scenario:
    seconds = ttl_ms // 1000
    return Scenario(
        name=name,
        story=(
            f"A lease lasts {seconds} seconds. A dies the moment it has taken a run. B is told"
            " until when it must wait, and has the run then: a crash keeps a run from others for"
            " one TTL."
        ),
        script=f"""
            submit r1
            spawn A
            until A {{danger}}
            kill A
            spawn B to recover
            run B
            advance {ttl_ms - 1}ms
            spawn C
            run C
            advance 1ms
            heal
            drain
        """,
        requires=("killed: A", "refused claim by C", "take-over by B", "finish by B"),
        variant=variant,
        also=(_recovered_after(ttl_ms), says("C", {"r1": "leased"}), writes_nothing("C")),
    )


SCENARIOS: Final = (
    _recovers("default_is_thirty_seconds", "run lease", 30_000),
    _recovers("shorter_recovers_sooner", "short ttl", 6_000),
    _recovers("zero_means_the_default", "default ttl", 30_000),
    _renews("default_writes_six_times_a_minute", "run lease", 30_000),
    _renews("shorter_writes_more", "short ttl", 6_000),
    Scenario(
        name="impossible_ttl",
        story="A TTL that is negative, or that no heartbeat could keep, is an error at once.",
        script="""
            submit r1
            spawn A to configure_wrongly
            run A
            heal
            drain
        """,
        requires=("finish",),
        variant="default ttl",
        also=(says("A", ["InvalidTtl"] * 5), writes_nothing("A")),
    ),
    Scenario(
        name="limit_holds_across_processes",
        story=(
            "One run at a time may be in the tool. A is in it; B's run finds no slot, starts"
            " nothing, and is left for later. The slot is given back once, though B takes A's run"
            " over and A comes back too."
        ),
        script="""
            submit r1
            spawn A
            until A effect:charge after
            submit r2
            spawn B
            run B
            stop A
            expire
            spawn C
            until C txn:commit after
            cont A
            run A
            run C
            heal
            drain
        """,
        requires=("take-over by C", "stale attempt by A", "interruption of A"),
        variant="limited",
    ),
    Scenario(
        name="slot_of_a_cancelled_call",
        story=(
            "An operator cancels while A is in a tool with one slot. The slot is given back by the"
            " cancel, and not once more when A's call returns."
        ),
        script="""
            submit r1
            spawn A
            until A effect:charge after
            cancel r1
            submit r2
            spawn B
            until B effect:charge after
            run A
            run B
            heal
            drain
        """,
        requires=("cancel", "finish by B"),
        variant="limited",
    ),
)
