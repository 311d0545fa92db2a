"""What a lease does not protect against: each limit shown as what it is, and not hidden."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import EffectDecided, History
from pytest_leasecheck.testkit.scenario import ALL_INVARIANTS, Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import Check, broken, decided, ends, happens, limit, says, writes_nothing


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in ALL_INVARIANTS if name not in names)


def _provider_said(*outcomes: str) -> Check:
    """What the provider decided, in order."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        found = tuple(e.outcome for e in history.events if isinstance(e, EffectDecided))
        if found == outcomes:
            return ()
        return (broken("what the provider decides", f"it said {found}, not {outcomes}"),)

    return check


def _applied_for(worker: str) -> Check:
    """Whose request the provider carried out; a note, for the reader."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        found = [
            e.who for e in history.events
            if isinstance(e, EffectDecided) and e.outcome == "accepted"
        ]  # fmt: skip
        if found == [f"{worker}#1"]:
            what = f"the effect is {worker}'s, whose lease was over"
            return (limit("the window of a highest-seen fence", what),)
        return (broken("a limit is shown", f"accepted from {found}, not from {worker}"),)

    return check


SCENARIOS: Final = (
    Scenario(
        name="checked_and_then_overtaken",
        story=(
            "A looks at its lease immediately before a call to the world outside, and finds it in"
            " order. Between that look and the call A is frozen, and B takes the run over. The look"
            " alone does not stop A's call. The provider has seen no request of B's yet, so its"
            " fence lets A's pass: that is its window. What saves the day is the idempotency key:"
            " B's request is the same one again."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail before
            stop A
            expire
            spawn B
            until B effect:mail before
            cont A
            run A
            run B
            heal
            drain
        """,
        requires=("take-over by B", "stale effect attempt by A", "effect replayed by B"),
        variant="run lease",
        also=(
            _provider_said("accepted", "replayed"),
            _applied_for("A"),
            happens(
                "the window of a highest-seen fence",
                "a token that the provider has not seen surpassed is accepted",
            ),
        ),
    ),
    Scenario(
        name="checked_and_then_fenced",
        story=(
            "The same with an effect in the runtime's own store, which is fenced in one transaction"
            " with the lease. There is no window: A's effect is refused, whenever A wakes up."
        ),
        script="""
            submit r1
            spawn A
            until A effect:charge before
            stop A
            expire
            spawn B
            until B effect:charge before
            cont A
            run A
            run B
            heal
            drain
        """,
        requires=("take-over by B", "stale effect attempt by A", "finish by B"),
        variant="run lease",
    ),
    Scenario(
        name="request_under_way",
        story=(
            "A's request to the provider is under way in the network when A is suspended past its"
            " lease. B takes the run over and asks the provider, who knows nothing yet. Then A's"
            " request arrives, before B's own: nobody can recall it. B's request carries the same"
            " key, and the effect happens once."
        ),
        script="""
            submit r1
            spawn A
            provider delay-request mail
            run A
            stop A
            expire
            spawn B
            until B effect:mail before
            provider deliver mail
            run B
            cont A
            run A
            heal
            drain
        """,
        requires=("take-over by B", "look-up by B", "effect replayed by B"),
        variant="run lease",
        also=(_provider_said("accepted", "replayed"), _applied_for("A")),
    ),
    Scenario(
        name="suspended_with_a_call_in_flight",
        story=(
            "A is suspended for longer than its lease with a call in flight, which the provider"
            " carries out. When A wakes it starts nothing further; but the call can't be recalled,"
            " and B had to find out about it."
        ),
        script="""
            submit r1
            spawn A
            provider delay-response mail
            run A
            stop A
            expire
            spawn B
            run B
            provider deliver mail
            cont A
            heal
            drain
        """,
        requires=("take-over by B", "look-up by B", "stale attempt by A"),
        variant="run lease",
        also=(
            _provider_said("accepted"),
            decided(("already-applied", "policy:ask-provider")),
            says("A", {"r1": "LeaseLost"}),
        ),
    ),
    Scenario(
        name="older_binary_ignores_the_lease",
        story=(
            "A process of a version from before the lease works on the same file. It knows none of"
            " the lease's columns, takes A's live run for one whose process died, and executes it."
            " Nothing in the file can stop it; what it does is seen."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail before
            spawn B to work_as_older_version
            run B
            run A
            heal
            drain
        """,
        requires=("claim by A",),
        variant="older binary",
        holds=(),
        also=(
            happens(
                "a lease was released by another",
                "stop every process of an older version before a current one opens the file",
            ),
            says("A", {"r1": "LeaseLost"}),
        ),
    ),
    Scenario(
        name="clock_ahead_by_more_than_is_left",
        story=(
            "B's host is 31 seconds ahead of A's. To B a lease of 30 seconds is over the moment it"
            " is taken: B takes A's live run. Hosts that share a file must agree on the time to"
            " well within the TTL."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            spawn B
            skew B +31s
            run B
            run A
            heal
            drain
        """,
        requires=("claim by B",),
        variant="bears skew",
        holds=_without("V7"),
        also=(
            says("B", {"r1": "SUCCEEDED"}),
            says("A", {"r1": "LeaseLost"}),
        ),
    ),
    Scenario(
        name="clock_ahead_by_what_is_borne",
        story=(
            "B's host is ahead by one millisecond less than two thirds of a lease. Even"
            " immediately before A's next renewal B sees A's lease as live. That is how much skew"
            " is borne by a heartbeat that beats in time."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            spawn B
            skew B +19999ms
            advance 10s
            run B
            advance 9999ms
            run B
            advance 10s
            run B
            run A
            heal
            drain
        """,
        requires=("renewal by A", "refused claim by B", "finish by A"),
        variant="bears skew",
        also=(says("B", {"r1": "leased"}, {"r1": "leased"}, {"r1": "leased"}), writes_nothing("B")),
    ),
    Scenario(
        name="clock_ahead_by_a_millisecond_more",
        story=(
            "The same with twenty milliseconds more: immediately before A's renewal, B takes a live"
            " run. The measured bound is a bound."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            spawn B
            skew B +20001ms
            advance 9999ms
            run B
            run A
            heal
            drain
        """,
        requires=("claim by B",),
        variant="bears skew",
        holds=_without("V7"),
        also=(says("B", {"r1": "SUCCEEDED"}), says("A", {"r1": "LeaseLost"})),
    ),
    Scenario(
        name="clock_behind",
        story=("B's host is behind. It waits for longer than it would have to, and robs nobody."),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            spawn B
            skew B -19s
            expire
            run B
            advance 20s
            run B
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "finish by B"),
        variant="bears skew",
        also=(says("B", {"r1": "leased"}, {"r1": "SUCCEEDED"}),),
    ),
    Scenario(
        name="network_filesystem",
        story=(
            "The file lies on a network filesystem, where two processes can both believe that they"
            " hold the write lock. It is refused by that filesystem's name; a consumer who insists"
            " is warned."
        ),
        script="""
            submit r1
            spawn A to open_on_network
            run A
            spawn B to open_on_network_anyway
            run B
            heal
            drain
        """,
        requires=(),
        variant="on network",
        also=(
            says("A", "NetworkFilesystem: nfs4"),
            says("B", "opened, 1 warning"),
            writes_nothing("A"),
            ends("SUCCEEDED"),
        ),
    ),
)
