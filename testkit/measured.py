"""Coverage of what workers execute: saved where a process of ours comes to an orderly end.

Coverage starts in the lane by its own means (`patch = subprocess`) and goes on in what is forked
from it; but a worker is killed, not ended, when its script is over, and coverage writes at the end.
So where it is running, workers at rest are let go to their end, and save. What a script kills, or
finds stopped or held at its end, is lost with the process.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any


def running() -> bool:
    """Whether coverage measures this process. It is not imported for the question."""
    return _current() is not None


def save() -> None:
    """Save what was measured in this process, which is about to end; whatever happens."""
    with contextlib.suppress(BaseException):
        current = _current()
        if current is not None:
            current.stop()
            current.save()


def _current() -> Any:
    module = sys.modules.get("coverage")
    try:
        return module.Coverage.current() if module is not None else None
    except Exception:  # a module of another kind that is called the same
        return None
