"""Whether a subject's attributes can be read, and are what the kit goes by; before anything starts.

Attributes may be properties that raise, or hold what somebody thought would do. All that is wrong
is told at once, attribute by attribute, instead of where the kit first trips over it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from .blame import at, error_line, raised
from .declaration_json import as_plain, read_as, shown
from .errors import TOLD_IN_WORDS, Problem, SubjectError
from .subject import (
    Counter,
    Declaration,
    EffectRows,
    Lease,
    Reconciliations,
    RunTable,
    Steps,
    Subject,
    Writes,
)

__tracebackhide__ = TOLD_IN_WORDS

#: Fields of a declaration that are not attributes of a subject under the same name.
_DERIVED: Final = frozenset({"subject", "waits_ok", "zone"})
#: What a subject has beside its declaration.
_BESIDE: Final[Mapping[str, Any]] = {
    "clock": Literal["given", "patched", "wall"],
    "danger": str,
    "danger_after": str,
    "long_call": str,
    "variants": Mapping[str, str],
    "observer": Literal["kept", "brief"],
    "calls": tuple[str, ...],
}
#: Lists of texts: one text alone would be taken for a list of its letters.
_LISTS: Final = frozenset({"capabilities", "claims", "reapers", "heartbeats", "calls"})

#: What is written with a class of its own; `several`: in a list.
_PARTS: Final[Mapping[str, type]] = {
    "runs": RunTable,
    "writes": Writes,
    "steps": Steps,
    "reconciliations": Reconciliations,
    "effects": EffectRows,
    "counters": Counter,
}
_SEVERAL: Final = frozenset({"writes", "counters"})
_NEEDED: Final = frozenset({"runs"})


def refuse_unfit(subject: Subject) -> None:
    """Raise `SubjectError` with everything about a subject's attributes that is wrong."""
    problems = list(unfit(subject))
    if problems:
        raise SubjectError(f"the subject {type(subject).__qualname__}", problems)


def unfit(subject: Subject) -> Iterator[Problem]:
    """Every attribute that can't be read, or that is not of the kind that it must be."""
    hints = get_type_hints(Declaration)
    wanted = {one.name: hints[one.name] for one in fields(Declaration) if one.name not in _DERIVED}
    for name, hint in {**wanted, **_BESIDE}.items():
        yield from _unfit(subject, name, hint)


def _unfit(subject: Subject, name: str, hint: Any) -> Iterator[Problem]:
    try:
        value = getattr(subject, name)
    except (Exception, SystemExit) as error:
        yield Problem(name, f"reading it raised {raised(error).error}{at(error)}")
        return
    if name in _LISTS and isinstance(value, str):
        yield Problem(name, f"is the text {value!r}; write [{value!r}]")
        return
    if name in _PARTS:
        wrong = [*_of_another_kind(name, value, _PARTS[name]), *_texts_for_lists(name, value)]
        if wrong:
            yield from wrong
            return
    try:
        plain = as_plain(value)
    except Exception as error:
        yield Problem(name, error_line(error))
        return
    found: list[Problem] = []
    read_as(hint, plain, name, found)
    yield from found


def _of_another_kind(name: str, value: object, kind: type) -> Iterator[Problem]:
    """A part that is no instance of the class that it is to be written with."""
    if name not in _SEVERAL:
        lease: object = value.lease if isinstance(value, RunTable) else None
        if not isinstance(value, kind) and (value is not None or name in _NEEDED):
            yield Problem(name, f"{shown(value)} is not a {kind.__name__}(...)")
        elif isinstance(value, RunTable) and not isinstance(lease, Lease):
            yield Problem(f"{name}.lease", f"{shown(lease)} is not a Lease(...)")
        return
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        yield Problem(name, f"{shown(value)} is not a list of {kind.__name__}(...)")
        return
    for number, one in enumerate(value):
        if not isinstance(one, kind):
            yield Problem(f"{name}[{number}]", f"{shown(one)} is not a {kind.__name__}(...)")


def _texts_for_lists(where: str, value: object, hint: Any = None) -> Iterator[Problem]:
    """Texts where several values belong: each would be a list of its letters."""
    if isinstance(value, str) and get_origin(hint) in (tuple, Collection):
        form = f"({value!r},)" if get_origin(hint) is tuple else f"{{{value!r}}}"
        yield Problem(where, f"is the text {value!r}; write {form}")
    elif is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        for item in fields(value):
            one = getattr(value, item.name)
            yield from _texts_for_lists(f"{where}.{item.name}", one, hints[item.name])
    elif isinstance(value, Mapping) and get_origin(hint) is Mapping:
        for key, one in value.items():
            yield from _texts_for_lists(f"{where}.{key}", one, get_args(hint)[1])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, one in enumerate(value):
            yield from _texts_for_lists(f"{where}[{number}]", one)
