"""Each mutant is caught by the finding its row names, on a schedule that the true one passes."""

import pytest

from pytest_leasecheck.testkit.invariants import TITLES
from pytest_leasecheck.testkit.reference import guards

from .catalogue import EQUIVALENT, GUARDS, KINDS, MUTANTS, SCHEDULES
from .page import PAGE, caught, row_of, row_of_equivalent
from .playing import Stagehand


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    stagehand = Stagehand(tmp_path_factory.mktemp("logs"))
    yield stagehand
    stagehand.close()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: one.name)
def test_schedule_passes_on_the_true_runtime(hand, schedule):
    judged = hand.true(schedule)
    assert judged.played.error is None
    assert judged.verdict.findings == tuple(
        one for one in judged.verdict.findings if one.severity == "note"
    )
    assert judged.verdict.missing == ()  # its dangerous moment came about
    assert judged.verdict.outcome == "pass"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name.replace(" ", "_"))
def test_mutant_is_caught(hand, mutant):
    judged = hand.mutated(mutant)
    assert judged.played.error is None
    assert judged.verdict.outcome == "fail"
    assert "#" in caught(mutant, judged).text
    assert hand.true(mutant.schedule).verdict.outcome == "pass"


@pytest.mark.parametrize(
    ("guard", "schedule"),
    [(guard, schedule) for guard in EQUIVALENT for schedule in guard.schedules],
    ids=lambda one: one.name.replace(" ", "_"),
)
def test_second_wall_may_be_taken_out(hand, guard, schedule):
    judged = hand.without(guard, schedule)
    assert judged.played.error is None
    assert [one for one in judged.verdict.findings if one.severity == "fault"] == []
    assert judged.verdict.outcome == "pass"


def test_every_guard_is_taken_out():
    single = {
        name for one in (*MUTANTS, *EQUIVALENT) if len(one.patches) == 1 for name in one.patches
    }
    clauses = {f"guards.{name}" for name in vars(guards) if name.isupper() and name[0] != "_"}
    assert clauses - single == set()


def test_rows_are_sound():
    names = [one.name for one in (*MUTANTS, *EQUIVALENT)]
    assert len(names) == len(set(names))
    assert {one.title for one in MUTANTS} <= set(TITLES)
    assert [one.name for one in KINDS if not one.seen_in] == []
    assert all(one.patches and one.invariants for one in MUTANTS)


def test_page_has_every_row():
    page = PAGE.read_text(encoding="utf-8")
    rows = [row_of(one) for one in (*GUARDS, *KINDS)]
    rows += [row_of_equivalent(one) for one in EQUIVALENT]
    assert [row for row in rows if row not in page] == []
    told = [line for line in page.splitlines() if line.startswith("| ") and " | " in line]
    assert len(told) == len(rows) + 3  # and no other: each table has a head
    assert [one.name for one in MUTANTS if f"<summary>{one.name}: " not in page] == []
