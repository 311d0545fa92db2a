"""A declared function from a row to its run's id: had by its dotted name, and blamed by it.

Its code is the consumer's: what it raises is told with the row that it was given, and its own line.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .blame import at, raised
from .declaration_json import shown
from .errors import Problem, SubjectError
from .history import Row
from .subject import Declaration


def functions_of(declaration: Declaration) -> tuple[str, ...]:
    """The functions that a declaration names, which judging imports and calls."""
    parts = (
        *declaration.writes, declaration.steps, declaration.reconciliations, declaration.effects
    )  # fmt: skip
    named = [part.run for part in parts if part is not None]
    named += [declaration.runs.lease.run or ""]
    return tuple(dict.fromkeys(name for name in named if ":" in name))


def run_function(name: str, *, subject: str) -> Callable[[Row], str | None]:
    """The function `pkg.mod:fn`, answering with text or None. It raises `SubjectError`.

    Raises `SubjectError` itself when there is no such function.
    """
    module, _, path = name.partition(":")
    try:
        function: Any = importlib.import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
    except (Exception, SystemExit) as error:
        what = f"can't be had: {raised(error).error}{at(error)}"
        raise SubjectError(subject, [Problem(name, what)]) from error
    if not callable(function):
        what = f"is {type(function).__name__}, not a function from a row to its run's id"
        raise SubjectError(subject, [Problem(name, what)])

    def run_of(row: Row) -> str | None:
        try:
            value = function(dict(row))
            return None if value is None else str(value)
        except (Exception, SystemExit) as error:  # a consumer's function may raise what it likes
            what = f"raised {raised(error).error} for the row {shown(dict(row))}{at(error)}"
            raise SubjectError(subject, [Problem(name, what)]) from error

    return run_of
