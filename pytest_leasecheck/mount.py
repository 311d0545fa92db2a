"""The suite's items: `leasecheck/GROUP::SCENARIO`, added to the session like a file's tests."""

from __future__ import annotations

import os
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from .failure import Unproven, notes, printable
from .near import no_such
from .playing import free_scenario, unclaimed
from .runtime import Runtime, runtime_of
from .saved import Required, read_saved
from .subjects import Named, variant
from .suite import Group, all_groups, find
from .tally import Record, to_properties
from .testkit.errors import LeasecheckError, ScriptError
from .testkit.scenario import Scenario
from .testkit.subject import Subject
from .testkit.verdict import Verdict

#: The first part of every node id of ours.
TOP: Final = "leasecheck"

#: What a script says that needs sight of single statements, or several workers at once.
_FINE: Final = re.compile(r"\b(sql|txn):|^free\b", re.MULTILINE)


def mount_suite(config: pytest.Config) -> None:
    """Check what was asked for, and add our items where they are wanted.

    Raises `pytest.UsageError`: everything that is wrong with the configuration is told here, before
    any test runs, and once (by pytest-xdist's controller, before there are workers).
    """
    runtime = runtime_of(config)
    left_out = 0
    asked = split_arguments(config.args, here=config.invocation_params.dir)
    given = bool(config.option.file_or_dir)
    if runtime.settings.replay is not None:
        from .versions import tell_differences

        groups: tuple[Group, ...] = (_replay(runtime.settings.replay, runtime, config),)
        tell_differences(config, runtime.settings.replay, runtime.subject.subject)
        # A replay plays one script: the consumer's own tests only when they are named.
        config.args[:] = asked.theirs if given else []
    elif given and not asked.ours:
        if runtime.settings.subject is not None:
            _ = runtime.subject
        return
    else:
        from .searching import search_groups

        searched = search_groups(runtime, asked=asked.ours if given else None)
        groups = (*all_groups(config), *searched)
        if given:
            groups = _selected(groups, asked.ours, sweep=runtime.settings.sweep)
            config.args[:] = asked.theirs
        groups, left_out = _offered(groups, runtime.subject.subject, named=asked.ours)
    _ = runtime.subject
    _ = runtime.evidence
    _check_scripts(groups, runtime)
    config.pluginmanager.register(Mount(groups, left_out=left_out), "leasecheck-mount")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The command line's paths: those that name items of ours, and the consumer's."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]


def split_arguments(args: Iterable[str], *, here: Path) -> Arguments:
    """Tell our ids from the consumer's paths: theirs is what exists.

    A consumer's own folder `leasecheck` is collected, and the suite is played too: a job that names
    it must not turn green because such a folder came to be.
    """
    ours, theirs = [], []
    for arg in args:
        path, _, _ = arg.partition("::")
        clean = os.path.normpath(path)
        exists = (here / path).exists()
        named = Path(clean).parts[:1] == (TOP,)
        if named and (clean == TOP or not exists):
            ours.append(clean + arg[len(path) :])
        if not named or exists:
            theirs.append(arg)
    return Arguments(tuple(ours), tuple(theirs))


class Mount:
    """Adds the groups to what the session collected."""

    def __init__(self, groups: Sequence[Group], *, left_out: int = 0) -> None:
        self._groups = tuple(groups)
        self._left_out = left_out

    def pytest_report_collectionfinish(self) -> str | None:
        """Say what is not there, so that nobody counts it as passed."""
        if not self._left_out:
            return None
        return (
            f"leasecheck: {self._left_out} scenarios are left out; they are about set-ups of a"
            " runtime (`variants`) that this subject does not offer"
        )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """For the session, our groups; for a group, its items, also where `--lf` would skip it.

        `--lf` knows a file by its being there, and ours are not; what failed is selected later, by
        its id.
        """
        report: pytest.CollectReport = yield  # type: ignore[assignment]  # pluggy sends the result
        if isinstance(collector, pytest.Session) and report.passed:
            report.result = [
                *report.result,
                *(GroupNode.from_parent(collector, group=group) for group in self._groups),
            ]
        elif isinstance(collector, GroupNode) and report.passed and not report.result:
            report.result = list(collector.collect())
        return report  # type: ignore[return-value]  # a wrapper's return value is the result


