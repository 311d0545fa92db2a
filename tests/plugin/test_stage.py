"""The `stage` fixture: a hand-written test, judged when it ends, with the flag and without."""

from collections.abc import Callable

import pytest

Notes = Callable[[], list[str]]

TEST = """
import pytest
import mine

@pytest.mark.leasecheck(subject=mine.{subject})
{mark}
def test_it(stage):
    stage.submit("r1")
    stage.spawn("A")
    {more}
"""


def make(
    consumer: pytest.Pytester, *, subject: str = "Holds", mark: str = "", more: str = ""
) -> None:
    consumer.makepyfile(test_it=TEST.format(subject=subject, mark=mark, more=more))


def test_hand_written_test_needs_no_flag(consumer: pytest.Pytester, notes: Notes) -> None:
    make(consumer)
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["subject       mine:Holds", "held          a stale token never writes *"]
    )
    assert [line.split(":")[0] for line in notes()] == [
        "lane started", "stage opened", "stage closed", "lane closed",
    ]  # fmt: skip


def test_end_is_healed_drained_and_judged(consumer: pytest.Pytester) -> None:
    make(consumer, subject="Stale")
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "V1 a stale write landed: *",
            "    submit r1",
            "    spawn A",
            "    heal",
            "    drain",
            "evidence  .leasecheck/*/test_it.py--test_it",
            "ERROR test_it.py::test_it - *V1 a stale write landed: *",
        ]
    )


def test_check_fails_the_test_itself_and_is_not_repeated(consumer: pytest.Pytester) -> None:
    make(consumer, subject="Stale", more="stage.check()")
    consumer.runpytest_subprocess().assert_outcomes(failed=1)


def test_check_returns_the_verdict(consumer: pytest.Pytester) -> None:
    make(consumer, more="assert stage.check(requires=['interruption']).outcome == 'pass'")
    consumer.runpytest_subprocess().assert_outcomes(passed=1)


def test_verdict_looks_and_does_nothing(consumer: pytest.Pytester) -> None:
    make(
        consumer,
        subject="Stale",
        mark="@pytest.mark.leasecheck(judge=False)",
        more="assert stage.verdict().findings; assert len(stage.script.actions) == 2",
    )
    consumer.runpytest_subprocess().assert_outcomes(passed=1)
    assert not (consumer.path / ".leasecheck").exists()


def test_mark_says_what_is_required(consumer: pytest.Pytester) -> None:
    make(
        consumer,
        subject="Inconclusive",
        mark="@pytest.mark.leasecheck(requires='stale attempt by A')",
    )
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines("inconclusive, so nothing is proven: stale attempt by A")


def test_verdict_survives_a_stage_that_cant_be_healed(consumer: pytest.Pytester) -> None:
    make(consumer, subject="CantHeal")
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "V1 a stale write landed: *",
            "Besides, worker 'A' did not continue",
        ]
    )


def test_failed_test_is_judged_as_well(consumer: pytest.Pytester) -> None:
    make(consumer, subject="Stale", more="assert 0, 'mine'")
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["FAILED * mine*", "ERROR * V1 a stale write landed: *"])


@pytest.mark.parametrize(
    ("mark", "line"),
    [
        ("@pytest.mark.leasecheck(judged=1)", "*leasecheck knows subject=, *, not judged"),
        ("@pytest.mark.leasecheck(3)", "*leasecheck knows subject=, *, not 3"),
        ("@pytest.mark.leasecheck(requires='luck')", "*(requires=...): *luck*"),
        ("@pytest.mark.leasecheck(subject=dict)", "* is not a Subject but a class 'dict'; *"),
    ],
)
def test_wrong_mark_is_told_in_words(consumer: pytest.Pytester, mark: str, line: str) -> None:
    make(consumer, mark=mark)
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(line)
    assert "fixtures.py" not in result.stdout.str()


def test_without_any_subject_the_lines_to_paste_are_shown(consumer: pytest.Pytester) -> None:
    consumer.makepyfile("def test_it(stage): pass")
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines("leasecheck needs to know what to test. *")


def test_fixture_can_be_overridden(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(
        "import pytest, mine\n"
        "@pytest.fixture\n"
        "def leasecheck_subject(): return mine.Holds()\n"
        "def test_it(stage): stage.submit('r1')\n"
    )
    consumer.runpytest_subprocess().assert_outcomes(passed=1)


def test_subject_of_the_test_function_itself(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(
        "import stand_in\n"
        "class TestIt:\n"
        "    class subject(stand_in.Stood): plays = 'stale'\n"
        "    def test_it(self, stage): stage.submit('r1')\n"
    )
    consumer.runpytest_subprocess().assert_outcomes(passed=1, errors=1)
