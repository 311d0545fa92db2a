"""What the observer tells of tables of each kind, and of tables that change under it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playing import blind, failure, lane_for, of, play, written
from subjects_tables import Brief, Crowd, Tables

from pytest_leasecheck.testkit.history import Commit, History
from pytest_leasecheck.testkit.lane import Lane


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_for(Tables, tmp_path_factory.mktemp("logs")) as lane:
        yield lane


def changes(history: History, table: str) -> list[tuple[Any, Any, Any]]:
    assert not failure(history)
    assert not blind(history)
    return [
        (change.key, dict(change.old) if change.old else None, change.new and dict(change.new))
        for commit in of(Commit, history)
        for change in commit.changes
        if change.table == table
    ]


def test_each_kind_of_table_is_read_by_its_key(lane: Lane) -> None:
    history = play(lane, "spawn A to kinds; run A")
    assert changes(history, "ids") == [(("a", 1), None, {"job": "a", "part": 1, "body": b"\0"})]
    four = {"job": "a", "size": 4, "twice": 8, "k": "k"}
    five = {"job": "a", "size": 5, "twice": 10, "k": "k"}
    assert changes(history, "exact") == [(("k",), None, four), (("k",), four, five)]
    assert changes(history, 'odd "name') == [((1,), None, {"rowid": "x", "job": "a", "a b": "y"})]


def test_rows_without_a_value_in_their_key_are_told_apart(lane: Lane) -> None:
    found = changes(play(lane, "spawn A to kinds; run A"), "loose")
    assert [(key, new and new["body"]) for key, _old, new in found] == [
        ((None, 1), 1),
        ((None, 2), 2),
        ((None, 2), 3),
    ]


def test_rows_that_a_foreign_key_takes_along_are_seen(lane: Lane) -> None:
    history = play(lane, "spawn A to cascade; run A")
    assert [(key, new) for key, _old, new in changes(history, "child")] == [
        ((1,), None),
        ((2,), None),
    ]
    assert len(of(Commit, history)) == 1


def test_a_declared_table_may_come_later_and_go(lane: Lane) -> None:
    row = {"job": "a", "body": "late"}
    history = play(lane, "spawn A to created_later; run A")
    assert changes(history, "later") == [((1,), None, row), ((1,), row, None)]


def test_a_new_column_writes_no_row_and_the_next_write_tells_it(lane: Lane) -> None:
    (only,) = changes(play(lane, "spawn A to new_column; run A"), "jobs")
    key, old, new = only
    assert (key, "extra" in old, new["extra"]) == (("a",), False, 8)


def test_a_rebuilt_table_is_read_by_its_new_key(lane: Lane) -> None:
    found = changes(play(lane, "spawn A to rebuilt; run A"), "child")
    assert found[-1] == (
        ("a", "two"),
        {"n": 2, "job": "a", "body": "two"},
        {"n": 9, "job": "a", "body": "two"},
    )


def test_a_table_may_lose_its_rowid(lane: Lane) -> None:
    found = changes(play(lane, "spawn A to without_rowid; run A"), "loose")
    assert found == [(("kk",), None, {"body": 1, "job": "a", "k": "kk"})]


@pytest.mark.parametrize("subject", [Crowd, Brief])
def test_a_large_table_is_told_like_a_small_one(
    lane_of: Callable[..., Lane], subject: type[Crowd]
) -> None:
    history = play(lane_of(subject), "spawn A to crowd_work; run A")
    assert not failure(history)
    assert not blind(history)
    assert written(history) == [
        ("A#1", "a", "mine"),
        ("A#1", "x00000", "first"),
        ("A#1", "x04999", None),
        ("A#1", "z", b"\x01"),
        ("A#1", "a", "again"),
        ("A#1", "a", "again"),
        ("A#1", "a", "again"),
        ("A#1", "b", "\udcff"),
        ("A#1", "b", "well"),
    ]
    upper, lower = (
        change.new["extra"]
        for commit in of(Commit, history)
        for change in commit.changes
        if change.new and change.key == ("a",) and "extra" in change.new
    )
    assert (upper, lower) == ("X", "x")
    replaced = of(Commit, history)[4].changes
    assert [(one.old and one.old["note"], one.new and one.new["note"]) for one in replaced] == [
        ("mine", "again")
    ]


def test_five_thousand_foreign_rows_cost_milliseconds_at_most(
    lane_of: Callable[..., Lane],
) -> None:
    lane = lane_of(Crowd)
    idle = min(_took(lane, "spawn A; run A") for _ in range(3))
    busy = min(_took(lane, "spawn A to many_commits; run A") for _ in range(3))
    per_commit_ms = (busy - idle) * 10
    print(f"{per_commit_ms:.2f} ms a commit")
    assert per_commit_ms < 12  # 1.5 where nothing else runs; read whole, it was 19


def _took(lane: Lane, text: str) -> float:
    start = time.perf_counter()
    play(lane, text)
    return time.perf_counter() - start
