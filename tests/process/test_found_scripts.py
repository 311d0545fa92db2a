"""Scripts that random search found, each of which once made an honest run look guilty."""

from pathlib import Path

import pytest

from pytest_leasecheck.scenarios.reference_subject import ReferenceSubject
from pytest_leasecheck.testkit.history import ClockRead
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.script import parse_script

#: A renewal whose time is bound is held, and prepared anew by SQLite after the lease has lapsed.
RENEWAL_PREPARED_ANEW = """
    submit r1
    provider delay-request *
    spawn C
    hold C txn:begin#6 before
    run C
    spawn B
    hold B txn:begin#3 after
    run B
    spawn A
    hold A sql:SELECT runs#9 before
    run A
    advance 31s
    approve r1
    expire
    expire
    stop C
    hold A effect:charge after
    run A
    lock
    heal
    drain
"""

#: An outcome is recorded at the very instant of the lease's expiry, and at it a rival takes over.
OUTCOME_AT_THE_EXPIRY = """
    submit r1
    spawn A
    until A txn:begin#6 before
    stop A
    advance 30s
    cont A
    until A txn:begin before
    spawn B
    run B
    heal
    drain
"""


@pytest.fixture
def lane(tmp_path: Path):
    with Lane(ReferenceSubject, options=LaneOptions(folder=tmp_path)) as lane:
        yield lane


def test_renewal_that_is_prepared_anew_has_not_looked_at_the_clock(lane):
    played = lane.play(parse_script(RENEWAL_PREPARED_ANEW), name="anew")
    assert played.error is None
    beats = [
        event.value_ns - played.history.header.start_ns
        for event in played.history
        if isinstance(event, ClockRead) and "heartbeat" in event.thread and event.who == "C#1"
    ]
    assert beats == [10 * 10**9], "it read its clock once, when it was due"
    verdict = judge(played.history)
    assert [one.title for one in verdict.findings if one.severity == "fault"] == []


def test_an_outcome_recorded_at_the_very_expiry_does_not_say_that_the_lease_was_live(lane):
    played = lane.play(parse_script(OUTCOME_AT_THE_EXPIRY), name="edge")
    assert played.error is None
    verdict = judge(played.history, requires=("take-over",))
    assert verdict.outcome == "pass", verdict.findings
