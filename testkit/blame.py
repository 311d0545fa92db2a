"""What the consumer's code raised where the kit called it, in the consumer's own terms.

Whoever reads such an error wants the line of their own that it came from: frames of the kit, of the
standard library and of other people's packages are left out, as long as one of theirs is there.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from .errors import (
    TOLD_IN_WORDS,
    LeasecheckError,
    Problem,
    SubjectError,
    SubjectFailed,
    SubjectRaised,
)

_MOST_FRAMES: Final = 6
_MOST_TEXT: Final = 2000
_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: Parts of our package that are played as a consumer's code is.
_PLAYED: Final = tuple(
    os.path.join(_PACKAGE, *part) + os.sep for part in (("testkit", "reference"), ("scenarios",))
)

__tracebackhide__ = TOLD_IN_WORDS
_STDLIB: Final = os.path.dirname(os.__file__) + os.sep
_PACKAGES: Final = f"{os.sep}site-packages{os.sep}"


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as plain text. `frames` are the consumer's, the innermost last."""

    error: str
    frames: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where it was raised, as far as the consumer's own code is concerned; may be empty."""
        return self.frames[-1] if self.frames else ""


def raised(error: BaseException) -> Raised:
    """What a reader needs of an exception of the consumer's."""
    cause = error.__cause__
    also = f" (from {error_line(cause)})" if cause is not None else ""
    return Raised(error_line(error) + also, tuple(_frames(error)))


def at(error: BaseException) -> str:
    """` (mine.py:12 in prepare)`, or nothing: to be put behind a text."""
    place = raised(error).place
    return f" ({place})" if place else ""


def error_line(error: BaseException) -> str:
    """`OSError: no space`, also where the exception can't say what it is."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception as worse:
        text = f"(its text can't be had: str() of it raised {type(worse).__name__})"
    return f"{kind}: {text}"[:_MOST_TEXT] if text else kind


@contextmanager
def blaming(call: str, *, advice: str = "") -> Iterator[None]:
    """Whatever is raised inside comes out as `SubjectRaised` by `call`; an interrupt stays one."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit, SubjectRaised):
        raise
    except BaseException as error:  # SystemExit, and what a test framework skips with, too
        told = raised(error)
        raise SubjectRaised(call, told.error, frames=told.frames, advice=advice) from error


def without_ours(error: BaseException) -> BaseException:
    """The exception without the kit's frames at the top of its traceback, where others follow."""
    rest = error.__traceback__
    while rest is not None and _is_ours(rest.tb_frame.f_code.co_filename):
        rest = rest.tb_next
    return error if rest is None else error.with_traceback(rest)


def _frames(error: BaseException) -> Iterator[str]:
    found = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    found = [one for one in found if not _is_ours(one[0]) and not one[0].startswith("<frozen ")]
    found = [one for one in found if not one[0].startswith(_STDLIB) or _PACKAGES in one[0]]
    own = [one for one in found if _PACKAGES not in one[0]]
    for file, line, name in (own or found)[-_MOST_FRAMES:]:
        within = "" if name == "<module>" else f" in {name}"
        yield f"{_shown(file)}:{line}{within}"
    if isinstance(error, SyntaxError) and error.filename:
        yield f"{_shown(error.filename)}:{error.lineno or 1}"


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) and not file.startswith(_PLAYED)


def _shown(file: str) -> str:
    """Relative to the current folder where it lies below it, as pytest shows paths."""
    try:
        here = os.getcwd() + os.sep
    except OSError:  # a subject may have removed it
        return file
    return file.removeprefix(here)


# -- between processes ---------------------------------------------------------------------------


def to_wire(error: LeasecheckError) -> tuple[Any, ...]:
    """An error about the consumer's code as plain data; `from_wire` makes it again."""
    if isinstance(error, SubjectRaised):
        return ("raised", error.call, error.error, error.frames, error.advice)
    if isinstance(error, SubjectError):
        return ("wrong", error.what, tuple((one.where, one.what) for one in error.problems))
    hung = isinstance(error, SubjectFailed) and error.hung
    return ("failed", str(error), hung)


def from_wire(wired: tuple[Any, ...]) -> LeasecheckError:
    """The error that `to_wire` was given."""
    kind, *fields = wired
    if kind == "raised":
        call, text, frames, advice = fields
        return SubjectRaised(call, text, frames=frames, advice=advice)
    if kind == "wrong":
        what, problems = fields
        return SubjectError(what, [Problem(*one) for one in problems])
    return SubjectFailed(fields[0], hung=fields[1])
