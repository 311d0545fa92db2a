"""A saved script as a file: the scenario that it is of, what must come about, and its actions.

::

    # scenario: finished
    # requires: stale attempt by A
    submit run-1
    …

One `# requires:` line for each moment; `# requires: nothing` says that none must come about. A
file without such a line was written by hand, by an exploration, or by an earlier version.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from . import engine
from .testkit.errors import HistoryError, InputError, ScriptError
from .testkit.files import read_file
from .testkit.history import History
from .testkit.script import Script, parse_script
from .wrapped_lines import glued, write_wrapped

_SCENARIO: Final = "# scenario: "
_REQUIRES: Final = "# requires:"
_NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Saved:
    """What a file has: `scenario` is '' and `requires` None where it doesn't say."""

    script: Script
    scenario: str = ""
    requires: tuple[str, ...] | None = None


def required_lines(requires: Collection[str]) -> list[str]:
    """The lines that say what must come about."""
    return [f"{_REQUIRES} {moment}" for moment in requires or (_NOTHING,)]


def saved_text(script: Script, *, scenario: str, requires: Collection[str]) -> str:
    """A script as it is saved."""
    return "\n".join([_SCENARIO + scenario, *required_lines(requires), str(script)])


def with_required(history: History, requires: Collection[str]) -> History:
    """A history that says what its script requires, too."""
    return replace(history, header=replace(history.header, requires=tuple(requires)))


def read_saved(file: Path) -> Saved:
    """What is in a saved script or history. Raises `pytest.UsageError`."""
    try:
        data = read_file(file)
        if data[:1] == b"{":
            header = engine.load_history(file).header
            saved = Saved(parse_script(header.script), requires=header.requires)
        else:
            saved = _read_text(data.decode("utf-8"))
    except FileNotFoundError:
        raise pytest.UsageError(f"--leasecheck-replay: there is no file {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"--leasecheck-replay: can't read {file}: {error}") from error
    except (HistoryError, ScriptError) as error:
        raise pytest.UsageError(f"--leasecheck-replay={file}: {_all(error)}") from error
    if not saved.script.actions:
        raise pytest.UsageError(f"--leasecheck-replay={file}: there is no action in it")
    return saved


def _read_text(text: str) -> Saved:
    lines = [line.strip() for line in text.splitlines()]
    named = lines[0].removeprefix(_SCENARIO) if lines and lines[0].startswith(_SCENARIO) else ""
    moments = [line.removeprefix(_REQUIRES).strip() for line in lines if line.startswith(_REQUIRES)]
    requires = tuple(moment for moment in moments if moment != _NOTHING) if moments else None
    return Saved(parse_script(text), named.strip(), requires)


def _all(error: InputError) -> str:
    return "; ".join(str(problem) for problem in error.problems)


class Required:
    """Says at the end of a replay what had to come about for it to count."""

    def __init__(self, file: Path, requires: Collection[str]) -> None:
        self._told: Final = (
            f"required were {'; '.join(map(glued, requires))}"
            if requires
            else "nothing was required, so it passes if nothing broke, dangerous moment or not"
            " (a line `# requires: stale attempt` in the file asks for one)"
        )
        self._file: Final = file

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The line."""
        write_wrapped(terminalreporter, "replayed", f"{glued(self._file.name)}: {self._told}")
