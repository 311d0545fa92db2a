"""A failing example's script is played again, with what a machine of one's own adds, and shrunk.

Invariants of one's own look at an open stage after each action, and findings of one's own at what a
machine keeps, so scripts of such a machine are played action by action on a new one of its class.
What a rule raises can't be played again from a script: that is told, and nothing is tried.
"""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from time import monotonic
from traceback import walk_tb
from typing import TYPE_CHECKING, Final

from .confirming import Judged, Play, kind
from .errors import TOLD_IN_WORDS, LeasecheckError
from .script import Drain, Heal, Script
from .shrinking import Shrunk, shrink
from .verdict import Finding

if TYPE_CHECKING:
    from .exploring import Explorer

__tracebackhide__ = TOLD_IN_WORDS

#: Real time that shrinking may take.
MOST_SHRINKING_S: Final = 30.0
#: What findings of one's own are under.
OWN: Final = "own"
_OURS: Final = (__package__, "hypothesis")


def replayed(machine: type[Explorer], script: Script) -> Judged:
    """Play a script action by action on a new machine of a class, and judge it as an example is.

    Where an invariant of one's own breaks, the rest is left out. Raises `LeasecheckError`.
    """
    example = machine()
    try:
        for action in script.actions:
            if isinstance(action, Heal | Drain):
                break
            example.perform(action)
            if example.states:  # somebody is there: the example has begun
                example.check_own()
    except BaseException as error:
        if not of_ones_own(error):
            example.stage.close()
            raise
        return example.finished(error)
    return example.finished()


def of_ones_own(error: BaseException) -> bool:
    """Whether an error is a failed assertion or a mistake of the test's, not the end of a search.

    What `pytest.fail` raises is no `Exception`; an interruption is none either.
    """
    kind = type(error)
    if isinstance(error, LeasecheckError) or kind.__module__.partition(".")[0] == "hypothesis":
        return False
    return isinstance(error, Exception | SystemExit) or kind.__name__ == "Failed"


def on_its_way(teardown: types.FrameType | None) -> BaseException | None:
    """The error that ends an example: one that passes through the frame that tears it down."""
    caller = teardown.f_back if teardown is not None else None
    error = sys.exception()
    passed = walk_tb(error.__traceback__) if error is not None else ()
    return error if any(frame is caller for frame, _line in passed) else None


def own_finding(machine: Explorer, error: BaseException, *, at: int) -> Finding:
    """What code of one's own raised, as a finding; `at` is the number of an event."""
    name, place = raised_in(machine, error)
    said = str(error).strip().partition("\n")[0]
    text = f"{said or 'it said nothing'}{f' ({place})' * bool(place)}"
    return Finding(OWN, f"{name} raised {type(error).__name__}", text, "", "", at=(at,))


def raised_in(machine: Explorer, error: BaseException) -> tuple[str, str]:
    """The method of one's own that raised, and the line."""
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        first = frame.f_code.co_varnames[:1]
        own = bool(first) and frame.f_locals.get(first[0]) is machine
        if own and not module.startswith(_OURS):
            return frame.f_code.co_name, f"{module}, line {line}"
    return type(machine).__name__, ""


def smallest(play: Play, judged: Judged) -> tuple[Judged, int]:
    """The fewest deviations that break the same invariant, played and judged; and how many plays.

    When the script alone does not break it, it is left as it is, and its `note` says why.
    """
    broken = kind(judged.faults[0])
    until_s = monotonic() + MOST_SHRINKING_S

    def fails(script: Script) -> bool:
        try:
            tried = play(script)
        except LeasecheckError:
            return False
        return tried.error is None and broken in tried.kinds

    again = play(judged.script)
    if broken not in again.kinds:
        return replace(judged, note=_NOT_BY_SCRIPT), 1
    shrunk = shrink(again.script, fails, enough=lambda: monotonic() > until_s)
    small = play(shrunk.script)
    if broken not in small.kinds:  # it fails by chance; what was seen is what is told
        return replace(again, note=_BY_CHANCE), shrunk.trials + 2
    return replace(small, note=_ended(shrunk) if shrunk.ended else ""), shrunk.trials + 2


_NOT_BY_SCRIPT: Final = (
    "not shrunk: the script alone does not bring it about again, so it rests on what a rule of your"
    " own does or keeps beside the script"
)
_BY_CHANCE: Final = "not shrunk: a shorter script failed once, and not again"


def _ended(shrunk: Shrunk) -> str:
    return f"shrinking was ended after {shrunk.trials} plays; it may be shorter still"
