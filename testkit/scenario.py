"""A scenario: a script with a story, what must hold, and the dangerous moment it requires."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from .history import History
from .script import Script, parse_script
from .subject import Subject
from .verdict import Finding, Verdict

#: Every invariant of design section 8 by its number.
ALL_INVARIANTS = tuple(f"V{number}" for number in range(1, 12))


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story.

    `name` is its item id; `story` what happens, for a reader who knows nothing of leases; `script`
    says `{danger}`, `{danger_after}` and `{long_call}` where the subject's own points belong, and
    `{half_ttl}` for half its lease. `requires` are moments (`moments.MOMENTS`, like `stale attempt
    by A`, `interruption`, `take-over by B`) without which the script proves nothing. `needs` are
    the capabilities that a subject must claim, else the scenario is not claimed; `variant` names
    the one of the subject's variants that it plays on. `holds` are the invariants judged; `also`
    adds findings of the scenario's own.
    """

    name: str
    story: str
    script: str
    requires: tuple[str, ...]
    needs: Collection[str] = frozenset()
    variant: str = ""
    holds: tuple[str, ...] = ALL_INVARIANTS
    also: tuple[Callable[[History, Verdict], tuple[Finding, ...]], ...] = field(default=())

    def script_for(self, subject: Subject) -> Script:
        """The script with the subject's own points and times in place. Raises `ScriptError`."""
        danger = subject.danger
        values = {
            "danger": danger,
            "danger_after": after_danger(subject),
            "long_call": subject.long_call,
            "half_ttl": f"{subject.lease_ttl_ms // 2}ms",
        }
        text = textwrap.dedent(self.script).strip() + "\n"
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return parse_script(text)


def after_danger(subject: Subject) -> str:
    """Where one is held after the danger; a point of the subject's own code has no after."""
    if subject.danger_after:
        return subject.danger_after
    name = subject.danger.removesuffix(" before")
    timed = name.startswith(("effect:", "sql:", "txn:", "call:", "heartbeat"))
    return f"{name} after" if timed else "effect:* after"
