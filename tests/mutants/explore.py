"""Which mutants exploration finds by itself: `python -m tests.mutants.explore [NAME …]`.

Prints, for each mutant, after how many schedules it was found first and how long the shrunk script
is; those that were not found are named. `--most=2000` schedules each, `--seed=N`, and
`--true=50000` explores the true runtime instead, where nothing may be found.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from unittest import mock

from pytest_leasecheck.testkit.explore import Explored, explore
from pytest_leasecheck.testkit.found import Tally, told
from pytest_leasecheck.testkit.lane import Lane, LaneOptions

from . import subjects
from .catalogue import MUTANTS
from .model import IN_FORCE, Mutant
from .playing import importable

_MOST: Final = 2_000
_PATIENCE_S: Final = 2.0


def main(arguments: Sequence[str]) -> int:
    """Explore and print the table. 1 when a mutant was not found, or the true runtime failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.explore", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants; all when none is named")
    parser.add_argument("--most", type=int, default=_MOST)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--true", type=int, default=0, metavar="N")
    parser.add_argument("--show", action="store_true", help="print the shrunk scripts too")
    options = parser.parse_args(arguments)
    known = {one.name for one in MUTANTS}
    unknown = sorted(set(options.names) - known)
    if unknown:
        parser.error(f"there is no mutant {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    with tempfile.TemporaryDirectory(prefix="leasecheck-mutants-") as folder:
        if options.true:
            return _true(options.true, seed=options.seed, folder=Path(folder))
        chosen = [one for one in MUTANTS if not options.names or one.name in options.names]
        return _table(chosen, options, folder=Path(folder))


def _table(mutants: Sequence[Mutant], options: argparse.Namespace, *, folder: Path) -> int:
    missed: list[str] = []
    print(f"| mutant | found by | schedules | script | (seed {options.seed})")
    print("|---|---|---|---|")
    try:
        for mutant in mutants:
            found = _explore(mutant.schedule.subject, mutant.name, options.most,
                             seed=options.seed, folder=folder)  # fmt: skip
            if found.found is None:
                missed.append(mutant.name)
                why = found.unsteady.partition("\n")[0] or "not found"
                print(f"| {mutant.name} | {why} | {found.tally.scripts} | |", flush=True)
                continue
            first = found.found.faults[0]
            length = len(found.found.script.actions)
            print(f"| {mutant.name} | {first.invariant} {first.title} | {found.tally.first}"
                  f" | {length} actions |", flush=True)  # fmt: skip
            if options.show:
                print(told(found.found))
    except KeyboardInterrupt:
        print("interrupted; the table is as far as it came")
    print(f"not found: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def _true(count: int, *, seed: int, folder: Path) -> int:
    """Explore the reference itself, without a mutant."""
    started = time.monotonic()
    explored = _explore("Plain", "", count, seed=seed, folder=folder)
    rate = explored.tally.scripts / (time.monotonic() - started)
    print(f"the true runtime: {explored.tally.scripts} schedules, {rate:.0f}/s, seed {seed}:")
    if explored.found is not None:
        print(told(explored.found))
        return 1
    print(explored.unsteady or "no failure")
    return 1 if explored.unsteady else 0


def _explore(subject: str, mutant: str, most: int, *, seed: int, folder: Path) -> Explored:
    """A lane for each mutant: warm workers keep what was put into them."""
    with importable():
        # Those who run it twice at once give it two seeds.
        lane_options = LaneOptions(folder=folder, workers="warm", number=seed)
        with mock.patch.dict(os.environ, {IN_FORCE: mutant}):  # the lane's own file would be swept
            lane = Lane(getattr(subjects, subject), options=lane_options)
    with lane:
        return explore(lane, scripts=most, seed=seed, told_so_far=_progress(mutant or "none"))


def _progress(name: str) -> Callable[[Tally], None]:
    last = time.monotonic()

    def tell(tally: Tally) -> None:
        nonlocal last
        if time.monotonic() - last > _PATIENCE_S and sys.stderr.isatty():
            last = time.monotonic()
            kinds = Counter(kind for one in tally.failures for kind in one.kinds)
            print(f"\r{name}: {tally.scripts} {dict(kinds)}   ", end="", file=sys.stderr)

    return tell


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
