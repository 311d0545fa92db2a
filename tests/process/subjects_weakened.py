"""The reference's variants with one guard taken out, in the workers alone.

What is taken out stands in a file, whose path is in the environment: one lane of a variant then
serves every guard. Its lane and the test's own process keep the runtime whole.
"""

from __future__ import annotations

import importlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_leasecheck.scenarios.reference_subject import VARIANTS, ReferenceSubject
from pytest_leasecheck.testkit import worker
from pytest_leasecheck.testkit.subject_source import source_of

SWITCH = "LEASECHECK_TEST_WITHOUT"
REFERENCE = "pytest_leasecheck.testkit.reference"


def class_of(variant: str) -> str:
    """The name under which this module has a variant."""
    return f"Weakened_{variant.replace(' ', '_')}"


@contextmanager
def no_transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Each statement by itself."""
    yield connection


#: What can stand in for a function, by name.
CALLS: dict[str, Callable[..., object]] = {
    "do nothing": lambda *_args, **_named: None,
    "say no": lambda *_args, **_named: False,
    "give it back": lambda value: value,
    "no transaction": no_transaction,
}


def take_out() -> None:
    """Put the stand-in in place of the guard that the file names; none leaves it as it is."""
    module, name, stand_in = json.loads(Path(os.environ[SWITCH]).read_text())
    if stand_in is None:
        return
    owner, _, last = name.rpartition(".")
    place = importlib.import_module(f"{REFERENCE}.{module}")
    setattr(getattr(place, owner) if owner else place, last, CALLS.get(stand_in, stand_in))


def __getattr__(name: str) -> Any:
    bases: dict[str, type] = {class_of(""): ReferenceSubject}
    for variant, source in VARIANTS.items():
        if class_of(variant) == name:
            bases[name] = type(source_of(source).load())
    if name not in bases:
        raise AttributeError(name)

    class Weakened(bases[name]):  # type: ignore[misc]  # a subject of that variant
        def __getattribute__(self, attribute: str) -> Any:
            if worker.present_worker() is not None:  # not in who forks them
                take_out()
            return super().__getattribute__(attribute)

    Weakened.__name__ = Weakened.__qualname__ = name
    globals()[name] = Weakened
    return Weakened
