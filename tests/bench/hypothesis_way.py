"""Scripts that Hypothesis makes up, beside the same scripts played without it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

#: Why there is no figure, or nothing.
ABSENT = ""
if importlib.util.find_spec("pytest_leasecheck.testkit.explore") is None:
    ABSENT = "there is no exploration yet"


def measure(folder: Path, *, examples: int) -> tuple[list[float], list[float]]:
    """Seconds per script without Hypothesis, and with it."""
    raise NotImplementedError
