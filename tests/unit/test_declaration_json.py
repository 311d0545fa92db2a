"""Declarations as plain data: exact both ways, and every damaged field is named."""

import enum
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_leasecheck.testkit.declaration_json import declaration_from_json, declaration_to_json
from pytest_leasecheck.testkit.errors import HistoryError
from pytest_leasecheck.testkit.subject import (
    CAPABILITIES,
    After,
    Beat,
    Counter,
    Declaration,
    EffectRows,
    Lease,
    Reconciliations,
    RunTable,
    Steps,
    Writes,
)

FULL = Declaration(
    subject="TinyQueue",
    runs=RunTable(
        "jobs",
        id=("queue", "id"),
        status="status",
        terminal={"done", 3, "3"},
        waiting=frozenset({"parked"}),
        lease=Lease(
            owner="worker_id",
            held={"status": {"running", 1}},
            expires_at=Beat("workers", key="name", by="worker_id", column="beat", seconds=2.5),
            token="fence",
            generation=("attempts", "age"),
            unit="ms",
        ),
    ),
    writes=(Writes("executions", run="job_id"), Writes("logs", run="pkg.mod:fn", late_ok=True)),
    steps=Steps(
        "steps", "run", ("name", "no"), "status", started={"started"}, finished={"done", "failed"}
    ),
    reconciliations=Reconciliations("decisions", "run", ("name",), "decision"),
    effects=EffectRows("effects", "run", key="key", token="token"),
    counters=(Counter("tasks", "running", most="most"),),
    capabilities=frozenset({"reaps", "cancels"}),
    delivery="exactly-once",
    waits_ok=True,
)


def through_json(declaration: Declaration) -> Declaration:
    return declaration_from_json(json.loads(json.dumps(declaration_to_json(declaration))))


def test_everything_survives() -> None:
    assert through_json(FULL) == FULL


def test_sets_are_sorted_and_numbers_are_not_texts() -> None:
    runs = declaration_to_json(FULL)["runs"]
    assert isinstance(runs, dict)
    assert runs["terminal"] == [3, "3", "done"]
    assert runs["lease"]["expires_at"]["form"] == "beat"
    assert through_json(FULL).runs.terminal == frozenset({3, "3", "done"})


def test_an_expiry_may_be_a_column_a_sum_or_nothing() -> None:
    for expires_at in (None, "until", After("since", 30), After("since", "ttl")):
        lease = replace(FULL.runs.lease, expires_at=expires_at)
        declaration = replace(FULL, runs=replace(FULL.runs, lease=lease))
        assert through_json(declaration) == declaration


def test_an_enumeration_is_what_is_stored() -> None:
    class Status(str, enum.Enum):  # noqa: UP042  its str() is not its value, which is the point
        DONE = "done"

    class Number(enum.IntEnum):
        DONE = 4

    runs = replace(FULL.runs, terminal={Status.DONE, Number.DONE})
    assert json.dumps(declaration_to_json(replace(FULL, runs=runs))["runs"]).count('[4, "done"]')


def test_what_an_older_kit_did_not_know_has_its_default() -> None:
    data = declaration_to_json(FULL)
    del data["lease_ttl_ms"]
    assert declaration_from_json(data).lease_ttl_ms == 30_000


