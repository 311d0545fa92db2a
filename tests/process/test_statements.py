"""Each way to talk to SQLite, in each journal mode: a statement is a point, a commit an event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playing import blind, failure, lane_for, of, play, points, state, statements, value, written
from subjects_statements import RollbackStatements, Statements, TruncatingStatements

from pytest_leasecheck.testkit.history import Commit, RolledBack, Statement
from pytest_leasecheck.testkit.lane import Lane


@pytest.fixture(
    scope="module",
    params=[Statements, RollbackStatements, TruncatingStatements],
    ids=lambda subject: subject.journal,
)
def lane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lane]:
    with lane_for(request.param, tmp_path_factory.mktemp("logs")) as lane:
        yield lane


def run(lane: Lane, job: str) -> Any:
    history = play(lane, f"spawn A to {job}; run A")
    assert not failure(history)
    assert not blind(history)
    for commit in of(Commit, history):
        assert (commit.who, commit.thread) == ("A#1", "main")
        assert commit.connection > 0
        assert commit.txn > 0
    return history


@pytest.mark.parametrize(
    ("job", "notes"),
    [
        ("implicit_begin", ["two"]),
        ("with_connection", ["with"]),
        ("autocommit", ["auto"]),
        ("cte", ["cte"]),
        ("returning_read_out", ["ret"]),
        ("triggered", ["trigger"]),
        ("savepoints", ["in"]),
        ("attached_to_memory", ["attached"]),
        ("attaches_another", ["here"]),
        ("cache_file", ["real"]),
        ("temp_store", ["temp"]),
        ("early_bound", ["early"]),
        ("subclassed", ["sub"]),
        ("fts", ["fts"]),
        ("rolled_back", []),
        ("changes_nothing", []),
        ("raised_inside", ["after"]),
        ("replaced", ["new row"]),
        ("two_connections", ["first", "second", "third"]),
        ("stale_statement", ["before", "prepared anew"]),
        ("blobs", [b"\x00\xff", "a\udc80\udcff", "a\0b"]),
    ],
)
def test_every_commit_is_seen_with_its_author(lane: Lane, job: str, notes: list[Any]) -> None:
    history = run(lane, job)
    assert written(history) == [("A#1", "a", note) for note in notes]


def test_many_rows_of_one_executemany_are_one_commit_and_a_point_each(lane: Lane) -> None:
    history = run(lane, "many")
    assert points(history, prefix="sql:") == [
        "sql:UPDATE jobs#1 before",
        "sql:UPDATE jobs#1 after",
        "sql:UPDATE jobs#2 before",
        "sql:UPDATE jobs#2 after",
    ]
    (commit,) = of(Commit, history)
    assert [change.new and change.new["note"] for change in commit.changes] == ["m1", "m2"]


def test_a_script_of_statements_is_a_transaction_and_a_statement_of_its_own(lane: Lane) -> None:
    history = run(lane, "script")
    assert written(history) == [("A#1", "a", "s"), ("A#1", "b", "t")]
    assert [commit.txn for commit in of(Commit, history)] == [1, 2]


def test_an_implicit_transaction_has_its_points_in_order(lane: Lane) -> None:
    assert points(run(lane, "implicit_begin")) == [
        "txn:begin#1 before",
        "txn:begin#1 after",
        "sql:UPDATE jobs#1 before",
        "sql:UPDATE jobs#1 after",
        "sql:UPDATE jobs#2 before",
        "sql:UPDATE jobs#2 after",
        "txn:commit#1 before",
        "txn:commit#1 after",
    ]


def test_a_single_statement_is_a_whole_transaction(lane: Lane) -> None:
    assert points(run(lane, "autocommit")) == [
        "txn:begin#1 before",
        "sql:UPDATE jobs#1 before",
        "txn:commit#1 before",
        "sql:UPDATE jobs#1 after",
        "txn:commit#1 after",
    ]


def test_the_outermost_release_is_the_commit(lane: Lane) -> None:
    assert points(run(lane, "savepoints"), prefix="txn:") == [
        "txn:begin#1 before",
        "txn:begin#1 after",
        "txn:commit#1 before",
        "txn:commit#1 after",
    ]


def test_a_trigger_is_no_statement_of_its_own(lane: Lane) -> None:
    history = run(lane, "triggered")
    assert points(history, prefix="sql:") == [
        "sql:UPDATE jobs#1 before",
        "sql:UPDATE jobs#1 after",
    ]


def test_full_text_tables_keep_their_own_statements_to_themselves(lane: Lane) -> None:
    assert {point.split("#")[0] for point in points(run(lane, "fts"), prefix="sql:")} == {
        "sql:INSERT docs",
        "sql:UPDATE jobs",
    }


@pytest.mark.parametrize("job", ["commented", "quoted"])
def test_comments_and_quoting_hide_no_table(lane: Lane, job: str) -> None:
    history = run(lane, job)
    assert {point.split("#")[0].lower() for point in points(history, prefix="sql:")} == {
        "sql:update jobs"
    }
    assert {verb for verb, table, _rows in statements(history) if table.lower() == "jobs"} == {
        "UPDATE"
    }


def test_a_returning_that_is_not_read_out_is_committed_when_it_is_let_go(lane: Lane) -> None:
    history = run(lane, "returning_left")
    assert written(history) == [
        ("A#1", "a", "left"),
        ("A#1", "b", "left"),
        ("A#1", "a", "next"),
    ]
    assert [commit.txn for commit in of(Commit, history)] == [1, 2]
    assert points(history, prefix="txn:commit") == [
        "txn:commit#1 before",
        "txn:commit#1 after",
        "txn:commit#2 before",
        "txn:commit#2 after",
    ]


def test_a_commit_that_changed_nothing_is_a_commit_all_the_same(lane: Lane) -> None:
    history = run(lane, "changes_nothing")
    (commit,) = of(Commit, history)
    (statement,) = of(Statement, history)
    assert (commit.changes, statement.rows) == ((), 0)
    assert (commit.connection, commit.txn) == (statement.connection, statement.txn)


def test_what_was_rolled_back_is_told_and_never_a_commit(lane: Lane) -> None:
    history = run(lane, "rolled_back")
    (rolled_back,) = of(RolledBack, history)
    (statement,) = of(Statement, history)
    assert statement.rows == 1
    assert rolled_back.txn == statement.txn
    assert not of(Commit, history)


def test_a_failed_constraint_changes_no_row(lane: Lane) -> None:
    history = run(lane, "raised_inside")
    assert statements(history) == [
        ("UPDATE", "jobs", 1),
        ("INSERT", "jobs", 0),
        ("UPDATE", "jobs", 1),
    ]
    assert [event.txn for event in of(RolledBack, history)] == [1]
    assert [commit.txn for commit in of(Commit, history)] == [2]


def test_what_found_the_database_locked_changed_no_row_and_began_nothing(lane: Lane) -> None:
    history = run(lane, "finds_it_locked")
    assert value(history) == "2"
    assert statements(history) == [("UPDATE", "jobs", 1), ("UPDATE", "jobs", 0)]
    begun = ["txn:begin#1 before", "txn:begin#2 before", "txn:begin#2 after"]
    assert points(history, prefix="txn:begin") == [
        *begun, "txn:begin#3 before", "txn:begin#4 before"
    ]  # fmt: skip


def test_what_was_left_with_a_row_of_it_in_hand_has_changed_rows(lane: Lane) -> None:
    assert ("UPDATE", "jobs", 1) in statements(run(lane, "returning_left"))[:1]


def test_a_statement_that_sqlite_prepared_anew_is_told_once(lane: Lane) -> None:
    history = run(lane, "stale_statement")
    assert [rows for _verb, _table, rows in statements(history)] == [1, 1]
    assert points(history, prefix="sql:UPDATE")[-1] == "sql:UPDATE jobs#2 after"


def test_two_connections_are_told_apart(lane: Lane) -> None:
    commits = of(Commit, run(lane, "two_connections"))
    assert [(commit.connection, commit.txn) for commit in commits] == [(1, 1), (2, 1), (1, 2)]


def test_a_read_only_connection_is_refused_by_sqlite_and_seen(lane: Lane) -> None:
    history = play(lane, "spawn A to read_only; run A")
    assert "readonly" in value(history)
    assert ("UPDATE", "jobs", 0) in statements(history)
    assert not of(Commit, history)


def test_a_trace_callback_of_the_subjects_own_makes_its_connection_blind(lane: Lane) -> None:
    history = play(lane, "spawn A to traced; run A")
    assert ["trace callback" in why for why in blind(history)] == [True]
    assert written(history) == [("A#1", "a", "seen"), ("A#1", "a", "unseen")]


def test_a_statement_killed_midway_leaves_nothing(lane: Lane) -> None:
    history = play(lane, "spawn A to killed_midway; until A midway; kill A; submit c")
    assert "midway" in "".join(points(history))
    assert not of(Commit, history, "A#1")
    assert not of(Statement, history, "A#1")
    assert [commit.who for commit in of(Commit, history)] == ["operator#1"]


def test_before_its_begin_a_stop_leaves_the_lock_and_at_its_commit_it_does_not(lane: Lane) -> None:
    free = play(lane, "spawn A to autocommit; until A txn:begin before; spawn B; run B")
    assert state(free, "B#1") == "returned"
    held = play(lane, "spawn A to autocommit; until A txn:commit before; spawn B; run B")
    assert state(held, "B#1") == "waits for the write lock"
