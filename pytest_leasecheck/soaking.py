"""`leasecheck/soak::free`: many workers and runs under random signals, for a stated time."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from .exploration import Progress, not_judged, seed_of
from .failure import Unproven
from .lanes import Lanes
from .mount import ScenarioItem
from .playing import Player, Result, free_scenario
from .suite import Group
from .tally import Record, to_properties
from .testkit.errors import LeasecheckError
from .testkit.scenario import Scenario
from .testkit.verdict import Counts, Outcome

if TYPE_CHECKING:
    from .subjects import Named
    from .testkit.soak import Soaked

SOAK: Final = "soak"
PROPERTY: Final = "leasecheck.soaked"
_PLAIN: Final = "submit run-1\nspawn A\nrun A\nheal\ndrain\n"
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def soak_group() -> Group:
    """The group with the one item."""
    story = "Many workers race for many runs while random ones are stopped, continued and killed."
    return Group(SOAK, (Scenario("free", story, _PLAIN, ()),), item=_item)


def amount(text: str) -> float | int:
    """A duration like `30s`, `5m`, `500ms` in seconds, or a count of runs like `1000`, as int.

    Raises `ArgumentTypeError`.
    """
    if text.isdecimal() and int(text) > 0:
        return int(text)
    for unit in ("ms", "s", "m", "h"):
        number = text.removesuffix(unit)
        if number != text and number.isdecimal() and int(number) > 0:
            return int(number) * _UNITS[unit]
    raise ArgumentTypeError(f"{text!r} is no duration; write 30s, 5m or 1h, or how many runs")


def _item(parent: pytest.Collector, scenario: Scenario) -> pytest.Item:
    return SoakItem.from_parent(parent, name=scenario.name, scenario=scenario)


_NOTHING_SHOWN: Final = (
    "inconclusive, so not passed: in the whole soak nobody who had lost a run attempted anything,"
    " and no step was interrupted. Give it longer, and see that the subject's lease_ttl_ms is how"
    " long its leases last: the clock jumps by that"
)


class SoakItem(ScenarioItem):
    """One soak."""

    def runtest(self) -> None:
        """Soak for as long as was asked for. Raises what was found."""
        from .testkit.soak import DEADLINE_S, Soaked, soak

        runtime = self.runtime
        subject = runtime.subject
        patient = replace(runtime.settings, deadline_s=DEADLINE_S)
        lanes = Lanes(patient, folder=runtime.evidence.folder)
        progress = Progress(self.config)
        seed = seed_of(self.config)
        soaked = Soaked(seed)

        def told(so_far: Soaked) -> None:
            nonlocal soaked
            soaked = so_far
            line = f"soaked for {so_far.seconds:.0f} s: {so_far}"
            if so_far.doing:
                progress.maybe(f"{line}; {so_far.doing}")
            else:
                progress.line(line)

        try:
            lane = lanes.lane_for(subject.subject)
            asked = runtime.settings.soak or 0.0
            soaked = (
                soak(lane, seconds=0, seed=seed, told=told, runs=asked, rounds=1)
                if isinstance(asked, int)
                else soak(lane, seconds=asked, seed=seed, told=told)
            )
        except LeasecheckError as error:
            pytest.fail(f"after {soaked}: {error}", pytrace=False)
        finally:
            self.user_properties.append((PROPERTY, str(soaked)))
            lanes.close()
        record = _record(subject, soaked)
        if not soaked.failed:
            missing = _missing(soaked)
            outcome: Outcome = "inconclusive" if missing else "pass"
            self.user_properties += to_properties(replace(record, outcome=outcome))
            if missing and not lane.facts.hooks:
                pytest.skip(f"not shown: SQLite's symbols are hidden; {missing}")
            if missing:
                pytest.fail(f"{missing} ({soaked})", pytrace=False)
            return
        judged = soaked.failed[0]
        folder = runtime.evidence.fresh(self.nodeid)
        scenario = free_scenario(self.name, requires=(), holds=None)
        result = Result(folder, subject, scenario, judged.script, judged.history, judged.verdict)
        player = Player(lanes, runtime.evidence, config=self.config, keep=True)
        result = player.keep(result)
        self.user_properties += to_properties(
            replace(result.record, counts=record.counts, refused=record.refused)
        )
        self.add_report_section(
            "call", "soak", f"{soaked}\nWhere signals met the workers does not replay; the saved"
            " history is the evidence: python -m pytest_leasecheck judge|show FILE"
        )  # fmt: skip
        raise Unproven(result, base=self.config.invocation_params.dir)


def _missing(soaked: Soaked) -> str:
    """Why a soak that found nothing proves nothing; empty when it does."""
    if soaked.unseen:
        return f"inconclusive, so not passed: {'; '.join(sorted(soaked.unseen))}"
    return "" if soaked.stale_attempts or soaked.interruptions else _NOTHING_SHOWN


def _record(subject: Named, soaked: Soaked) -> Record:
    """What a soak that found nothing adds to the summary."""
    counts = Counts(
        scripts=soaked.rounds,
        runs=soaked.runs,
        stale_attempts=soaked.stale_attempts,
        interruptions=soaked.interruptions,
        reconciliations=soaked.reconciliations,
    )
    return Record(
        subject.label,
        "pass",
        counts,
        refused=soaked.refused,
        notes=tuple(sorted(soaked.notes)),
        not_claimed=not_judged(subject),
    )
