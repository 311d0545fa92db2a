"""Which scenarios there are: ours, one group a file, and those that plugins add."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import scenarios
from .asking import ask, implementers, listed, plugin_name
from .near import nearest
from .testkit.errors import LeasecheckError
from .testkit.scenario import Scenario
from .testkit.script import Script
from .testkit.subject import Subject


@dataclass(frozen=True, slots=True)
class Group:
    """The scenarios of one file, mounted as `leasecheck/NAME`; `file` is where they are written.

    `item` makes the items of those that are judged in a way of their own.
    """

    name: str
    scenarios: tuple[Scenario, ...]
    file: Path | None = None
    item: Callable[[pytest.Collector, Scenario], pytest.Item] | None = None

    @property
    def nodeid(self) -> str:
        """The node id of the group."""
        return f"leasecheck/{self.name}"


def own_groups() -> tuple[Group, ...]:
    """The scenarios that ship with leasecheck, by file name."""
    groups = []
    for found in sorted(pkgutil.iter_modules(scenarios.__path__), key=lambda item: item.name):
        module = importlib.import_module(f"{scenarios.__name__}.{found.name}")
        told = tuple(getattr(module, "SCENARIOS", ()))
        if told:
            groups.append(Group(found.name, told, Path(module.__file__ or "")))
    return tuple(groups)


def all_groups(config: pytest.Config) -> tuple[Group, ...]:
    """Ours and those of `pytest_leasecheck_scenarios`. Raises `pytest.UsageError`."""
    groups = [*own_groups(), *_added(config)]
    names = [group.name for group in groups]
    for group in groups:
        if names.count(group.name) > 1:
            raise pytest.UsageError(
                f"two plugins add scenarios under {group.nodeid}; rename one of them"
            )
        ids = [scenario.name for scenario in group.scenarios]
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise pytest.UsageError(f"{group.nodeid} has two scenarios named {twice[0]!r}")
    return tuple(groups)


def find(
    groups: Iterable[Group], script: Script, *, subject: Subject, name: str
) -> Scenario | None:
    """The scenario whose script this is: a replay is judged as its scenario is.

    Two scenarios may have one script and differ in their subject's variant; then `name` decides,
    and without it the one that asks for no variant.
    """
    same = [
        scenario
        for group in groups
        for scenario in group.scenarios
        if (not scenario.variant or scenario.variant in subject.variants)
        and scenario.script_for(subject) == script
    ]
    plain = [one for one in same if not one.variant] or same
    return next((one for one in same if one.name == name), plain[0] if plain else None)


def by_id(text: str, config: pytest.Config) -> Scenario:
    """The scenario of an id: `classic::eight_steps`, or as printed. Raises `pytest.UsageError`."""
    wanted = text.removeprefix("leasecheck/")
    known = {
        f"{group.name}::{scenario.name}": scenario
        for group in all_groups(config)
        for scenario in group.scenarios
    }
    if wanted not in known:
        lists = "'pytest --leasecheck leasecheck --collect-only -q' lists them"
        told = (
            f"did you mean {' or '.join(nearest(wanted, known))}? There are {len(known)}; {lists}"
        )
        raise pytest.UsageError(f"there is no scenario {text!r}; {told}")
    return known[wanted]


def _added(config: pytest.Config) -> Iterable[Group]:
    """One group for each plugin that adds scenarios."""
    hook = "pytest_leasecheck_scenarios"
    for plugin in reversed(implementers(config, hook)):
        try:
            told = tuple(listed(config, hook, plugin, ask(config, hook, plugin, config=config)))
        except LeasecheckError as error:
            raise pytest.UsageError(str(error)) from error
        name = re.sub(r"[^\w.-]+", "-", plugin_name(config, plugin))
        for scenario in told:
            if not isinstance(scenario, Scenario):
                raise pytest.UsageError(
                    f"{hook} of {name!r} returned a {type(scenario).__name__}, not a Scenario"
                )
        if told:
            yield Group(name, told)
