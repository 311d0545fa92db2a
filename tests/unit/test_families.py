"""Which scripts a map comes to: families, ids, and the sum of what was covered."""

import json
import random

import pytest

from pytest_leasecheck.testkit.errors import NeverReached, StageError
from pytest_leasecheck.testkit.families import (
    CHEAP_POINTS,
    PointMap,
    Recovery,
    map_from_plain,
    map_to_plain,
    story_of,
    variations,
)
from pytest_leasecheck.testkit.points import Pattern, parse_pattern
from pytest_leasecheck.testkit.script import parse_script
from pytest_leasecheck.testkit.subject import Declaration, Lease, RunTable
from pytest_leasecheck.testkit.sweep import coverage_of, outcome_of
from pytest_leasecheck.testkit.verdict import Counts, Verdict


def declared(*capabilities: str, bears_skew_ms: int = 0) -> Declaration:
    return Declaration(
        subject="Queue",
        runs=RunTable("jobs", id="id", lease=Lease(owner="owner")),
        capabilities=frozenset(capabilities),
        bears_skew_ms=bears_skew_ms,
    )


POINTS = tuple(
    parse_pattern(text)
    for text in (
        "txn:begin#1 before", "sql:UPDATE jobs#1 before", "sql:UPDATE jobs#1 after",
        "txn:commit#1 before", "effect:mail#1 before", "effect:mail#1 after",
    )
)  # fmt: skip
MAP = PointMap(
    points=POINTS,
    effects=(Pattern("effect:mail", 1),),
    holding=parse_pattern("txn:commit#1 after"),
    recoveries=(Recovery(POINTS[4], POINTS[:2]),),
)


def names(*capabilities: str, **claims: int) -> list[str]:
    return [one.name for one in variations(MAP, declared(*capabilities, **claims))]


def test_every_point_is_tried_with_every_fault() -> None:
    for family in ("kill", "stale", "stale-while-held", "lapse", "restart", "twin"):
        found = [name for name in names() if name.startswith(f"{family}[")]
        assert len(found) == len(POINTS)
    assert "kill[txn:commit#1-before]" in names()
    assert "kill[sql:UPDATE-jobs#1-after]" in names()
    assert "kill-recovery[effect:mail#1-before,txn:begin#1-before]" in names()
    assert "lose-response[effect:mail#1-before]" in names()


def test_kill_is_the_script_that_the_design_says() -> None:
    (kill,) = (v for v in variations(MAP, declared()) if v.name == "kill[txn:commit#1-before]")
    assert kill.script == parse_script(
        "submit run-1\nspawn A\nuntil A txn:commit#1 before\nkill A\nexpire\nspawn B\nrun B\n"
        "heal\ndrain\n"
    )
    assert kill.moment == "take-over"
    assert story_of(kill).startswith("A is killed there")


@pytest.mark.parametrize(
    ("claims", "prefix"),
    [({"reaps": 1}, "reap["), ({"heartbeats": 1}, "lock["), ({"bears_skew_ms": 500}, "skew[")],
)
def test_what_is_not_claimed_is_not_tried(claims: dict[str, int], prefix: str) -> None:
    assert not [name for name in names() if name.startswith(prefix)]
    given = [name for name in claims if name != "bears_skew_ms"]
    skew = {name: value for name, value in claims.items() if name == "bears_skew_ms"}
    assert [name for name in names(*given, **skew) if name.startswith(prefix)]


def test_nobody_is_met_holding_where_no_recovery_was_seen() -> None:
    bare = PointMap(POINTS)
    assert not [v for v in variations(bare, declared()) if v.family == "stale-while-held"]


def test_ids_are_stable_distinct_and_plain() -> None:
    own = (Pattern("my point::here", 1), Pattern("my point-here", 1), Pattern("a/b", 2))
    found = variations(PointMap((*POINTS, *own)), declared())
    ids = [one.name for one in found]
    assert len(set(ids)) == len(ids)
    assert ids == [one.name for one in variations(PointMap((*POINTS, *own)), declared())]
    assert not [name for name in ids if " " in name or "::" in name or "/" in name]


def test_cheap_part_is_kills_and_stale_workers_around_transactions_and_effects() -> None:
    cheap = [one.name for one in variations(MAP, declared()) if one.cheap]
    around = ("txn:begin#1-before", "txn:commit#1-before", "effect:mail#1-before",
              "effect:mail#1-after")  # fmt: skip
    families = ("kill", "stale", "stale-while-held")
    assert cheap == [f"{family}[{at}]" for family in families for at in around]


def test_cheap_part_of_a_long_run_is_bounded_and_spread() -> None:
    long = PointMap(tuple(Pattern("txn:begin", number) for number in range(1, 1_001)))
    cheap = [one for one in variations(long, declared()) if one.cheap and one.family == "kill"]
    assert len(cheap) <= CHEAP_POINTS
    assert cheap[-1].at > "txn:begin#9"


def test_map_travels_between_processes() -> None:
    plain = json.loads(json.dumps(map_to_plain(MAP)))
    assert map_from_plain(plain) == MAP
    assert map_from_plain(map_to_plain(PointMap(POINTS))) == PointMap(POINTS)


def test_points_that_only_sql_tells_apart_are_counted() -> None:
    assert MAP.unnamed == 4


def verdict(outcome: str, *missing: str) -> Verdict:
    return Verdict(outcome, (), missing, {}, (), (), (), (), Counts())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "judged", "outcome"),
    [
        (None, verdict("pass"), "pass"),
        (None, verdict("fail"), "fail"),
        (None, verdict("inconclusive", "take-over"), "harmless"),
        (None, verdict("inconclusive", "sight of A#1: it wrote nonsense"), "fail"),
        (NeverReached("A#1", "x", state="s", passed=()), verdict("pass"), "unreached"),
        (NeverReached("A#1", "x", state="s", passed=()), verdict("fail"), "fail"),
        (StageError("no"), verdict("pass"), "fail"),
        (None, None, "fail"),
    ],
)
def test_outcome_of_a_variation(error: StageError | None, judged: Verdict, outcome: str) -> None:
    assert outcome_of(error, judged, moment="take-over") == outcome


def test_coverage_counts_points_times_faults() -> None:
    found = list(variations(MAP, declared()))
    random.Random(1).shuffle(found)
    kills = [one for one in found if one.family in ("kill", "twin")]
    told = coverage_of([(kills[0], "unreached"), *((one, "pass") for one in kills[1:])])
    assert (told.scripts, told.points, told.families) == (12, 6, 2)
    assert (told.unreached, told.harmless, told.failed) == (1, 0, 0)
    assert str(told) == "12 scripts: 6 points x 2 faults; 1 never reached, 0 without their danger"
