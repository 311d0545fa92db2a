"""A program that uses a lane, to be ended in many ways; started by `test_nothing_left`.

Brings one worker to a stop, one to the middle of a transaction, one to having children; says so on
its output, and then does as it was told.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.script import Run

SITUATION = """
submit r1
submit r2
spawn S
until S inside before
stop S
spawn C to leave_children
until C has children before
spawn L
until L holds the write lock before
spawn X to spin
"""


def tell(lane: Lane) -> None:
    """What must be gone later."""
    print(json.dumps({"guard": lane._process.pid, "work": lane.facts.work}), flush=True)


def main(how: str, folder: str) -> None:
    """`finish`, `atexit`, `vanish`, `idle` (wait for a signal), `busy` (be in a move meanwhile)."""
    options = LaneOptions(folder=Path(folder), deadline_s=60)
    lane = Lane("subjects_hostile:Hostile", options=options)
    stage = lane.open_stage(name="x")
    stage.do(SITUATION)
    tell(lane)
    if how == "busy":
        stage.do(Run("X"))
    else:
        sys.stdin.readline()  # whoever looks on has seen all it wants to see
    if how == "vanish":
        os._exit(0)
    if how == "finish":
        stage.close()
        lane.close()
    # `atexit`: nothing


if __name__ == "__main__":
    main(*sys.argv[1:])
