"""A failing script is played again before it is believed.

A subject that behaves differently on the same script is told as what it is: at which point it
parted from itself, with both histories side by side. Never a bare "flaky".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from .errors import TOLD_IN_WORDS, LeasecheckError
from .history import Acted, History, Passed
from .judge import judge
from .sameness import difference
from .scenario import ALL_INVARIANTS
from .script import Drain, Script
from .sweep import Plays
from .timeline import timeline
from .verdict import Finding, Verdict

_SIDE: int = 60


@dataclass(frozen=True, slots=True)
class Judged:
    """A script, what happened, and the verdict; `error` when it was not played to its end.

    `note`: what else there is to say about the script; `by`: the class that judged it, if that adds
    findings of its own.
    """

    script: Script
    history: History
    verdict: Verdict
    error: LeasecheckError | None = None
    note: str = ""
    by: str = ""

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that fail it."""
        return tuple(one for one in self.verdict.findings if one.severity == "fault")

    @property
    def kinds(self) -> frozenset[str]:
        """What is broken, in short: invariants with the titles of their findings."""
        return frozenset(kind(one) for one in self.faults)

    @property
    def own(self) -> frozenset[str]:
        """Those of them that are no invariant of the kit's."""
        return frozenset(kind(one) for one in self.faults if one.invariant not in ALL_INVARIANTS)


__tracebackhide__ = TOLD_IN_WORDS

#: Plays a script and judges it.
Play: TypeAlias = Callable[[Script], Judged]


def kind(finding: Finding) -> str:
    """What a finding is one of: its invariant and its title."""
    return f"{finding.invariant} {finding.title}"


@dataclass(frozen=True, slots=True)
class Parting:
    """Two histories of one script that differ: `where`, in words, and both."""

    where: str
    one: History
    other: History

    def __str__(self) -> str:
        return f"{self.where}\n{side_by_side(self.one, self.other)}"


def play_and_judge(lane: Plays, script: Script, *, name: str) -> Judged:
    """Play a whole script and judge it. Raises `LaneDied`."""
    played = lane.play(script, name=name)
    drained = played.error is None and any(isinstance(one, Drain) for one in script.actions)
    verdict = judge(played.history, drained=drained)
    return Judged(script, played.history, verdict, played.error)


def confirm(play: Play, failed: Judged) -> Parting | None:
    """Play a failing script again. None when it fails in the same way, at the same places.

    Findings of one's own that don't come again part nothing: they may rest on more than the script.
    Nor does a script that came to its end at another action, where an invariant of one's own broke
    there. Raises `LaneDied`.
    """
    first = play(failed.script)
    own_alone = first.kinds ^ failed.kinds <= first.own | failed.own
    ended_elsewhere = bool(failed.own) and first.script != failed.script
    if first.kinds == failed.kinds or ended_elsewhere or (own_alone and _was_refused(failed)):
        again = play(failed.script)
        return parting(first.history, again.history)
    parted = parting(failed.history, first.history)
    if parted is None and not own_alone:
        why = "its verdict alone differs; that is a fault of the kit"
        return Parting(why, failed.history, first.history)
    return parted


def _was_refused(judged: Judged) -> bool:
    """Whether an action was refused: it is in what happened, and not in the script."""
    acted = sum(isinstance(event, Acted) for event in judged.history.events)
    return acted > len(judged.script.actions)


def parting(one: History, other: History) -> Parting | None:
    """Where two histories of one script part; None when they tell the same, whatever their ids."""
    differs = difference(one, other, renamed=True)
    if differs is None:
        return None
    before = [event for event in one.events if event.n < differs.event]
    passed = [event for event in before if isinstance(event, Passed)]
    last = passed[-1] if passed else None
    after = f"after {last.who} passed {last.point}#{last.ordinal} {last.phase}" if last else ""
    return Parting(
        f"the same script was played two times and went two ways {after or 'from its start'}:"
        f" {differs}",
        one,
        other,
    )


def side_by_side(one: History, other: History) -> str:
    """Two timelines beside each other; lines that differ are marked."""
    left = timeline(one, width=_SIDE).splitlines()
    right = timeline(other, width=_SIDE).splitlines()
    return "\n".join(
        f"{a:<{_SIDE}} {'|' if a == b else '≠'} {b}"
        for a, b in zip_longest(left, right, fillvalue="")
    )
