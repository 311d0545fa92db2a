"""Sweep, exploration, interleavings, soak on real processes: what is wrong is found, and small."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_leasecheck.testkit import explore, families, interleave, soak, sweep
from pytest_leasecheck.testkit.confirming import confirm, play_and_judge
from pytest_leasecheck.testkit.errors import StageError
from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.script import (
    Action,
    Approve,
    Duplicate,
    Script,
    Spawn,
    parse_script,
)
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject
from pytest_leasecheck.testkit.worker import Worker

STALE = """
submit run-1
spawn A
until A effect:charge before
expire
spawn B
until B effect:charge before
run A
heal
drain
"""


class Queue(Subject):
    """A queue whose last statement is fenced by its token."""

    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done"},
        lease=Lease(owner="owner", expires_at="expires_ms", token="fence", unit="ms"),
    )  # fmt: skip
    clock = "given"
    last: ClassVar[str] = (
        "UPDATE jobs SET status='done', owner=NULL WHERE id=? AND fence=? AND status='running'"
    )

    def prepare(self, db: Path) -> None:
        con = sqlite3.connect(db)
        con.execute(
            "CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT DEFAULT 'queued',"
            " owner TEXT, expires_ms INTEGER, fence INTEGER DEFAULT 0)"
        )
        con.commit()
        con.close()

    def submit(self, db: Path, run_id: str) -> None:
        con = sqlite3.connect(db, isolation_level=None)
        con.execute("INSERT INTO jobs (id) VALUES (?)", (run_id,))
        con.close()

    def work(self, worker: Worker) -> Any:
        con = sqlite3.connect(worker.db, isolation_level=None)
        done = 0
        while (row := self.claim(con, worker)) is not None:
            worker.effect("charge", run_id=row[0], token=row[1], key=row[0])
            done += con.execute(self.last, row[: self.last.count("?")]).rowcount
        con.close()
        return done

    def claim(self, con: sqlite3.Connection, worker: Worker) -> Any:
        now = worker.clock.now_ms()
        return con.execute(
            "UPDATE jobs SET status='running', owner=?, expires_ms=?, fence=fence+1 WHERE id IN"
            " (SELECT id FROM jobs WHERE status='queued' OR status='running' AND expires_ms < ?"
            "  LIMIT 1) RETURNING id, fence",
            (worker.name, now + self.lease_ttl_ms, now),
        ).fetchone()


class Unfenced(Queue):
    """The fence is left out."""

    last = "UPDATE jobs SET status='done', owner=NULL WHERE id=?"


class Moody(Unfenced):
    """What it does depends on something that no script knows."""

    def work(self, worker: Worker) -> Any:
        times = Path(os.environ["BOOK"])
        times.write_text("x" + (times.read_text() if times.exists() else ""))
        if worker.name == "A" and len(times.read_text()) > 4:
            return "not today"
        return super().work(worker)


class Fickle(Queue):
    """It takes a few runs, and then no more."""

    def submit(self, db: Path, run_id: str) -> None:
        book = Path(os.environ["BOOK"])
        book.write_text(book.read_text() + "x" if book.exists() else "x")
        if len(book.read_text()) > 8:
            raise RuntimeError("it takes no more")
        super().submit(db, run_id)


class DrawsIds(Unfenced):
    """Each of its claims has an id from the operating system, which no seed repeats."""

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        con = sqlite3.connect(db)
        con.execute("ALTER TABLE jobs ADD COLUMN claim TEXT")
        con.commit()
        con.close()

    def claim(self, con: sqlite3.Connection, worker: Worker) -> Any:
        found = super().claim(con, worker)
        if found is not None:
            con.execute("UPDATE jobs SET claim = ? WHERE id = ?", (str(uuid.uuid4()), found[0]))
        return found


LaneOf = Callable[..., Lane]


def test_sweep_finds_the_missing_fence_and_nothing_in_the_queue(lane_of: LaneOf) -> None:
    for kind, failing in ((Queue, False), (Unfenced, True)):
        lane = lane_of(kind)
        points = sweep.draw_map(lane)
        assert [str(one) for one in points.effects] == ["effect:charge#1 before"]
        cheap = [one for one in families.variations(points, lane.declaration) if one.cheap]
        outcomes = {one.variation.name: one.outcome for one in sweep.sweep(lane, cheap)}
        assert (outcomes["stale-while-held[effect:charge#1-before]"] == "fail") is failing
        assert ("fail" in outcomes.values()) is failing


def test_map_and_list_are_the_same_each_time(lane_of: LaneOf) -> None:
    one, other = lane_of(Queue), lane_of(Queue)
    assert sweep.draw_map(one) == sweep.draw_map(other) == sweep.draw_map(one)


def test_interleavings_are_exhausted_and_the_race_is_found(lane_of: LaneOf) -> None:
    lane = lane_of(Queue)
    for expiring in (False, True):
        searched = interleave.search(lane, expiring=expiring, budget=500)
        assert searched.found is None
        assert searched.finished, str(searched)
        assert str(searched).startswith("exhausted up to 2 preemptions: ")
        assert searched.tally.scripts == searched.schedules
        # With no expiry there is no second holder, and so nothing stale.
        assert (searched.tally.stale_attempts > 0) == expiring
    found = interleave.search(lane_of(Unfenced), expiring=True, budget=500).found
    assert found is not None
    assert "V1 a stale write landed" in found.kinds


def test_unfinished_search_says_so(lane_of: LaneOf) -> None:
    searched = interleave.search(lane_of(Queue), expiring=True, budget=3)
    assert not searched.finished
    assert "NOT exhausted" in str(searched)
    assert searched.random > 0
    assert searched.left > 0


def test_failing_script_is_confirmed_and_a_moody_subject_is_told_where_it_parts(
    lane_of: LaneOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOK", str(tmp_path / "book"))
    script = parse_script(STALE)
    lane = lane_of(Unfenced)
    failed = play_and_judge(lane, script, name="first")
    assert "V1 a stale write landed" in failed.kinds
    assert confirm(partial(play_and_judge, lane, name="again"), failed) is None
    moody = lane_of(Moody)
    failed = play_and_judge(moody, script, name="first")
    parted = confirm(partial(play_and_judge, moody, name="again"), failed)
    assert parted is not None
    assert "went two ways after " in parted.where
    assert "≠" in str(parted)


def test_shrunk_failure_has_the_fewest_deviations(lane_of: LaneOf) -> None:
    from pytest_leasecheck.testkit.replaying import smallest

    lane = lane_of(Unfenced)
    long = STALE.replace("expire", "lock\nunlock\nexpire\nspawn C\nstop C\ncont C\nadvance 1s")
    judged = play_and_judge(lane, parse_script(long), name="long")
    small, plays = smallest(partial(play_and_judge, lane, name="shrinking"), judged)
    assert 1 < plays < 300
    assert small.note == ""
    assert judged.kinds & small.kinds
    assert len(small.script.actions) < len(judged.script.actions) - 4
    assert isinstance(small.script, Script)


@pytest.mark.parametrize("search", ["explore", "interleave"])
def test_a_search_that_can_not_go_on_is_no_clean_one(
    lane_of: LaneOf, search: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOK", str(tmp_path / "book"))
    lane = lane_of(Fickle)
    searches: dict[str, Callable[[], object]] = {
        "explore": lambda: explore.explore(lane, scripts=25, seed=7),
        "interleave": lambda: interleave.search(lane, expiring=True, budget=500),
    }
    with pytest.raises(StageError, match=r"submit\(\) raised RuntimeError: it takes no more"):
        searches[search]()


def test_ids_drawn_at_random_make_no_subject_unsteady(lane_of: LaneOf) -> None:
    lane = lane_of(DrawsIds)
    failed = play_and_judge(lane, parse_script(STALE), name="first")
    assert any("V1" in kind for kind in failed.kinds)
    assert confirm(partial(play_and_judge, lane, name="again"), failed) is None


@pytest.mark.timeout(240)  # a few hundred scripts
def test_exploration_leaves_the_queue_alone_and_repeats_under_its_seed(lane_of: LaneOf) -> None:
    lane = lane_of(Queue)
    one = explore.explore(lane, scripts=25, seed=7)
    assert one.found is None, one.found and one.found.kinds
    assert one.unsteady == ""
    assert one.tally.scripts == 25
    assert (one.tally.again, one.tally.shrinking) == (0, 0)
    assert one.tally.wasted < one.tally.steps / 5
    other = explore.explore(lane, scripts=25, seed=7)
    assert (other.tally.steps, other.tally.stale_attempts) == (
        one.tally.steps,
        one.tally.stale_attempts,
    )


@pytest.mark.timeout(240)  # a few hundred scripts
def test_an_operator_approves_no_more_often_than_somebody_comes(
    lane_of: LaneOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take the place of all else: he may do it at any time."""
    scripts: list[list[Action]] = []
    finished = explore.Races.finished

    def kept(self: explore.Races, *arguments: Any) -> Any:
        scripts.append(self.actions)
        return finished(self, *arguments)

    monkeypatch.setattr(explore.Races, "finished", kept)
    subject = "pytest_leasecheck.scenarios.reference_subject:ReferenceSubject"
    assert explore.explore(lane_of(subject, workers="warm"), scripts=40, seed=5).found is None
    approvals = [sum(isinstance(one, Approve) for one in script) for script in scripts]
    workers = [sum(isinstance(one, Spawn | Duplicate) for one in script) for script in scripts]
    assert max(approvals) > 1
    assert all(done <= come for done, come in zip(approvals, workers, strict=True))


def test_soak_ends_with_a_verdict(lane_of: LaneOf) -> None:
    told: list[str] = []
    soaked = soak.soak(
        lane_of(Queue, deadline_s=60.0), seconds=0.5, seed=3, workers=4, runs=12,
        told=lambda so_far: told.append(so_far.doing),
    )  # fmt: skip
    assert told == ["4 workers race for 12 runs", "healing and draining", "judging", ""]
    assert soaked.rounds == 1
    assert dict(soaked.outcomes) == {"pass": 1}, [one.kinds for one in soaked.failed]
    assert soaked.blows.total() > 0
    assert "12 runs" in str(soaked)
