"""What the tests with real processes share: lanes that are closed, subjects by name."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_leasecheck.testkit.lane import Lane, LaneOptions

# Helpers of this folder, and subjects that a lane finds by their module's name.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def _signals_as_in_a_terminal() -> None:
    """A shell's background job ignores Ctrl-C and Ctrl-\\, and so would all that we start."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in (
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGQUIT, signal.SIG_DFL),
        ):
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, handler)


@pytest.fixture
def lane_of(tmp_path: Path) -> Iterator[Callable[..., Lane]]:
    """Start lanes; all are closed at the end."""
    lanes: list[Lane] = []

    def start(subject: Any, **options: Any) -> Lane:
        options.setdefault("folder", tmp_path / "logs")
        options.setdefault("deadline_s", 2.0)
        lanes.append(Lane(subject, options=LaneOptions(**options)))
        return lanes[-1]

    yield start
    for lane in lanes:
        lane.close()
