"""What `explain` says of a plain run, and of one that its declaration does not fit."""

from dataclasses import replace

import pytest

from pytest_leasecheck.testkit import history as h
from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.errors import HistoryError
from pytest_leasecheck.testkit.explain import explain
from pytest_leasecheck.testkit.subject import Declaration, Lease, RunTable, Writes

START_NS = 1_700_000_000 * 10**9
MS = 10**6
DECLARATION = Declaration(
    "Tiny",
    RunTable(
        "jobs",
        id="id",
        status="status",
        terminal={"done"},
        lease=Lease(owner="owner", held={"status": {"running"}}, expires_at="until", token="fence"),
    ),
    writes=(Writes("results", run="job"), Writes("logs", run="job")),
)
FREE: h.Row = {
    "id": "r", "status": "queued", "owner": None, "until": None, "fence": 0, "pay": None
}  # fmt: skip
HELD: h.Row = {
    **FREE, "status": "running", "owner": "A", "until": 1_700_000_030, "fence": 1, "pay": b"x" * 90
}  # fmt: skip
DONE: h.Row = {**HELD, "status": "done", "owner": None, "until": None}


def commit(n: int, ms: int, *changes: h.Change, who: str = "A#1") -> h.Commit:
    return h.Commit(n, START_NS + ms * MS, who, "main", 1, n, changes)


def plain() -> h.History:
    at = START_NS
    job = ("r",)
    events: tuple[h.Event, ...] = (
        h.Acted(1, at, "submit r"),
        commit(2, 0, h.Change("jobs", job, None, FREE), who="operator#1"),
        h.Spawned(3, at, "A#1", 77, "A", "work"),
        h.ClockRead(4, at, "A#1", "main", at),
        h.Passed(5, at, "A#1", "main", "txn:begin", 1, "before", False),
        commit(6, 4, h.Change("jobs", job, FREE, HELD)),
        h.EffectAsked(7, at, "A#1", "main", 1, "charge", "r", 1, "k", "rc-1", "provider"),
        h.EffectDecided(8, at, "A#1", 1, "accepted", ""),
        h.EffectAnswered(9, at, "A#1", 1, "delivered"),
        h.Statement(
            10, at, "A#1", "main", 1, 8, "UPDATE", "jobs", "UPDATE jobs SET x = 1 WHERE 0", 0
        ),
        h.Statement(11, at, "A#1", "main", 1, 8, "SELECT", "jobs", "SELECT 1", None),
        commit(
            12,
            12_345,
            h.Change("results", (1,), None, {"job": "r", "value": "ok", "note": None}),
            h.Change("jobs", job, HELD, DONE),
        ),
        h.Returned(13, at + 13_000 * MS, "A#1", "main", "'fine'", ""),
        h.Ended(14, at + 13_000 * MS, "A#1", "returned"),
    )
    header = h.Header(
        "tests:Tiny",
        "",
        start_ns=START_NS,
        declaration=declaration_to_json(DECLARATION),
        tables={"jobs": {}, "results": {}, "logs": {}},
    )
    return h.History(header, events)


def lines_of(history: h.History) -> list[str]:
    return explain(history).splitlines()


def test_a_plain_run_commit_by_commit() -> None:
    lines = lines_of(plain())
    assert lines[0] == (
        "How a run of tests:Tiny was understood (clock virtual, attribution commit)"
    )
    assert lines[2] == " n     ms  who         what"
    assert lines[3] == " 1      0              script: submit r"
    taken = next(at for at, line in enumerate(lines) if line.startswith(" 6      4  A#1"))
    assert lines[taken].endswith("takes the lease of 'r' (tenure 1)")
    assert (
        lines[taken + 1]
        .strip()
        .startswith(
            "jobs['r']: status 'queued' -> 'running', owner NULL -> 'A', until NULL -> 1700000030"
        )
    )
    assert "pay NULL -> b'xxxxxxxxxxxxxxxxxxxxx…xxxx" in lines[taken + 1]
    text = "\n".join(lines)
    assert "asks for effect charge, request 1 (run 'r', token 1, key 'k')" in text
    assert "UPDATE jobs changed nothing: 'UPDATE jobs SET x = 1 WHERE 0'" in text
    finished = next(at for at, line in enumerate(lines) if line.startswith("12  12345  A#1"))
    assert "finishes 'r' (tenure 1)" in "\n".join(lines[finished : finished + 3])
    assert "results[1] is new: job 'r', value 'ok'" in text
    assert "its work came back: 'fine'" in text
    assert "Not explained" not in text