@pytest.mark.parametrize(
    ("path", "value", "where", "what"),
    [
        (("subject",), 3, "declaration.subject", "3 is not of type str"),
        (("runs", "table"), None, "declaration.runs.table", "None is not of type str"),
        (("runs", "colour"), 1, "declaration.runs.colour", "a RunTable has no such field"),
        (("runs", "terminal"), "done", "declaration.runs.terminal", "'done' is not a list"),
        (("runs", "terminal"), [None], "declaration.runs.terminal[0]", "None is not str or int"),
        (("runs", "gone"), 1, "declaration.runs.gone", "1 is not of type bool"),
        (("runs", "id"), 7, "declaration.runs.id", "7 is not str or tuple"),
        (
            ("runs", "lease", "held"),
            {"status": 3},
            "declaration.runs.lease.held.status",
            "3 is not a list",
        ),
        (("runs", "lease", "unit"), "h", "declaration.runs.lease.unit", "'h' is not 's' or 'ms'"),
        (
            ("runs", "lease", "expires_at"),
            {"form": "after", "column": "c"},
            "declaration.runs.lease.expires_at.seconds",
            "is missing",
        ),
        (
            ("runs", "lease", "expires_at"),
            {"column": "c", "seconds": 3},
            "declaration.runs.lease.expires_at",
            "is not str or After or Beat",
        ),
        (("lease_ttl_ms",), 1.5, "declaration.lease_ttl_ms", "1.5 is not of type int"),
        (("writes",), {}, "declaration.writes", "{} is not a list"),
        (("writes",), [3], "declaration.writes[0]", "3 is not a Writes"),
        (("steps", "status"), 1, "declaration.steps.status", "1 is not of type str"),
    ],
)
def test_a_damaged_field_is_named(
    path: tuple[str, ...], value: object, where: str, what: str
) -> None:
    data = json.loads(json.dumps(declaration_to_json(FULL)))
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(HistoryError) as caught:
        declaration_from_json(data)
    (problem,) = caught.value.problems
    assert problem.where == where
    assert what in problem.what


def test_all_damage_is_told_at_once() -> None:
    with pytest.raises(HistoryError) as caught:
        declaration_from_json({"subject": 1, "delivery": 2})
    assert [problem.where for problem in caught.value.problems] == [
        "declaration.subject",
        "declaration.delivery",
        "declaration.runs",
    ]


NAMES = st.text(max_size=5)
VALUES = st.frozensets(st.integers() | NAMES, max_size=4)
LEASES = st.builds(
    Lease,
    owner=st.none() | NAMES,
    held=st.dictionaries(NAMES, VALUES, max_size=3),
    expires_at=st.none()
    | NAMES
    | st.builds(After, NAMES, st.integers() | st.floats(allow_nan=False) | NAMES)
    | st.builds(Beat, NAMES, NAMES, NAMES, NAMES, st.floats(allow_nan=False)),
    token=st.none() | NAMES,
    generation=st.lists(NAMES, max_size=3).map(tuple),
    unit=st.sampled_from([None, "s", "ms", "us", "ns", "iso", "julian"]),
)
DECLARATIONS = st.builds(
    Declaration,
    subject=NAMES,
    runs=st.builds(
        RunTable,
        NAMES,
        NAMES | st.lists(NAMES, max_size=3).map(tuple),
        LEASES,
        terminal=VALUES,
        waiting=VALUES,
    ),
    writes=st.lists(st.builds(Writes, NAMES, NAMES), max_size=2).map(tuple),
    steps=st.none()
    | st.builds(Steps, NAMES, NAMES, st.just(("a",)), NAMES, started=VALUES, finished=VALUES),
    capabilities=st.frozensets(st.sampled_from(sorted(CAPABILITIES))),
    lease_ttl_ms=st.integers(),
)


@given(declaration=DECLARATIONS)
def test_any_declaration_survives(declaration: Declaration) -> None:
    back = declaration_from_json(json.loads(json.dumps(declaration_to_json(declaration))))
    assert back == declaration
    assert declaration_to_json(back) == declaration_to_json(declaration)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            NAMES | st.sampled_from(["form", "table", "id", "lease"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@given(
    field=st.sampled_from(sorted(declaration_to_json(FULL))),
    value=PLAIN,
)
def test_any_damage_is_a_history_error(field: str, value: object) -> None:
    try:
        declaration = declaration_from_json(declaration_to_json(FULL) | {field: value})
    except HistoryError:
        return
    assert declaration_from_json(declaration_to_json(declaration)) == declaration
