"""Each honest program passes in the moment that tempts, and its twin is caught as its row says."""

import pytest

from pytest_leasecheck.testkit.invariants import TITLES

from .catalogue import CASES
from .page import PAGE, caught, row_of
from .playing import Stagehand


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    stagehand = Stagehand(tmp_path_factory.mktemp("logs"))
    yield stagehand
    stagehand.close()


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name.replace(" ", "_"))
def test_honest_program_is_never_called_wrong(hand, case):
    judged = hand.play(case)
    assert judged.played.error is None, judged.shown
    assert judged.faults == (), judged.shown
    assert judged.verdict.missing == (), judged.shown  # its tempting moment came about
    assert judged.verdict.outcome == "pass"
    noted = {one.title for one in judged.verdict.findings if one.severity == "note"}
    assert noted == set(case.notes), judged.shown


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name.replace(" ", "_"))
def test_its_twin_is_caught(hand, case):
    judged = hand.play(case, guilty=True)
    assert judged.played.error is None, judged.shown
    assert judged.verdict.outcome == "fail", judged.shown
    assert caught(case, judged)


def test_rows_are_sound():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert {case.title for case in CASES} <= set(TITLES)
    assert all(case.requires for case in CASES)


def test_page_has_every_row():
    page = PAGE.read_text(encoding="utf-8").splitlines()
    told = [line for line in page if line.startswith("| ") and not line.startswith("| name |")]
    assert told == [row_of(case) for case in CASES]
    scripts = [f"<details><summary>{one.name}</summary>" for one in CASES]
    assert [one for one in scripts if one not in page] == []
