"""`python -m tests.bench`: measure, and write the page; with `--json` print the ratios instead."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from .measuring import TINY, Counts, machine, measure, ratios
from .page import PAGE, TARGETS, met, write


def asked(arguments: list[str] | None = None) -> tuple[argparse.Namespace, Counts]:
    """The options, and how often each way is played under them."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object and write no page")
    parser.add_argument("--tiny", action="store_true", help="once each: shows that it works")
    parser.add_argument("--rounds", type=int, help="how many rounds; more are steadier")
    parser.add_argument("--disk", default=".", help="a folder on a real disk, for the lease's cost")
    options = parser.parse_args(arguments)
    counts = TINY if options.tiny else Counts()
    return options, replace(counts, rounds=options.rounds or counts.rounds)


def main() -> None:
    """Measure everything once."""
    options, counts = asked()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with (
        tempfile.TemporaryDirectory(dir=os.path.abspath(options.disk)) as folder,
        tempfile.TemporaryDirectory(dir=memory) as shared,
    ):
        found = measure(
            Path(folder), Path(shared), counts=counts, say=lambda text: print(text, file=sys.stderr)
        )
    measured = ratios(found)
    if options.json:
        medians = {name: round(found.median(name) * 1e3, 3) for name in found.seconds}
        print(
            json.dumps(
                {
                    "ratios": measured,
                    "medians_ms": medians,
                    "lease": found.lease,
                    "skipped": found.skipped,
                    "machine": machine(),
                },
                indent=2,
            )
        )
        return
    if not options.tiny:
        write(found, measured)
        print(f"wrote {PAGE}")
    for name, value in measured.items():
        said = "not measured" if value is None else f"{value:.3g}"
        mark = "" if value is None else "met" if met(name, value) else "missed"
        print(f"{name:22} {said:>12}  (target {TARGETS[name][1]:g}) {mark}")


if __name__ == "__main__":
    main()
