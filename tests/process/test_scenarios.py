"""Every scenario with real processes on the reference: it holds, and its danger came about.

Then with one guard of the reference taken out: the scenario that is there for it fails.
"""

import importlib
import json
import operator
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import subjects_weakened

from pytest_leasecheck import scenarios
from pytest_leasecheck.scenarios.reference_subject import VARIANTS, ReferenceSubject
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.script import Drain
from pytest_leasecheck.testkit.verdict import Verdict


def all_scenarios() -> dict[str, Scenario]:
    """Every scenario that ships, as `file/name`."""
    found = {}
    for module in pkgutil.iter_modules(scenarios.__path__):
        imported = importlib.import_module(f"{scenarios.__name__}.{module.name}")
        for scenario in getattr(imported, "SCENARIOS", ()):
            found[f"{module.name}/{scenario.name}"] = scenario
    return found


ALL = all_scenarios()
#: Those of one variant after the other, so that one lane serves them all.
ORDER = sorted(ALL, key=lambda name: (ALL[name].variant, name))


class Lanes:
    """One lane at a time, for the subject that was asked for last."""

    def __init__(self, folder: Any) -> None:
        self._folder = folder
        self._subject = ""
        self._lane: Lane | None = None

    def lane_for(self, subject: str) -> Lane:
        if self._lane is None or self._subject != subject:
            self.close()
            self._lane = Lane(subject, options=LaneOptions(folder=self._folder))
            self._subject = subject
        return self._lane

    def close(self) -> None:
        if self._lane is not None:
            self._lane.close()
        self._lane = None


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    made = Lanes(tmp_path_factory.mktemp("logs"))
    yield made
    made.close()


def subject_of(scenario: Scenario) -> str:
    """The name of the reference's variant that a scenario plays on."""
    if scenario.variant:
        return ReferenceSubject.variants[scenario.variant]
    return f"{ReferenceSubject.__module__}:{ReferenceSubject.__qualname__}"


def verdict_of(lane: Lane, scenario: Scenario) -> Verdict:
    """Play and judge, with the scenario's own checks; what could not be carried out is an error."""
    script = scenario.script_for(lane.subject)
    played = lane.play(script, name=scenario.name)
    if played.error is not None:
        raise played.error
    verdict = judge(
        played.history,
        requires=scenario.requires,
        holds=scenario.holds,
        drained=any(isinstance(action, Drain) for action in script.actions),
    )
    own = tuple(finding for check in scenario.also for finding in check(played.history, verdict))
    if any(finding.severity == "fault" for finding in own):
        verdict = replace(verdict, outcome="fail")
    return replace(verdict, findings=(*verdict.findings, *own))


@pytest.mark.parametrize("name", ORDER)
def test_scenario_holds_on_the_reference_and_its_danger_came_about(name, lanes):
    scenario = ALL[name]
    verdict = verdict_of(lanes.lane_for(subject_of(scenario)), scenario)
    told = [f"{one.severity}: {one.title}: {one.text}" for one in verdict.findings]
    assert verdict.outcome == "pass", (told, verdict.missing)


def test_every_variant_is_played():
    assert {scenario.variant for scenario in ALL.values()} - {""} == set(VARIANTS)


def test_every_scenario_proves_something():
    """A scenario without a required moment must have a check of its own."""
    idle = [name for name, one in ALL.items() if not one.requires and not one.also]
    assert not idle


# --- with one guard taken out -----------------------------------------------------------------

