"""Fixtures: `stage` for a test that scripts its own disaster, `leasecheck_scenario` for ours."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from . import engine
from .failure import Unproven, printable
from .playing import Result, free_scenario
from .runtime import Runtime, runtime_of
from .subjects import Named, named
from .suite import by_id
from .tally import from_properties, to_properties, together
from .testkit.errors import LeasecheckError
from .testkit.scenario import ALL_INVARIANTS, Scenario
from .testkit.script import Drain
from .testkit.verdict import Verdict

if TYPE_CHECKING:
    from .testkit.stage import Stage as _Stage
else:
    _Stage = object


def subject_of(request: pytest.FixtureRequest) -> Any:
    """The subject that a test names by its mark or its class, else the configured one."""
    with in_words():
        given = marked(request.node)["subject"] or getattr(request.cls, "subject", None)
        return given or runtime_of(request.config).subject


@contextmanager
def in_words() -> Iterator[None]:
    """Fail the test with the text of a mistake in its set-up, instead of a traceback of ours."""
    try:
        yield
    except (pytest.UsageError, LeasecheckError) as error:
        raise pytest.fail.Exception(printable(str(error)), pytrace=False) from None


class CheckedStage(_Stage):
    """A `Stage`, and the verdict over what was done on it."""

    def __init__(
        self,
        stage: Any,
        subject: Named,
        item: pytest.Item,
        runtime: Runtime,
        *,
        folder: Path,
        fallen: tuple[str, ...],
    ) -> None:
        self._stage = stage
        self._folder = folder
        self._fallen = fallen
        self._subject = subject
        self._item = item
        self._runtime = runtime
        self._checked_after = -1

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stage, name)

    def verdict(
        self, *, requires: Collection[str] = (), holds: Collection[str] = ALL_INVARIANTS
    ) -> Verdict:
        """Judge what was done so far, and do nothing; the end is judged only once drained."""
        result = self._judged(requires, holds, error=None)
        if result.verdict is None:
            raise result.error or LeasecheckError("the history could not be judged")
        return result.verdict

    def check(
        self, *, requires: Collection[str] = (), holds: Collection[str] = ALL_INVARIANTS
    ) -> Verdict:
        """Heal, drain, judge. Fails the test unless everything that `holds` names does.

        `requires` are moments without which the test proves nothing (`stale attempt by A`).
        """
        error = self._settle()
        result = self._judged(requires, holds, error=error)
        result = self._runtime.player.keep(result)
        self._checked_after = len(result.script.actions)
        self._runtime.pages.add(result, nodeid=self._item.nodeid)
        _forget_properties(self._item)
        self._item.user_properties += to_properties(result.record)
        if result.outcome != "pass" or result.verdict is None:
            base = self._runtime.config.invocation_params.dir
            pytest.fail(str(Unproven(result, base=base)), pytrace=False)
        return result.verdict

    @property
    def checked(self) -> bool:
        """Whether nothing was done since `check` judged."""
        return self._checked_after == len(self._stage.script.actions)

    def _settle(self) -> LeasecheckError | None:
        """Heal and drain, unless that is how the script ended already."""
        actions = self._stage.script.actions
        if actions and isinstance(actions[-1], Drain):
            return None
        try:
            self._stage.heal()
            self._stage.drain()
        except LeasecheckError as error:
            # What happened up to here is judged all the same.
            return error
        return None

    def _judged(
        self, requires: Collection[str], holds: Collection[str], *, error: LeasecheckError | None
    ) -> Result:
        scenario = free_scenario(self._item.name, requires=tuple(requires), holds=tuple(holds))
        result = Result(
            folder=self._folder,
            subject=self._subject,
            scenario=scenario,
            script=self._stage.script,
            error=error,
            logs={path.stem: path for path in sorted(self._folder.glob("*.log"))},
            fallen=self._fallen,
        )
        try:
            result = replace(result, history=self._stage.history())
        except LeasecheckError as late:
            return replace(result, error=error or late)
        return self._runtime.player.judge(result, self._item)


@contextmanager
def open_stage(request: pytest.FixtureRequest, subject: object) -> Iterator[CheckedStage]:
    """A stage for one test; judged at its end unless the test says otherwise."""
    item = request.node
    with in_words():
        runtime = runtime_of(request.config)
        known = subject if isinstance(subject, Named) else named(subject, folders=runtime.folders)
        asked = marked(item)
        folder = runtime.evidence.fresh(item.nodeid)
        lane = runtime.lanes.lane_for(known.subject)
        try:
            stage = engine.open_stage(lane, name=folder.name)
        except LeasecheckError:
            # A lane that could not open a stage is no lane for the next test.
            runtime.lanes.drop(known.subject)
            raise
    fallen = lane.facts.fallen
    checked = CheckedStage(stage, known, item, runtime, folder=folder, fallen=fallen)
    try:
        yield checked
        if asked["judge"] and not checked.checked:
            checked.check(requires=asked["requires"], holds=asked["holds"])
    finally:
        try:
            stage.close()
        except LeasecheckError:
            runtime.lanes.drop(known.subject)
        if not asked["judge"]:
            shutil.rmtree(folder, ignore_errors=True)


def scenario_player(
    request: pytest.FixtureRequest, subject: object
) -> Callable[[str | Scenario], Verdict]:
    """What `leasecheck_scenario` is: plays a scenario by id, or one that is given."""
    from .mount import play

    item = request.node

    def play_scenario(which: str | Scenario) -> Verdict:
        """Play and judge; several in one test add up."""
        with in_words():
            runtime = runtime_of(request.config)
            known = (
                subject if isinstance(subject, Named) else named(subject, folders=runtime.folders)
            )
            scenario = which if isinstance(which, Scenario) else by_id(which, request.config)
            check_moments(scenario.requires)
        earlier = from_properties(item.user_properties)
        _forget_properties(item)
        try:
            with in_words():
                return play(scenario, item, runtime, subject=known)
        except Unproven as unproven:
            raise pytest.fail.Exception(str(unproven), pytrace=False) from None
        finally:
            played = from_properties(item.user_properties)
            if earlier is not None:
                _forget_properties(item)
                both = together(earlier, played) if played is not None else earlier
                item.user_properties += to_properties(both)

    return play_scenario


def _forget_properties(item: pytest.Item) -> None:
    item.user_properties[:] = [
        pair for pair in item.user_properties if not pair[0].startswith("leasecheck.")
    ]


def marked(item: pytest.Item) -> dict[str, Any]:
    """What the marks say about a test, the closest one last. Raises `pytest.UsageError`."""
    given: dict[str, Any] = {
        "subject": None,
        "judge": True,
        "requires": (),
        "holds": ALL_INVARIANTS,
    }
    for mark in reversed(list(item.iter_markers("leasecheck"))):
        unknown = sorted(set(mark.kwargs) - set(given))
        if unknown or mark.args:
            what = unknown[0] if unknown else repr(mark.args[0])
            raise pytest.UsageError(
                f"@pytest.mark.leasecheck knows {', '.join(f'{name}=' for name in given)},"
                f" not {what}"
            )
        given.update(mark.kwargs)
    for name in ("requires", "holds"):
        if isinstance(given[name], str):
            given[name] = (given[name],)
    check_moments(given["requires"])
    return given


def check_moments(requires: Collection[str]) -> None:
    """Refuse a moment that there is none of. Raises `pytest.UsageError`."""
    from .testkit.moments import parse_moment

    for moment in requires:
        try:
            parse_moment(moment)
        except ValueError as error:
            raise pytest.UsageError(f"@pytest.mark.leasecheck(requires=...): {error}") from None
