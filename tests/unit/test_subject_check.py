"""A subject's attributes: all that is wrong with them is told at once, whatever they do."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pytest_leasecheck.subjects import named
from pytest_leasecheck.testkit.errors import SubjectError
from pytest_leasecheck.testkit.subject import Counter, Lease, RunTable, Subject, Writes
from pytest_leasecheck.testkit.subject_check import refuse_unfit, unfit


class Good(Subject):
    runs = RunTable("jobs", id="id", status="status", terminal={"done"}, lease=Lease(owner="who"))
    writes = (Writes("log", run="job"),)
    counters = [Counter("tasks", "busy", most=3)]  # noqa: RUF012  # as consumers write it
    capabilities = {"cancels"}  # noqa: RUF012
    claims = ["mine:claim"]  # noqa: RUF012
    variants = {"old": "mine:Old"}  # noqa: RUF012


def changed(**attributes: Any) -> Subject:
    return type("Changed", (Good,), attributes)()


def test_what_is_as_it_should_be_is_let_through() -> None:
    assert list(unfit(Good())) == []


def deep(_self: object) -> object:
    raise OSError("not today")


@pytest.mark.parametrize(
    "name",
    ["runs", "writes", "capabilities", "clock", "danger", "variants", "lease_ttl_ms", "observer"],
)
@pytest.mark.parametrize("raises", [deep, lambda _self: sys.exit(3), lambda self: self.nothing])
def test_an_attribute_that_raises_is_told_with_its_line(name: str, raises: Any) -> None:
    (problem,) = unfit(changed(**{name: property(raises)}))
    assert problem.where == name
    assert problem.what.startswith("reading it raised ")
    assert "test_subject_check.py:" in problem.what
    with pytest.raises(pytest.UsageError, match=f"(?s)is wrong:.*{name}: reading it raised"):
        named(changed(**{name: property(raises)}))


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"runs": 5}, "runs: 5 is not a RunTable(...)"),
        ({"runs": {"table": "jobs"}}, "runs: {'table': 'jobs'} is not a RunTable(...)"),
        ({"runs": RunTable("jobs", id="id", lease=None)}, "runs.lease: None is not a Lease(...)"),  # type: ignore[arg-type]
        ({"runs": RunTable("jobs", id=7, lease=Lease())}, "runs.id: 7 is not str or tuple"),  # type: ignore[arg-type]
        (
            {"runs": RunTable("jobs", id="id", terminal="done", lease=Lease("who"))},
            "runs.terminal: is the text 'done'; write {'done'}",
        ),
        (
            {"runs": RunTable("jobs", id="id", lease=Lease("who", held={"status": "runs"}))},  # type: ignore[dict-item]
            "runs.lease.held.status: is the text 'runs'; write {'runs'}",
        ),
        (
            {"runs": RunTable("jobs", id="id", lease=Lease("who", generation="tries"))},  # type: ignore[arg-type]
            "runs.lease.generation: is the text 'tries'; write ('tries',)",
        ),
        (
            {"runs": RunTable("jobs", id="id", lease=Lease("who", unit="h"))},  # type: ignore[arg-type]
            "runs.lease.unit: 'h' is not 's' or 'ms' or 'us' or 'ns' or 'iso'",
        ),
        ({"writes": None}, "writes: None is not a list of Writes(...)"),
        ({"writes": Writes("log", run="job")}, "is not a list of Writes(...)"),
        ({"writes": (one for one in ())}, "is not a list of Writes(...)"),
        ({"writes": ["log"]}, "writes[0]: 'log' is not a Writes(...)"),
        ({"steps": Writes("log", run="job")}, "is not a Steps(...)"),
        ({"capabilities": None}, "capabilities: None is not a list"),
        ({"capabilities": "cancels"}, "capabilities: is the text 'cancels'; write ['cancels']"),
        ({"capabilities": {object}}, "capabilities: TypeError: a declaration can't hold"),
        ({"claims": "mine:claim"}, "claims: is the text 'mine:claim'; write ['mine:claim']"),
        ({"danger": 5}, "danger: 5 is not of type str"),
        ({"clock": "sundial"}, "clock: 'sundial' is none of 'given', 'patched', 'wall'"),
        ({"observer": True}, "observer: True is none of 'kept', 'brief'"),
        ({"variants": ["old"]}, "variants: ['old'] is not a mapping"),
        ({"variants": {"old": 5}}, "variants.old: 5 is not of type str"),
        ({"lease_ttl_ms": "30"}, "lease_ttl_ms: '30' is not of type int"),
    ],
)
def test_an_attribute_of_another_kind_is_told(attributes: dict[str, Any], told: str) -> None:
    with pytest.raises(SubjectError) as caught:
        refuse_unfit(changed(**attributes))
    assert told in str(caught.value)
    with pytest.raises(pytest.UsageError):
        named(changed(**attributes))


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(pytest.UsageError) as caught:
        named(changed(danger=1, clock=2, writes=3))
    assert [name for name in ("danger", "clock", "writes") if f"  {name}: " in str(caught.value)] \
        == ["danger", "clock", "writes"]  # fmt: skip
