"""An operator who has to wait for the write lock: his process ends with what he came for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from playing import of, play, state
from subjects_plain import Plain

from pytest_leasecheck.testkit.history import Ended, Returned
from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.worker import Worker


class Careless(Plain):
    """Its submit leaves a transaction open when it fails, and a cycle that keeps the connection."""

    def submit(self, db: Path, run_id: str) -> None:
        con = sqlite3.connect(db, isolation_level=None)
        kept: list[object] = [con]
        kept.append(kept)
        con.execute("BEGIN IMMEDIATE")
        con.execute("INSERT INTO jobs (id) VALUES (?)", (run_id,))
        con.execute("COMMIT")
        con.close()

    def write(self, worker: Worker) -> str:
        con = sqlite3.connect(worker.db, isolation_level=None, timeout=1)
        con.execute("BEGIN IMMEDIATE")
        worker.point("writing")
        con.execute("COMMIT")
        con.close()
        return "written"


def test_one_that_fails_later_keeps_nobody_from_writing(lane_of: Callable[..., Lane]) -> None:
    history = play(
        lane_of(Careless),
        "submit new; spawn A to write; until A writing; submit new; heal;"
        "spawn B to write; run B; run B",
    )
    (failed,) = (one for one in of(Returned, history) if one.who == "operator#2")
    assert "IntegrityError" in failed.error
    assert [one.how for one in of(Ended, history, "operator#2")] == ["returned"]
    assert of(Returned, history, "B#1")[0].value == "'written'", state(history, "B#1")
