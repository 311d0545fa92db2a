"""How a subject gets from pytest's process into the lane: by name, by file, or by value.

A class of an importable module travels by name. A test module that can't be imported by its name
is loaded by its path. What was defined inside a test, or in `__main__`, travels by value (dill).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from typing import Any

from .blame import at, blaming, raised
from .errors import TOLD_IN_WORDS, Problem, SubjectError
from .subject import Subject

__tracebackhide__ = TOLD_IN_WORDS


@dataclass(frozen=True, slots=True)
class SubjectSource:
    """Where a subject comes from. `pickled` is empty unless it travels by value."""

    module: str
    qualname: str
    file: str = ""
    pickled: bytes = b""

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"

    def load(self) -> Subject:
        """The subject, in this process. Raises `SubjectError`, `SubjectRaised`."""
        if self.pickled:
            import dill

            with blaming(f"making the subject {self} again in another process"):
                found = dill.loads(self.pickled)
            return as_subject(found, str(self))
        with blaming(f"importing {self}"):
            found = _attribute(self._import(), self.qualname)
        return as_subject(found, str(self))

    def _import(self) -> Any:
        if self.module in sys.modules:
            return sys.modules[self.module]
        try:
            return importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if not self.file or (error.name or "") not in self.module:
                raise
        spec = importlib.util.spec_from_file_location(self.module, self.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.module] = module
        spec.loader.exec_module(module)
        return module


def source_of(subject: Subject | type[Subject] | str) -> SubjectSource:
    """How `subject` can be had in another process: a name (`pkg.mod:Name`), a class, an instance.

    Raises `SubjectError` when it names nothing or is no subject.
    """
    if isinstance(subject, str):
        module, colon, qualname = subject.partition(":")
        if not (module and colon and qualname):
            raise SubjectError(
                f"the subject {subject!r}",
                [Problem("", "write it as 'package.module:Name'")],
            )
        found = _found(subject, module=module, qualname=qualname)
        as_subject(found, subject)
        return SubjectSource(module, qualname, file=_file_of(module))
    kind = subject if isinstance(subject, type) else type(subject)
    as_subject(subject, kind.__qualname__)
    module = kind.__module__
    by_name = module != "__main__" and "<locals>" not in kind.__qualname__
    if by_name and isinstance(subject, type):
        return SubjectSource(module, kind.__qualname__, file=_file_of(module))
    import dill

    advice = (
        "An instance, and a class that is defined inside a test, travel to the workers by value. A"
        " class of a module travels by its name: let its constructor make what can't travel."
    )
    with blaming(f"sending the subject {module}:{kind.__qualname__} to its workers", advice=advice):
        pickled = dill.dumps(subject, byref=False, recurse=True)
    return SubjectSource(module, kind.__qualname__, file=_file_of(module), pickled=pickled)


def _found(name: str, *, module: str, qualname: str) -> object:
    """What a name means. Whatever importing it raises is the subject's error."""
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        why = f"no module named {error.name!r}"
        raise SubjectError(f"the subject {name!r}", [Problem(raised(error).place, why)]) from None
    except (Exception, SystemExit) as error:
        told = raised(error)
        why = f"importing it raised {told.error}"
        raise SubjectError(f"the subject {name!r}", [Problem(told.place, why)]) from None
    try:
        return _attribute(imported, qualname)
    except AttributeError:
        why = f"module {module!r} has no {qualname!r}"
        raise SubjectError(f"the subject {name!r}", [Problem("", why)]) from None


def as_subject(found: object, name: str) -> Subject:
    """An instance. Raises `SubjectError` when `found` is neither a subject nor a class of one."""
    if isinstance(found, type) and issubclass(found, Subject):
        try:
            found = found()
        except (Exception, SystemExit) as error:
            why = f"could not be made: {raised(error).error}{at(error)}"
            raise SubjectError(f"the subject {name!r}", [Problem("", why)]) from None
    if isinstance(found, Subject):
        if not _declares_runs(found):
            raise SubjectError(f"the subject {name!r}", [Problem("", "declares no runs")])
        return found
    raise SubjectError(
        f"the subject {name!r}",
        [Problem("", f"is {type(found).__name__}, not a pytest_leasecheck.Subject")],
    )


def _declares_runs(subject: Subject) -> bool:
    try:
        return hasattr(subject, "runs") or hasattr(type(subject), "runs")
    except (Exception, SystemExit):  # a property that raises is there; `subject_check` tells of it
        return True


def _attribute(module: Any, qualname: str) -> Any:
    for part in qualname.split("."):
        module = getattr(module, part)
    return module


def _file_of(module: str) -> str:
    return str(getattr(sys.modules.get(module), "__file__", "") or "")