class GroupNode(pytest.Module):
    """The scenarios of one file. Its path is under rootdir, where plugins expect paths to be."""

    group: Group

    @classmethod
    def from_parent(cls, parent: Any, *, group: Group, **kw: Any) -> GroupNode:  # type: ignore[override]
        """Make the node; its id is `leasecheck/GROUP`."""
        node: GroupNode = super().from_parent(
            parent, path=parent.config.rootpath / TOP / group.name, **kw
        )
        node.group = group
        node.add_marker(pytest.mark.leasecheck)
        return node

    def _getobj(self) -> types.ModuleType:
        """A module for plugins that look into one; nothing is imported."""
        module = types.ModuleType(f"{TOP}.{self.group.name}")
        if self.group.file is not None:
            module.__file__ = str(self.group.file)
        return module

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        """One item a scenario. The consumer's fixtures are none of theirs."""
        make = self.group.item or _item
        return [make(self, scenario) for scenario in self.group.scenarios]


def _item(parent: pytest.Collector, scenario: Scenario) -> pytest.Item:
    return ScenarioItem.from_parent(parent, name=scenario.name, scenario=scenario)


class ScenarioItem(pytest.Item):
    """One scenario, played against the configured subject."""

    def __init__(self, *, scenario: Scenario, **kw: Any) -> None:
        super().__init__(**kw)
        #: What is played.
        self.scenario: Final = scenario

    @property
    def runtime(self) -> Runtime:
        """The session that it is played in."""
        return runtime_of(self.config)

    def runtest(self) -> None:
        """Play, judge, and fail unless it is proven."""
        play(self.scenario, self, self.runtime)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Our own report for what is unproven; a traceback for what is a fault of ours."""
        error = excinfo.value
        if isinstance(error, LeasecheckError | pytest.UsageError):
            return printable(str(error))
        if not isinstance(error, Unproven):
            return super().repr_failure(excinfo, style)
        shown = excinfo.getrepr(style="value")
        if shown.reprcrash is not None:
            shown.reprcrash.message = error.headline
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is, for plugins; its heading in a failure is its id."""
        return self.path, None, self.nodeid


def play(
    scenario: Scenario, item: pytest.Item, runtime: Runtime, *, subject: Named | None = None
) -> Verdict:
    """Play one scenario for an item of any kind; note what it proved. Raises `Unproven`.

    `subject` is the configured one when left out.
    """
    configured = subject or runtime.subject
    subject = variant(configured, scenario.variant)
    reason = (
        f"not claimed: the subject has no variant {scenario.variant!r}"
        if subject is None
        else unclaimed(scenario, subject.subject) or _unseen(scenario, subject, runtime)
    )
    if subject is None or reason:
        skipped = Record(
            subject=configured.label, outcome="not claimed", not_claimed={scenario.name: reason}
        )
        item.user_properties += to_properties(skipped)
        pytest.skip(reason)
    script = scenario.script_for(subject.subject)
    result = runtime.player.play(scenario, subject, item, script)
    item.user_properties += to_properties(result.record)
    runtime.pages.add(result, nodeid=item.nodeid)
    if result.outcome == "pass":  # what fails names them in its own text
        item.add_report_section("call", "leasecheck", "\n".join(notes(result)))
    if result.outcome == "not claimed" and result.verdict is not None:
        pytest.skip("not claimed: " + "; ".join(result.verdict.not_claimed.values()))
    if result.outcome == "inconclusive" and result.verdict and not _sees(subject, runtime):
        missing = "; ".join(result.verdict.missing)
        pytest.skip(f"not shown: SQLite's symbols are hidden, and this was not seen: {missing}")
    if result.outcome != "pass" or result.verdict is None:
        raise Unproven(result, base=runtime.config.invocation_params.dir)
    return result.verdict


def _unseen(scenario: Scenario, subject: Named, runtime: Runtime) -> str:
    """Why a scenario shows nothing where SQLite's symbols are hidden; empty when it does.

    Changes are put to whoever moved then: too coarse for points at statements, for races, and for
    invariants that look at single commits. Judged all the same, they would accuse the innocent.
    """
    if _sees(subject, runtime):
        return ""
    script = str(scenario.script_for(subject.subject))
    if scenario.also or _FINE.search(script):
        return "not shown: SQLite's symbols are hidden, and this scenario looks at single commits"
    return ""


def _sees(subject: Named, runtime: Runtime) -> bool:
    """Whether the subject's lane sees statements and commits."""
    try:
        return bool(runtime.lanes.lane_for(subject.subject).facts.hooks)
    except LeasecheckError:
        return True  # a lane that does not start: playing tells it better


