"""Where a script says `{danger}`, the subject's own point stands."""

from pytest_leasecheck.testkit.scenario import Scenario
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject

SCENARIO = Scenario(
    name="three",
    story="",
    script="""
        spawn A
        until A {danger}
        until A {danger_after}
        until A {long_call}
        advance {half_ttl}
    """,
    requires=(),
)


class Plain(Subject):
    runs = RunTable("jobs", id="id", terminal={"done"}, status="status", lease=Lease("owner"))
    lease_ttl_ms = 5_000


class Particular(Plain):
    danger = "call:theirs.store:Store.commit before"
    danger_after = "txn:commit#3 after"
    long_call = "sleeping"


def told(subject: Subject) -> list[str]:
    return str(SCENARIO.script_for(subject)).splitlines()[1:]


def test_points_that_nobody_declared_are_those_of_effects() -> None:
    assert told(Plain()) == [
        "until A effect:* before",
        "until A effect:* after",
        "until A effect:* before",
        "advance 2500ms",
    ]


class OwnPoint(Plain):
    danger = "halfway before"


def test_a_point_of_the_code_itself_has_no_after() -> None:
    assert told(OwnPoint())[:2] == ["until A halfway before", "until A effect:* after"]


def test_points_of_the_subjects_own() -> None:
    assert told(Particular()) == [
        "until A call:theirs.store:Store.commit before",
        "until A txn:commit#3 after",
        "until A sleeping before",
        "advance 2500ms",
    ]
