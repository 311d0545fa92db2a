"""What to declare where a scenario's point was not reached."""

from __future__ import annotations

import pytest

from pytest_leasecheck.testkit.hints import hint_on

DEFAULTS = {
    "danger": "effect:* before", "danger_after": "effect:* after", "long_call": "effect:* before"
}  # fmt: skip
PASSED = (
    "txn:begin#1 before", "txn:begin#1 after", "txn:commit#1 before", "txn:commit#1 after",
    "sql:UPDATE jobs#2 before", "txn:commit#2 before", "txn:commit#2 after",
)  # fmt: skip


@pytest.mark.parametrize(
    ("point", "passed", "told"),
    [
        ("effect:* before", PASSED, 'like danger = "txn:commit#2 before"'),
        ("effect:* after", PASSED, 'like danger_after = "txn:commit#2 after"'),
        ("effect:* before", (*PASSED, "call:lib:charge#1 before"), '"call:lib:charge#1 before"'),
        ("effect:* before", ("start#1 before",), "worker.db, or find no run to claim?"),
        ("effect:* before", (), "worker.db, or find no run to claim?"),
    ],
)
def test_a_place_that_is_declared_is_told_what_else_it_could_be(
    point: str, passed: tuple[str, ...], told: str
) -> None:
    assert told in hint_on(point, passed=passed, **DEFAULTS)


@pytest.mark.parametrize("point", ["inside before", "txn:commit#9 before", ""])
def test_a_point_of_a_tests_own_gets_no_hint(point: str) -> None:
    assert hint_on(point, passed=PASSED, **DEFAULTS) == ""


def test_what_was_declared_is_not_called_a_default() -> None:
    declared = DEFAULTS | {"danger": "call:lib:charge before"}
    told = hint_on("call:lib:charge before", passed=PASSED, **declared)
    assert "the subject's `danger`; this one passes no such point" in told