def _offered(
    groups: Sequence[Group], subject: Subject, *, named: Sequence[str]
) -> tuple[tuple[Group, ...], int]:
    """Without the scenarios on variants that the subject lacks; and how many those are.

    One that was asked for by its id stays, and is skipped with that reason.
    """
    kept, left_out = [], 0
    for group in groups:
        scenarios = tuple(
            one
            for one in group.scenarios
            if not one.variant
            or one.variant in subject.variants
            or f"{group.nodeid}::{one.name}" in named
        )
        left_out += len(group.scenarios) - len(scenarios)
        if scenarios:
            kept.append(replace(group, scenarios=scenarios))
    return tuple(kept), left_out


def _selected(groups: Sequence[Group], asked: Sequence[str], *, sweep: str) -> tuple[Group, ...]:
    """The part of the suite that the ids name. Raises `pytest.UsageError` for one that is none."""
    everything = {
        f"{group.nodeid}::{scenario.name}" for group in groups for scenario in group.scenarios
    }
    known = {TOP, *everything, *(group.nodeid for group in groups)}
    for wanted in asked:
        if wanted not in known:
            raise pytest.UsageError(_no_such(wanted, groups, sweep=sweep))
    if TOP in asked:
        return tuple(groups)
    chosen = []
    for group in groups:
        scenarios = tuple(
            scenario
            for scenario in group.scenarios
            if group.nodeid in asked or f"{group.nodeid}::{scenario.name}" in asked
        )
        if scenarios:
            chosen.append(replace(group, scenarios=scenarios))
    return tuple(chosen)


#: What has to be asked for, and how; of the sweep there is more.
_ASKED_FOR: Final = {
    "sweep": "--leasecheck-sweep=full plays more points and faults",
    "interleave": "leasecheck/interleave needs --leasecheck-sweep=full",
    "explore": "leasecheck/explore needs --leasecheck-explore=N",
    "soak": "leasecheck/soak needs --leasecheck-soak=30s",
}


def _no_such(wanted: str, groups: Sequence[Group], *, sweep: str) -> str:
    """What there is instead."""
    named = wanted.partition("::")[0]
    within = [group for group in groups if named == group.nodeid] if "::" in wanted else []
    names = [
        f"{group.nodeid}::{scenario.name}" for group in within for scenario in group.scenarios
    ] or [group.nodeid for group in groups]
    told = no_such(
        wanted,
        names,
        like=wanted if within else named,
        what=f"items of {named}" if within else "groups",
        where=named if within else TOP,
    )
    there = named in (group.nodeid for group in groups)
    option = _ASKED_FOR.get(named.removeprefix(f"{TOP}/"), "")
    if not option or (there and (sweep == "full" or not named.endswith("/sweep"))):
        return told
    return f"{told}. {option}"


def _check_scripts(groups: Sequence[Group], runtime: Runtime) -> None:
    """Refuse scripts that don't parse before any is played: they or `danger` are wrong.

    The same for what they require: a moment that there is none of would never come about.
    """
    from .testkit.moments import parse_moment

    subject = runtime.subject.subject
    for group in groups:
        for scenario in group.scenarios:
            try:
                scenario.script_for(subject)
            except ScriptError as error:
                where = f"{group.nodeid}::{scenario.name} (danger {subject.danger!r})"
                raise pytest.UsageError(f"the script of {where} does not parse: {error}") from error
            for moment in scenario.requires:
                try:
                    parse_moment(moment)
                except ValueError as error:
                    where = f"{group.nodeid}::{scenario.name}"
                    raise pytest.UsageError(f"what {where} requires: {error}") from error


def _replay(file: Path, runtime: Runtime, config: pytest.Config) -> Group:
    """The group with the one scenario that a saved file is of."""
    saved = read_saved(file)
    subject, script = runtime.subject.subject, saved.script
    found = find(all_groups(config), script, subject=subject, name=saved.scenario)
    name = found.name if found is not None else file.stem
    base = found or free_scenario(name, requires=(), holds=None)
    requires = base.requires if saved.requires is None else saved.requires
    config.pluginmanager.register(Required(file, requires), "leasecheck-required")
    replayed = Scenario(
        name=name,
        story=base.story,
        script=str(script),
        requires=requires,
        needs=base.needs,
        holds=base.holds,
        also=base.also,
        variant=base.variant,
    )
    return Group("replay", (replayed,), file)