_KIT = "pytest_leasecheck.testkit.reference"
_CLOCKED = "lease_expires_at_ms + :ttl_ms"
#: The guard's module and name, what stands in for it, and the scenario that then fails.
BROKEN: list[tuple[str, str, object, str]] = [
    ("guards", "RENEW_HOLDER", "1", "heartbeat/finds_another_owner"),
    ("guards", "RENEW_HOLDER", "1", "heartbeat/delayed_beat_steals_nothing_back"),
    ("guards", "RENEW_UNEXPIRED", "1", "heartbeat/expired_lease_is_not_revived"),
    ("guards", "RENEW_EXPIRY", _CLOCKED, "heartbeat/call_longer_than_three_leases"),
    ("guards", "RELEASE_HOLDER", "1", "losing/loser_releases_nothing"),
    ("guards", "NEXT_TOKEN", "fencing_token", "takeover/dead_owner_is_replaced"),
    (
        "guards",
        "RELEASED",
        "lease_owner = NULL, fencing_token = 0",
        "takeover/released_lease_is_just_taken",
    ),
    ("guards", "TOOL_START_HOLDER", "1", "losing/stops_before_its_next_tool_call"),
    ("guards", "TOOL_START_UNEXPIRED", "1", "losing/stalled_past_expiry_starts_no_tool"),
    ("guards", "MODEL_START_HOLDER", "1", "losing/stops_before_its_next_model_call"),
    ("guards", "MODEL_START_UNEXPIRED", "1", "losing/stalled_past_expiry_starts_no_model_call"),
    ("guards", "OUTCOME_HOLDER", "1", "limits/checked_and_then_overtaken"),
    ("guards", "FINISH_UNEXPIRED", "1", "losing/merely_lapsed_does_not_finish"),
    ("guards", "RECONCILE_HOLDER", "1", "interruption/recovery_overtaken"),
    ("guards", "RECONCILE_UNEXPIRED", "1", "interruption/recovery_lapsed"),
    ("guards", "CLAIM_QUEUED", "1", "starting/two_claim_one_queued_run"),
    ("guards", "TAKE_OVER_EXPIRED", "1", "takeover/two_take_over_at_once"),
    ("guards", "RESUME_WAITING", "1", "waiting/two_resumers_race"),
    ("guards", "LATE_RUN", "status = 'CANCELLED'", "cancelling/loser_appends_nothing"),
    ("guards", "EFFECT_HOLDER", "1", "limits/checked_and_then_fenced"),
    ("guards", "EFFECT_UNEXPIRED", "1", "owners/frozen_past_expiry_with_no_rival"),
    ("guards", "SLOT_FREE", "1", "ttl/limit_holds_across_processes"),
    ("guards", "SLOT_HELD", "1", "ttl/slot_of_a_cancelled_call"),
    ("guards", "INSERT_RUN", "INSERT OR REPLACE INTO runs", "starting/two_start_one_id"),
    ("migrations", "GRANT_GRACE", "SELECT :owner, :now_ms, :ttl_ms", "migrating/grace_lease"),
    ("tenure", "validate", "do nothing", "losing/stalled_between_start_and_call"),
    ("driver", "release_lease", "do nothing", "heartbeat/over_with_a_panic"),
    ("store", "immediate", "no transaction", "takeover/killed_at_recording"),
    ("store", "immediate", "no transaction", "waiting/killed_while_resuming"),
    ("rows", "record", "do nothing", "takeover/dead_owner_is_replaced"),
    ("resume", "ask", "do nothing", "interruption/applied_is_recorded"),
    ("resume", "interrupt_steps", "do nothing", "interruption/not_applied_is_retried"),
    ("connection", "harden", "do nothing", "hardening/every_connection_is_hardened"),
    ("store", "network_filesystem", "say no", "limits/network_filesystem"),
    ("tenure", "Tenure.record_late", "say no", "cancelling/cancel_during_a_call"),
    ("migrations", "_is_old", "say no", "migrating/newer_database"),
    ("driver", "checked_ttl_ms", "give it back", "ttl/impossible_ttl"),
    ("heartbeat", "Heartbeat.beat", "do nothing", "heartbeat/call_longer_than_three_leases"),
    ("driver", "Driver.executes", "say no", "leased/driver_does_not_rob_itself_past_expiry"),
]


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file that says which guard is taken out."""
    with pytest.MonkeyPatch.context() as patch:
        file = tmp_path_factory.mktemp("switch") / "without.json"
        patch.setenv(subjects_weakened.SWITCH, str(file))
        yield file


@pytest.mark.parametrize(
    ("module", "guard", "stand_in", "name"),
    sorted(BROKEN, key=lambda row: ALL[row[3]].variant),
    ids=lambda value: str(value) if "/" in str(value) else None,
)
def test_scenario_fails_with_its_guard_taken_out(module, guard, stand_in, name, lanes, switch):
    assert operator.attrgetter(guard)(importlib.import_module(f"{_KIT}.{module}"))
    scenario = ALL[name]
    lane = lanes.lane_for(
        f"{subjects_weakened.__name__}:{subjects_weakened.class_of(scenario.variant)}"
    )
    switch.write_text(json.dumps([module, guard, None]))
    assert verdict_of(lane, scenario).outcome == "pass"
    switch.write_text(json.dumps([module, guard, stand_in]))
    assert verdict_of(lane, scenario).outcome == "fail"
