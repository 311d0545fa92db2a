"""`leasecheck/explore::races`: scripts that Hypothesis mixes, saved failures first."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from .evidence import FOLDER, folder_name
from .failure import Unproven
from .lanes import Lanes
from .mount import ScenarioItem
from .playing import Player, Result, free_scenario
from .subjects import Named
from .suite import Group
from .tally import EXPLORED, Record, to_properties
from .testkit.confirming import Judged, play_and_judge
from .testkit.errors import LaneDied, LeasecheckError, ScriptError
from .testkit.files import write_new
from .testkit.found import Tally
from .testkit.invariants import not_claimed
from .testkit.python_text import as_python
from .testkit.scenario import ALL_INVARIANTS, Scenario
from .testkit.script import parse_script
from .testkit.subject import declaration_of
from .testkit.verdict import Counts
from .versions import made_with

if TYPE_CHECKING:
    from .testkit.lane import Lane

EXPLORE: Final = "explore"
_PLAIN: Final = "submit run-1\nspawn A\nrun A\nheal\ndrain\n"
#: Something is said after so long, and again each time that it has passed.
PATIENCE_S: Final = 2.0
_MOST_SAVED: Final = 100


def explore_group(config: pytest.Config, *, scripts: int) -> Group:
    """The group of the explorations: one for each worker of pytest-xdist, each with its share."""
    count = _lanes_of(config)
    names = ["races"] if count == 1 else [f"races[{number}]" for number in range(1, count + 1)]
    story = f"{scripts // count} scripts are mixed from everything that can happen to a worker."
    return Group(EXPLORE, tuple(Scenario(name, story, _PLAIN, ()) for name in names), item=_item)


def _lanes_of(config: pytest.Config) -> int:
    sent = getattr(config, "workerinput", None)
    if sent is not None:
        return int(sent.get("workercount", 1))
    return max(1, len(config.getoption("tx", None) or ()))


def _item(parent: pytest.Collector, scenario: Scenario) -> pytest.Item:
    nodeid = f"{parent.nodeid}::{scenario.name}"
    return ExploreItem.from_parent(parent, name=scenario.name, nodeid=nodeid, scenario=scenario)


class ExploreItem(ScenarioItem):
    """One exploration."""

    def runtest(self) -> None:
        """Saved failures first, then new scripts; raises what was found."""
        from .searching import search_of

        search = search_of(self.config)
        Exploration(self, search.runtime.subject, lanes=search.lanes, player=search.player).run()


class Exploration:
    """One run of it."""

    def __init__(self, item: ExploreItem, subject: Named, *, lanes: Lanes, player: Player) -> None:
        self._item: Final = item
        self._subject: Final = subject
        self._lanes: Final = lanes
        self._player: Final = player
        self._runtime: Final = item.runtime
        self._progress: Final = Progress(item.config)

    def run(self) -> None:
        """Explore. Raises `Unproven`, or fails with what is unsteady."""
        from .testkit.explore import explore

        lane = self._lanes.lane_for(self._subject.subject)
        again = self._saved_that_fails(lane)
        if again is not None:
            one = Tally()
            one.count(again)
            self._report(again, one, seed=None)
        seed = seed_of(self._item.config)
        scripts = max(1, (self._runtime.settings.explore or 0) // _lanes_of(self._item.config))
        seen = Tally()

        def told(tally: Tally) -> None:
            nonlocal seen
            seen = tally
            self._progress.tell(f"explored {tally.scripts} of {scripts} scripts", tally)

        try:
            explored = explore(lane, scripts=scripts, seed=seed, told_so_far=told)
        except LeasecheckError as error:
            self._note(seen, seed)
            if isinstance(error, LaneDied):
                self._lanes.drop(self._subject.subject)
            pytest.fail(f"after {seen.scripts} scripts (seed {seed}): {error}", pytrace=False)
        except BaseException:  # interrupted: no report comes of it, so it is said now
            say_so_far(self._progress, seen, seed)
            self._lanes.drop(self._subject.subject)
            raise
        if explored.found is not None:
            self._report(explored.found, explored.tally, seed=seed)
        self._note(explored.tally, seed)
        if explored.unsteady:
            pytest.fail(f"seed {seed}: {explored.unsteady}", pytrace=False)
        record = record_of(self._subject, explored.tally, missing=explored.missing)
        self._item.user_properties += to_properties(record)
        if explored.missing and not lane.facts.hooks:
            pytest.skip(f"not shown: SQLite's symbols are hidden; {explored.missing}")
        if explored.missing:
            pytest.fail(f"seed {seed}: {explored.missing}", pytrace=False)

    def _note(self, tally: Tally, seed: int | None) -> None:
        note(self._item, tally, seed)

    def _report(self, judged: Judged, tally: Tally, *, seed: int | None) -> None:
        """Keep a failure where it is tried first next time, and raise it."""
        scenario = free_scenario(self._item.name, requires=(), holds=None)
        folder = self._runtime.evidence.fresh(self._item.nodeid)
        result = Result(folder, self._subject, scenario, judged.script, judged.history,
                        judged.verdict)  # fmt: skip
        result = self._player.keep(result)
        self._save(judged)
        if seed is not None:
            self._note(tally, seed)
        self._item.user_properties += to_properties(of_search(result.record, tally))
        python = as_python(judged.script)
        self._item.add_report_section("call", "as Python", python)
        if seed is not None:
            found = f"the {tally.first}th script of --hypothesis-seed={seed}"
            self._item.add_report_section("call", "found by", found)
        raise Unproven(result, base=self._runtime.config.invocation_params.dir)

    # -- saved failures --------------------------------------------------------------------------

    @property
    def _saved(self) -> Path:
        """Where failing scripts of this subject are kept between sessions."""
        parent = self._runtime.settings.evidence or self._runtime.config.rootpath / FOLDER
        return parent / "failures" / folder_name(self._subject.label)

    def _save(self, judged: Judged) -> None:
        text = f"{made_with(self._subject.subject)}\n"
        text += "".join(f"# {kind}\n" for kind in sorted(judged.kinds)) + str(judged.script)
        for number in range(1, _MOST_SAVED):
            path = self._saved / f"race-{number}.txt"
            with contextlib.suppress(OSError):  # a folder that can't be written hides no verdict
                self._saved.mkdir(mode=0o700, parents=True, exist_ok=True)
                if path.exists():
                    if path.read_text(encoding="utf-8").endswith(f"\n{judged.script}"):
                        return
                    continue
                write_new(path, text)
                return

    def _saved_that_fails(self, lane: Lane) -> Judged | None:
        """The first saved script that fails still; those that don't are forgotten."""
        for path in sorted(self._saved.glob("race-*.txt")):
            try:
                script = parse_script(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, ScriptError):
                continue
            judged = play_and_judge(lane, script, name="saved")
            if judged.faults:
                self._item.add_report_section("call", "saved script", str(path))
                return judged
            if judged.error is None:
                path.unlink(missing_ok=True)
        return None


