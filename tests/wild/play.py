"""Plays one script with a stranger, in its environment: `python -m tests.wild.play SUBJECT FILE`.

The script is read from standard input, its history is saved to FILE; an error is printed. What came
of it is judged by whoever asked, who may have another Python and no stranger at all.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal, cast

from pytest_leasecheck.testkit.history_json import save
from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.script import parse_script


def main(subject: str, file: str, clock: str) -> int:
    """Play, save; 1 when the script was not played to its end."""
    script = parse_script(sys.stdin.read())
    with tempfile.TemporaryDirectory() as logs:
        kind = cast(Literal["virtual", "wall"], clock)
        with Lane(subject, options=LaneOptions(folder=Path(logs), clock=kind)) as lane:
            played = lane.play(script, name="played")
    save(played.history, Path(file))
    if played.error is not None:
        print(played.error, file=sys.stderr)
    return 1 if played.error is not None else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
