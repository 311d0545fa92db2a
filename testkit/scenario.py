"""A scenario: a script with a story, what must hold, and the dangerous moment it requires."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from .history import History
from .script import Script
from .verdict import Finding, Verdict

#: Every invariant of design section 8 by its number.
ALL_INVARIANTS = tuple(f"V{number}" for number in range(1, 12))


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story.

    `name` is its item id; `story` what happens, for a reader who knows nothing of leases; `script`
    may say `{danger}` where the subject's own dangerous point belongs. `requires` are moments
    (`moments.MOMENTS`, like `stale attempt by A`, `interruption`, `take-over by B`) without which
    the script proves nothing. `needs` are the capabilities that a subject must claim, else the
    scenario is not claimed. `holds` are the invariants judged; `also` adds findings of the
    scenario's own.
    """

    name: str
    story: str
    script: str
    requires: tuple[str, ...]
    needs: Collection[str] = frozenset()
    holds: tuple[str, ...] = ALL_INVARIANTS
    also: tuple[Callable[[History, Verdict], tuple[Finding, ...]], ...] = field(default=())

    def script_for(self, danger: str) -> Script:
        """The script with the subject's dangerous point in place. Raises `ScriptError`."""
        from .script import parse_script

        return parse_script(self.script.replace("{danger}", danger))
