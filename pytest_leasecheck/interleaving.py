"""`leasecheck/interleave::…`: every interleaving of two workers with few preemptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from .exploration import Progress, record_of, seed_of
from .failure import Unproven
from .mount import ScenarioItem
from .playing import Result, free_scenario
from .suite import Group
from .tally import to_properties
from .testkit.errors import LeasecheckError
from .testkit.scenario import Scenario

INTERLEAVE: Final = "interleave"
PROPERTY: Final = "leasecheck.interleaved"
#: Schedules that are played before random priorities take over.
BUDGET: Final = 1_000
_PLAIN: Final = "submit run-1\nspawn A\nrun A\nheal\ndrain\n"
_EXPIRING: Final = "expiring"


def interleave_group() -> Group:
    """The group with its two items."""
    told = "Two workers, every interleaving of their transactions and effects with at most two"
    scenarios = (
        Scenario("claims", f"{told} preemptions.", _PLAIN, ()),
        Scenario(_EXPIRING, f"{told} preemptions; leases expire at the first.", _PLAIN, ()),
    )
    return Group(INTERLEAVE, scenarios, item=_item)


def _item(parent: pytest.Collector, scenario: Scenario) -> pytest.Item:
    return InterleaveItem.from_parent(parent, name=scenario.name, scenario=scenario)


class InterleaveItem(ScenarioItem):
    """One search."""

    def runtest(self) -> None:
        """Search to the bound, or as far as the budget goes. Raises what was found."""
        from .searching import search_of
        from .testkit.interleave import search

        whole = search_of(self.config)
        runtime, subject = self.runtime, self.runtime.subject
        progress = Progress(self.config)

        def told(played: int, left: int) -> None:
            progress.maybe(f"{self.name}: {played} schedules played, {left} known and waiting")

        try:
            searched = search(
                whole.lanes.lane_for(subject.subject),
                expiring=self.name == _EXPIRING,
                budget=BUDGET,
                seed=seed_of(self.config),
                told=told,
            )
        except LeasecheckError as error:
            whole.lanes.drop(subject.subject)
            pytest.fail(str(error), pytrace=False)
        self.user_properties.append((PROPERTY, f"{self.name}: {searched}"))
        if searched.found is None:
            record = record_of(subject, searched.tally)
            self.user_properties += to_properties(record)
            return
        judged = searched.found
        folder = runtime.evidence.fresh(self.nodeid)
        scenario = free_scenario(self.name, requires=(), holds=None)
        result = whole.player.keep(
            Result(folder, subject, scenario, judged.script, judged.history, judged.verdict)
        )
        record = record_of(subject, searched.tally)
        found = replace(result.record, counts=record.counts, refused=record.refused)
        self.user_properties += to_properties(found)
        raise Unproven(result, base=self.config.invocation_params.dir)
