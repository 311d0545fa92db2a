"""The timeline in a failure: what a reader needs, in the order in which it happened."""

from pytest_leasecheck.testkit import history as h
from pytest_leasecheck.testkit.verdict import Act, Attempt, Counts, Finding, Verdict
from pytest_leasecheck.timeline_text import draw

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
DECLARATION = {"runs": {"status": "state", "lease": {"token": "fence", "owner": "owner"}}}


def history(*events: h.Event) -> h.History:
    header = h.Header("mine", "", start_ns=START, declaration=DECLARATION)
    return h.History(header, events)


def verdict(
    *, acts: tuple[Act, ...] = (), attempts: tuple[Attempt, ...] = (), at: tuple[int, ...] = ()
) -> Verdict:
    found = (Finding("V1", "a stale write landed", "…", "r1", "A#1", at=at),) if at else ()
    return Verdict("fail", found, (), {}, (), acts, attempts, (), Counts())


def test_owner_token_and_status_come_before_a_line_is_cut() -> None:
    old = {"id": "r1", "zeal": "", "fence": 1, "state": "queued", "owner": None}
    new = {"id": "r1", "zeal": "x" * 500, "fence": 2, "state": "running", "owner": "B"}
    commit = h.Commit(3, START, "B#1", "main", 1, 1, (h.Change("jobs", ("r1",), old, new),))
    act = Act(3, "r1", "B#1", "main", "acquire", 2, 1)
    (line,) = draw(history(commit), verdict(acts=(act,)))
    assert "acquire r1 | jobs r1: fence=2, owner='B', state='running', zeal=" in line
    assert len(line) < 130
    assert line.endswith("…")


def test_stale_attempt_shows_its_outcome_and_its_guard() -> None:
    statement = h.Statement(
        7, START, "A#1", "main", 1, 1, "UPDATE", "jobs", "UPDATE jobs SET x = 1", 0
    )
    attempt = Attempt(7, "r1", "A#1", 1, "UPDATE jobs", "changed nothing", ("token", "owner"))
    lines = draw(history(statement), verdict(attempts=(attempt,)))
    assert "stale attempt, UPDATE jobs: changed nothing by token, owner" in lines[0]
    assert "UPDATE jobs SET x = 1 -> 0 rows" in lines[1]


def test_statements_that_nobody_asked_about_are_left_out() -> None:
    statement = h.Statement(7, START, "A#1", "main", 1, 1, "SELECT", "jobs", "SELECT 1", None)
    assert draw(history(statement), verdict()) == []
    assert "SELECT 1 -> read" in draw(history(statement), verdict(at=(7,)))[0]


def test_events_of_a_finding_are_marked_and_never_hidden() -> None:
    events = [h.Noted(n, START + n * SECOND, "A#1", f"remark {n}") for n in range(1, 1_001)]
    lines = draw(history(*events), verdict(at=(2,)))
    assert len(lines) < 150
    assert lines[0] == "!    2     2.000s  A#1  remark 2"
    assert lines[-1].endswith("remark 1000")


def test_clock_is_told_from_the_scripts_start() -> None:
    moved = h.ClockMoved(4, START, START + 30 * SECOND, "expire")
    assert draw(history(moved), None)[0].endswith("clock  moved to 30.000s (expire)")


def test_text_of_many_lines_stays_one_line() -> None:
    returned = h.Returned(4, START, "A#1", "main", "", "ValueError: one\ntwo")
    assert draw(history(returned), None) == ["     4     0.000s  A#1  raised ValueError: one two"]
