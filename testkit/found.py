"""What an exploration found: the tally, the failing script as it is printed, what it raises."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from operator import methodcaller
from typing import Final

from .confirming import Judged, Parting
from .errors import LeasecheckError
from .history import Acted, History
from .possible import LABELS, steps_of
from .python_text import as_python, as_replay
from .script import Action, Script, parse_script
from .timeline import short_timeline


class RaceFound(AssertionError):
    """A script under which the subject broke an invariant; the text has all that is needed."""

    def __init__(self, judged: Judged) -> None:
        #: The script, its history, its verdict.
        self.judged: Final = judged
        super().__init__(told(judged))


class Nondeterministic(AssertionError):
    """The subject behaved differently on the same script."""

    def __init__(self, judged: Judged, parting: Parting) -> None:
        #: What was seen first.
        self.judged: Final = judged
        #: Where its two histories part.
        self.parting: Final = parting
        found = "; ".join(sorted(judged.kinds))
        super().__init__(f"nondeterministic: {parting}\n\n(at first it showed: {found})\n\nscript\n"
                         f"{judged.script}")  # fmt: skip


def told(judged: Judged) -> str:
    """A failing script as it is printed: what broke, the script, as Python, and what happened."""
    lines = [f"{one.invariant} {one.title}: {one.text}" for one in judged.faults]
    lines += [judged.note] if judged.note else []
    lines += ["", "script", *(f"    {line}" for line in str(judged.script).splitlines())]
    python = as_python(judged.script)
    if judged.own and judged.by:  # what is judged by a class of one's own alone
        python = as_replay(judged.script, by=judged.by)
    lines += ["", "as Python", *(f"    {line}" for line in python.splitlines())]
    lines += ["", "timeline", short_timeline(judged.history, judged.verdict)]
    return "\n".join(lines)


class Inconclusive(AssertionError):
    """A search that found nothing, and proves nothing either; the text says what was missing."""


#: Errors whose text tells all, of modules that raise what was found; see `TOLD_IN_WORDS`.
FOUND_IN_WORDS: Final = methodcaller(
    "errisinstance", (LeasecheckError, RaceFound, Nondeterministic, Inconclusive)
)


@dataclass(slots=True)
class Tally:
    """What an exploration did so far. `first` is the number of the script that failed first.

    `scripts` are those that were mixed; what was played `again` to be believed, and for
    `shrinking`, is none of them. `unseen` is what the kit was blind to. `error` ended it; `done`
    says that it came to its end, and passes.
    """

    scripts: int = 0
    steps: int = 0
    wasted: int = 0
    stale_attempts: int = 0
    refused: int = 0
    interruptions: int = 0
    reconciliations: int = 0
    first: int | None = None
    again: int = 0
    shrinking: int = 0
    refused_by: Counter[str] = field(default_factory=Counter)
    unseen: set[str] = field(default_factory=set)
    error: AssertionError | None = None
    done: bool = False
    notes: set[str] = field(default_factory=set)
    failures: list[Judged] = field(default_factory=list)

    def count(self, judged: Judged) -> None:
        """One more script, and what came about in it."""
        counts = judged.verdict.counts
        self.scripts += 1
        steps, wasted = steps_of(judged.history)
        self.steps += steps
        self.wasted += wasted
        if judged.faults:
            self.first = self.first or self.scripts
            self.failures[:] = [*self.failures[:1], judged]
        self.stale_attempts += counts.stale_attempts
        refused = [one for one in judged.verdict.attempts if one.outcome != "landed"]
        self.refused += len(refused)
        self.refused_by.update(" or ".join(one.guards) or one.outcome for one in refused)
        self.unseen.update(judged.verdict.missing)
        self.interruptions += counts.interruptions
        self.reconciliations += counts.reconciliations
        self.notes |= {one.title for one in judged.verdict.findings if one.severity == "note"}


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of an exploration: a shrunk failure, a subject that is unsteady, or neither.

    `missing` says why it proves nothing, though nothing was found.
    """

    tally: Tally
    seed: int
    found: Judged | None = None
    unsteady: str = ""
    missing: str = ""


def parse_actions(what: Action | str) -> tuple[Action, ...]:
    """The actions of a text, one by one: a worker may have been spawned before it."""
    if not isinstance(what, str):
        return (what,)
    spawned = "".join(f"spawn {label}\n" for label in LABELS)
    return parse_script(spawned + what).actions[len(LABELS) :]


def rewritten(history: History, script: Script, texts: list[str]) -> History:
    """A history whose script is what came of it: a point that wasn't reached reads `run`."""
    header = replace(history.header, script=str(script))
    told = iter(texts)
    events = tuple(
        replace(one, text=next(told, "") or one.text) if isinstance(one, Acted) else one
        for one in history.events
    )
    return History(header, events)


_KINDS: Final[dict[str, type[RaceFound]]] = {}


def kind_of(judged: Judged) -> type[RaceFound]:
    """A type for each kind of finding: shrinking must not slip from one fault to another."""
    first = judged.faults[0]
    name = f"{first.invariant} {first.title}"
    return _KINDS.setdefault(name, type(name, (RaceFound,), {}))


class Enough(BaseException):
    """Ends a search at its first failure: Hypothesis saves the example, and lets this through.

    Its own way goes on for hundreds of examples, where it sought a target.
    """

    def __init__(self, found: AssertionError) -> None:
        #: What is to be raised.
        self.found: Final = found
        super().__init__()
