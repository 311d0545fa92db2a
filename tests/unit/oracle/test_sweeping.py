"""What a statement's condition says of the runs that it asks for."""

from dataclasses import replace

import pytest

from pytest_leasecheck.testkit.history import Statement
from pytest_leasecheck.testkit.lives import Life, worker_of
from pytest_leasecheck.testkit.ownership_state import Claim
from pytest_leasecheck.testkit.rows import ABSENT, Reader
from pytest_leasecheck.testkit.subject import After, Lease, RunTable
from pytest_leasecheck.testkit.sweeping import Sweeping

from .builder import PLAIN

RUNS = RunTable(
    "jobs",
    id="id",
    status="status",
    terminal={"done"},
    waiting={"asks"},
    lease=Lease(
        owner="worker",
        held={"status": {"running"}},
        expires_at=After("beat", 30),
        token="fence",
    ),
)
MINE = Claim("r1", 1, "A#1", "main", "A", 7, ("A", 7, ()), 5)


def swept(*texts, runs=RUNS, held=(), others=()):
    sweeping = Sweeping(Reader(replace(PLAIN, runs=runs)))
    for status in held:
        sweeping.note(ABSENT._replace(exists=True, held=True, status=status))
    return sweeping.went_by_free([stated(text) for text in texts], former=[MINE], others=others)


def stated(text, rows=1):
    verb = text.split()[0]
    changed = None if verb == "SELECT" else rows
    return Statement(9, 0, "A#1", "main", 1, 1, verb, "jobs", text, changed)


@pytest.mark.parametrize(
    "condition",
    [
        "status = 'queued'",
        "status IN ('queued', 'retry') AND tries > 2",
        "status = 'asks'",
        "worker IS NULL",
        "\"worker\" = ''",
        "status = 'running' AND beat < 970",
        "status = 'running' AND beat + 30 < 1000",
        "datetime(beat) < datetime('now', '-30 seconds')",
        "970 > jobs.beat",
        "1000 - beat > 30",
        "unixepoch('now') - unixepoch(beat) >= 30",
        "id = 'r1' AND status = 'queued'",
    ],
)
def test_who_asks_for_what_is_free_is_no_holder(condition):
    assert swept(f"UPDATE jobs SET note = 'x' WHERE {condition}")


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE jobs SET status = 'queued', note = 'x'",  # what it sets is no condition
        "UPDATE jobs SET note = 'x' WHERE id = 'r1'",
        "UPDATE jobs SET note = 'x' WHERE status = 'running'",
        "UPDATE jobs SET note = 'x' WHERE status IN ('queued', 'running')",
        "UPDATE jobs SET note = 'x' WHERE status = 'done'",  # who ended it may add to it
        "UPDATE jobs SET note = 'x' WHERE beat > 970",
        "UPDATE jobs SET note = 'x' WHERE 970 < beat",
        "UPDATE jobs SET note = 'x' WHERE beat <> 970",
        "UPDATE jobs SET note = 'x' WHERE worker = 'A' AND beat < 970",
        "UPDATE jobs SET note = 'x' WHERE fence = 7 AND status = 'queued'",
    ],
)
def test_who_asks_for_anything_else_may_be_one(text):
    assert not swept(text)


def test_what_is_done_may_be_cleared_away():
    assert swept("DELETE FROM jobs WHERE status = 'done'")
    assert not swept("DELETE FROM jobs WHERE id = 'r1'")


def test_a_look_counts_for_the_writes_after_it():
    look, write = "SELECT id FROM jobs WHERE beat < 970", "UPDATE jobs SET x = 1 WHERE id = 'r1'"
    assert swept(look, write)
    assert not swept(write, look)  # it ends its own, and looks for the next
    assert not swept(look)


def test_each_write_has_to_ask():
    free, own = "UPDATE jobs SET x = 1 WHERE worker IS NULL", "UPDATE jobs SET x = 1 WHERE id = 'r'"
    assert not swept(free, own)


def test_what_it_does_to_another_run_of_its_own_is_about_that():
    child, parent = (
        "UPDATE jobs SET status = 'done' WHERE id = 'r1.b' AND fence = 9",
        "UPDATE jobs SET status = 'queued' WHERE id = 'r1' AND status = 'asks'",
    )
    assert swept(child, parent, others=["r1", "r1.b"])
    assert not swept(child, parent)
    assert not swept(child, others=["r1", "r1.b"])


def test_where_an_owner_alone_says_what_is_held_statuses_are_learned():
    runs = replace(RUNS, lease=Lease(owner="worker"))
    text = "UPDATE jobs SET x = 1 WHERE status = 'queued'"
    assert swept(text, runs=runs, held=["running"])
    assert not swept(text, runs=runs, held=["running", "queued"])


LIVES = {
    who: Life(who, name, job, since, until)
    for who, name, job, since, until in (
        ("P#1", "P", "plan", 1, None),
        ("A#1", "A", "work", 2, 8),
        ("A#2", "A", "work", 9, None),
        ("D#1", "A", "work", 3, None),
        ("B#1", "B", "work", 20, None),
        ("operator#1", "O", "submit", 1, None),
    )
}


@pytest.mark.parametrize(
    ("author", "owner", "n", "whose"),
    [
        ("P#1", "A", 5, "A#1"),
        ("P#1", "A", 10, "A#2"),  # the one that lives
        ("P#1", "B", 10, "B#1"),  # the one that will
        ("P#1", "C", 10, "P#1"),
        ("P#1", "P", 10, "P#1"),
        ("P#1", "O", 10, "P#1"),
        ("P#1", 4711, 10, "P#1"),
        ("D#1", "A", 5, "D#1"),  # its own name, which another has as well
        ("X#1", "A", 5, "X#1"),
    ],
)
def test_a_claim_in_anothers_name_is_that_workers(author, owner, n, whose):
    assert worker_of(author, owner, LIVES, n=n) == whose
