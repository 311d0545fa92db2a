"""`leasecheck_scenario`: scenarios of ours, or one's own, inside a hand-written test."""

import pytest

HEAD = """
import mine, pytest
from pytest_leasecheck.testkit.scenario import Scenario

@pytest.fixture
def leasecheck_subject(): return mine.{subject}
"""


def make(consumer: pytest.Pytester, body: str, subject: str = "Holds") -> None:
    consumer.makepyfile(test_it=HEAD.format(subject=subject) + body)


def test_scenario_is_played_by_its_id_without_a_flag(consumer: pytest.Pytester) -> None:
    make(
        consumer,
        "@pytest.mark.parametrize('which', ['classic::finished', 'leasecheck/classic::finished'])\n"
        "def test_it(leasecheck_scenario, which):\n"
        "    assert leasecheck_scenario(which).counts.stale_attempts == 1\n",
    )
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["subject       mine:Holds", "held * 2 scripts, 2 stale *"])


def test_several_in_one_test_add_up(consumer: pytest.Pytester) -> None:
    make(
        consumer,
        "def test_it(leasecheck_scenario):\n"
        "    leasecheck_scenario('classic::finished')\n"
        "    leasecheck_scenario('classic::still_held')\n"
        "    leasecheck_scenario(Scenario('mine', 'A story.', 'submit r1\\ndrain\\n', ()))\n",
    )
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines("held * 3 scripts, 3 stale attempts, none landed")


def test_failure_reads_like_the_suites(consumer: pytest.Pytester) -> None:
    make(consumer, "def test_it(leasecheck_scenario): leasecheck_scenario('classic::finished')\n",
         "Stale")  # fmt: skip
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["V1 a stale write landed: *", "script", "replay *"])
    assert "fixtures.py" not in result.stdout.str()


def test_what_is_not_claimed_is_skipped(consumer: pytest.Pytester) -> None:
    make(consumer, "def test_it(leasecheck_scenario): leasecheck_scenario('repeats::reconciled')\n")
    result = consumer.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines("SKIPPED *not claimed: reconciles")


@pytest.mark.parametrize(
    ("which", "line"),
    [
        ("'classic::finish'", "there is no scenario 'classic::finish'; did you mean classic::fin*"),
        ("Scenario('x', '', 'drain\\n', ('luck',))", "*luck*"),
        ("Scenario('x', '', 'fly\\n', ())", "*fly*"),
    ],
)
def test_wrong_scenario_is_told_in_words(consumer: pytest.Pytester, which: str, line: str) -> None:
    make(consumer, f"def test_it(leasecheck_scenario): leasecheck_scenario({which})\n")
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(line)
    assert "fixtures.py" not in result.stdout.str()
