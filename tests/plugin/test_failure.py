"""How a failure reads, top down, and what is said of a test that proved nothing."""

from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]
FIRST = "leasecheck/classic::finished"


def test_fault_reads_top_down(leasecheck: Run) -> None:
    result = leasecheck(FIRST, subject="Stale")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "____* leasecheck/classic::finished *____",
            "V1 a stale write landed: A#1 (token 1) wrote jobs r1 after B#1 (token 2) took over",
            "subject   mine:Stale",
            "story     A is frozen before its effect; *",
            "script",
            "    submit r1",
            "    until A effect:* before",
            "timeline",
            "     n * time *A#1*",
            "!* commits: jobs r1 owner=A",
            "evidence  .leasecheck/*/leasecheck-classic--finished",
            "replay    pytest --leasecheck --leasecheck-subject=mine:Stale"
            " --leasecheck-replay=.leasecheck/*/leasecheck-classic--finished/script.txt",
            "log of A#1 (.leasecheck/*/leasecheck-classic--finished/A#1.log)",
            "    hello from A*",
            "subject       mine:Stale",
            "BROKEN        a stale token never writes * V1 in leasecheck/classic::finished",
            "not broken    each interrupted step is reconciled exactly once *",
            "evidence      .leasecheck/*",
            "FAILED leasecheck/classic::finished - V1 a stale write landed: *",
        ]
    )


def test_failure_shows_no_traceback_and_no_terminal_escape(leasecheck: Run) -> None:
    text = leasecheck(FIRST, subject="Stale").stdout.str()
    assert "Traceback" not in text
    assert "mount.py" not in text
    assert "\x1b[31m" not in text
    assert "hello from A\\x1b[31m" in text


def test_same_report_through_xdist(leasecheck: Run) -> None:
    result = leasecheck(FIRST, "-n", "1", subject="Stale")
    result.stdout.fnmatch_lines(
        [
            "V1 a stale write landed: *",
            "script",
            "timeline",
            "BROKEN *",
            "evidence      .leasecheck/*/gw0/*",
            "FAILED leasecheck/classic::finished - V1 a stale write landed: *",
        ]
    )


def test_inconclusive_fails_and_says_what_was_missing(leasecheck: Run) -> None:
    result = leasecheck(FIRST, subject="Inconclusive")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "inconclusive, so nothing is proven: stale attempt by A",
            "inconclusive  1 test proved nothing: leasecheck/classic::finished",
        ]
    )
    assert "\nheld " not in result.stdout.str()


def test_point_that_was_not_reached_fails_in_words(leasecheck: Run) -> None:
    result = leasecheck(FIRST, subject="Unreached")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "worker 'A' never reached 'effect:[*] before'; it returned after passing: start. *",
            "what helps: *",
        ]
    )


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        ("Dies", "the lane process died (signal 9); *"),
        ("Interrupted", "*TimeoutError: as pytest-timeout raises *"),
    ],
)
def test_lane_that_died_or_was_interrupted_is_replaced_for_the_next_test(
    leasecheck: Run, notes: Callable[[], list[str]], subject: str, line: str
) -> None:
    result = leasecheck("leasecheck/classic", subject=subject)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(line)
    assert [line.split(":")[0] for line in notes()] == [
        "lane started", "played", "lane closed",
        "lane started", "played", "lane closed",
    ]  # fmt: skip


def test_what_is_not_claimed_is_skipped_with_its_reason(leasecheck: Run) -> None:
    result = leasecheck("-rs")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "held          a stale token never writes * 2 scripts, 2 stale attempts, none landed",
            "held          each interrupted step is reconciled exactly once *"
            "2 interruptions, 2 reconciliations",
            "held          no run stays leased * 2 runs checked",
            "not claimed   no counter is declared (V8)",
            "not claimed   reconciles (reconciled)",
            "SKIPPED * not claimed: reconciles",
        ]
    )


def test_one_lane_serves_all_tests_and_is_closed(
    leasecheck: Run, notes: Callable[[], list[str]]
) -> None:
    leasecheck(subject="Reconciles").assert_outcomes(passed=3)
    told = [line.split(":")[0] for line in notes()]
    assert told == ["lane started", "played", "played", "played", "lane closed"]
