"""Published libraries, unedited: what is right about one, and wrong about the other, is seen."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from pytest_leasecheck.testkit.declaration_check import unexplained
from pytest_leasecheck.testkit.declaration_json import declaration_from_json
from pytest_leasecheck.testkit.errors import SubjectError
from pytest_leasecheck.testkit.explain import explain
from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.refusal import with_guards
from pytest_leasecheck.testkit.subject import Declaration, Lease, RunTable, Writes
from pytest_leasecheck.testkit.verdict import Verdict

from .conftest import Play, run_in

pytestmark = [pytest.mark.wild, pytest.mark.timeout(240)]

PLAIN = "submit r1\nspawn A\nrun A\n"
#: The classic schedule: B has finished when A goes on, and: B still holds the run.
BOTH_ORDERS = (
    "leasecheck/classic::eight_steps",
    "leasecheck/classic::wakes_while_the_new_owner_holds",
)
CLOCKS = ("virtual", "wall")


def suite(name: str, subject: str, items: Sequence[str], *, clock: str) -> tuple[int, str]:
    """The consumer's command line."""
    done = run_in(
        name, "-m", "pytest", "--leasecheck", f"--leasecheck-subject=tests.wild.{subject}",
        f"--leasecheck-clock={clock}", "-p", "no:cacheprovider", *items,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def summary(output: str) -> dict[str, int]:
    found = re.search(r"=+ ([^=]*) in [\d.]+s =+\s*$", output)
    assert found, output
    return {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", found[1])}


# --- the right one


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("subject", ["aiq_subject:AiqQueue", "aiq_subject:AiqOneName"])
def test_aiq_passes_the_classic_schedule(subject: str, clock: str) -> None:
    items = (*BOTH_ORDERS, "leasecheck/owners::twin_takes_over")
    code, output = suite("aiq", subject, items, clock=clock)
    assert (code, summary(output)) == (0, {"passed": 3}), output
    held = re.search(r"a stale token never writes +3 scripts, (\d+) stale attempts, none", output)
    assert held, output
    assert int(held[1]) >= 3
    assert "token (in the program)" in output


def test_aiq_keeps_what_else_it_promises() -> None:
    groups = ("leasecheck/classic", "leasecheck/owners")
    code, output = suite("aiq", "aiq_subject:AiqQueue", groups, clock="virtual")
    assert (code, summary(output)) == (0, {"passed": 8}), output


#: A is held before its commit, B takes over; then the operator puts A's lease back, or most of it.
PUT_BACK = """
    submit r1
    spawn A
    until A call:aiq.sqlite:SQLiteEventStore._commit_fenced_subscription_batch_sync before
    approve r1
    stop A
    expire
    spawn B
    until B call:aiq.sqlite:SQLiteEventStore._commit_fenced_subscription_batch_sync before
    cancel r1
    cont A
    run A
"""


@pytest.mark.parametrize(
    ("subject", "refused"),
    [("TokenLeft", True), ("LeaseIdLeft", True), ("PutBack", False)],
)
def test_what_refuses_aiqs_stale_commit(play: Play, subject: str, refused: bool) -> None:
    history = play(f"aiq_put_back:{subject}", PUT_BACK, "virtual")
    (said,) = (row.value for row in history if getattr(row, "who", "") == "A#1"
               and type(row).__name__ == "Returned")  # fmt: skip
    assert said.startswith("'lease lost") == refused
    landed = [
        change
        for event in history
        if type(event).__name__ == "Commit" and getattr(event, "who", "") == "A#1"
        for change in getattr(event, "changes", ())
        if change.table == "events"
    ]
    assert bool(landed) != refused


# --- the wrong one


@pytest.mark.parametrize("clock", CLOCKS)
def test_gigq_fails_the_classic_schedule(clock: str) -> None:
    code, output = suite("gigq", "gigq_subject:GigQueue", BOTH_ORDERS, clock=clock)
    assert (code, summary(output)) == (1, {"failed": 2}), output
    stale = re.findall(r"^V1 a stale write landed: (.*)$", output, re.MULTILINE)
    assert len(stale) == 2, output
    finished, holds = stale
    for text in stale:
        assert re.match(r"A#1\b.* run 'r1' ", text), text
        assert "jobs" in text, text
        assert "B#1" in text, text
    assert "changed" in finished
    assert "finished" in holds
    twice = re.findall(r"^V3 the result was recorded twice: (.*)$", output, re.MULTILINE)
    assert len(twice) == 2, output
    # What B, who was robbed, writes after that is told as a consequence, not as its doing.
    assert not re.search(r"^V\d+ .*: B#1 (changed|finished)", output, re.MULTILINE)


BEFORE = "submit r1\nspawn A\nuntil A effect:charge before\nstop A\nexpire\nspawn B\n"


@pytest.mark.parametrize(
    ("order", "titles"),
    [
        ("run B\ncont A\nrun A\n", {"a stale write landed", "the result was recorded twice"}),
        (
            "until B effect:charge before\ncont A\nrun A\nrun B\n",
            {"a stale write landed", "the result was recorded twice"},
        ),
    ],
)
def test_gigqs_findings_name_culprit_and_victim(play: Play, order: str, titles: set[str]) -> None:
    history = play("gigq_subject:GigQueue", BEFORE + order, "virtual")
    verdict = judged(history, "take-over by B", "stale attempt by A")
    faults = [item for item in verdict.findings if item.severity == "fault"]
    assert {item.title for item in faults} == titles
    assert {(item.culprit, item.victims, item.run_id) for item in faults} == {
        ("A#1", ("B#1",), "r1")
    }
    assert {item.who for item in verdict.attempts} == {"A#1"}
    assert verdict.missing == ()


def judged(history: History, *requires: str) -> Verdict:
    verdict = judge(history, requires=requires, drained=False)
    declared = declaration_from_json(history.header.declaration)
    asked = with_guards(history, declared, verdict.attempts, tenures=verdict.tenures)
    return replace(verdict, attempts=asked)


# --- declarations


@pytest.fixture(scope="module")
def aiq_plain(play: Play) -> History:
    return play("aiq_subject:AiqQueue", PLAIN, "virtual")


@pytest.fixture(scope="module")
def gigq_plain(play: Play) -> History:
    return play("gigq_subject:GigQueue", PLAIN, "virtual")


def told(history: History, wrong: Declaration) -> str:
    with pytest.raises(SubjectError) as raised:
        judge(history, declaration=wrong, drained=False)
    return str(raised.value)


def changed(history: History, **parts: object) -> Declaration:
    return replace(declaration_from_json(history.header.declaration), **parts)  # type: ignore[arg-type]


def test_a_wrong_table_or_column_is_shown_beside_the_real_ones(aiq_plain: History) -> None:
    runs = declaration_from_json(aiq_plain.header.declaration).runs
    wrong = changed(aiq_plain, runs=replace(runs, table="effect_lease"))
    text = told(aiq_plain, wrong)
    assert "there is no table 'effect_lease'; did you mean 'effect_leases'?" in text
    assert "events(global_position, stream_id, stream_version, event_id" in text
    lease = replace(runs.lease, token="fence_token")
    text = told(aiq_plain, changed(aiq_plain, runs=replace(runs, lease=lease)))
    assert "'effect_leases' has no column 'fence_token'; did you mean 'fencing_token'?" in text


def test_a_key_that_matches_no_run_is_shown_with_its_values(
    aiq_plain: History, gigq_plain: History
) -> None:
    for history, table, key in (
        (aiq_plain, "events", "event_type"),
        (gigq_plain, "job_executions", "worker_id"),
    ):
        wrong = changed(history, writes=(Writes(table, run=key),))
        problems = "\n".join(map(str, unexplained(history, wrong)))
        assert f"a change of {table!r}" in problems
        assert f"its {key!r} is " in problems
        # And nothing that is played under it may be called clean.
        assert judge(history, declaration=wrong, drained=False).outcome != "pass"


def test_a_lease_that_is_declared_where_none_is_written_is_told(gigq_plain: History) -> None:
    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done"},
        lease=Lease(owner="retry_after", held={"status": {"claimed"}}),
    )  # fmt: skip
    problems = "\n".join(map(str, unexplained(gigq_plain, changed(gigq_plain, runs=runs))))
    assert (
        "no row ever had one of 'claimed'; seen were 'completed', 'pending', 'running'" in problems
    )
    assert "no row ever had an owner in jobs.retry_after" in problems
    assert "no run ever became one of 'done'" in problems


def test_a_declaration_that_fits_explains_everything(
    aiq_plain: History, gigq_plain: History
) -> None:
    for history in (aiq_plain, gigq_plain):
        declared = declaration_from_json(history.header.declaration)
        assert unexplained(history, declared) == ()
        assert judge(history, drained=False).outcome == "pass"


def structure(text: str) -> str:
    """What `explain` says, without the numbers, the times and the values of this one run."""
    events = text.partition("\n\nLeft aside:")[0].splitlines()[3:]
    lines = (re.sub(r"^( *\d+ +\d+)?  +", "", line) for line in events)
    return "\n".join(re.sub(r"'[^']*'|\"[^\"]*\"|(?<![#\w])\d[\d.]*", "…", line) for line in lines)


@pytest.mark.parametrize("subject", ["aiq_subject:AiqQueue", "gigq_subject:GigQueue"])
def test_a_plain_run_of_each_explained(
    play: Play, subject: str, snapshot: SnapshotAssertion
) -> None:
    explained = explain(play(subject, PLAIN, "virtual"))
    assert "Not explained" not in explained
    assert structure(explained) == snapshot
