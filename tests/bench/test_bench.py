"""The bench's machinery works; how fast anything is, no test says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .__main__ import asked
from .measuring import TINY, Counts
from .page import TARGETS

ROOT = Path(__file__).resolve().parents[2]


def test_one_command_prints_every_ratio(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--json", "--tiny", "--disk", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert list(told["ratios"]) == list(TARGETS)
    for name, value in told["ratios"].items():
        assert value is None or value > 0
        assert value is not None or name.startswith(("warm_vs_frontrun", "hypothesis"))
    assert not list(tmp_path.iterdir())


def test_the_plain_command_plays_every_way_as_often_as_it_is_meant_to() -> None:
    assert asked([])[1] == Counts()
    assert asked(["--tiny"])[1] == TINY
    assert asked(["--rounds", "3"])[1] == Counts(rounds=3)
