"""Whether two histories tell the same but for ids that were drawn at random."""

from __future__ import annotations

import uuid

import pytest

from pytest_leasecheck.testkit.history import Change
from pytest_leasecheck.testkit.renaming import Renaming

ONE, OTHER, THIRD = (str(uuid.UUID(int=number << 64 | 0xABC)) for number in (7, 8, 9))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"INSERT INTO t VALUES ('{ONE}', 1)", f"INSERT INTO t VALUES ('{OTHER}', 1)"),
        ("exec_01HZX3V9K2", "exec_01HZX3V9QW"),
        (uuid.UUID(ONE).bytes, uuid.UUID(OTHER).bytes),
        ({"id": ONE, "parent": None}, {"id": OTHER, "parent": None}),
        (Change("t", (ONE,), None, {"id": ONE}), Change("t", (OTHER,), None, {"id": OTHER})),
    ],
    ids=["uuid in SQL", "letters and digits", "bytes", "row", "change"],
)
def test_drawn_ids_stand_for_each_other(one: object, other: object) -> None:
    assert Renaming().same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1.0, 1),
        ("done", "lost"),
        ("finished", "executed"),
        ("2030-01-01T00:00:00", "2030-01-02T00:00:00"),
        ("at 1893456000123", "at 1893456000124"),
        (f"{ONE}x", OTHER),
        (f"'{ONE}', 'paid'", f"'{OTHER}', 'lost'"),
        ({"id": ONE}, {"key": ONE}),
        ([ONE], [OTHER, OTHER]),
        (b"no", b"on"),
    ],
    ids=str,
)
def test_whatever_else_differs_is_a_difference(one: object, other: object) -> None:
    assert not Renaming().same(one, other)


def test_one_id_stands_for_one_other_all_along() -> None:
    renaming = Renaming()
    assert renaming.same((ONE, ONE), (OTHER, OTHER))
    assert not renaming.same(ONE, THIRD)
    assert not renaming.same(THIRD, OTHER)
    assert renaming.same(f"again {ONE}", f"again {OTHER}")


def test_an_id_that_was_the_same_in_both_can_not_be_renamed_later() -> None:
    renaming = Renaming()
    assert renaming.same((ONE, "run-1"), (ONE, "run-1"))
    assert not renaming.same(ONE, OTHER)
