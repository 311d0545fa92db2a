"""Inside a worker: a subject's dotted names become points. No code is edited.

A function or method is replaced by one that passes a point before and after it, wherever a module
knows it by name. What it does not reach: names kept in default arguments, closures and instances.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any, Final

from . import names
from .blame import at, raised
from .channel import Channel
from .errors import Problem
from .evloop import reach_async
from .subject import Subject

#: Where a subject has dotted names.
_FIELDS: Final = ("claims", "reapers", "heartbeats", "calls")


def wrap_calls(channel: Channel, subject: Subject) -> None:
    """Turn the subject's dotted names into points, in the worker alone: no code is edited."""
    for name in dict.fromkeys((*subject.claims, *subject.reapers, *subject.calls)):
        _wrap(channel, name, point_name=f"call:{name}")
    for name in subject.heartbeats:
        _wrap(channel, name, point_name="heartbeat")


def missing_names(subject: Subject) -> Iterator[Problem]:
    """Those of the subject's dotted names that nothing is found under."""
    for field in _FIELDS:
        for name in getattr(subject, field):
            try:
                owner, last = _owner_of(name)
                getattr(owner, last)
            except Exception as error:
                form = "" if ":" in name else "; it is written as pkg.mod:Class.method"
                why = f"{raised(error).error}{at(error)}{form}"
                yield Problem(field, f"{name!r} can't be had: {why}")


def fixed_names(subject: Subject) -> Iterator[Problem]:
    """Those that can't be replaced. For a process that ends then: an inherited name is set."""
    for field in _FIELDS:
        for name in getattr(subject, field):
            owner, last = _owner_of(name)
            try:
                setattr(owner, last, vars(owner).get(last, getattr(owner, last)))
            except Exception as error:
                why = f"{raised(error).error}{at(error)}"
                yield Problem(field, f"{name!r} can't be made a point: {why}")


def _owner_of(dotted: str) -> tuple[Any, str]:
    """What holds the thing of a dotted name, and the thing's name in it."""
    module, _, path = dotted.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, last = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, last


def _wrap(channel: Channel, dotted: str, *, point_name: str) -> None:
    owner, last = _owner_of(dotted)
    raw = owner.__dict__.get(last, None) if isinstance(owner, type) else None
    static = isinstance(raw, staticmethod | classmethod)
    real = getattr(owner, last)

    if _is_coroutine_function(real):

        async def around_async(*args: Any, **kwargs: Any) -> Any:
            ordinal = channel.count(point_name)
            await reach_async(channel, point_name, ordinal=ordinal, phase="before")
            try:
                return await real(*args, **kwargs)
            finally:
                await reach_async(channel, point_name, ordinal=ordinal, phase="after")

        wrapped: Any = around_async
    else:

        def around(*args: Any, **kwargs: Any) -> Any:
            ordinal = channel.count(point_name)
            channel.reach(point_name, ordinal=ordinal, phase="before")
            try:
                return real(*args, **kwargs)
            finally:
                channel.reach(point_name, ordinal=ordinal, phase="after")

        wrapped = around
    functools.update_wrapper(wrapped, real)
    setattr(owner, last, staticmethod(wrapped) if static else wrapped)
    if not isinstance(owner, type):
        names.replace([(real, wrapped)])  # `from module import name` has it too


def _is_coroutine_function(function: Any) -> bool:
    """asyncio's word, which knows mocks and its own old decorator too.

    Where nobody imported it nothing needs it, and it isn't: that would treble a worker's start.
    """
    asyncio = sys.modules.get("asyncio")
    return bool((asyncio or inspect).iscoroutinefunction(function))
