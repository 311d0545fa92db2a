"""Items that search for races nobody wrote down: the sweep's, one a script.

The map of points is drawn once, where items are first needed (in pytest-xdist's controller, which
sends it to its workers), so that everyone agrees on the list.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pytest

from . import engine, exploration, interleaving, soaking
from .failure import Unproven, notes
from .lanes import Lanes
from .mount import ScenarioItem
from .playing import Player, Result
from .runtime import Runtime
from .subjects import OURS
from .suite import Group
from .tally import to_properties
from .testkit.errors import LeasecheckError
from .testkit.families import (
    PointMap,
    Variation,
    map_from_plain,
    map_to_plain,
    story_of,
    variations,
)
from .testkit.scenario import Scenario
from .testkit.script import Script
from .testkit.subject import declaration_of
from .testkit.sweep import coverage_of, outcome_of
from .wrapped_lines import write_wrapped

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: The group's name, and so `leasecheck/sweep`.
SWEEP: Final = "sweep"
PLUGIN: Final = "leasecheck-search"
_SENT: Final = "leasecheck_map"
_PROPERTY: Final = "leasecheck.sweep"
#: The one item of a subject whose map could not be drawn.
_MAP: Final = "map"
_NO_SCRIPT: Final = Script(())
_PLAIN: Final = "submit run-1\nspawn A\nrun A\nheal\ndrain\n"


def search_of(config: pytest.Config) -> Search:
    """The session's search."""
    search = config.pluginmanager.get_plugin(PLUGIN)
    assert isinstance(search, Search)
    return search


def search_groups(runtime: Runtime, *, asked: Sequence[str] | None) -> tuple[Group, ...]:
    """The groups of what is searched; `asked` are the ids that were given, None for everything.

    Registers the search. Raises `pytest.UsageError` for a subject that can't be had.
    """
    search = Search(runtime)
    runtime.config.pluginmanager.register(search, PLUGIN)
    settings = runtime.settings
    groups = []
    if _wanted(SWEEP, asked) and settings.sweep != "off":
        groups.append(Group(SWEEP, search.scenarios(), item=_item))
    if _wanted(interleaving.INTERLEAVE, asked) and settings.sweep == "full":
        groups.append(interleaving.interleave_group())
    if settings.explore is not None and _wanted(exploration.EXPLORE, asked):
        groups.append(exploration.explore_group(runtime.config, scripts=settings.explore))
    if settings.soak is not None and _wanted(soaking.SOAK, asked):
        groups.append(soaking.soak_group())
    return tuple(groups)


def _wanted(name: str, asked: Sequence[str] | None) -> bool:
    return asked is None or any(
        one == "leasecheck" or one.partition("::")[0] == f"leasecheck/{name}" for one in asked
    )


