"""The small options: what reaches the lane, and what a wrong value is answered with."""

from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]
Notes = Callable[[], list[str]]
ONE = "leasecheck/classic::finished"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], "clock auto, workers fresh, deadline 10, hooks True"),
        (["--leasecheck-clock=wall"], "clock wall, workers fresh, deadline 10, hooks True"),
        (["--leasecheck-workers=warm"], "clock auto, workers warm, deadline 10, hooks True"),
        (["--leasecheck-deadline=2.5"], "clock auto, workers fresh, deadline 2.5, hooks True"),
        (["--leasecheck-no-hooks"], "clock auto, workers fresh, deadline 10, hooks False"),
    ],
)
def test_option_reaches_the_lane(leasecheck: Run, notes: Notes, args: list[str], told: str) -> None:
    leasecheck(ONE, *args).assert_outcomes(passed=1)
    assert notes()[0] == f"lane started: {told}"


def test_ini_lines_do_the_same_and_options_win(
    consumer: pytest.Pytester, leasecheck: Run, notes: Notes
) -> None:
    consumer.makeini(
        "[pytest]\nleasecheck_clock = virtual\nleasecheck_workers = warm\nleasecheck_deadline = 3\n"
    )
    leasecheck(ONE, "--leasecheck-clock=wall").assert_outcomes(passed=1)
    assert notes()[0] == "lane started: clock wall, workers warm, deadline 3, hooks True"


WAITED = "leasecheck: on the wall clock each lease that expires is really waited for"


def test_wall_clock_is_told_once_with_what_helps(leasecheck: Run) -> None:
    result = leasecheck("leasecheck/classic", "-v")
    result.stdout.fnmatch_lines(
        [
            "leasecheck: mine:Holds; clock auto, *",
            f"{WAITED} (lease_ttl_ms is 30,000), so this is slow. Where your runtime reads *",
            'leasecheck: clock = "patched" in the subject; *',
        ]
    )
    assert result.stdout.str().count(WAITED) == 1


@pytest.mark.parametrize(
    ("subject", "args", "told"),
    [
        ("Patched", [], []),
        ("Holds", ["--leasecheck-clock=virtual"], []),
        ("Patched", ["--leasecheck-clock=wall"], [f"{WAITED} *; the option leasecheck_clock *"]),
    ],
)
def test_wall_clock_is_told_only_where_it_is_the_clock(
    leasecheck: Run, subject: str, args: list[str], told: list[str]
) -> None:
    result = leasecheck(ONE, *args, subject=subject)
    result.stdout.fnmatch_lines(told)
    assert result.stdout.str().count(WAITED) == len(told)


@pytest.mark.parametrize(
    ("args", "ini", "line"),
    [
        (["--leasecheck-deadline=soon"], "", "*'soon' is not a number of seconds above 0*"),
        (["--leasecheck-deadline=-1"], "", "*'-1' is not a number of seconds above 0*"),
        (["--leasecheck-clock=sun"], "", "*--leasecheck-clock: invalid choice: 'sun'*"),
        ([], "leasecheck_clock = sun", "ERROR: leasecheck_clock is 'sun'; it is one of: auto, *"),
        ([], "leasecheck_deadline = nan", "ERROR: leasecheck_deadline: 'nan' is not a number *"),
    ],
)
def test_wrong_value_is_a_usage_error(
    consumer: pytest.Pytester, leasecheck: Run, args: list[str], ini: str, line: str
) -> None:
    consumer.makeini(f"[pytest]\n{ini}\n")
    result = leasecheck(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(line)


def test_help_has_one_group_of_ours(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--help")
    result.stdout.fnmatch_lines(
        ["failure injection for run leases:", "  --leasecheck *", "  leasecheck_subject *"]
    )


def test_help_needs_no_subject(consumer: pytest.Pytester) -> None:
    assert consumer.runpytest_subprocess("--leasecheck", "--help").ret == 0


def test_marks_are_known_without_the_flag(consumer: pytest.Pytester) -> None:
    consumer.makepyfile("import pytest\n@pytest.mark.leasecheck\ndef test_it(): pass")
    consumer.runpytest_subprocess("--strict-markers").assert_outcomes(passed=1)


def test_without_the_flag_a_configured_subject_is_not_even_imported(
    consumer: pytest.Pytester, notes: Notes
) -> None:
    consumer.makeini("[pytest]\nleasecheck_subject = broken:Name\n")
    consumer.makepyfile(broken="1 / 0", test_mine="def test_mine(): pass")
    result = consumer.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    assert "leasecheck" not in result.stdout.str().replace("leasecheck-", "")
    assert notes() == []


def test_plugin_can_be_switched_off(consumer: pytest.Pytester) -> None:
    (consumer.path / "conftest.py").unlink()
    consumer.makepyfile(test_mine="def test_mine(): pass")
    consumer.runpytest_subprocess("-p", "no:leasecheck").assert_outcomes(passed=1)
