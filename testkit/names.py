"""Where in the modules of a process a function or class is known, by whatever name.

A name that was bound early (`from time import sleep`) must follow when the function is replaced.
A scan of all modules costs ten milliseconds, and a worker is to start in one: so the lane looks
once, before it forks, and its workers look up. Default arguments and attributes of classes and
instances are not found.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import Any

#: id of a value -> the module-level names that have it
_Index = dict[int, list[tuple[Any, str]]]
_index: _Index | None = None


def remember() -> None:
    """Look through all modules now, for this process and what is forked from it."""
    global _index
    _index = _look()


def replace(replaced: Collection[tuple[Any, Any]], *, but: tuple[str, ...] = ()) -> None:
    """Replace values by others (pairs) in every module that has them, but those named in `but`."""
    index = _look({id(old) for old, _new in replaced}) if _index is None else _index
    for old, new in replaced:
        for module, attribute in index.get(id(old), ()):
            if module.__name__ not in but and vars(module).get(attribute) is old:
                setattr(module, attribute, new)


def _look(wanted: set[int] | None = None) -> _Index:
    index: _Index = {}
    for module, attribute, value in _names():
        if callable(value) if wanted is None else id(value) in wanted:
            index.setdefault(id(value), []).append((module, attribute))
    return index


def _names() -> Iterator[tuple[Any, str, Any]]:
    own = __name__.rpartition(".")[0] + "."
    for name, module in list(sys.modules.items()):
        if isinstance(module, type(sys)) and not name.startswith(own):
            for attribute, value in list(vars(module).items()):
                yield module, attribute, value
