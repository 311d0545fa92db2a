"""Strangers are run in environments of their own, which `python -m tests.wild.envs` builds.

A test is skipped where its environment isn't built, and says how to build it; with
LEASECHECK_WILD=required, as CI sets it, that is a failure.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.history_json import load

from .envs import REPOSITORY, python_of, stranger

#: A whole suite in a stranger's environment, on the wall clock, on a busy machine.
_PATIENCE_S = 100


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "wild: runs a stranger in an environment of its own")


def run_in(name: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` in the environment of a stranger, from the repository's root."""
    python = python_of(stranger(name))
    if python is None:
        why = f"{name}'s environment is not built: python -m tests.wild.envs {name}"
        if os.environ.get("LEASECHECK_WILD") == "required":
            pytest.fail(why)
        pytest.skip(why)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    kept.pop("PYTHONPATH", None)
    kept["COLUMNS"] = "200"  # else lines are wrapped that are looked for in one piece
    return subprocess.run(
        [str(python), *arguments],
        cwd=REPOSITORY,
        env=kept,
        input=given,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
    )


Play = Callable[[str, str, str], History]


@pytest.fixture(scope="session")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Play a script with a stranger's subject (`aiq:AiqQueue`) on a clock; its history."""
    folder: Path = tmp_path_factory.mktemp("wild")
    numbers = iter(range(1000))

    def play_it(subject: str, script: str, clock: str = "virtual") -> History:
        module, _, _name = subject.partition(":")
        file = folder / f"{next(numbers)}.jsonl"
        done = run_in(
            module.partition("_")[0], "-m", "tests.wild.play", f"tests.wild.{subject}", str(file),
            clock, given=script,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return load(file)

    return play_it
