"""A history with local times is judged alike on a machine in another zone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playing import lane_for, play
from subjects_plain import Plain

from pytest_leasecheck.testkit.history_json import save
from pytest_leasecheck.testkit.subject import Lease, RunTable
from pytest_leasecheck.testkit.worker import Worker

TTL = timedelta(seconds=10)


class Local(Plain):
    """Stores when a lease ends as `datetime.now()` has it: with no zone."""

    runs = RunTable(
        "jobs", id="id", status="status", terminal={"done"},
        lease=Lease(owner="owner", token="fence", expires_at="note", unit="local iso"),
    )  # fmt: skip
    clock = "patched"
    capabilities = frozenset({"checks_expiry"})

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        with sqlite3.connect(db) as connection:
            connection.execute("DELETE FROM jobs")

    def work(self, worker: Worker) -> object:
        connection = sqlite3.connect(worker.db, isolation_level=None)
        now = datetime.now()
        taken = connection.execute(
            "UPDATE jobs SET owner = ?, fence = fence + 1, note = ?"
            " WHERE status = 'queued' AND (owner IS NULL OR note < ?) RETURNING id, fence",
            (worker.name, (now + TTL).isoformat(), now.isoformat()),
        ).fetchall()
        for run_id, fence in taken:
            worker.effect("mail", run_id=run_id, token=fence, key=run_id)
            connection.execute(
                "UPDATE jobs SET status = 'done', owner = NULL WHERE id = ? AND fence = ?",
                (run_id, fence),
            )
        return len(taken)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def judged_in(zone: str, file: Path) -> str:
    """The verdict of a Python that lives elsewhere."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_leasecheck", "judge", str(file)],
        env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert not done.stderr
    return done.stdout


@pytest.mark.usefixtures("in_berlin")
def test_verdict_does_not_depend_on_where_it_is_given(tmp_path: Path) -> None:
    with lane_for(Local, tmp_path / "logs") as lane:
        history = play(
            lane,
            "submit r1; spawn A; spawn B; until A effect:mail before; stop A; expire;"
            "run B; cont A; run A; heal; drain",
        )
    saved = tmp_path / "history.jsonl"
    save(history, saved)
    here = judged_in("Europe/Berlin", saved)
    assert ": pass; " in here
    assert " 2 stale attempts" in here
    for zone in ("America/New_York", "Asia/Tokyo"):  # its leases lasted hours more, or were past
        assert judged_in(zone, saved) == here
