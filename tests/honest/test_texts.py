"""What failures say: each from a script that was really played, as a snapshot that people read.

Numbers of events are left out; everything else is exact. `--snapshot-update` writes them anew.
"""

import re

import pytest

from pytest_leasecheck.testkit.advice import advice_on
from pytest_leasecheck.testkit.invariants import TITLES

from .failures import FAILURES
from .playing import Stagehand

#: Four findings that are easily taken for one another.
ALIKE = {
    "a stale write landed", "the effect ran twice", "the result was recorded twice", "a late write",
}  # fmt: skip


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    stagehand = Stagehand(tmp_path_factory.mktemp("logs"))
    yield stagehand
    stagehand.close()


@pytest.fixture(scope="module")
def judged(hand):
    """Each failure, played when it is first asked for."""
    played = {}

    def play(case):
        if case.name not in played:
            played[case.name] = hand.play(case, guilty=bool(case.twin))
        return played[case.name]

    return play


@pytest.mark.parametrize("case", FAILURES, ids=lambda one: one.name.replace(" ", "_"))
def test_failure_says_who_did_what_to_whom(judged, case, snapshot):
    found = judged(case).verdict.findings
    assert judged(case).played.error is None, judged(case).shown
    assert case.title in {one.title for one in found}, judged(case).shown
    told = [
        f"{one.severity} {one.invariant} {one.title}\n  {text_of(one)}\n"
        f"  culprit: {one.culprit or '-'}; victims: {', '.join(one.victims) or '-'}"
        for one in found
    ]
    told += [f"=> {line}" for line in advice_on(judged(case).faults)]
    assert "\n".join(told) == snapshot


def test_no_text_leaves_its_culprit_out(judged):
    for case in FAILURES:
        for finding in judged(case).verdict.findings:
            assert finding.culprit == "" or finding.culprit in finding.text
            assert all(victim in finding.text for victim in finding.victims)


def test_what_looks_alike_is_never_mixed_up(judged):
    titles = {
        case.title: {one.title for one in judged(case).verdict.findings} & ALIKE
        for case in FAILURES
        if case.title in ALIKE
    }
    assert titles == {
        "a stale write landed": {"a stale write landed"},
        "the effect ran twice": {"the effect ran twice"},
        "a late write": {"a late write"},
        # It was stored by one who was stale, too: two findings about one commit.
        "the result was recorded twice": {"the result was recorded twice", "a stale write landed"},
    }


def test_there_are_enough_of_them():
    assert len(FAILURES) > 30
    assert len({case.title for case in FAILURES} & set(TITLES)) > 20


def text_of(finding):
    return re.sub(r"event \d+", "event N", finding.text)
