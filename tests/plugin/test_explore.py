"""`--leasecheck-explore`, `--leasecheck-soak`, and replays that meet other versions."""

from __future__ import annotations

import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

QUEUES = str(runpy.run_path(str(Path(__file__).with_name("test_sweep.py")))["QUEUES"])

RACE = """\
submit run-1
spawn A
until A effect:charge before
expire
spawn B
until B effect:charge before
heal
drain
"""


@pytest.fixture
def consumer(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(queues=QUEUES)
    return pytester


def leasecheck(consumer: pytest.Pytester, *args: str, subject: str = "Queue") -> pytest.RunResult:
    flags = ["--leasecheck", f"--leasecheck-subject=queues:{subject}"]
    return consumer.runpytest_subprocess(*flags, *args)


def test_exploration_tells_its_seed_and_what_it_did(consumer: pytest.Pytester) -> None:
    args = ("--leasecheck-explore=14", "leasecheck/explore", "--leasecheck-workers=warm")
    result = leasecheck(consumer, *args, "--hypothesis-seed=11")
    result.assert_outcomes(passed=1)
    # What is not claimed is so of each way to test it; and no search calls it "not shown".
    result.stdout.fnmatch_lines(
        [
            "not claimed   each interrupted step is reconciled exactly once",
            "not claimed   no counters are declared (V8)",
            "explored      14 scripts, * steps, * % wasted; *seed 11",
        ]
    )
    leasecheck(consumer, "--leasecheck-explore=none").stderr.fnmatch_lines("*not a number above 0*")
    look = ("--collect-only", "-q", "leasecheck")
    assert "leasecheck/explore::races" not in leasecheck(consumer, *look).outlines


def test_a_search_without_danger_is_inconclusive(consumer: pytest.Pytester) -> None:
    args = ("--leasecheck-explore=1", "leasecheck/explore", "--hypothesis-seed=1")
    result = leasecheck(consumer, *args)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "seed 1: inconclusive, so nothing is proven: in 1 script no stale attempt was made, *",
            "inconclusive  1 test proved nothing: leasecheck/explore::races",
            "explored      1 scripts, *; never came about: a stale attempt, *; seed 1",
        ]
    )


def test_ctrl_c_in_the_middle_tells_what_was_found_so_far(consumer: pytest.Pytester) -> None:
    flags = ["--leasecheck", "--leasecheck-subject=queues:Queue", "--leasecheck-explore=100000"]
    command = [sys.executable, "-m", "pytest", *flags, "leasecheck/explore"]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with consumer.popen(command, **pipe) as process:
        assert process.stdout is not None
        said = ""
        while "explored 1" not in said:  # it says something every two seconds
            line = process.stdout.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert re.search(r"interrupted after \d+ scripts \(seed \d+\): no fault so far", rest)
    assert process.returncode == pytest.ExitCode.INTERRUPTED


def test_saved_failure_is_tried_first_and_forgotten_once_it_is_mended(
    consumer: pytest.Pytester,
) -> None:
    label = "queues-Unfenced"
    folder = consumer.path / ".leasecheck" / "failures" / label
    folder.mkdir(parents=True)
    saved = folder / "race-1.txt"
    saved.write_text(f"# made with: pytest-leasecheck 0.0.1; Python 3.1\n{RACE}")
    args = ("--leasecheck-explore=14", "leasecheck/explore", "--hypothesis-seed=11")
    result = leasecheck(consumer, *args, subject="Unfenced")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["V1 *A#1*", "script", "*saved script*", f"*{label}/race-1.txt"])
    result.stdout.fnmatch_lines(["*as Python*", "def test_race(stage):"])
    replayed = leasecheck(consumer, f"--leasecheck-replay={saved}", subject="Unfenced")
    replayed.assert_outcomes(failed=1)
    replayed.stdout.fnmatch_lines(
        "leasecheck: race-1.txt was made with other versions: pytest-leasecheck 0.0.1 then, * now;*"
    )
    (consumer.path / "queues.py").write_text(
        QUEUES.replace("class Unfenced(Queue):", "class Unfenced(Queue):\n    pass\n\nclass Old:")
    )
    leasecheck(consumer, *args, subject="Unfenced").assert_outcomes(passed=1)
    assert not saved.exists()


def test_soak_takes_a_duration_and_tells_what_it_did(consumer: pytest.Pytester) -> None:
    result = leasecheck(consumer, "--leasecheck-soak=300ms", "leasecheck/soak")
    result.stdout.fnmatch_lines("soaked * rounds, 40 runs *; verdicts: * (seed *)")
    result = leasecheck(consumer, "--leasecheck-soak=55", "leasecheck/soak")
    result.stdout.fnmatch_lines("soaked * 1 rounds, 55 runs *; verdicts: * (seed *)")
    blind = ("--leasecheck-soak=40", "--leasecheck-no-hooks", "leasecheck/soak", "-rs")
    leasecheck(consumer, *blind).stdout.fnmatch_lines(
        ["inconclusive *", "SKIP* not shown: SQLite's symbols are hidden; *several moved at once*"]
    )
    result = leasecheck(consumer, "--leasecheck-soak=long")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*'long' is no duration; write 30s, 5m or 1h, or how many runs")
