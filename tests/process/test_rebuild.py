"""docs/howto/rebuild.md, followed with live processes: a backup restored under a live fleet."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import rebuild_worker

from pytest_leasecheck.testkit.reference import Store

LONG_PAST_EVERY_LEASE_MS = 60_000


class Fleet:
    """Worker processes, each driven by lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[str]] = []

    def worker(self, db: Path, name: str, act: str, *, ahead_ms: int = 0) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, rebuild_worker.__file__, str(db), name, str(ahead_ms), act],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.workers.append(process)
        return process

    def close(self) -> None:
        for process in self.workers:
            process.kill()
            process.communicate()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    made.close()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def told(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def overtaken(fleet: Fleet) -> tuple[Path, subprocess.Popen[str]]:
    """A backup that was made under A, and B, alive in a call under a token that it knows not of."""
    live, backup = fleet.folder / "live.db", fleet.folder / "backup.db"
    a = fleet.worker(live, "a", "fail")
    assert heard(a) == "in call with token 1"
    with Store(live) as store:
        store.backup(backup)
    told(a)
    assert heard(a) == "ConnectionError"
    b = fleet.worker(live, "b", "resume")
    assert heard(b) == "in call with token 2"
    return backup, b


def test_backup_restored_under_a_live_fleet(fleet):
    backup, b = overtaken(fleet)
    with Store(fleet.folder / "live.db") as lost:
        issued = lost.highest_token()
    assert issued == 2
    with Store(backup) as restored:
        assert restored.highest_token() == 1
        restored.raise_tokens(issued)
    # A's lease in the backup counts as long as it lasts: nothing proves that A is gone.
    early = fleet.worker(backup, "c", "resume")
    assert heard(early) == "RunLeased"
    c = fleet.worker(backup, "c", "resume", ahead_ms=LONG_PAST_EVERY_LEASE_MS)
    assert heard(c) == "in call with token 4"
    told(c)
    assert heard(c) == "accepted"
    assert heard(c) == "SUCCEEDED"
    # B, alive on the lost file, is refused by the world outside.
    told(b)
    assert heard(b) == "refused: 2 is lower than 4"


def test_backup_that_is_not_told_hands_a_token_out_twice(fleet):
    """What the how-to is for: without it, the provider can't tell B from C."""
    backup, b = overtaken(fleet)
    c = fleet.worker(backup, "c", "resume", ahead_ms=LONG_PAST_EVERY_LEASE_MS)
    assert heard(c) == "in call with token 2"
    told(c)
    assert heard(c) == "accepted"
    told(b)
    assert heard(b) == "accepted"


def test_what_happened_after_the_backup_is_found_out_by_key(fleet):
    backup, b = overtaken(fleet)
    told(b)
    assert heard(b) == "accepted"
    assert heard(b) == "SUCCEEDED"
    with Store(backup) as restored:
        restored.raise_tokens(2)
    c = fleet.worker(backup, "c", "resume", ahead_ms=LONG_PAST_EVERY_LEASE_MS)
    assert heard(c) == "SUCCEEDED"
    with Store(backup) as restored:
        (decision,) = restored.reconciliations("r1")
        assert (decision.decision, decision.asked) == ("already-applied", "found")
    assert (fleet.folder / "ledger.txt").read_text() == "2 r1/0\n"
