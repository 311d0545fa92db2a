"""From what a user wrote to a Subject; every mistake is one readable line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import pytest

from .testkit.blame import at, raised
from .testkit.claims_check import contradictions
from .testkit.subject import CAPABILITIES, Subject, declaration_of
from .testkit.subject_check import unfit

#: What `reference` stands for.
REFERENCE: Final = "pytest_leasecheck.scenarios.reference_subject:ReferenceSubject"

#: How reports name it: nobody may take a green run of it for one of their own code.
OURS: Final = "reference (leasecheck's own runtime)"

_NO_SUBJECT: Final = """\
leasecheck needs to know what to test. Describe your runtime in a Subject and name it:
  on the command line    --leasecheck-subject=yourpkg.leasecheck:YourSubject
  or in pytest.ini       leasecheck_subject = yourpkg.leasecheck:YourSubject
To see the suite at work on the runtime that ships with leasecheck:
  pytest --leasecheck --leasecheck-subject=reference leasecheck"""


@dataclass(frozen=True, slots=True)
class Named:
    """A subject, and the name that reports give it."""

    subject: Subject
    label: str

    @property
    def flag(self) -> str:
        """The option that names it, for a command to paste; empty where no option can."""
        if self.label == OURS:
            return "--leasecheck-subject=reference"
        return "" if "<" in self.label else f"--leasecheck-subject={self.label}"


def configured(text: str | None, *, folders: Sequence[Path]) -> Named:
    """The subject that an option or the ini file names; `folders` are searched for it last.

    Raises `pytest.UsageError` when there is none, or when it can't be had.
    """
    if text is None:
        raise pytest.UsageError(_NO_SUBJECT)
    return named(text, folders=folders)


def named(given: object, *, folders: Sequence[Path] = ()) -> Named:
    """A subject from an instance, a class, or `pkg.mod:Name`. Raises `pytest.UsageError`."""
    written = given
    if isinstance(given, str):
        given = _load(REFERENCE if given == "reference" else given, folders)
    if isinstance(given, type) and issubclass(given, Subject):
        kind: type[Subject] = given
        try:
            subject = given()
        except (Exception, SystemExit) as error:
            told = f"{raised(error).error}{at(error)}"
            raise pytest.UsageError(
                f"the subject {_label(kind)} can't be made without arguments: {told}"
            ) from error
    elif isinstance(given, Subject):
        subject, kind = given, type(given)
    else:
        raise pytest.UsageError(
            f"leasecheck's subject {written!r} is not a Subject but a {_kind(given)}; derive it"
            " from pytest_leasecheck.testkit.subject.Subject"
        )
    _check(subject, _label(kind))
    return Named(subject, _label(kind))


def variant(subject: Named, name: str) -> Named | None:
    """The variant of a subject that a scenario asks for; None when it has none of that name.

    Raises `pytest.UsageError` when the subject names one that can't be had.
    """
    if not name:
        return subject
    where = subject.subject.variants.get(name)
    # It is the same runtime under another set-up, so reports keep the name that was configured.
    return None if where is None else Named(named(where).subject, subject.label)


def _check(subject: Subject, label: str) -> None:
    """Refuse what no scenario could work with."""
    problems = [*unfit(subject)] if _declares_runs(subject) else []
    if problems:
        raise pytest.UsageError(
            f"the declaration of {label} is wrong:" + "".join(f"\n  {one}" for one in problems)
        )
    if not _declares_runs(subject):
        raise pytest.UsageError(
            f"the subject {label} declares no `runs`; say where its runs and their lease are:"
            " runs = RunTable(table, id=..., lease=Lease(owner=...))"
        )
    unknown = sorted(set(subject.capabilities) - CAPABILITIES)
    if unknown:
        known = ", ".join(sorted(CAPABILITIES))
        raise pytest.UsageError(
            f"the subject {label} claims {', '.join(map(repr, unknown))};"
            f" what can be claimed is: {known}"
        )
    found = "".join(f"\n  {one}" for one in contradictions(declaration_of(subject)))
    if found:
        raise pytest.UsageError(f"the declaration of {label} contradicts itself:{found}")


def _declares_runs(subject: Subject) -> bool:
    try:
        return getattr(subject, "runs", None) is not None or isinstance(
            getattr(type(subject), "runs", None), property
        )
    except (Exception, SystemExit):  # it is there, and what it raises is told
        return True


def _load(text: str, folders: Sequence[Path]) -> object:
    """Import `pkg.mod` and get `Name` from it."""
    module_name, colon, path = text.partition(":")
    if not colon or not module_name or not path:
        raise pytest.UsageError(
            f"leasecheck's subject {text!r} is not of the form pkg.mod:Name (or: reference)"
        )
    found: object = _import(module_name, text, folders)
    for name in path.split("."):
        if not _has(found, name):
            what = f"{module_name} has no {name!r}{_instead(found, name)}"
            raise pytest.UsageError(f"leasecheck's subject {text!r}: {what}")
        found = getattr(found, name)
    return found


def _instead(found: object, name: str) -> str:
    """What may have been meant: a like name, a subject's first; else the subjects there are."""
    there = [
        what
        for what, one in getattr(found, "__dict__", {}).items()
        if isinstance(one, type) and issubclass(one, Subject) and one is not Subject
    ]
    close = get_close_matches(name, there, n=1) or get_close_matches(name, dir(found), n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; the subjects in it are: {', '.join(sorted(there))}" if there else ""


def _has(owner: object, name: str) -> bool:
    """`hasattr`; an attribute that raises something else is there, and getting it tells what."""
    try:
        return hasattr(owner, name)
    except (Exception, SystemExit) as error:
        raise pytest.UsageError(
            f"leasecheck's subject: getting {name!r} raised {raised(error).error}{at(error)}"
        ) from error


def _import(module_name: str, text: str, folders: Sequence[Path]) -> object:
    """Import a module; where no path leads to it, look in the project's own folders too.

    The console script `pytest` puts no folder on the path, unlike `python -m pytest`.
    """
    try:
        try:
            return importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name.partition(".")[0] or not folders:
                raise
            sys.path.extend(str(item) for item in folders if str(item) not in sys.path)
            importlib.invalidate_caches()
            return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        what = f"there is no module {error.name!r}"
        if error.name != module_name.partition(".")[0]:
            what += at(error)
        elif folders:
            what += f", neither installed nor in {' or '.join(dict.fromkeys(map(str, folders)))}"
        raise pytest.UsageError(f"leasecheck's subject {text!r}: {what}") from error
    except (Exception, SystemExit, pytest.skip.Exception, pytest.fail.Exception) as error:
        what = f"importing {module_name} raised {raised(error).error}{at(error)}"
        raise pytest.UsageError(f"leasecheck's subject {text!r}: {what}") from error


def _label(kind: type[Subject]) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    return OURS if name == REFERENCE else name


def _kind(given: object) -> str:
    return f"class {given.__name__!r}" if isinstance(given, type) else type(given).__name__
