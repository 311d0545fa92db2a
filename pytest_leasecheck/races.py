"""`races(MySubject)` in a module of one's own: its tally in the summary, and its progress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .exploration import Progress, note, of_search, record_of, say_so_far
from .failure import replay_command
from .fixtures import in_words
from .playing import Result, free_scenario
from .runtime import runtime_of
from .subjects import named
from .tally import to_properties
from .testkit.found import Inconclusive, RaceFound, Tally

if TYPE_CHECKING:
    from .testkit.exploring import Explorer


class RacesWatch:
    """Watches the tests that `Races` make, wherever they are collected."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Say how far a search is, and note what came of it."""
        machine = _machine_of(item)
        if machine is None:
            return (yield)
        progress = Progress(item.config)
        seen = Tally()

        def told(tally: Tally) -> None:
            nonlocal seen
            seen = tally
            progress.tell(f"{item.name}: explored {tally.scripts} scripts", tally)

        machine.listeners.append(told)
        try:
            result = yield
        except KeyboardInterrupt:
            say_so_far(progress, seen, None)
            raise
        finally:
            machine.listeners.remove(told)
        if seen.scripts:
            with in_words():
                _note(item, machine, seen)
        return result


def _machine_of(item: pytest.Item) -> type[Explorer] | None:
    from .testkit.exploring import Explorer

    machine = getattr(getattr(item, "cls", None), "races", None)
    return machine if isinstance(machine, type) and issubclass(machine, Explorer) else None


def _note(item: pytest.Item, machine: type[Explorer], tally: Tally) -> None:
    """What a search did, and what it showed, as properties of its test."""
    runtime = runtime_of(item.config)
    subject = named(machine.subject, folders=runtime.folders)
    note(item, tally, None)
    if isinstance(tally.error, RaceFound):
        judged = tally.error.judged
        scenario = free_scenario(item.name, requires=(), holds=None)
        folder = runtime.evidence.fresh(item.nodeid)
        result = runtime.player.keep(
            Result(folder, subject, scenario, judged.script, judged.history, judged.verdict)
        )
        item.user_properties += to_properties(of_search(result.record, tally))
        command = replay_command(result, base=item.config.invocation_params.dir)
        # What only a check of one's own refuses is not judged by a replay: see "as Python".
        if command and judged.kinds - judged.own:
            item.add_report_section("call", "replay", command)
    elif tally.done or isinstance(tally.error, Inconclusive):
        missing = str(tally.error or "")
        item.user_properties += to_properties(record_of(subject, tally, missing=missing))
