"""Local times mean the same wherever a history is read."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pytest_leasecheck.testkit import scratch
from pytest_leasecheck.testkit.clock import START_NS
from pytest_leasecheck.testkit.declaration_json import declaration_from_json, declaration_to_json
from pytest_leasecheck.testkit.rows import Reader, read_time
from pytest_leasecheck.testkit.subject import Subject, declaration_of
from pytest_leasecheck.testkit.zone import STAGES_S, Offset, since_1970_s, zone_here

from .oracle.builder import PLAIN, declare

NAMES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC",
         "<-03>3")  # fmt: skip


class Utc(Subject):
    runs = PLAIN.runs


class Local(Subject):
    runs = declare(PLAIN, unit="local iso").runs


@pytest.fixture
def move_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Move this machine to another zone."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()
        read_time.cache_clear()

    yield move
    monkeypatch.undo()
    time.tzset()
    read_time.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_offsets_say_what_the_machine_says(name: str, move_to: Callable[[str], None]) -> None:
    move_to(name)
    zone = zone_here()
    local = datetime(2029, 1, 2)
    while local < datetime(2031, 12, 1):  # every hour that comes twice, or never, is among them
        seconds = round(local.timestamp())
        if datetime.fromtimestamp(seconds) == local:
            assert since_1970_s(local, zone) == seconds, local
        else:  # it never comes
            assert since_1970_s(local, zone) in {one.since_s for one in zone}, local
        local += timedelta(minutes=15)


def test_offsets_are_few_and_change_to_the_second(move_to: Callable[[str], None]) -> None:
    move_to("Europe/Berlin")
    zone = zone_here()
    spring = datetime(2030, 3, 31, 1, tzinfo=UTC)
    assert Offset(round(spring.timestamp()), 7200) in zone
    assert len(zone) < 24


def test_what_was_recorded_in_one_zone_is_read_alike_in_another(
    move_to: Callable[[str], None],
) -> None:
    move_to("Europe/Berlin")
    declaration = declaration_of(Local())
    row = {"id": "r1", "owner": "A", "expires": "2030-01-01T01:00:30.5"}
    expected = START_NS + 30_500_000_000
    carried = declaration_from_json(declaration_to_json(declaration))
    for name in NAMES:
        move_to(name)
        expiry = Reader(carried).expiry(row, {})
        assert expiry is not None
        assert expiry.at_ns == expected, name


def test_only_local_times_need_a_zone() -> None:
    assert declaration_of(Utc()).zone == ()
    assert declaration_of(Local()).zone == zone_here()


def test_stages_begin_where_the_clock_says() -> None:
    assert STAGES_S * 10**9 == START_NS


def test_history_from_before_there_were_zones_is_read_as_this_machine_keeps_time(
    move_to: Callable[[str], None],
) -> None:
    told = declaration_to_json(declare(PLAIN, unit="local iso"))
    del told["zone"]
    declaration = declaration_from_json(told)
    row = {"id": "r1", "owner": "A", "expires": "2030-01-01T01:00:30"}
    move_to("Europe/Berlin")
    expiry = Reader(declaration).expiry(row, {})
    assert expiry is not None
    assert expiry.at_ns == START_NS + 30_000_000_000
    assert replace(declaration, zone=zone_here()) != declaration


def test_statement_that_is_asked_again_has_the_local_time_of_then(
    move_to: Callable[[str], None],
) -> None:
    move_to("Europe/Berlin")
    zone = zone_here()
    move_to("Asia/Kolkata")
    connection = scratch.empty([], at_ns=START_NS, zone=zone)
    (local,) = connection.execute("SELECT datetime('now', 'localtime')").fetchone()
    (back,) = connection.execute("SELECT datetime(?, 'utc')", (local,)).fetchone()
    connection.close()
    assert (local, back) == ("2030-01-01 01:00:00", "2030-01-01 00:00:00")