def test_tenures_and_what_was_left_aside() -> None:
    lines = lines_of(plain())
    tenure = lines[lines.index("Tenures:") + 1]
    assert tenure == (
        "  A#1 (tenure 1 of r, token 1), as 'A': from event 6 to event 12: finished by A#1"
    )
    left = lines[lines.index("Left aside:") + 1 :]
    assert "  1 readings of the clock" in left
    assert "  1 points passed" in left
    assert "  1 reads" in left
    assert "  columns of jobs with no declared meaning of their own: pay" in left
    assert "  columns of results with no declared meaning of their own: value" in left
    assert "  declared tables that never changed: logs" in left


def test_columns_are_aligned() -> None:
    lines = lines_of(plain())
    column = lines[2].index("what")
    end = lines.index("Tenures:") - 1
    for line in lines[3:end]:
        assert line[column - 2 : column] == "  "
        assert not line.endswith(" ")


def test_what_the_declaration_does_not_explain_is_said() -> None:
    lease = replace(DECLARATION.runs.lease, held={"status": {"RUNNING"}})
    wrong = replace(DECLARATION, runs=replace(DECLARATION.runs, lease=lease))
    made = plain()
    header = replace(made.header, declaration=declaration_to_json(wrong))
    stray = commit(20, 14_000, h.Change("results", (2,), None, {"job": "zz"}))
    lines = lines_of(h.History(header, (*made.events, stray)))
    found = lines[lines.index("Not explained by the declaration:") + 1 :]
    assert "  event 20: a change of 'results', key (2,), is of no run: its 'job' is 'zz'" in found
    assert any("no row ever had one of 'RUNNING'" in line for line in found)
    taken = "  A#1 (tenure 1 of r, token 1): from event 12 to event 12: finished by A#1"
    assert taken in lines, "a claim whose rows never count as held is seen at its end alone"


@pytest.mark.parametrize(("unit", "told"), [("s", False), (None, False), ("ms", True)])
def test_a_lease_that_was_over_when_it_began_has_a_wrong_unit(unit: str | None, told: bool) -> None:
    lease = replace(DECLARATION.runs.lease, unit=unit)
    declared = replace(DECLARATION, runs=replace(DECLARATION.runs, lease=lease))
    made = plain()
    header = replace(made.header, declaration=declaration_to_json(declared))
    text = "\n".join(lines_of(h.History(header, made.events)))
    wrong = (
        "  runs.lease.expires_at: read with unit='ms' a lease that was claimed at 2023-11-14"
        " 22:13:20 ended at 1970-01-20 16:13:20 (UTC), before it began; is the `unit` another?"
    )
    assert (wrong in text) is told
    assert ("Not explained" in text) is told


def test_a_commit_of_nobody_and_one_for_no_run() -> None:
    made = plain()
    stray = commit(20, 14_000, h.Change("results", (2,), {"job": None}, None), who="")
    lines = lines_of(h.History(made.header, (*made.events, stray)))
    assert any(line.startswith("20  14000  ?") for line in lines)
    assert any(line.strip() == "results[2] is deleted" for line in lines)


def test_every_kind_of_event_is_told_or_counted() -> None:
    at = START_NS + 20_000 * MS
    more: tuple[h.Event, ...] = (
        h.Settled(21, at, "A#1", "returned"),
        h.Signalled(22, at, "A#1", "SIGSTOP", "free"),
        h.ClockMoved(23, at, at, "expire"),
        h.RolledBack(24, at, "A#1", "main", 1, 9),
        h.LookedUp(25, at, "A#1", "main", "k", "accepted"),
        h.Blind(26, at, "A#1", "its trace callback was replaced"),
        h.Noted(27, at, "", "line 9\nwas cut off"),
        h.Returned(28, at, "A#1", "main", "", "LeaseLost: gone"),
    )
    made = plain()
    text = explain(h.History(made.header, (*made.events, *more)))
    for said in (
        "1 moves that ended",
        "SIGSTOP; the write lock is free",
        "the clock moves (expire)",
        "1 transactions rolled back",
        "asks what became of key 'k': accepted",
        "BLIND: its trace callback was replaced",
        "note: line 9 was cut off",
        "raised 'LeaseLost: gone'",
    ):
        assert said in text
    kinds = {type(event) for event in (*made.events, *more)}
    assert kinds == set(h.KINDS.values())


def test_a_history_without_a_declaration_is_refused() -> None:
    with pytest.raises(HistoryError):
        explain(h.History(h.Header("", ""), ()))
