"""`--leasecheck-subject` and its ini line: what is tested, and every way to name it wrongly."""

from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]


def test_without_a_subject_both_lines_to_paste_are_shown(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--leasecheck")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: leasecheck needs to know what to test. *",
            "  on the command line    --leasecheck-subject=yourpkg.leasecheck:YourSubject",
            "  or in pytest.ini       leasecheck_subject = yourpkg.leasecheck:YourSubject",
            "  pytest --leasecheck --leasecheck-subject=reference leasecheck",
        ]
    )


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        ("mine", "*'mine' is not of the form pkg.mod:Name (or: reference)"),
        ("nowhere.mod:Name", "*: there is no module 'nowhere', neither installed nor in /*"),
        ("mine.sub:Name", "*'mine.sub:Name': there is no module 'mine.sub'"),
        ("mine:Hold", "*'mine:Hold': mine has no 'Hold'; did you mean 'Holds'[?]"),
        ("mine:Queue", "*mine has no 'Queue'; the subjects in it are: *BadDanger, *Stale, *"),
        ("mine:NoSubject", "*'mine:NoSubject' is not a Subject but a class 'NoSubject'; *"),
        ("mine:stand_in", "*'mine:stand_in' is not a Subject but a module; *"),
        ("mine:NeedsArguments", "*mine:NeedsArguments can't be made without arguments: Type*"),
        ("mine:Undeclared", "*mine:Undeclared declares no `runs`; *"),
        ("mine:Boasts", "*mine:Boasts claims 'reconciled'; what can be claimed is: *"),
        ("mine:Contradicts", "*the declaration of mine:Contradicts contradicts itself:*"),
        ("mine:BadDanger", "*leasecheck/classic::finished (danger 'txn:sideways before') does*"),
        ("broken:Name", "*'broken:Name': importing broken raised ZeroDivisionError: *"),
    ],
)
def test_wrong_subject_is_one_readable_usage_error(
    consumer: pytest.Pytester, subject: str, line: str
) -> None:
    consumer.makepyfile(broken="1 / 0")
    result = consumer.runpytest_subprocess("--leasecheck", f"--leasecheck-subject={subject}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(f"ERROR: {line}")
    assert "Traceback" not in result.stderr.str()


def test_ini_line_names_the_subject_and_the_option_wins(consumer: pytest.Pytester) -> None:
    consumer.makeini("[pytest]\nleasecheck_subject = mine:Holds\n")
    result = consumer.runpytest_subprocess("--leasecheck")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["leasecheck: mine:Holds; *", "subject       mine:Holds"])
    result = consumer.runpytest_subprocess("--leasecheck", "--leasecheck-subject=mine:Reconciles")
    result.assert_outcomes(passed=3)


def test_wrong_subject_is_told_once_under_xdist(consumer: pytest.Pytester) -> None:
    result = consumer.runpytest_subprocess("--leasecheck", "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().count("leasecheck needs to know") == 1


def test_other_systems_are_told_in_one_line(consumer: pytest.Pytester) -> None:
    with (consumer.path / "conftest.py").open("a") as conftest:
        conftest.write("\nsys.platform = 'darwin'\n")
    result = consumer.runpytest_subprocess("--leasecheck")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: leasecheck runs on Linux only *; this is darwin")
