"""Scripts that Hypothesis makes up, beside the same scripts played without it."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from pytest_leasecheck.testkit.confirming import play_and_judge
from pytest_leasecheck.testkit.explore import explore
from pytest_leasecheck.testkit.found import Tally
from pytest_leasecheck.testkit.lane import Lane, LaneOptions, Played
from pytest_leasecheck.testkit.script import parse_script

from .subject import TinyQueue


def measure(folder: Path, *, examples: int) -> tuple[list[float], list[float]]:
    """Seconds per script without Hypothesis and with it; both are judged."""
    options = LaneOptions(folder=folder / "explored", workers="warm", cpu=1)
    with Lane(TinyQueue, options=options) as lane:
        scripts: list[str] = []
        moments: list[float] = []
        finish = lane.finish_stage

        def finish_and_keep(*, script: str) -> Played:
            scripts.append(script)
            return finish(script=script)

        def told(_tally: Tally) -> None:
            moments.append(time.perf_counter())

        lane.finish_stage = finish_and_keep  # type: ignore[method-assign]  # to have the scripts
        explored = explore(lane, scripts=examples, seed=1, steps=10, told_so_far=told)
        assert explored.found is None, explored.found
        lane.finish_stage = finish  # type: ignore[method-assign]
        driven = [after - before for before, after in itertools.pairwise(moments)]
        plain = []
        for text in scripts[1:]:
            begun = time.perf_counter()
            play_and_judge(lane, parse_script(text), name="plain")
            plain.append(time.perf_counter() - begun)
    return plain, driven
