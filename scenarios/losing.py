"""Losing a lease: what a loop still may do, what it must leave to the new owner."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import EffectAsked, History
from pytest_leasecheck.testkit.lives import label
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import Check, acted_at, broken, decided, kinds_of, rows_of, says, story_of


def _asks_nothing_after(worker: str, action: str) -> Check:
    """From an action on, a worker starts no effect."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        since = acted_at(history, action)
        late = [
            event for event in history.events
            if isinstance(event, EffectAsked) and label(event.who) == worker and event.n > since
        ]  # fmt: skip
        if since and not late:
            return ()
        text = f"after {action!r} {worker} asked for {[event.name for event in late]}"
        return (broken("a lost lease starts nothing", text, at=tuple(e.n for e in late)),)

    return check


def _step_is_left_to(worker: str, step: int, result: bool) -> Check:
    """The result that a step ends with is the new owner's."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        row = next(row for row in rows_of(history, "steps") if row["idx"] == step)
        if (f"-{worker}#" in str(row["result"])) is result and row["status"] == "DONE":
            return ()
        text = f"step {step} is {row['status']} with {row['result']}"
        return (broken("the step in flight is left to the next owner", text),)

    return check


def _lapsed_outcome_recorded(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The outcome in flight is recorded, and said to have come under a lapsed lease."""
    told = [event for event in story_of(history) if event["kind"] == "step.tool_finished"]
    if told and told[0].get("lapsed") and "step.interrupted" not in kinds_of(history):
        return ()
    return (broken("an outcome in flight is recorded", f"the run's events: {told}"),)