@dataclass(eq=False)
class Search:
    """One session's sweep: its map, its lane, and what was covered."""

    runtime: Runtime

    def __post_init__(self) -> None:
        self._done: dict[str, tuple[str, str, str]] = {}
        self._unnamed = (0, 0)
        self._soaked: list[str] = []
        self._interleaved: list[str] = []

    @cached_property
    def lanes(self) -> Lanes:
        """Where scripts are played: warm workers where they are known to make no difference.

        A stranger's worker may keep something between two jobs, so theirs are as the options say.
        """
        runtime = self.runtime
        unsaid = not runtime.config.getoption("leasecheck_workers")
        if runtime.subject.label == OURS and unsaid:
            return Lanes(replace(runtime.settings, workers="warm"), folder=runtime.evidence.folder)
        return runtime.lanes

    @cached_property
    def player(self) -> Player:
        """What plays and judges on those lanes."""
        runtime = self.runtime
        return Player(
            self.lanes, runtime.evidence, config=runtime.config, keep=runtime.settings.keep
        )

    @cached_property
    def map(self) -> PointMap | None:
        """The subject's points; None when its undisturbed run could not be played."""
        sent = getattr(self.runtime.config, "workerinput", {})
        if _SENT in sent:
            return map_from_plain(sent[_SENT]) if sent[_SENT] else None
        subject = self.runtime.subject.subject
        try:
            return engine.draw_map(self.lanes, subject)
        except LeasecheckError:
            self.lanes.drop(subject)
            return None
        finally:
            for logs in self.runtime.evidence.folder.glob("map*"):
                shutil.rmtree(logs, ignore_errors=True)

    def scenarios(self) -> tuple[Scenario, ...]:
        """One for each variation that is to be played, in the order of the families."""
        if self.map is None or not self.map.points:
            # Playing what could not be played, or did nothing, tells why, at length.
            story = "One undisturbed worker, to learn which points the sweep can use."
            return (Scenario(_MAP, story, _PLAIN, ()),)
        chosen = [
            one
            for one in variations(self.map, declaration_of(self.runtime.subject.subject))
            if one.cheap or self.runtime.settings.sweep == "full"
        ]
        self._unnamed = (self.map.unnamed, len(self.map.points))
        return tuple(map(_scenario, chosen))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker of pytest-xdist the map, if there is a sweep."""
        if "map" in self.__dict__:
            node.workerinput[_SENT] = map_to_plain(self.map) if self.map is not None else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what was covered."""
        if report.when == "teardown":
            for name, value in report.user_properties:
                if name == interleaving.PROPERTY:
                    self._interleaved.append(str(value))
                if name == soaking.PROPERTY:
                    self._soaked.append(str(value))
                if name == _PROPERTY:
                    family, at, outcome = str(value).split(" ", 2)
                    self._done[report.nodeid] = (family, at, outcome)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much was tried."""
        if self._done:
            for word, line in self.told():
                write_wrapped(terminalreporter, word, line)
        for line in self._interleaved:
            write_wrapped(terminalreporter, "interleaved", line)
        for line in self._soaked:
            write_wrapped(terminalreporter, "soaked", line)

    def told(self) -> Iterable[tuple[str, str]]:
        """The lines about coverage."""
        done = [
            (Variation(family, at, script=_NO_SCRIPT, moment=""), outcome)
            for family, at, outcome in self._done.values()
        ]
        part = "" if self.runtime.settings.sweep == "full" else " (--leasecheck-sweep=full: all)"
        yield "swept", f"{coverage_of(done)}{part}"
        unnamed, points = self._unnamed
        if points:
            yield (
                "",
                f"{points} points on the map, {unnamed} of them known by their SQL"
                " alone; point('name') names one",
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Any:
        """Close the lanes once everything was torn down."""
        try:
            return (yield)
        finally:
            self.pytest_unconfigure()

    def pytest_unconfigure(self) -> None:
        """Close what an interrupted session left open."""
        if "lanes" in self.__dict__:
            self.lanes.close()


def _scenario(variation: Variation) -> Scenario:
    return Scenario(
        name=variation.name,
        story=story_of(variation),
        script=str(variation.script),
        requires=(variation.moment,),
    )


class SweepItem(ScenarioItem):
    """One script of the sweep."""

    def runtest(self) -> None:
        """Play and judge; only a fault fails."""
        _play(self.scenario, self)


def _item(parent: pytest.Collector, scenario: Scenario) -> pytest.Item:
    kind = ScenarioItem if scenario.name == _MAP else SweepItem
    # Said as text, so that newer versions of pytest see the brackets as it does in a saved id.
    nodeid = f"{parent.nodeid}::{scenario.name}"
    return kind.from_parent(parent, name=scenario.name, nodeid=nodeid, scenario=scenario)


def _play(scenario: Scenario, item: pytest.Item) -> None:
    """A fault fails; a point that isn't reached again is skipped; no danger is counted."""
    search = search_of(item.config)
    subject = search.runtime.subject
    script = scenario.script_for(subject.subject)
    result = search.player.play(scenario, subject, item, script)
    (moment,) = scenario.requires
    outcome = outcome_of(result.error, result.verdict, moment=moment)
    family, _, rest = scenario.name.partition("[")
    item.user_properties.append((_PROPERTY, f"{family} {rest.removesuffix(']')} {outcome}"))
    if outcome == "unreached":
        _forget(result)
        pytest.skip(f"never reached: {str(result.error).partition(';')[0]}")
    record = result.record
    if outcome == "harmless":
        _forget(result)
        record = replace(record, outcome="pass", evidence="")
    else:
        search.runtime.pages.add(result, nodeid=item.nodeid)
    item.user_properties += to_properties(record)
    if outcome == "fail":
        raise Unproven(result, base=item.config.invocation_params.dir)
    item.add_report_section("call", "leasecheck", "\n".join(notes(result)))


def _forget(result: Result) -> None:
    """Evidence of nothing is not kept."""
    if result.kept is not None:
        shutil.rmtree(result.kept, ignore_errors=True)
