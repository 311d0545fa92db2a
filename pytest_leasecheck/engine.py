"""The one place where the plugin reaches for the engine, so that it loads late.

Tests put a quick stand-in here.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lanes import Lanes
    from .options import Settings
    from .testkit.families import PointMap
    from .testkit.history import History
    from .testkit.lane import Lane
    from .testkit.stage import Stage
    from .testkit.subject import Subject
    from .testkit.verdict import Verdict


def start_lane(subject: Subject, *, settings: Settings, folder: Path) -> Lane:
    """Start a lane process for a subject. Raises `LeasecheckError`."""
    from .testkit.lane import Lane, LaneOptions

    options = LaneOptions(
        folder=folder,
        clock=settings.clock,
        workers=settings.workers,
        hooks=settings.hooks,
        deadline_s=settings.deadline_s,
        dies_with=_controller(),
        number=_number(),
    )
    return Lane(subject, options=options)


def _controller() -> tuple[int, ...]:
    """In a worker of xdist its controller, which a worker outlives by seconds."""
    return (os.getppid(),) if "PYTEST_XDIST_WORKER" in os.environ else ()


def _number() -> int:
    """Which lane this is: of xdist's workers, from 0, else of whatever pytests there are."""
    digits = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    return int(digits) if digits.isdecimal() else os.getpid()


def draw_map(lanes: Lanes, subject: Subject) -> PointMap:
    """What an undisturbed worker of a subject passes. Raises `LeasecheckError`."""
    from .testkit.sweep import draw_map as draw

    return draw(lanes.lane_for(subject), danger=subject.danger)


def open_stage(lane: Lane, *, name: str) -> Stage:
    """Begin a stage whose actions come one by one. Raises `LeasecheckError`."""
    return lane.open_stage(name=name)


def judge(
    history: History, *, requires: Collection[str], holds: Collection[str], drained: bool
) -> Verdict:
    """The verdict over a history, with the guards that refused. Raises `LeasecheckError`."""
    from dataclasses import replace

    from .testkit.declaration_json import declaration_from_json
    from .testkit.errors import LeasecheckError
    from .testkit.judge import judge as judge_history
    from .testkit.refusal import with_guards

    try:
        verdict = judge_history(history, requires=requires, holds=holds, drained=drained)
    except ValueError as error:  # a required moment that there is none of
        raise LeasecheckError(str(error)) from error
    if not verdict.attempts:
        return verdict
    declaration = declaration_from_json(history.header.declaration)
    asked = with_guards(history, declaration, verdict.attempts, tenures=verdict.tenures)
    return replace(verdict, attempts=asked)


def save_history(history: History, path: Path) -> None:
    """Write a history as JSON Lines."""
    from .testkit.history_json import save

    save(history, path)


def load_history(path: Path) -> History:
    """Read one back. Raises `HistoryError`."""
    from .testkit.history_json import load

    return load(path)
