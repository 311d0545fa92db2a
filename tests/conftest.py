"""Shared by all tests: `pytester` for those that run pytest itself, and where the project lies."""

from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def project() -> Path:
    """The folder of pyproject.toml: a checkout or an unpacked sdist."""
    return Path(__file__).resolve().parents[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Neighbouring tests go to one worker, which starts their lane; an idle worker takes some.

    By default they are dealt out in turns, and each worker starts each module's lanes.
    """
    if config.getoption("dist") != "load":  # what `-n` alone means
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)
