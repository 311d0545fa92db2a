"""Runs the consumer's project beside one neighbour after the other, and counts what came out.

    python tests/neighbours/check.py [--quick] [NEIGHBOUR ...]

with the Python of an environment that has leasecheck and the neighbours; `nox -s neighbours` makes
those. Each case is run twice, with `--leasecheck` and without. Exit code 1 when a count is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parent / "project"

#: All neighbours by the names of their entry points: whoever isn't asked for is switched off.
NEIGHBOURS: Final = ("xdist", "timeout", "pytest_cov", "randomly", "asyncio", "socket")

#: The suite is long, and it is the company that is tested here.
FLAGS: Final = (
    "--leasecheck",
    "--leasecheck-sweep=off",
    "-k",
    "test_ or eight_steps or wakes_while",
)

#: What the project's own tests come to, and what two scenarios add. One test of the project is
#: there to fail when it is judged.
THEIRS: Final = {"passed": 8, "error": 1}
OURS: Final = {"passed": 2}

#: What only processes of ours execute: prepare(), submit(), work().
_IN_WORKERS: Final = ("con.execute(SCHEMA)", "INSERT INTO jobs", "worker.effect(", "con.close()")

COVERAGE: Final = "[run]\nsource = .\nparallel = true\npatch = subprocess\n"
LOOP: Final = "asyncio_default_fixture_loop_scope=function"


@dataclass(frozen=True, slots=True)
class Case:
    """One company: which neighbours are there, how pytest is called, what is to come out."""

    with_: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    module: bool = False
    more: Mapping[str, int] = field(default_factory=dict)
    quick: bool = False


CASES: Final[Mapping[str, Case]] = {
    "alone": Case(quick=True),
    "python -m pytest": Case(module=True),
    "append": Case(args=("--import-mode=append",)),
    "importlib": Case(args=("--import-mode=importlib", "-o", "pythonpath=."), quick=True),
    "xdist": Case(with_=("xdist",), args=("-n2",)),
    "xdist by file": Case(with_=("xdist",), args=("-n2", "--dist=loadfile")),
    "timeout": Case(with_=("timeout",), args=("--timeout=60",)),
    "timeout thread": Case(
        with_=("timeout",), args=("--timeout=60", "--timeout-method=thread")
    ),
    "cov": Case(with_=("pytest_cov",), args=("--cov", "--cov-report=")),
    "randomly": Case(with_=("randomly",)),
    "asyncio": Case(with_=("asyncio",), args=("-o", LOOP), more={"passed": 1}),
    "asyncio auto": Case(
        with_=("asyncio",), args=("-o", LOOP, "--asyncio-mode=auto"), more={"passed": 1}
    ),
    "socket": Case(with_=("socket",), args=("--disable-socket",)),
    "everybody": Case(
        with_=NEIGHBOURS,
        args=(
            *("-n2", "--timeout=60", "--cov", "--cov-report=", "-o", LOOP),
            *("--disable-socket", "--allow-unix-socket"),
        ),
        more={"passed": 1},
        quick=True,
    ),
}  # fmt: skip


def main() -> int:
    """Run what was asked for, and print one line a run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few cases that touch most")
    parser.add_argument("case", nargs="*", help=f"of: {', '.join(CASES)}")
    asked = parser.parse_args()
    unknown = sorted(set(asked.case) - set(CASES))
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; there are: {', '.join(CASES)}")
    names = asked.case or [name for name, case in CASES.items() if case.quick or not asked.quick]
    print(f"pytest {version('pytest')}, Python {sys.version.split()[0]}", flush=True)
    wrong = 0
    for name in names:
        for flags in (FLAGS, ()):
            began = time.monotonic()
            problems = list(_run(CASES[name], flags))
            wrong += bool(problems)
            told = "; ".join(problems) or "ok"
            took = f"{time.monotonic() - began:5.1f} s"
            flag = "--leasecheck" if flags else "no flag"
            print(f"{name:<18}{flag:<14}{took}  {told}", flush=True)
    return 1 if wrong else 0


def _run(case: Case, flags: tuple[str, ...]) -> Iterator[str]:
    """Run the project once, in a copy of its own. What is wrong, if anything."""
    with tempfile.TemporaryDirectory(prefix="neighbours-") as folder:
        project = Path(folder) / "project"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        (project / ".coveragerc").write_text(COVERAGE)
        done = subprocess.run(
            [*_command(case), *flags, *case.args, "--junit-xml=junit.xml"],
            cwd=project,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        problems = [
            *_counts(project, {**THEIRS} if not flags else _sum(THEIRS, OURS), case),
            *_left(project),
            *(_covered(project) if "pytest_cov" in case.with_ else ()),
        ]
        if done.returncode != 1:  # the test that is there to fail
            problems.append(f"exit code {done.returncode}, not 1")
        if problems:
            print(done.stdout)
        yield from problems


def _command(case: Case) -> list[str]:
    """How pytest is called; who isn't asked for is switched off, though installed."""
    installed = {entry.name for entry in entry_points(group="pytest11")}
    absent = [name for name in NEIGHBOURS if name in installed and name not in case.with_]
    missing = sorted(set(case.with_) - installed)
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}")
    program = Path(sys.executable).with_name("pytest")
    start = [sys.executable, "-m", "pytest"] if case.module else [str(program)]
    off = [f"-pno:{name}" for name in absent]
    off += ["-pno:xdist.looponfail"] * ("xdist" in absent)
    return [*start, *off, *(["--ignore=test_async.py"] if "asyncio" in absent else [])]


def _environment() -> dict[str, str]:
    """The surroundings without what would change the counts."""
    ours = ("PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name not in ours}


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(one) + Counter(other))


def _counts(project: Path, expected: dict[str, int], case: Case) -> Iterator[str]:
    """The outcomes in the junit file, test by test."""
    worst: dict[tuple[str | None, str | None], str] = {}
    try:
        cases = ET.parse(project / "junit.xml").getroot().iter("testcase")
    except (OSError, ET.ParseError) as error:
        yield f"no junit file: {error}"
        return
    for found in cases:
        tags = {child.tag for child in found}
        outcome = next((tag for tag in ("error", "failure", "skipped") if tag in tags), "passed")
        name = (found.get("classname"), found.get("name"))
        if worst.get(name, "passed") == "passed":
            worst[name] = outcome
    counts, wanted = dict(Counter(worst.values())), _sum(expected, case.more)
    if counts != wanted:
        yield f"{counts}, not {wanted}"


def _left(project: Path) -> Iterator[str]:
    """One test failed, so one history is kept."""
    kept = list(project.glob(".leasecheck/**/history.jsonl"))
    if len(kept) != 1:
        yield f"{len(kept)} histories are kept, not 1"
    if list(project.glob(".leasecheck/**/report-parts")):
        yield "parts of a report are left"


def _covered(project: Path) -> Iterator[str]:
    """Whether coverage saw the subject at work, which it is in processes that we fork."""
    report = [sys.executable, "-m", "coverage", "json", "-q", "--include=queues.py", "-o-"]
    done = subprocess.run(report, cwd=project, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"coverage: {done.stdout}{done.stderr}"
        return
    (told,) = json.loads(done.stdout)["files"].values()
    executed = set(told["executed_lines"])
    for number, line in enumerate((project / "queues.py").read_text().splitlines(), start=1):
        if any(part in line for part in _IN_WORKERS) and number not in executed:
            yield f"coverage did not see line {number} of queues.py: {line.strip()}"


if __name__ == "__main__":
    sys.exit(main())
