"""A declaration as plain data that JSON can carry, and back: total and exact.

The fields and their types are read off the dataclasses of `subject`, so a field that is added
there is carried, and checked on its way in, without a word here. Sets become sorted lists;
integers stay integers and text stays text. What a `Collection` held comes back as a frozenset.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from .errors import HistoryError, Problem
from .subject import After, Beat, Declaration

#: Forms that share a field say which they are.
_FORMS: Final[Mapping[str, type]] = {"after": After, "beat": Beat}
_FORM_OF: Final = {kind: form for form, kind in _FORMS.items()}
_FORM: Final = "form"


def declaration_to_json(declaration: Declaration) -> dict[str, object]:
    """The declaration as dicts, lists, text, numbers, booleans and None."""
    plain = as_plain(declaration)
    assert isinstance(plain, dict)
    return plain


def declaration_from_json(mapping: Mapping[str, object]) -> Declaration:
    """The declaration that `declaration_to_json` wrote.

    Raises `HistoryError` that names every field which is wrong, missing or unknown.
    """
    problems: list[Problem] = []
    declaration = read_as(Declaration, mapping, "declaration", problems)
    if problems:
        raise HistoryError("the declaration in a history", problems)
    assert isinstance(declaration, Declaration)
    return declaration


def as_plain(value: object) -> object:
    """Data that JSON can carry. Raises TypeError for what a declaration can't hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # an enumeration's member as what is stored
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if is_dataclass(value):
        form = _FORM_OF.get(type(value))
        data: dict[str, object] = {_FORM: form} if form else {}
        return data | {item.name: as_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted((as_plain(item) for item in value), key=_rank)
    if isinstance(value, Collection):
        return [as_plain(item) for item in value]
    raise TypeError(f"a declaration can't hold {value!r}")


def _rank(value: object) -> tuple[bool, Any]:
    """An order over texts and numbers: numbers first."""
    return isinstance(value, str), value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def read_as(hint: Any, value: object, where: str, problems: list[Problem]) -> object:
    """`value`, as JSON had it, as the type `hint`; what doesn't fit is added to `problems`.

    Hints may be classes, dataclasses, unions, literals, tuples, collections and mappings.
    """
    if hint is object:
        return value
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _read_union(args, value, where, problems)
    if origin is Literal:
        if not any(value == arg and type(value) is type(arg) for arg in args):
            problems.append(
                Problem(where, f"{shown(value)} is none of {', '.join(map(repr, args))}")
            )
        return value
    if isinstance(hint, type) and is_dataclass(hint):
        return _read_fields(hint, value, where, problems)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            return _unfit(value, "a mapping", where, problems)
        return {
            read_as(args[0], key, f"{where}: key", problems): read_as(
                args[1], item, f"{where}.{key}", problems
            )
            for key, item in value.items()
        }
    if origin in (tuple, Collection, frozenset):
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            return _unfit(value, "a list", where, problems)
        before = len(problems)
        items = [
            read_as(args[0], item, f"{where}[{at}]", problems) for at, item in enumerate(value)
        ]
        if len(problems) > before:
            return None
        return tuple(items) if origin is tuple else frozenset(items)
    if hint is int and isinstance(value, bool):
        return int(value)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        name = "nothing" if hint is types.NoneType else f"of type {hint.__name__}"
        return _unfit(value, name, where, problems)
    return value


def _read_union(
    args: tuple[Any, ...], value: object, where: str, problems: list[Problem]
) -> object:
    """As the first type of the union that fits; if none does, as the one that nearly did."""
    if type(value) in args:
        return value
    nearest: list[Problem] | None = None
    for arg in args:
        wrong: list[Problem] = []
        read = read_as(arg, value, where, wrong)
        if not wrong:
            return read
        inside = any(problem.where != where for problem in wrong)
        nearest = wrong if inside and nearest is None else nearest
    if nearest is None:
        names = " or ".join(map(_named, args))
        nearest = [Problem(where, f"{shown(value)} is not {names}")]
    problems += nearest
    return None


def _named(hint: Any) -> str:
    """A type for an error's text."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return "None" if hint is types.NoneType else getattr(hint, "__name__", str(hint))


def _read_fields(kind: type, value: object, where: str, problems: list[Problem]) -> object:
    form = _FORM_OF.get(kind)
    if not isinstance(value, Mapping) or (form and value.get(_FORM) != form):
        return _unfit(value, f"a {kind.__name__}", where, problems)
    before = len(problems)
    known = {item.name: item for item in fields(kind)}
    data: dict[str, object] = {}
    for name, given in value.items():
        if name in known:
            data[name] = read_as(_hints(kind)[name], given, f"{where}.{name}", problems)
        elif name != _FORM or not form:
            problems.append(Problem(f"{where}.{name}", f"a {kind.__name__} has no such field"))
    for name, item in known.items():
        required = item.default is MISSING and item.default_factory is MISSING
        if required and name not in data:
            problems.append(Problem(f"{where}.{name}", "is missing"))
    return kind(**data) if len(problems) == before else None


def _unfit(value: object, wanted: str, where: str, problems: list[Problem]) -> object:
    problems.append(Problem(where, f"{shown(value)} is not {wanted}"))
    return None


def shown(value: object) -> str:
    """A value for an error's text: short, and even when Python refuses to write it out."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python writes out
        return f"a huge {type(value).__name__}"
    except Exception:  # a consumer's own repr may raise whatever it likes
        return f"an object of {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
