"""Interrupted steps: decided about once, by policy or person, also when the recovery dies too."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import EffectAsked, History
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import Check, broken, decided, ends, rows_of, says


def _unknown_is_measured(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The time with the outcome unknown: from the lost lease's expiry to the decision."""
    row = rows_of(history, "reconciliations")[0]
    found = int(row["settled_at_ms"]) - int(row["unknown_since_ms"])
    if found == 15_000:
        return ()
    return (broken("time in outcome-unknown is measured", f"{found} ms, not 15000"),)


def _asked_for(name: str, times: int) -> Check:
    """How often an effect was asked for."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        found = sum(isinstance(e, EffectAsked) and e.name == name for e in history.events)
        if found == times:
            return ()
        text = f"{name} was asked for {found} times, not {times}"
        return (broken("what a decision leads to", text),)

    return check


def _one_key(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """Every attempt at a step carries one idempotency key."""
    keys: dict[str, set[object]] = {}
    for event in history.events:
        if isinstance(event, EffectAsked):
            keys.setdefault(event.name, set()).add(event.key)
    wrong = {name: found for name, found in keys.items() if len(found) != 1}
    if not wrong:
        return ()
    return (broken("a stable idempotency key", f"{wrong}"),)


#: Where the recovery of a dead worker's run may die itself.
_POINTS: Final = (
    ("before_it_takes_over", "txn:begin before"),
    ("once_it_has_taken_over", "txn:commit after"),
    ("asking", "sql:SELECT effects before"),
    ("beginning_to_decide", "txn:begin#2 after"),
    ("fencing_its_decision", "sql:UPDATE runs#2 after"),
    ("moving_the_step", "sql:UPDATE steps#3 after"),
    ("deciding", "sql:INSERT reconciliations before"),
    ("having_decided", "sql:INSERT reconciliations after"),
    ("with_its_decision_unwritten", "txn:commit#2 before"),
    ("with_its_decision_written", "txn:commit#2 after"),
    ("before_its_effect", "effect:charge before"),
    ("in_its_effect", "sql:INSERT effects after"),
    ("after_its_effect", "effect:charge after"),
    ("with_its_outcome_unwritten", "txn:commit#4 before"),
    ("in_the_next_step", "effect:mail before"),
    ("after_the_next_effect", "effect:mail after"),
    ("finishing", "txn:commit#7 before"),
)


def _recovery_killed(name: str, point: str) -> Scenario:
    """A died; B, who recovers its run, dies at a point; C recovers from both."""
    return Scenario(
        name=f"recovery_killed_{name}",
        story=(
            f"A died with a call in flight. B recovers the run, and dies too (at {point}). C"
            " recovers: each interruption is decided about once, and no effect happens twice."
        ),
        script=f"""
            submit r1
            spawn A
            until A {{danger}}
            kill A
            expire
            spawn B
            until B {point}
            kill B
            expire
            spawn C
            run C
            heal
            drain
        """,
        requires=("killed: A", "killed: B", "interruption of A", "reconciliation", "finish by C"),
        variant="run lease",
        also=(ends("SUCCEEDED"), _one_key),
    )


SCENARIOS: Final = (
    Scenario(
        name="applied_is_recorded",
        story=(
            "A's call went through and A died. B asks the provider by the step's idempotency key,"
            " learns that it was applied, records that as the decision, and does not call again."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail after
            kill A
            expire
            advance {half_ttl}
            spawn B
            run B
            heal
            drain
        """,
        requires=("killed: A", "interruption of A", "look-up by B", "reconciliation by B"),
        needs=frozenset({"asks_provider", "reconciles"}),
        variant="run lease",
        also=(decided(("already-applied", "policy:ask-provider")), _asked_for("mail", 1)),
    ),
    Scenario(
        name="not_applied_is_retried",
        story=(
            "A died immediately before its call. B asks, learns that nothing was applied, and makes"
            " the call, under the same key."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail before
            kill A
            expire
            spawn B
            run B
            heal
            drain
        """,
        requires=("killed: A", "interruption of A", "look-up by B", "reconciliation by B"),
        variant="run lease",
        also=(decided(("retry", "policy:ask-provider")), _one_key),
    ),
    Scenario(
        name="unknown_time_is_measured",
        story=(
            "A's lease expires with a call in flight, and B comes fifteen seconds later. That is"
            " how long the outcome was unknown, and it is written down."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            spawn B
            run B
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "reconciliation by B"),
        variant="run lease",
        also=(_unknown_is_measured,),
    ),
    Scenario(
        name="outcome_lost_with_the_response",
        story=(
            "A's call goes through, its response is lost, and A's call ends with an error. A does"
            " not call again by itself: the step is left in flight, explicitly, for whoever comes."
        ),
        script="""
            submit r1
            spawn A
            provider lose-response mail
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("response lost", "release by A", "interruption of A", "look-up by B"),
        variant="run lease",
        also=(decided(("already-applied", "policy:ask-provider")), _asked_for("mail", 1)),
    ),
    Scenario(
        name="provider_cannot_say",
        story=(
            "A died with a call in flight. B asks the provider, which can't say what became of it."
            " That is no reason to call again: the run waits for an operator, and what the provider"
            " answered is written down."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail after
            kill A
            expire
            spawn B
            run B
            spawn C to say_applied
            run C
            heal
            drain
        """,
        requires=("killed: A", "interruption of A", "reconciliation by B", "finish by C"),
        variant="silent provider",
        also=(
            says("B", {"r1": "WAITING_FOR_APPROVAL"}),
            _asked_for("mail", 1),
            decided(("already-applied", "operator:ada")),
        ),
    ),
    Scenario(
        name="compensated",
        story=(
            "A died in a booking, and its policy is to undo what may have been done. B undoes it,"
            " under a key of its own, and the run fails."
        ),
        script="""
            submit r1
            spawn A
            until A effect:book after
            kill A
            expire
            spawn B
            run B
            heal
            drain
        """,
        requires=("killed: A", "interruption of A", "reconciliation by B"),
        variant="compensates",
        also=(
            decided(("compensate", "policy:compensate")), _asked_for("unbook", 1), ends("FAILED"),
        ),
    ),
    Scenario(
        name="compensation_interrupted",
        story=(
            "B dies while it undoes the booking. That is an interruption of its own, with a"
            " decision of its own; the undoing carries its key, so that doing it again undoes once."
        ),
        script="""
            submit r1
            spawn A
            until A effect:book after
            kill A
            expire
            spawn B
            until B effect:unbook after
            kill B
            expire
            spawn C
            run C
            heal
            drain
        """,
        requires=("killed: B", "interruption of B", "reconciliation by C", "effect replayed by C"),
        variant="compensates",
        also=(
            decided(("compensate", "policy:compensate"), ("compensate", "policy:compensate")),
            ends("FAILED"),
        ),
    ),
    Scenario(
        name="read_only_runs_again",
        story=(
            "A died in a call that only reads. There is nothing to ask and nobody to wait for: B"
            " runs it again, and says that this was the policy."
        ),
        script="""
            submit r1
            spawn A
            until A reading
            kill A
            expire
            spawn B
            run B
            heal
            drain
        """,
        requires=("killed: A", "interruption of A", "reconciliation by B", "finish by B"),
        variant="reads only",
        also=(decided(("retry", "policy:read-only")), says("B", {"r1": "SUCCEEDED"})),
    ),
    Scenario(
        name="recovery_overtaken",
        story=(
            "B has taken over and is about to write its decision when it is frozen. C takes over"
            " from B, decides, and finishes. B's decision must not be recorded beside C's."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            expire
            spawn B
            until B txn:begin#2 before
            stop B
            expire
            spawn C
            until C txn:begin#2 before
            cont B
            run B
            run C
            heal
            drain
        """,
        requires=("killed: A", "take-over by C", "stale write attempt by B", "finish by C"),
        variant="run lease",
        also=(decided(("retry", "policy:ask-provider")),),
    ),
    Scenario(
        name="recovery_lapsed",
        story=(
            "B has taken over and is frozen before it writes its decision, past its own expiry;"
            " nobody else came. It decides nothing under a lapsed lease; its next pass does."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            kill A
            expire
            spawn B
            until B txn:begin#2 before
            stop B
            expire
            cont B
            run B
            run B
            heal
            drain
        """,
        requires=("killed: A", "woke past expiry: B", "finish by B"),
        variant="run lease",
        also=(decided(("retry", "policy:ask-provider")), says(
            "B", {"r1": "LeaseLost"}, {"r1": "SUCCEEDED"}
        )),
    ),
    *(_recovery_killed(name, point) for name, point in _POINTS),
)  # fmt: skip
