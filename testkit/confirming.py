"""A failing script is played again before it is believed.

A subject that behaves differently on the same script is told as what it is: at which point it
parted from itself, with both histories side by side. Never a bare "flaky".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from .errors import LeasecheckError
from .history import History, Passed
from .judge import judge
from .sameness import difference
from .script import Drain, Script
from .sweep import Plays
from .timeline import timeline
from .verdict import Finding, Verdict

_SIDE: int = 60


@dataclass(frozen=True, slots=True)
class Judged:
    """A script, what happened, and the verdict; `error` when it was not played to its end."""

    script: Script
    history: History
    verdict: Verdict
    error: LeasecheckError | None = None

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that fail it."""
        return tuple(one for one in self.verdict.findings if one.severity == "fault")

    @property
    def kinds(self) -> frozenset[str]:
        """What is broken, in short: invariants with the titles of their findings."""
        return frozenset(f"{one.invariant} {one.title}" for one in self.faults)


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


def confirm(lane: Plays, failed: Judged, *, name: str) -> Parting | None:
    """Play a failing script again. None when it fails in the same way, at the same places.

    Raises `LaneDied`.
    """
    first = play_and_judge(lane, failed.script, name=name)
    if first.kinds == failed.kinds:
        again = play_and_judge(lane, failed.script, name=name)
        return parting(first.history, again.history)
    return parting(failed.history, first.history) or Parting(
        "its verdict alone differs; that is a fault of the kit", failed.history, first.history
    )


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
