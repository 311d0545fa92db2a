"""`--leasecheck-replay`: a saved script or history is played again, as the scenario it is of."""

from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]


@pytest.mark.parametrize("name", ["script.txt", "history.jsonl"])
def test_printed_evidence_replays(consumer: pytest.Pytester, leasecheck: Run, name: str) -> None:
    leasecheck("leasecheck/classic::finished", subject="Stale")
    (saved,) = (consumer.path / ".leasecheck").rglob(name)
    consumer.makepyfile(test_mine="def test_mine(): pass")
    result = leasecheck("-v", f"--leasecheck-replay={saved}", subject="Stale")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*leasecheck/replay::finished FAILED*", "V1 a stale write *"])


def test_replay_of_a_scenario_requires_what_the_scenario_does(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    leasecheck("leasecheck/classic::finished", subject="Stale")
    (saved,) = (consumer.path / ".leasecheck").rglob("script.txt")
    result = leasecheck(f"--leasecheck-replay={saved}", subject="Inconclusive")
    result.stdout.fnmatch_lines("inconclusive, so nothing is proven: stale attempt by A")


@pytest.mark.parametrize("name", ["script.txt", "history.jsonl"])
def test_replay_of_a_script_that_is_no_scenarios_requires_what_its_test_did(
    consumer: pytest.Pytester, leasecheck: Run, name: str
) -> None:
    consumer.makepyfile(
        test_mine="""
            import pytest

            MOMENTS = ["interruption", "take-over by B"]

            @pytest.mark.leasecheck(subject="mine:Stale", requires=MOMENTS)
            def test_mine(stage):
                stage.submit("mine")
        """
    )
    leasecheck("test_mine.py", subject="Stale")
    (saved,) = (consumer.path / ".leasecheck").rglob(name)
    result = leasecheck(f"--leasecheck-replay={saved}", subject="Inconclusive")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("inconclusive, so nothing is proven: interruption; take-over by B")
    result.stdout.fnmatch_lines("replayed      *: required were interruption; take-over by B")


@pytest.mark.parametrize("head", ["", "# requires: nothing\n"], ids=["not said", "nothing"])
def test_file_that_requires_nothing_is_told_to(
    consumer: pytest.Pytester, leasecheck: Run, head: str
) -> None:
    (consumer.path / "mine.txt").write_text(f"{head}submit r1\nspawn A\nrun A\n")
    result = leasecheck("-q", "--leasecheck-replay=mine.txt", subject="Inconclusive")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines("replayed      mine.txt: nothing was required, *")


def test_what_is_required_can_be_edited(consumer: pytest.Pytester, leasecheck: Run) -> None:
    leasecheck("leasecheck/classic::finished", subject="Stale")
    (saved,) = (consumer.path / ".leasecheck").rglob("script.txt")
    text = saved.read_text()
    saved.write_text(text.replace("stale attempt by A", "nothing"))
    leasecheck(f"--leasecheck-replay={saved}", subject="Inconclusive").assert_outcomes(passed=1)
    saved.write_text(text.replace("stale attempt by A", "take-over by B"))
    result = leasecheck(f"--leasecheck-replay={saved}", subject="Inconclusive")
    result.stdout.fnmatch_lines("inconclusive, so nothing is proven: take-over by B")
    saved.write_text(text.replace("stale attempt by A", "a miracle"))
    result = leasecheck(f"--leasecheck-replay={saved}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: what leasecheck/replay::finished requires: *a miracle*")


def test_file_of_an_earlier_version_is_judged_as_its_scenario(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    leasecheck("leasecheck/classic::finished", subject="Stale")
    (saved,) = (consumer.path / ".leasecheck").rglob("script.txt")
    saved.write_text(saved.read_text().replace("# requires: stale attempt by A\n", ""))
    result = leasecheck(f"--leasecheck-replay={saved}", subject="Inconclusive")
    result.stdout.fnmatch_lines("inconclusive, so nothing is proven: stale attempt by A")


def test_script_of_ones_own_is_judged_by_every_invariant(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    (consumer.path / "mine.txt").write_text("submit r1  # a remark\nspawn A\nrun A\ndrain\n")
    leasecheck("-v", "--leasecheck-replay=mine.txt").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("submit\nfly A\n", "*bad.txt: *line 1*line 2*"),
        ("", "*bad.txt: there is no action in it"),
        ("# nothing\n", "*bad.txt: there is no action in it"),
        ('{"leasecheck-history": 99}\n', "*bad.txt: *"),
        ("{", "*bad.txt: *"),
        ("\0", "*bad.txt: line 1*"),
    ],
)
def test_file_that_is_wrong_is_one_usage_error(
    consumer: pytest.Pytester, leasecheck: Run, text: str, line: str
) -> None:
    (consumer.path / "bad.txt").write_text(text)
    result = leasecheck("--leasecheck-replay=bad.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(f"ERROR: --leasecheck-replay={line}")
    assert "Traceback" not in result.stderr.str()


def test_file_that_is_not_there_or_is_no_text(consumer: pytest.Pytester, leasecheck: Run) -> None:
    (consumer.path / "binary").write_bytes(b"\xff\xfe")
    for name, line in [("gone", "there is no file *gone"), ("binary", "can't read *binary: *")]:
        result = leasecheck(f"--leasecheck-replay={name}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(f"ERROR: --leasecheck-replay: {line}")
