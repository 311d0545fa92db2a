"""Who wrote what, when commits can't be seen one by one, and under libraries that hide SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playing import blind, of, play, points, state, value, written
from subjects_free import Racing
from subjects_points import Points
from subjects_statements import Statements
from subjects_time import Waiting

from pytest_leasecheck.testkit.history import Commit, Statement
from pytest_leasecheck.testkit.lane import Lane


def test_without_hooks_changes_are_put_to_the_mover_move_by_move(
    lane_of: Callable[..., Lane],
) -> None:
    lane = lane_of(Statements, hooks=False)
    assert not lane.facts.hooks
    assert lane.facts.fallen
    history = play(lane, "submit c; spawn A to implicit_begin; run A; spawn B to many; run B")
    assert written(history) == [
        ("operator#1", "c", None),
        ("A#1", "a", "two"),
        ("B#1", "a", "m1"),
        ("B#1", "b", "m2"),
    ]
    assert len(of(Commit, history, "A#1")) == 1
    assert not of(Statement, history)
    assert history.header.attribution == "move"


def test_without_hooks_what_racers_commit_is_put_to_nobody_by_name(
    lane_of: Callable[..., Lane],
) -> None:
    """Else one was told to have done what another did: faults of a subject that has none."""
    lane = lane_of(Racing, hooks=False, deadline_s=20.0)
    for _ in range(3):
        history = play(lane, "spawn A to race; spawn B to race; free A B")
        assert {who for who, _id, _note in written(history)} == {""}
        assert any("several moved at once" in why for why in blind(history))
    history = play(lane, "spawn A to race; free A")  # who races alone has no rival
    assert {who for who, _id, _note in written(history)} == {"A#1"}
    assert not blind(history)


def test_without_hooks_effects_calls_and_own_points_hold(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of(Points, hooks=False)
    for job, point in (
        ("charging", "effect:charge after"),
        ("called", "call:subjects_points:function before"),
        ("own", "deep before"),
        ("beating", "effect:charge before"),
    ):
        assert point.split()[0] in state(play(lane, f"spawn A to {job}; until A {point}"))


def test_without_hooks_the_clock_is_virtual_all_the_same(lane_of: Callable[..., Lane]) -> None:
    history = play(lane_of(Waiting, hooks=False), "spawn A to in_order; run A; advance 10s; run A")
    assert ("A#1", "b", None) not in written(history)
    assert written(history)


def test_what_comes_past_every_hook_is_still_the_movers(lane_of: Callable[..., Lane]) -> None:
    history = play(lane_of(Backups), "spawn A to restores; run A")
    assert [(who, note) for who, run_id, note in written(history) if run_id == "a"] == [
        ("A#1", "from a backup")
    ]


class Backups(Statements):
    def restores(self, worker: Any) -> None:
        import sqlite3

        source = sqlite3.connect(":memory:")
        target = sqlite3.connect(worker.db)
        target.backup(source)
        source.execute("UPDATE jobs SET note = 'from a backup' WHERE id = 'a'")
        source.commit()
        source.backup(target)


@pytest.mark.parametrize("library", ["sqlalchemy", "aiosqlite"])
def test_libraries_over_sqlite_are_seen_through(lane_of: Callable[..., Lane], library: str) -> None:
    pytest.importorskip(library)
    from subjects_libraries import Libraries

    history = play(lane_of(Libraries), f"spawn A to {library}; until A txn:commit before; run A")
    assert value(history) == "'done'"
    assert not blind(history)
    assert written(history) == [("A#1", "a", library), ("A#1", "b", library)]
    assert "sql:UPDATE jobs#2 after" in points(history)
    assert "txn:commit#1 after" in points(history)
