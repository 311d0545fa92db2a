"""A database file that somebody keeps to himself: what was committed is read, or the kit says not.

What is locked for good with a rollback journal is read past the lock. In WAL mode nobody can read
it: that is inconclusive, and names the likely cause.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playing import blind, lane_for, of, play, value
from subjects_exclusive import (
    Careless,
    CarelessFleeting,
    CarelessInWal,
    Exclusive,
    Fleeting,
    InWal,
    Persisting,
    Plain,
)

from pytest_leasecheck.testkit.history import Commit, History, Noted
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.verdict import Verdict

Lanes = Callable[..., Lane]


@pytest.fixture(scope="module")
def lane_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    """One lane a subject, with hooks or without, for the whole module."""
    folder = tmp_path_factory.mktemp("logs")
    with contextlib.ExitStack() as opened:
        yield functools.cache(
            lambda subject, **options: opened.enter_context(lane_for(subject, folder, **options))
        )


ALONE = "submit r; spawn A; run A; kill A; drain 1"
LATE = "submit r; spawn A; until A working before; expire; run A; kill A; drain 1"
TAKEN = (
    "submit r; spawn A to opens_anew; until A working before; expire; spawn B; run B; kill B;"
    " run A; kill A; drain 1"
)


def verdict(history: History) -> Verdict:
    return judge(history, requires=())


def faults(found: Verdict) -> list[tuple[str, str]]:
    return [(one.title, one.culprit) for one in found.findings if one.severity == "fault"]


def notes(history: History) -> list[Any]:
    """What job `r` was noted as, commit by commit: None while it is leased."""
    return [
        (commit.who, change.new["status"])
        for commit in of(Commit, history)
        for change in commit.changes
        if change.key == ("r",) and change.new
    ]


@pytest.mark.parametrize("hooks", [True, False])
def test_rollback_journal_is_read_past_the_lock(lane_of: Lanes, hooks: bool) -> None:
    history = play(lane_of(Exclusive, hooks=hooks), LATE.replace("expire; ", ""))
    assert not blind(history)
    told = [("operator#1", "queued"), ("A#1", "running"), ("A#1", "done")]
    assert notes(history) == told
    assert verdict(history).outcome == "pass"


@pytest.mark.parametrize("hooks", [True, False])
@pytest.mark.parametrize("subject", [Careless, Persisting])
def test_late_write_behind_a_lock_is_found(
    lane_of: Lanes, subject: type[Exclusive], hooks: bool
) -> None:
    found = verdict(play(lane_of(subject, hooks=hooks), LATE))
    assert (found.outcome, faults(found)) == ("fail", [("a late write", "A#1")])


@pytest.mark.parametrize("hooks", [True, False])
def test_stale_write_behind_a_lock_is_found(lane_of: Lanes, hooks: bool) -> None:
    found = verdict(play(lane_of(Careless, hooks=hooks), TAKEN))
    assert found.outcome == "fail"
    assert ("a stale write landed", "A#1") in faults(found)


def test_who_reads_of_it_is_told_that_nobody_else_gets_in(lane_of: Lanes) -> None:
    history = play(lane_of(Exclusive), ALONE)
    (said,) = [one.text for one in of(Noted, history, "A#1")]
    assert "locking_mode=EXCLUSIVE" in said


@pytest.mark.parametrize("script", [ALONE, LATE, TAKEN], ids=["alone", "late", "taken"])
@pytest.mark.parametrize("subject", [InWal, CarelessInWal, Fleeting, CarelessFleeting])
def test_in_wal_mode_it_is_inconclusive_and_says_why(
    lane_of: Lanes, subject: type[InWal], script: str
) -> None:
    history = play(lane_of(subject), script)
    assert value(history)  # the kit's own connection didn't keep it out
    found = verdict(history)
    assert found.outcome != "pass"
    if subject.guarded or script == ALONE:
        assert (found.outcome, faults(found)) == ("inconclusive", [])
    assert all("locking_mode=EXCLUSIVE" in missing for missing in found.missing)


@pytest.mark.parametrize("script", [ALONE, LATE, TAKEN], ids=["alone", "late", "taken"])
@pytest.mark.parametrize("subject", [Fleeting, CarelessFleeting])
def test_in_wal_mode_without_hooks_it_is_inconclusive_too(
    lane_of: Lanes, subject: type[InWal], script: str
) -> None:
    found = verdict(play(lane_of(subject, hooks=False), script))
    assert found.outcome != "pass"
    assert all("locking_mode=EXCLUSIVE" in missing for missing in found.missing)


# -- no false alarm ------------------------------------------------------------------------------


@pytest.mark.parametrize("hooks", [True, False])
def test_lock_of_a_transaction_hides_nothing(lane_of: Lanes, hooks: bool) -> None:
    script = "submit r; spawn A to locks_later; until A working before; run A; drain"
    history = play(lane_of(Plain, hooks=hooks), script)
    assert not blind(history)
    assert notes(history)[1:] == [("A#1", "running"), ("A#1", "done")]
    assert verdict(history).outcome == "pass"


@pytest.mark.parametrize("hooks", [True, False])
def test_spilled_cache_that_comes_to_nothing_is_no_loss(lane_of: Lanes, hooks: bool) -> None:
    history = play(lane_of(Plain, hooks=hooks), "spawn R to spills; until R spilled before; run R")
    assert not blind(history)
    assert not of(Commit, history)


def test_spilled_cache_is_read_when_its_commit_is_told(lane_of: Lanes) -> None:
    history = play(lane_of(Plain), "spawn A to spills; until A spilled before; run A")
    assert not blind(history)
    assert [len(commit.changes) for commit in of(Commit, history)] == [200]


def test_what_is_found_only_after_a_spilled_cache_was_not_seen_in_time(lane_of: Lanes) -> None:
    script = "spawn A to spills; until A spilled before; run A"
    (why,) = blind(play(lane_of(Plain, hooks=False), script))
    assert "its cache spilled" in why
