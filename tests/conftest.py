"""Shared by all tests: `pytester` for those that run pytest itself, and where the project lies."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def project() -> Path:
    """The folder of pyproject.toml: a checkout or an unpacked sdist."""
    return Path(__file__).resolve().parents[1]