SCENARIOS: Final = (
    Scenario(
        name="stops_before_its_next_tool_call",
        story=(
            "A has recorded a step's outcome and is frozen before it starts the next. B takes the"
            " run over and holds it. A must notice before its next tool call, not after it."
        ),
        script="""
            submit r1
            spawn A
            until A txn:begin#5 before
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
        requires=("take-over by B", "stale write attempt by A", "finish by B"),
        variant="run lease",
        also=(_asks_nothing_after("A", "stop A"), says("A", {"r1": "LeaseLost"})),
    ),
    Scenario(
        name="stops_before_its_next_model_call",
        story=(
            "The same where the next step is a model call: it is reserved in the database before"
            " it is dispatched, and that reservation needs the lease."
        ),
        script="""
            submit r1
            spawn A
            until A txn:begin#7 before
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
        requires=("take-over by B", "stale write attempt by A", "finish by B"),
        variant="model calls",
        also=(_asks_nothing_after("A", "stop A"), says("A", {"r1": "LeaseLost"})),
    ),
    Scenario(
        name="stalled_past_expiry_starts_no_tool",
        story=(
            "A is stalled before its next tool call until its lease has expired. Nobody has taken"
            " the run. Held is not enough: the lease must be unexpired, so A starts nothing."
        ),
        script="""
            submit r1
            spawn A
            until A txn:begin#5 before
            stop A
            expire
            cont A
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("woke past expiry: A", "finish by B"),
        variant="run lease",
        also=(_asks_nothing_after("A", "stop A"), says("A", {"r1": "LeaseLost"})),
    ),
    Scenario(
        name="stalled_past_expiry_starts_no_model_call",
        story="The same before a model call.",
        script="""
            submit r1
            spawn A
            until A txn:begin#7 before
            stop A
            expire
            cont A
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("woke past expiry: A", "finish by B"),
        variant="model calls",
        also=(_asks_nothing_after("A", "stop A"), says("A", {"r1": "LeaseLost"})),
    ),
    Scenario(
        name="stalled_between_start_and_call",
        story=(
            "A has recorded that its tool is started, and is stalled until the lease has expired"
            " before the call itself. The lease is looked at again immediately before the call,"
            " which is not made."
        ),
        script="""
            submit r1
            spawn A
            until A call:*validate_before_effect before
            stop A
            expire
            cont A
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("woke past expiry: A", "interruption of A", "finish by B"),
        variant="run lease",
        also=(_asks_nothing_after("A", "stop A"), says("A", {"r1": "LeaseLost"})),
    ),
    Scenario(
        name="late_outcome_is_not_written",
        story=(
            "A's tool call is in flight when B takes the run over. It returns to A when B holds the"
            " run: the outcome is not written. The step stays as it was for B, who marks it"
            " interrupted, asks what became of the call, and records that once."
        ),
        script="""
            submit r1
            spawn A
            until A effect:mail after
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
        requires=(
            "take-over by B",
            "stale write attempt by A",
            "interruption of A",
            "look-up by B",
        ),
        variant="run lease",
        also=(
            decided(("already-applied", "policy:ask-provider")),
            says("A", {"r1": "LeaseLost"}),
            _step_is_left_to("A", 1, result=False),
        ),
    ),
    Scenario(
        name="late_outcome_after_the_end",
        story="The same, and A's call returns only when B has finished the run.",
        script="""
            submit r1
            spawn A
            until A effect:mail after
            stop A
            expire
            spawn B
            run B
            cont A
            run A
            heal
            drain
        """,
        requires=("take-over by B", "stale write attempt by A", "finish by B"),
        variant="run lease",
        also=(says("A", {"r1": "LeaseLost"}), _step_is_left_to("A", 1, result=False)),
    ),
    Scenario(
        name="late_outcome_against_a_retry",
        story=(
            "B has taken over, found that A's call was not applied, and is about to make it again"
            " when A's call goes through after all: it is refused, and its outcome is not written"
            " into B's attempt."
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
        requires=("take-over by B", "stale effect attempt by A", "finish by B"),
        variant="run lease",
        also=(decided(("retry", "policy:ask-provider")), _step_is_left_to("B", 0, result=True)),
    ),
    Scenario(
        name="write_finds_the_run_leased",
        story=(
            "B has taken A's run and is executing it. What A's next write meets is that the run is"
            " leased, by whom and until when; A's call ends with the lost lease, for that reason."
        ),
        script="""
            submit r1
            spawn A to work_and_say_why
            until A effect:mail after
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
        requires=("take-over by B", "stale write attempt by A", "finish by B"),
        variant="run lease",
        also=(says("A", "LeaseLost by RunLeased"),),
    ),
    Scenario(
        name="merely_lapsed_outcome_is_recorded",
        story=(
            "A's call is in flight when the lease lapses; nobody takes the run. What came of the"
            " call is known, and is recorded. Then A stops, and B goes on with the next step: there"
            " is nothing to reconcile."
        ),
        script="""
            submit r1
            spawn A
            until A effect:charge after
            stop A
            expire
            cont A
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("woke past expiry: A", "late outcome by A", "finish by B"),
        variant="run lease",
        also=(
            _lapsed_outcome_recorded,
            _asks_nothing_after("A", "stop A"),
            _step_is_left_to("A", 0, result=True),
            says("A", {"r1": "LeaseLost"}),
            decided(),
        ),
    ),
    Scenario(
        name="merely_lapsed_does_not_finish",
        story=(
            "A's last step is done and A stalls before the run's end until its lease has expired."
            " To finish is to write under the lease: A does not, the next owner does."
        ),
        script="""
            submit r1
            spawn A
            until A txn:begin#7 before
            stop A
            expire
            cont A
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("woke past expiry: A", "finish by B"),
        variant="run lease",
        also=(says("A", {"r1": "LeaseLost"}),),
    ),
    Scenario(
        name="loser_releases_nothing",
        story=(
            "A has lost its run to B, and its call returns while B is executing. Every call gives"
            " its lease back at its end; A's is B's now, and stays B's."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            stop A
            expire
            spawn B
            until B effect:mail before
            cont A
            until A call:*release_lease after
            spawn C
            run C
            run A
            run B
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A", "refused claim by C", "finish by B"),
        variant="run lease",
        also=(says("C", {"r1": "leased"}),),
    ),
    Scenario(
        name="second_tenure_of_one_process",
        story=(
            "A loses its run to B while a call is in flight; B dies; A's next pass takes the run"
            " back. What A's first tenure left behind must not pass for its second's."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            stop A
            expire
            spawn B
            until B {danger}
            kill B
            cont A
            run A
            expire
            run A
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A", "take-over by A", "finish by A"),
        variant="run lease",
    ),
)
