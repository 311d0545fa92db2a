"""Hooks of ours, asked: what an implementation raises, or answers amiss, is told as its own.

An implementation is the consumer's code. A traceback through pluggy helps nobody who wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from .testkit.blame import blaming
from .testkit.errors import LeasecheckError, SubjectRaised


def implementers(config: pytest.Config, hook: str) -> list[object]:
    """The plugins that implement a hook, in the order in which pluggy would call them."""
    return [impl.plugin for impl in reversed(getattr(config.hook, hook).get_hookimpls())]


def ask(config: pytest.Config, hook: str, plugin: object, /, **arguments: Any) -> list[Any]:
    """What one plugin answers; not at all, one answer. Raises `SubjectRaised`."""
    others = [other for other in implementers(config, hook) if other is not plugin]
    caller = config.pluginmanager.subset_hook_caller(hook, remove_plugins=others)
    with blaming(f"{hook}() of {plugin_name(config, plugin)!r}"):
        answers: list[Any] = caller(**arguments)
    return answers


def tell(config: pytest.Config, hook: str, /, **arguments: Any) -> list[SubjectRaised]:
    """Tell every implementer; what they raise keeps nobody from hearing it, and is returned."""
    raised = []
    for plugin in implementers(config, hook):
        try:
            ask(config, hook, plugin, **arguments)
        except SubjectRaised as error:
            raised.append(error)
    return raised


def listed(config: pytest.Config, hook: str, plugin: object, answers: Iterable[Any]) -> list[Any]:
    """One list out of a plugin's answers. Raises `LeasecheckError` for one that is no list."""
    found: list[Any] = []
    for answer in answers:
        if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
            raise LeasecheckError(
                f"{hook}() of {plugin_name(config, plugin)!r} returned a {type(answer).__name__},"
                " not a list"
            )
        found += answer
    return found


def plugin_name(config: pytest.Config, plugin: object) -> str:
    """A conftest is registered under its path: its file name is enough."""
    return Path(str(config.pluginmanager.get_name(plugin))).name.removesuffix(".py")
