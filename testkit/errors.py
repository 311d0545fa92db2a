"""What can go wrong in the kit itself: typed, each with its culprit as an attribute.

A fault of the code under test is never an exception here; it is a finding (`invariants`).
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from types import MappingProxyType
from typing import Final


class LeasecheckError(Exception):
    """Base of every error that the kit raises on purpose."""


#: A module of ours that says `__tracebackhide__ = TOLD_IN_WORDS` has no frames in what pytest shows
#: of our own errors: their text tells all. Faults of the kit show every frame.
TOLD_IN_WORDS: Final = methodcaller("errisinstance", LeasecheckError)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input, and where: `where` reads like `line 3`."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class InputError(LeasecheckError):
    """An input that people wrote is wrong; all that is wrong with it is told at once."""

    def __init__(self, what: str, problems: Sequence[Problem]) -> None:
        #: Name of the thing that is wrong (a script, a subject, a file).
        self.what: Final = what
        #: Everything that is wrong with it.
        self.problems: Final = tuple(problems)
        super().__init__(f"{what}: " + "; ".join(str(problem) for problem in self.problems))


class ScriptError(InputError):
    """A script that does not parse, or that can't be played as it stands."""


class SubjectError(InputError):
    """A subject whose declaration is wrong; where it helps, the text shows the actual schema."""


class SubjectRaised(LeasecheckError):
    """Code of the consumer's raised where the kit called it: told with the consumer's own lines."""

    def __init__(
        self, call: str, error: str, *, frames: Sequence[str] = (), advice: str = "", log: str = ""
    ) -> None:
        #: What was called: `the subject's prepare()`.
        self.call: Final = call
        #: What it raised: `OSError: no space`.
        self.error: Final = error
        #: The consumer's own frames (`mine.py:12 in prepare`), the innermost last.
        self.frames: Final = tuple(frames)
        #: What to do about it; may be empty.
        self.advice: Final = advice
        first, *rest = error.splitlines() or [""]
        place = f" ({self.frames[-1]})" if self.frames else ""
        lines = [f"{call} raised {first}{place}" + (f" (log: {log})" if log else "")]
        lines += [f"  {line}" for line in rest]
        lines += [f"  called from {frame}" for frame in reversed(self.frames[:-1])]
        super().__init__("\n".join([*lines, *filter(None, [advice])]))


class SubjectFailed(LeasecheckError):
    """Code of the consumer's ended its process, did not come to an end, or left nothing usable."""

    def __init__(self, text: str, *, hung: bool = False) -> None:
        #: It did not come to an end: whoever asks again waits as long again.
        self.hung: Final = hung
        super().__init__(text)


class HistoryError(InputError):
    """A file that is no history, or one of a version that this kit can't read."""


class StageError(LeasecheckError):
    """A script could not be carried out; `worker` and `log` say where to look."""

    #: Where each worker was left, by label, when an open stage was asked for one action.
    states: Mapping[str, str] = MappingProxyType({})

    def __init__(self, text: str, *, worker: str = "", log: str = "") -> None:
        #: The incarnation it is about (`A#1`), empty when it is about none.
        self.worker: Final = worker
        #: Where that worker's output lies, empty when there is none.
        self.log: Final = log
        super().__init__(text + (f" (log: {log})" if log else ""))


class NeverReached(StageError):
    """A script named a point that its worker did not reach: the test failed, whatever else held."""

    def __init__(
        self, worker: str, point: str, *, state: str, passed: Sequence[str], log: str = ""
    ) -> None:
        #: The point as the script wrote it.
        self.point: Final = point
        #: What the worker passed instead, in order.
        self.passed: Final = tuple(passed)
        shown = ", ".join(self.passed[-12:]) or "nothing"
        super().__init__(
            f"worker {worker!r} never reached {point!r}; it {state} after passing: {shown}."
            " Points are listed by --leasecheck-points.",
            worker=worker,
            log=log,
        )


class Unsettled(StageError):
    """A worker neither came to a known wait nor ended within its deadline: no verdict."""

    def __init__(self, worker: str, *, deadline: str, stacks: str, log: str = "") -> None:
        #: Stacks of the worker's threads when the deadline passed.
        self.stacks: Final = stacks
        super().__init__(
            f"worker {worker!r} is unsettled: {deadline}.\n{stacks}".rstrip(),
            worker=worker,
            log=log,
        )


class LaneDied(LeasecheckError):
    """The lane process ended under us; the next script gets a new one."""

    def __init__(self, how: str) -> None:
        #: How it ended (`signal 9`, `exit 1`, a traceback).
        self.how: Final = how
        super().__init__(f"the lane process died ({how}); its workers were killed with it")


def no_room(error: BaseException) -> str:
    """What to do about an error that a machine gives no more processes, files or memory."""
    number = error.errno if isinstance(error, OSError) else None
    if number not in (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        return ""
    return (
        f"there was no room for another process or file of it: {error}; `ulimit -u`, `ulimit -n`"
        " and a container's limits say how many there may be"
    )


class LaneHung(LaneDied):
    """The lane gave no sign of life, and was killed with everything of it."""

    def __init__(self, *, silence_s: float, where: str) -> None:
        #: Where its threads were, by the kernel's word.
        self.where: Final = where
        self.how = "hung"  # type: ignore[misc]  # the same attribute as its base has
        LeasecheckError.__init__(
            self,
            f"the lane process gave no sign of life for {silence_s:g} s ({where}); it was killed,"
            " and its workers with it. Was it, or the observer, stopped by a signal? The next test"
            " gets a new lane",
        )
