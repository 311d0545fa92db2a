"""Runs that wait for an operator: one resumer wins, and an unknown outcome is asked about."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import EffectAsked, History
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import broken, commits_by, decided, ends, kinds_of, rows_of, says, writes_nothing

_WAIT: Final = """
            submit r1
            spawn A
            run A
"""


def _all_in_one_commit(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The commit that takes the waiting run has the policy's decision and the tool's start."""
    first = next(iter(commits_by(history, "B")), None)
    changes = () if first is None else first.changes
    leased = any(
        one.table == "runs" and one.new is not None and one.new["lease_owner"] for one in changes
    )
    kinds = [str(one.new["kind"]) for one in changes if one.table == "events" and one.new]
    if leased and kinds == ["policy.decided", "step.tool_started"]:
        return ()
    text = f"B's first commit: lease taken {leased}, recorded {kinds}"
    return (broken("a resume is one transaction", text),)


def _rests_released(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """While it waits, nobody holds the run."""
    mine = [commit.n for commit in commits_by(history, "A")]
    at = next((n for n in mine if "run.paused" in kinds_of(history, n=n)), 0)
    row = rows_of(history, "runs", at)[0]
    if at and row["status"] == "WAITING_FOR_APPROVAL" and row["lease_owner"] is None:
        return ()
    text = f"it is {row['status']} and held by {row['lease_owner']}"
    return (broken("pausing releases the lease", text),)


def _asked_once(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """Of all that happened, one request for the approved effect went out."""
    found = [e.who for e in history.events if isinstance(e, EffectAsked) and e.name == "charge"]
    if len(found) == 1:
        return ()
    return (broken("an approved step runs once", f"it was asked for by {found}"),)


def _answered(name: str, job: str, *, outcome: str, status: str, story: str) -> Scenario:
    """An operator's answer about a call whose outcome is unknown."""
    return Scenario(
        name=name,
        story=(
            "A died with a call in flight that nobody can be asked about. B takes over, and the"
            " run waits for an operator, who sees the call and that its outcome is unknown."
            f" {story}"
        ),
        script=f"""
            submit r1
            spawn A
            until A effect:wire after
            kill A
            expire
            spawn B
            run B
            spawn Q to question
            run Q
            spawn C to {job}
            run C
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "interruption of A", "reconciliation by B"),
        variant="asks operator",
        also=(
            says("B", {"r1": "WAITING_FOR_APPROVAL"}),
            says("Q", {"name": "wire", "key": "r1/0", "attempt": 1, "outcome_unknown": True}),
            decided((outcome, "operator:ada")),
            ends(status),
        ),
    )


SCENARIOS: Final = (
    Scenario(
        name="resume_is_one_transaction",
        story=(
            "A run waits for approval, and nobody holds it. B resumes it with an operator's word:"
            " the lease, the recorded decision and the tool's start are one transaction."
        ),
        script=f"""{_WAIT}
            spawn B to say_approve
            run B
            heal
            drain
        """,
        requires=("claim by B", "finish by B"),
        needs=frozenset({"asks_approval"}),
        variant="approval",
        also=(_rests_released, _all_in_one_commit, says("B", "SUCCEEDED")),
    ),
    Scenario(
        name="two_resumers_race",
        story=(
            "B and C both resume the waiting run, both with an approval. B has read the run and is"
            " about to write when C takes it. One wins; B gets the state error, writes nothing, and"
            " the approved step runs once."
        ),
        script=f"""{_WAIT}
            spawn B to say_approve
            until B txn:begin before
            spawn C to say_approve
            until C {{danger}}
            run B
            run C
            heal
            drain
        """,
        requires=("claim by C", "finish by C"),
        variant="approval",
        also=(says("B", "RunStateError"), writes_nothing("B"), _asked_once),
    ),
    Scenario(
        name="two_resumers_race_for_real",
        story="The same with nobody holding anybody back.",
        script=f"""{_WAIT}
            spawn B to say_approve
            spawn C to say_approve
            free B C
            heal
            drain
        """,
        requires=("claim",),
        variant="approval",
        also=(_asked_once, ends("SUCCEEDED")),
    ),
    Scenario(
        name="approved_twice_in_turn",
        story=(
            "B's resume of the waiting run has been overtaken: C resumed it, ran it to the next"
            " pause, and it waits again. What B read is not what is there, so B's answer to an"
            " earlier question is not taken for one to the later."
        ),
        script=f"""{_WAIT}
            spawn B to say_approve
            until B txn:begin before
            spawn C to say_approve
            run C
            run B
            heal
            drain
        """,
        requires=("claim by C",),
        variant="approval twice",
        also=(says("B", "RunStateError"), writes_nothing("B"), ends("WAITING_FOR_APPROVAL")),
    ),
    Scenario(
        name="killed_while_resuming",
        story=(
            "B is killed inside the transaction that resumes the waiting run. The run waits as"
            " before: no decision, no start, no lease of a dead process. C resumes it."
        ),
        script=f"""{_WAIT}
            spawn B to say_approve
            until B sql:INSERT events before
            kill B
            spawn C to say_approve
            run C
            heal
            drain
        """,
        requires=("killed: B", "claim by C", "finish by C"),
        variant="approval",
        also=(writes_nothing("B"), _asked_once),
    ),
    Scenario(
        name="rejected",
        story="An operator rejects the step: the run ends, nothing was started, nobody holds it.",
        script=f"""{_WAIT}
            spawn B to say_reject
            run B
            heal
            drain
        """,
        requires=(),
        variant="approval",
        also=(ends("FAILED"), says("B", "FAILED")),
    ),
    Scenario(
        name="approved_meanwhile",
        story=(
            "The operator approves while no worker is there. The next one that looks for work takes"
            " the run, and goes on; the word is for this question, and for no later one."
        ),
        script=f"""{_WAIT}
            approve r1
            spawn B
            run B
            run B
            heal
            drain
        """,
        requires=("claim by B",),
        variant="approval twice",
        also=(
            says("B", {"r1": "WAITING_FOR_APPROVAL"}, {"r1": "WAITING_FOR_APPROVAL"}), _asked_once
        ),
    ),
    Scenario(
        name="no_word_no_resume",
        story=(
            "Nobody has approved. Whoever resumes is told that an approval is needed, and not a row"
            " is changed; nor by an answer that fits another question."
        ),
        script=f"""{_WAIT}
            spawn B to resume
            run B
            spawn C to say_applied
            run C
            heal
            drain
        """,
        requires=("release by A",),
        variant="approval",
        also=(
            says("B", {"r1": "RunStateError, all rows as before, now read 0 times"}),
            writes_nothing("B"), writes_nothing("C"), says("C", "RunStateError"),
        ),
    ),
    _answered("operator_says_applied", "say_applied", outcome="already-applied",
              status="SUCCEEDED", story="It was applied: it is not made again."),
    _answered("operator_says_retry", "say_retry", outcome="retry",
              status="SUCCEEDED", story="It is made again, under its key."),
    _answered("operator_says_compensate", "say_compensate", outcome="compensate",
              status="FAILED", story="It is undone, and the run fails."),
    _answered("operator_says_fail", "say_fail", outcome="fail",
              status="FAILED", story="The run is given up."),
    Scenario(
        name="operator_is_waited_for",
        story=(
            "The same, and no operator comes. Processes that look for work leave the run alone; a"
            " mere approval is no answer to what became of the call."
        ),
        script="""
            submit r1
            spawn A
            until A effect:wire after
            kill A
            expire
            spawn B
            run B
            spawn C
            run C
            spawn D to say_approve
            run D
            heal
            drain
        """,
        requires=("killed: A", "take-over by B", "reconciliation by B"),
        variant="asks operator",
        also=(
            says("C", {"r1": "WAITING_FOR_APPROVAL"}), writes_nothing("C"),
            says("D", "RunStateError"), writes_nothing("D"),
        ),
    ),
)  # fmt: skip
