"""`python -m pytest_leasecheck … | head`, and printed maps: who reads no further is no error."""

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.history import Header, History, Noted
from pytest_leasecheck.testkit.history_json import save
from pytest_leasecheck.testkit.subject import Declaration, Lease, RunTable

SUBJECT = "--leasecheck-subject=reference"


@pytest.fixture
def long_history(tmp_path: Path) -> Path:
    events = tuple(Noted(n, n, "A#1", f"a remark, the {n}th of many") for n in range(1, 6_000))
    path = tmp_path / "history.jsonl"
    runs = RunTable("jobs", id="id", terminal={"done"}, status="status", lease=Lease(owner="who"))
    told = declaration_to_json(Declaration("Mine", runs))
    save(History(Header("Mine", "", declaration=told), events), path)
    return path


def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    """More is printed than a pipe holds."""
    files = [str(tmp_path / f"{'x' * 100}{n}.jsonl") for n in range(800)]
    command = [sys.executable, "-m", "pytest_leasecheck", "judge", *files]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"can't be read" in process.stderr.readline()
        process.stderr.close()
        assert process.wait(timeout=60) == -13  # SIGPIPE, as any filter ends


@pytest.mark.parametrize("closed", ["head", "full"])
@pytest.mark.parametrize("module", ["show", "--leasecheck-points"])
def test_output_that_goes_nowhere_is_one_line_at_most(
    closed: str, module: str, long_history: Path
) -> None:
    command = (
        ["pytest_leasecheck", "show", str(long_history)]
        if module == "show"
        else ["pytest", module, SUBJECT, "-p", "no:cacheprovider"]
    )
    out = "| head -c 1 >/dev/null" if closed == "head" else "> /dev/full"
    done = subprocess.run(
        ["bash", "-c", f'"$@" {out}', "bash", sys.executable, "-m", *command],
        cwd=long_history.parent, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert len(done.stderr.splitlines()) == (0 if closed == "head" else 1)
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr
