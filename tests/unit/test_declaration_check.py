"""A declaration that doesn't fit is told, whole, and beside what the database really has."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_leasecheck.testkit.declaration_check import (
    check,
    check_against,
    columns_of,
    of_no_run,
    unexplained,
)
from pytest_leasecheck.testkit.errors import SubjectError
from pytest_leasecheck.testkit.history import Change, Commit, Header, History, Row
from pytest_leasecheck.testkit.subject import (
    After,
    Beat,
    Counter,
    Declaration,
    EffectRows,
    Lease,
    Reconciliations,
    RunTable,
    Steps,
    Writes,
)

SCHEMA = (
    "CREATE TABLE jobs (id, status, worker_id, lease_expires_at, fence, attempts)",
    "CREATE TABLE executions (n INTEGER PRIMARY KEY, job_id, name, state, out AS (name || '!'))",
    "CREATE TABLE workers (name, beat)",
    "CREATE INDEX by_status ON jobs (status)",
    "CREATE VIRTUAL TABLE odd USING nosuchmodule (x)",
)
LEASE = Lease(
    owner="worker_id",
    held={"status": {"running"}},
    expires_at="lease_expires_at",
    token="fence",
    generation=("attempts",),
)
RUNS = RunTable("jobs", id="id", status="status", terminal={"done", "failed"}, lease=LEASE)
GOOD = Declaration("Tiny", RUNS, writes=(Writes("executions", run="job_id"),))


def lease(**changed: Any) -> Declaration:
    return replace(GOOD, runs=replace(RUNS, lease=replace(LEASE, **changed)))


def runs(**changed: Any) -> Declaration:
    return replace(GOOD, runs=replace(RUNS, **changed))


def steps(**changed: Any) -> Declaration:
    good = Steps("executions", "job_id", ("name",), "state", started={"s"}, finished={"f"})
    return replace(GOOD, steps=replace(good, **changed))


def problems_of(declaration: Declaration, rows: Mapping[str, list[Row]] | None = None) -> list[str]:
    with pytest.raises(SubjectError) as caught:
        check(declaration, SCHEMA, rows)
    assert "Tiny" in str(caught.value)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "declaration",
    [
        GOOD,
        lease(expires_at=After("lease_expires_at", 30)),
        lease(expires_at=After("lease_expires_at", "attempts")),
        lease(expires_at=Beat("workers", key="name", by="worker_id", column="beat", seconds=30)),
        lease(table="workers", run="name", owner="beat", held={}, expires_at=None, token=None,
              generation=()),
        runs(terminal=(), status=None, gone=True),
        steps(result="out"),
        replace(GOOD, writes=(Writes("executions", run="some.module:function"),)),
        replace(GOOD, capabilities=frozenset({"checks_expiry", "cancels"})),
    ],
)  # fmt: skip
def test_what_fits_is_silent(declaration: Declaration) -> None:
    check(declaration, SCHEMA)
    check(declaration, columns_of(SCHEMA))


def test_columns_of_a_schema() -> None:
    columns = columns_of(SCHEMA)
    assert columns["executions"] == ("n", "job_id", "name", "state", "out")
    assert set(columns) == {"jobs", "executions", "workers"}


@pytest.mark.parametrize(
    ("declaration", "text"),
    [
        (
            runs(table="Job"),
            "runs.table: there is no table 'Job'; did you mean 'jobs'? The database has"
            " jobs(id, status,",
        ),
        (runs(id="ids"), "runs.id: 'jobs' has no column 'ids'; did you mean 'id'? It is jobs(id,"),
        (runs(id=("id", "part")), "runs.id: 'jobs' has no column 'part'"),
        (runs(status="stat"), "runs.status: 'jobs' has no column 'stat'; did you mean 'status'?"),
        (lease(owner="worker"), "runs.lease.owner: 'jobs' has no column 'worker'"),
        (lease(token="Fence"), "runs.lease.token: 'jobs' has no column 'Fence'; did you mean 'f"),
        (lease(renewed_at="x"), "runs.lease.renewed_at: 'jobs' has no column 'x'"),
        (lease(generation=("attempt",)), "did you mean 'attempts'?"),
        (lease(held={"state": {"r"}}), "runs.lease.held: 'jobs' has no column 'state'"),
        (lease(expires_at="expires"), "runs.lease.expires_at: 'jobs' has no column 'expires'"),
        (lease(expires_at=After("x", 1)), "runs.lease.expires_at.column: 'jobs' has no column"),
        (lease(expires_at=After("fence", "ttl")), "runs.lease.expires_at.seconds: 'jobs' has no"),
        (
            lease(expires_at=Beat("wrkers", "name", "worker_id", "beat", 30)),
            "there is no table 'wrkers'; did you mean 'workers'?",
        ),
        (
            lease(expires_at=Beat("workers", "name", "name", "beat", 30)),
            "runs.lease.expires_at.by: 'jobs' has no column 'name'",
        ),
        (
            lease(table="workers", owner="name", held={}, expires_at=None, token=None,
                  generation=()),
            "runs.lease.run: 'workers' has no column 'id'",
        ),
        (replace(GOOD, writes=(Writes("nope", "x"),)), "writes[0].table: there is no table 'nope'"),
        (replace(GOOD, writes=(Writes("executions", "job"),)), "did you mean 'job_id'?"),
        (replace(GOOD, counters=(Counter("jobs", "slots"),)), "counters[0].column: 'jobs' has no"),
        (replace(GOOD, counters=(Counter("jobs", "fence", "most"),)), "counters[0].most"),
        (steps(id=("name", "no")), "steps: 'executions' has no column 'no'"),
        (
            replace(GOOD, reconciliations=Reconciliations("executions", "job_id", ("name",), "d")),
            "reconciliations: 'executions' has no column 'd'",
        ),
        (replace(GOOD, effects=EffectRows("executions", "job_id", key="k")), "effects: 'exec"),
        # What can't be true of any database.
        (runs(id=()), "runs.id: names no column"),
        (lease(owner=None, held={}), "runs.lease: nothing tells when a row is a lease"),
        (lease(run="id"), "runs.lease.run: is given, but no table"),
        (runs(terminal=()), "runs.terminal: no run is ever finished"),
        (runs(status=None), "runs.terminal: is given, but no status column"),
        (runs(terminal="done"), "runs.terminal: is the text 'done'; write {'done'}"),
        (lease(held={"status": "running"}), "runs.lease.held.status: is the text 'running'"),
        (lease(held={"status": ()}), "runs.lease.held.status: is empty"),
        (runs(terminal={"running"}), "runs.terminal: a run can't be leased and 'running'"),
        (runs(waiting={"done"}), "runs.terminal: a run can't be waiting and 'done'"),
        (steps(started={"x"}, finished={"x"}), "steps.finished: 'x' can't be started and finished"),
        (steps(finished=()), "steps.finished: is empty"),
        (steps(interrupted="s"), "steps.interrupted: is the text 's'"),
        (
            replace(GOOD, capabilities=frozenset({"check_expiry"})),
            "capabilities: 'check_expiry' is no capability; did you mean 'checks_expiry'?",
        ),
        (replace(GOOD, capabilities=frozenset({"zzz"})), "known: asks_approval, "),
        (
            replace(GOOD, capabilities=frozenset({"fences_effects"})),
            "'fences_effects' needs effects",
        ),
        (replace(GOOD, capabilities=frozenset({"reconciles"})), "'reconciles' needs steps"),
        (replace(GOOD, capabilities=frozenset({"asks_approval"})), "'asks_approval' needs runs.w"),
        (
            replace(lease(expires_at=None), capabilities=frozenset({"checks_expiry"})),
            "'checks_expiry' needs an expiry",
        ),
        (lease(unit="h"), "runs.lease.unit: 'h' is no unit; known: iso, julian, local iso"),
        (replace(GOOD, delivery="once"), "delivery: 'once' is none of 'at-least-once'"),
        (replace(GOOD, provider_fence="x"), "provider_fence: 'x' is none of"),
        (replace(GOOD, lease_ttl_ms=0), "lease_ttl_ms: a lease of 0 ms is no lease"),
        (replace(GOOD, bears_skew_ms=-1), "bears_skew_ms: -1 ms is no amount of skew"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(declaration: Declaration, text: str) -> None:
    found = problems_of(declaration)
    assert any(text in problem for problem in found), found


def test_all_of_it_is_told_at_once_and_a_table_only_once() -> None:
    wrong = replace(
        runs(table="jbos"),
        writes=(Writes("executions", "job"),),
        capabilities=frozenset({"reconcile"}),
    )
    found = problems_of(wrong)
    assert len(found) == 3
    assert [problem.split(":")[0] for problem in found] == [
        "runs.table",
        "writes[0].run",
        "capabilities",
    ]


JOB: Row = {"id": "r1", "status": "queued", "worker_id": None, "fence": 0, "attempts": 0}


def test_a_key_that_matches_no_run() -> None:
    row: Row = {"n": 1, "job_id": 17, "name": "s"}
    found = problems_of(GOOD, {"jobs": [JOB], "executions": [row]})
    (problem,) = found
    assert problem == "executions: 'job_id' matches no run: it is '17', the runs are 'r1'"
    check(GOOD, SCHEMA, {"jobs": [{**JOB, "id": 17}], "executions": [row]})
    check(GOOD, SCHEMA, {"jobs": [JOB], "executions": []})
    check(GOOD, SCHEMA, {"executions": [row]})


def test_a_key_by_a_function() -> None:
    row: Row = {"n": 1, "job_id": 17, "name": "r1"}
    rows: dict[str, list[Row]] = {"jobs": [JOB], "executions": [row]}
    by_json = replace(GOOD, writes=(Writes("executions", run="json:dumps"),))
    (problem,) = problems_of(by_json, rows)
    assert "'json:dumps' matches no run" in problem
    missing = replace(GOOD, writes=(Writes("executions", run="json:nothing"),))
    (problem,) = problems_of(missing, rows)
    assert "'json:nothing' can't be had" in problem


def history(*changes: tuple[str, Row | None, Row | None]) -> History:
    events = tuple(
        Commit(n, n, "A#1", "main", 1, n, (Change(table, (1,), old, new),))
        for n, (table, old, new) in enumerate(changes, start=1)
    )
    return History(Header("", ""), events)


RUNNING: Row = {**JOB, "status": "running", "worker_id": "A", "fence": 1}
DONE: Row = {**RUNNING, "status": "done", "worker_id": None}
PLAIN = (
    ("jobs", None, JOB),
    ("jobs", JOB, RUNNING),
    ("executions", None, {"job_id": "r1"}),
    ("jobs", RUNNING, DONE),
)


def texts(made: History, declaration: Declaration = GOOD) -> list[str]:
    return [str(problem) for problem in unexplained(made, declaration)]


def test_a_plain_run_that_is_explained() -> None:
    assert texts(history(*PLAIN)) == []


def test_a_change_of_no_run() -> None:
    stray = history(*PLAIN, *[("executions", None, {"job_id": "x"})] * 7)
    found = texts(stray)
    assert found[0] == (
        "event 5: a change of 'executions', key (1,), is of no run: its 'job_id' is 'x'"
    )
    assert found[-1] == "and 2 more changes like these"
    assert len(found) == 6
    nothing = texts(history(*PLAIN, ("executions", None, {"job_id": None})))
    assert nothing == [
        "event 5: a change of 'executions', key (1,), is of no run: 'job_id' is nothing"
    ]


def test_a_row_that_comes_before_its_runs_row() -> None:
    assert texts(history(PLAIN[2], *PLAIN)) == []
    early: Row = {"id": "x", "job_id": "x"}  # a column that is called like the runs' own
    assert "is of no run" in texts(history(*PLAIN, ("executions", None, early)))[0]


def test_a_run_that_was_deleted_was_a_run() -> None:
    gone = history(*PLAIN, ("jobs", DONE, None), ("executions", None, {"job_id": "r1"}))
    assert texts(gone) == []


def test_a_lease_or_an_end_that_is_never_seen() -> None:
    other = lease(held={"status": {"RUNNING"}})
    assert texts(history(*PLAIN), other) == [
        "runs.lease.held.status: no row ever had one of 'RUNNING'; seen were 'done', 'queued',"
        " 'running'"
    ]
    assert texts(history(*PLAIN[:3])) == [
        "runs.terminal: no run ever became one of 'done', 'failed'; seen were 'queued', 'running'"
    ]
    assert texts(history(PLAIN[0], PLAIN[3]), lease(owner="attempts", held={})) == []
    assert texts(history(PLAIN[0], PLAIN[3])) == [
        "runs.lease.held.status: no row ever had one of 'running'; seen were 'done', 'queued'",
        "runs.lease.owner: no row ever had an owner in jobs.worker_id",
    ]
    assert texts(history()) == ["runs.table: no row of 'jobs' was ever seen"]


def seen_on(schema: tuple[str, ...], *events: Any) -> History:
    return History(Header("Tiny", "", schema=schema), events)


def changed(table: str, **row: Any) -> Commit:
    return Commit(5, 0, "A#1", "main", 1, 1, (Change(table, (1,), None, row),))


def test_a_history_of_a_database_without_the_declared_names_is_refused():
    history = seen_on(SCHEMA)
    check_against(history, GOOD)
    with pytest.raises(SubjectError, match="no table 'job'; did you mean 'jobs'"):
        check_against(history, runs(table="job"))
    with pytest.raises(SubjectError, match="'executions' has no column 'run'"):
        check_against(history, replace(GOOD, writes=(Writes("executions", run="run"),)))


def test_where_workers_define_tables_themselves_nothing_is_missing():
    late = replace(GOOD, writes=(Writes("late", run="job_id"),))
    with pytest.raises(SubjectError, match="no table 'late'"):
        check_against(seen_on(SCHEMA), late)
    check_against(seen_on(SCHEMA, changed("late", job_id="r1")), late)
    check_against(seen_on(SCHEMA, changed("jobs", id="r1", another=7)), late)
    with pytest.raises(SubjectError, match="no table 'late'"):
        check_against(seen_on(SCHEMA, changed("jobs", id="r1")), late)
    check_against(seen_on(()), late)  # a history without a schema can't tell


def test_a_table_whose_rows_are_all_of_no_run_is_told():
    wrong = replace(GOOD, writes=(Writes("executions", run="name"),))
    run, row = changed("jobs", id="r1"), changed("executions", job_id="r1", name="fetch")
    (problem,) = of_no_run(seen_on(SCHEMA, run, row), wrong)
    assert str(problem) == "executions: 'name' matches no run: it is 'fetch', the runs are 'r1'"
    assert of_no_run(seen_on(SCHEMA, run, row), GOOD) == ()
    nobodys = changed("executions", job_id="r1", name=None)
    assert of_no_run(seen_on(SCHEMA, run, nobodys), wrong) == ()
    other = changed("executions", job_id="r1", name="r1")
    assert of_no_run(seen_on(SCHEMA, run, row, other), wrong) == ()