def seed_of(config: pytest.Config) -> int:
    """The seed that was asked for, else one of its own: a fixed one finds the same for ever."""
    given = config.getoption("hypothesis_seed", None)
    try:
        return int(given) if given is not None else secrets.randbits(32)
    except ValueError:  # `random`
        return secrets.randbits(32)


def _counts(tally: Tally) -> Counts:
    return Counts(
        scripts=tally.scripts,
        runs=tally.scripts,
        stale_attempts=tally.stale_attempts,
        interruptions=tally.interruptions,
        reconciliations=tally.reconciliations,
    )


def of_search(record: Record, tally: Tally) -> Record:
    """The record of one script, with the counts of the search that found it."""
    return replace(
        record, counts=_counts(tally), refused=tally.refused, refused_by=dict(tally.refused_by)
    )


def record_of(subject: Named, tally: Tally, *, missing: str = "") -> Record:
    """What a search that found nothing adds to the summary; `missing`: why it proves nothing."""
    plain = Record(
        subject.label,
        "inconclusive" if missing else "pass",
        notes=tuple(sorted(tally.notes)),
        not_claimed=not_judged(subject),
    )
    return of_search(plain, tally)


def not_judged(subject: Named) -> dict[str, str]:
    """What no search can show of a subject: what it does not claim, and why."""
    return not_claimed(declaration_of(subject.subject), holds=ALL_INVARIANTS)


