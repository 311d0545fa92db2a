"""Where the suite's items are: by id, `-k`, `-m`, `--lf`, with pytest-xdist, in junit files."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]
ALL = [
    "leasecheck/classic::finished",
    "leasecheck/classic::still_held",
    "leasecheck/repeats::reconciled",
]


def collected(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_suite_is_collected_in_an_empty_folder(leasecheck: Run) -> None:
    assert collected(leasecheck("--collect-only", "-q")) == ALL


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        (["leasecheck"], ALL),
        (["leasecheck/"], ALL),
        (["leasecheck/classic"], ALL[:2]),
        (["leasecheck/classic::still_held"], ALL[1:2]),
        (["leasecheck/repeats", "leasecheck/classic::finished"], [ALL[0], ALL[2]]),
        (["-k", "classic"], ALL[:2]),
        (["-k", "reconciled"], ALL[2:]),
        (["-m", "leasecheck"], ALL),
        (["-m", "not leasecheck"], []),
    ],
)
def test_suite_is_selected_like_any_test(leasecheck: Run, args: list[str], ids: list[str]) -> None:
    assert collected(leasecheck("--collect-only", "-q", *args)) == ids


def test_suite_runs_beside_the_consumers_tests(consumer: pytest.Pytester, leasecheck: Run) -> None:
    consumer.makepyfile(test_mine="def test_mine(): pass")
    leasecheck(subject="Reconciles").assert_outcomes(passed=4)


@pytest.mark.parametrize("arg", ["test_mine.py", "test_mine.py::test_mine", "."])
def test_path_of_the_consumer_runs_only_that(
    consumer: pytest.Pytester, leasecheck: Run, arg: str
) -> None:
    consumer.makepyfile(test_mine="def test_mine(): pass")
    leasecheck(arg).assert_outcomes(passed=1)


def test_paths_of_both_run_both(consumer: pytest.Pytester, leasecheck: Run) -> None:
    consumer.makepyfile(test_mine="def test_mine(): pass", test_other="def test_other(): pass")
    leasecheck("test_mine.py", "leasecheck/classic").assert_outcomes(passed=3)


def test_unknown_id_is_a_usage_error_that_shows_what_there_is(leasecheck: Run) -> None:
    result = leasecheck("leasecheck/classic::nothing")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "ERROR: there is no leasecheck/classic::nothing; there are: leasecheck/classic::finished, *"
    )


def test_consumers_own_folder_of_our_name_is_theirs_and_the_suite_is_still_played(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    (consumer.path / "leasecheck").mkdir()
    (consumer.path / "leasecheck" / "test_theirs.py").write_text("def test_theirs(): pass")
    leasecheck("leasecheck", subject="Reconciles").assert_outcomes(passed=4)
    leasecheck("leasecheck/test_theirs.py").assert_outcomes(passed=1)
    leasecheck("leasecheck/classic").assert_outcomes(passed=2)


def test_last_failed_runs_ours_and_theirs_again(consumer: pytest.Pytester, leasecheck: Run) -> None:
    consumer.makepyfile(test_mine="def test_bad(): assert 0\ndef test_good(): pass")
    leasecheck(subject="Unreached").assert_outcomes(failed=3, passed=1, skipped=1)
    leasecheck("--lf", subject="Unreached").assert_outcomes(failed=3, deselected=1)
    leasecheck("--lf").assert_outcomes(passed=2, failed=1, deselected=1)


def test_id_that_was_printed_runs_again(leasecheck: Run) -> None:
    failed = leasecheck(subject="Stale")
    lines = [line for line in failed.outlines if line.startswith("FAILED ")]
    assert [line.split()[1] for line in lines] == ALL[:2]
    leasecheck(lines[1].split()[1], subject="Stale").assert_outcomes(failed=1)


@pytest.mark.parametrize("args", [[], ["leasecheck"], ["leasecheck/classic"]])
def test_workers_of_xdist_share_the_suite(leasecheck: Run, args: list[str]) -> None:
    result = leasecheck("-n", "2", *args, subject="Reconciles")
    result.assert_outcomes(passed=len(ALL) if args != ["leasecheck/classic"] else 2)
    scripts = 3 if args != ["leasecheck/classic"] else 2
    result.stdout.fnmatch_lines(f"held * a stale token never writes *{scripts} scripts, *")


def test_junit_file_has_ids_and_counts(consumer: pytest.Pytester, leasecheck: Run) -> None:
    leasecheck("--junit-xml=out.xml", "-n", "2")
    cases = ET.parse(consumer.path / "out.xml").getroot().findall(".//testcase")
    found = {f"{case.get('classname')}::{case.get('name')}": case for case in cases}
    assert set(found) == {name.replace("/", ".") for name in ALL}
    case = found["leasecheck.classic::finished"]
    told = {item.get("name"): item.get("value") for item in case.iter("property")}
    assert told["leasecheck.subject"] == "mine:Holds"
    assert told["leasecheck.outcome"] == "pass"
    assert told["leasecheck.stale_attempts"] == "1"


def test_consumers_autouse_fixtures_and_path_arithmetic(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    with (consumer.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\nimport pytest\n"
            "@pytest.fixture(autouse=True)\n"
            "def theirs(): raise RuntimeError('not for you')\n"
            "def pytest_collection_modifyitems(items):\n"
            "    for item in items: item.path.relative_to(item.config.rootpath)\n"
        )
    leasecheck().assert_outcomes(passed=2, skipped=1)


def test_console_script_in_another_folder_finds_the_subject_in_rootdir(
    consumer: pytest.Pytester, leasecheck: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer.makeini("[pytest]\nleasecheck_subject = mine:Reconciles\n")
    below = consumer.mkdir("below")
    monkeypatch.chdir(below)
    result = consumer.runpytest_subprocess("--leasecheck", "leasecheck")
    result.assert_outcomes(passed=3)
