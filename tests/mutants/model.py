"""What a mutant is, and how its fault gets into a worker.

A mutant is the reference runtime with one small deliberate fault. Its patches are applied inside
the processes that run the job, which are forked for one script and die with it, so one lane serves
any number of mutants: the mutant in force is named in a file beside the databases.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final

from pytest_leasecheck.testkit.script import Script, parse_script

REFERENCE: Final = "pytest_leasecheck.testkit.reference"
#: The reference has no janitor; the one that its runs are swept by here is beside the subjects.
_JANITOR: Final = f"{__package__}.subjects"
#: The file, in a lane's work folder, that names the mutant in force; empty: none.
SWITCH: Final = "mutant.txt"
#: Names it for all of a lane's life: a variable of the lane's environment.
IN_FORCE: Final = "LEASECHECK_TEST_MUTANT"
#: How far a stage's database may lie below its lane's work folder.
_DEPTH: Final = 3


@dataclass(frozen=True, slots=True)
class Schedule:
    """A script, the dangerous moments without which it proves nothing, and who plays in it.

    `subject` is the name of a class in `subjects`, with what the schedule needs of the runtime.
    """

    name: str
    story: str
    text: str
    requires: tuple[str, ...]
    subject: str = "Plain"

    @property
    def script(self) -> Script:
        """The script."""
        return parse_script("\n".join(line.strip() for line in self.text.strip().splitlines()))


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, and what must come of it.

    `patches`: dotted names within the reference runtime (`guards.RENEW_HOLDER`) and what stands
    there instead. `seen_in` is a path on github.com, or the section of a seed. At least one of
    `invariants` must fire, and a finding with `title` must be among what fired, whose text names
    `culprit`.
    """

    name: str
    fault: str
    patches: Mapping[str, object]
    schedule: Schedule
    invariants: frozenset[str]
    title: str
    culprit: str = "A#1"
    seen_in: str = ""

    def apply(self) -> None:
        """Put the fault into this process."""
        put_in(self.patches)

    @property
    def link(self) -> str:
        """Where such a fault was seen, for a page: a link, or a section of a seed."""
        if "/" not in self.seen_in:
            return self.seen_in
        repository, _, number = self.seen_in.partition("/issues/")
        return f"[{repository} {number}](https://github.com/{self.seen_in})"


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A guard that can be taken out with nothing wrong coming of it, and why.

    Each of `schedules` brings the moment about in which the guard would matter, and passes.
    """

    name: str
    patches: Mapping[str, object]
    schedules: tuple[Schedule, ...]
    why: str

    def apply(self) -> None:
        """Take the guard out in this process."""
        put_in(self.patches)


def put_in(patches: Mapping[str, object]) -> None:
    """Put patches into this process. Raises AttributeError for one that replaces nothing."""
    for dotted, replacement in patches.items():
        owner, name = _owner_of(dotted)
        getattr(owner, name)
        setattr(owner, name, replacement)


def _owner_of(dotted: str) -> tuple[Any, str]:
    module, *path, name = dotted.split(".")
    full = _JANITOR if module == "janitor" else f"{REFERENCE}.{module}"
    return reduce(getattr, path, importlib.import_module(full)), name


def apply_the_one_in_force(db: Path, catalogue: Mapping[str, Callable[[], None]]) -> None:
    """Put the mutant that is in force into this process."""
    named = os.environ.get(IN_FORCE)
    if named is not None:
        return catalogue[named]() if named else None
    for folder in db.parents[:_DEPTH]:
        switch = folder / SWITCH
        if switch.exists():
            name = switch.read_text(encoding="utf-8")
            return catalogue[name]() if name else None
    raise FileNotFoundError(f"no {SWITCH} above {db}: is a mutant in force, or none?")