def say_so_far(progress: Progress, tally: Tally, seed: int | None) -> None:
    """Say what an interrupted search had found: no report comes of it."""
    found = "; ".join(sorted({kind for one in tally.failures for kind in one.kinds}))
    drawn = f" (seed {seed})" if seed is not None else ""
    progress.say(
        f"interrupted after {tally.scripts} scripts{drawn}: {found or 'no fault so far'}", tally
    )
    for judged in tally.failures[:1]:
        script = "".join(f"\n    {line}" for line in str(judged.script).splitlines())
        progress.line(f"its script, not shrunk yet:{script}")


def note(item: pytest.Item, tally: Tally, seed: int | None) -> None:
    """Add what was explored to what a test's reports carry."""
    counts = (tally.scripts, tally.steps, tally.wasted, tally.again, tally.shrinking)
    dangers = (tally.stale_attempts, tally.interruptions)
    numbers = " ".join(map(str, (*counts, *dangers)))
    item.user_properties.append((EXPLORED, f"{numbers} {'' if seed is None else seed}"))


def told(done: Sequence[str]) -> str:
    """What the summary says of explorations, from their properties."""
    rows = [one.split() for one in done]
    numbers = ([int(number) for number in row[:7]] for row in rows)
    scripts, steps, wasted, again, shrinking, stale, interrupted = (
        sum(column) for column in zip(*numbers, strict=True)
    )
    share = 100 * wasted / max(1, steps)
    parts = [f"{scripts} scripts, {steps} steps, {share:.1f} % wasted"]
    if again or shrinking:
        parts.append(f"besides, {again} plays to believe a failure and {shrinking} to shrink it")
    never = ["a stale attempt"] * (not stale) + ["an interrupted step"] * (not interrupted)
    if never:
        parts.append(f"never came about: {', '.join(never)}")
    seeds = [row[7] for row in rows if len(row) > 7]
    if seeds:
        parts.append(f"seed {', '.join(seeds)}")
    return "; ".join(parts)


class Progress:
    """A line on the terminal once something takes longer than two seconds."""

    def __init__(self, config: pytest.Config) -> None:
        manager = config.pluginmanager
        self._terminal: Final[Any] = manager.get_plugin("terminalreporter")
        self._capture: Final[Any] = manager.get_plugin("capturemanager")
        self._since = self._last = time.monotonic()

    def tell(self, what: str, tally: Tally) -> None:
        """Say how far it is, at most each two seconds."""
        if time.monotonic() - self._last >= PATIENCE_S:
            self.say(what, tally)

    def say(self, what: str, tally: Tally) -> None:
        """Say it now."""
        rate = tally.scripts / max(0.001, time.monotonic() - self._since)
        self.line(
            f"{what}, {rate:.0f}/s, {tally.stale_attempts} stale attempts,"
            f" {tally.interruptions} interruptions, {len(tally.failures)} faults"
        )

    def maybe(self, text: str) -> None:
        """A line, at most each two seconds."""
        if time.monotonic() - self._last >= PATIENCE_S:
            self.line(text)

    def line(self, text: str) -> None:
        """A line of its own, past pytest's capture."""
        self._last = time.monotonic()
        if self._terminal is None:
            return
        with contextlib.ExitStack() as stack:
            if self._capture is not None:
                stack.enter_context(self._capture.global_and_fixture_disabled())
            self._terminal.ensure_newline()
            self._terminal.write_line(f"leasecheck: {text}")
