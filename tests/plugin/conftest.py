"""A consumer's folder with a subject of every kind, driven by the stand-in for the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

CONFTEST = """
import sys
sys.path.insert(0, {folder!r})
import stand_in
stand_in.install()
"""

SUBJECTS = """
import stand_in
from pytest_leasecheck.testkit.subject import Reconciliations, Steps

class Holds(stand_in.Stood):
    pass

class Patched(stand_in.Stood):
    clock = "patched"

class Reconciles(stand_in.Stood):
    capabilities = {"reconciles"}
    steps = Steps(
        "steps", run="job", id=("n",), status="status", started={"begun"}, finished={"done"}
    )
    reconciliations = Reconciliations("decisions", run="job", step=("n",), decision="what")

class Stale(stand_in.Stood):
    plays = "stale"

class Inconclusive(stand_in.Stood):
    plays = "inconclusive"

class Dies(stand_in.Stood):
    plays = "dies"

class Interrupted(stand_in.Stood):
    plays = "is interrupted"

class Unreached(stand_in.Stood):
    plays = "unreached"

class CantHeal(stand_in.Stood):
    plays = "can't heal"

class Undeclared(stand_in.Stood):
    runs = None

class Boasts(stand_in.Stood):
    capabilities = {"reconciled"}

class Contradicts(stand_in.Stood):
    delivery = "at most once"

class BadDanger(stand_in.Stood):
    danger = "txn:sideways before"

class NeedsArguments(stand_in.Stood):
    def __init__(self, url):
        self.url = url

class NoSubject:
    pass
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told matters here, not where its lines end; `test_summary.py` has that."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def consumer(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project whose conftest installs the stand-in, with `mine.py` beside it."""
    pytester.makeconftest(CONFTEST.format(folder=str(Path(__file__).parent)))
    pytester.makepyfile(mine=SUBJECTS)
    monkeypatch.setenv("STAND_IN_NOTES", str(pytester.path / "notes.txt"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    # It imports all of Hypothesis at the end of each run, a third of what such a run takes.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    return pytester


@pytest.fixture
def leasecheck(consumer: pytest.Pytester) -> Run:
    """Run `pytest --leasecheck` there with a subject of `mine.py`, in a process of its own."""

    def run(*args: str, subject: str = "Holds") -> pytest.RunResult:
        flags = ["--leasecheck", f"--leasecheck-subject=mine:{subject}"]
        return consumer.runpytest_subprocess(*flags, *args)

    return run


@pytest.fixture
def notes(consumer: pytest.Pytester) -> Callable[[], list[str]]:
    """What the stand-in was asked to do."""

    def read() -> list[str]:
        path = consumer.path / "notes.txt"
        return path.read_text().splitlines() if path.exists() else []

    return read
