"""`--leasecheck-report`, a CI job's summary, and the checklist in the terminal."""

from collections.abc import Callable

import pytest

from pytest_leasecheck.reporting import summary
from pytest_leasecheck.tally import Record, from_properties, to_properties
from pytest_leasecheck.testkit.verdict import Counts

Run = Callable[..., pytest.RunResult]
PAGE = "--leasecheck-report=out/page.html"


def parts(consumer: pytest.Pytester) -> list[str]:
    return [path.name for path in (consumer.path / ".leasecheck").glob("**/report-parts/*")]


@pytest.mark.parametrize("distributed", [False, True])
def test_page_has_every_script_that_was_played(
    consumer: pytest.Pytester, leasecheck: Run, distributed: bool
) -> None:
    result = leasecheck(PAGE, *["-n2"] * distributed, subject="Stale")
    result.stdout.fnmatch_lines("report        out/page.html")
    page = (consumer.path / "out" / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<article") == 2
    assert "leasecheck/classic::still_held" in page
    assert "V1: a stale write landed" in page
    assert "--leasecheck-replay=.leasecheck/" in page
    assert parts(consumer) == []


def test_hand_written_test_and_one_without_a_history_are_on_the_page(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    consumer.makepyfile(
        "import mine, pytest\n"
        "@pytest.mark.leasecheck(subject=mine.Holds)\n"
        "def test_by_hand(stage): stage.submit('r1')\n"
    )
    leasecheck(PAGE, subject="Dies")
    page = (consumer.path / "out" / "page.html").read_text()
    assert "test_by_hand" in page
    assert page.count("Not played to its end") == 2
    assert page.index("::finished") < page.index("test_by_hand"), "what failed comes first"


def test_page_is_written_without_the_suite_and_by_workers(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(
        "import mine, pytest\n"
        "@pytest.mark.leasecheck(subject=mine.Holds)\n"
        "@pytest.mark.parametrize('number', [1, 2])\n"
        "def test_by_hand(stage, number): stage.submit('r1')\n"
    )
    result = consumer.runpytest_subprocess(PAGE, "-n2")
    result.stdout.fnmatch_lines(["subject       mine:Holds", "report        out/page.html"])
    assert (consumer.path / "out" / "page.html").read_text().count("<article") == 2


def test_workers_results_are_summed_up_without_a_flag(
    consumer: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(consumer.path / "summary.md"))
    consumer.makepyfile(
        "import mine, pytest\n"
        "@pytest.mark.leasecheck(subject=mine.Holds)\n"
        "def test_by_hand(stage): stage.submit('r1')\n"
    )
    result = consumer.runpytest_subprocess("-n1")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["subject       mine:Holds", "held          a stale token *"])
    assert not (consumer.path / ".leasecheck").exists()


def test_page_is_replaced_and_another_file_is_not(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    for _ in range(2):
        assert leasecheck(PAGE, "leasecheck/classic").ret == 0
    result = leasecheck("--leasecheck-report=mine.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: *mine.py: this file is there and is no page; *")
    assert "class Holds" in (consumer.path / "mine.py").read_text()


@pytest.mark.parametrize("target", ["mine.py/page.html", "."])
def test_page_that_cant_be_written_is_a_usage_error(leasecheck: Run, target: str) -> None:
    result = leasecheck(f"--leasecheck-report={target}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: --leasecheck-report=* can't be written: *")


def test_jobs_summary_is_appended(
    consumer: pytest.Pytester, leasecheck: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = consumer.path / "summary.md"
    file.write_text("another step's\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    leasecheck("-n1", subject="Stale")
    text = file.read_text()
    assert text.startswith("another step's\n")
    assert text.count("### leasecheck: 0 of 2 scripts passed") == 1
    assert "```mermaid" in text


def test_summary_that_cant_be_written_is_said_and_fails_nothing(
    consumer: pytest.Pytester, leasecheck: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(consumer.path / "no" / "summary.md"))
    result = leasecheck("leasecheck/classic")
    result.assert_outcomes(passed=2)
    said = " ".join(" ".join(result.outlines).split())
    assert f"no summary {consumer.path}/no/summary.md could not be written: " in said


def record(*checklist: str) -> Record:
    return Record("mine:Queue", "pass", Counts(scripts=1), checklist=checklist)


def test_checklist_of_all_tests_is_told_together() -> None:
    told = {"a": record("7 a restart", "3 an effect under its lease's token"),
            "b": record("7 a duplicate request")}  # fmt: skip
    (line,) = (line for line in summary(told) if line.word == "checklist")
    assert line.text.startswith("2 of 7 shown; not shown: 1 (a claim that another process read ")
    assert "7 (" not in line.text
    assert line.text.endswith("; line 8 is about documentation, which no test shows")


def test_one_test_that_breaks_a_line_breaks_it() -> None:
    told = {"a": record("4 a stale effect that was refused"),
            "b": record("4 broken: V1: a stale write landed")}  # fmt: skip
    (line,) = (line for line in summary(told) if line.word == "checklist")
    assert "broken: 4 (V1: a stale write landed)" in line.text


def test_checklist_survives_the_way_through_a_report() -> None:
    sent = record("7 a restart", "4 broken: V1: a stale write landed")
    assert from_properties(to_properties(sent)) == sent
