"""docs/reference/subject.md against the code: every field, default, claim and error in it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_leasecheck.testkit import subject as declared
from pytest_leasecheck.testkit.claims_check import contradictions
from pytest_leasecheck.testkit.declaration_check import check
from pytest_leasecheck.testkit.errors import SubjectError
from pytest_leasecheck.testkit.subject import (
    CAPABILITIES,
    After,
    Beat,
    Counter,
    EffectRows,
    Lease,
    Reconciliations,
    RunTable,
    Steps,
    Subject,
    Writes,
    declaration_of,
)
from pytest_leasecheck.testkit.subject_check import unfit
from pytest_leasecheck.testkit.wrapping import missing_names

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/subject.md").read_text()
PARTS = (RunTable, Lease, After, Beat, Writes, Steps, Reconciliations, EffectRows, Counter)
REQUIRED = object()


def section(title: str) -> str:
    """The text under a heading, up to the next of any level."""
    (found,) = re.findall(rf"^##+ {title}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r" \| ", line[1:-1])] for line in lines[1:]]


def told(title: str) -> dict[str, object]:
    """What a section says of each name: its default, or that it is required."""
    return {
        name.strip("`"): REQUIRED if default == "required" else eval(default.strip("`"), {})
        for name, default, *_ in rows(title)
    }


def default_of(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


def alike(one: object, other: object) -> bool:
    """Equal, or both nothing: `()` for an empty set reads better."""
    if isinstance(one, Collection) and isinstance(other, Collection) and not one and not other:
        return isinstance(one, str) == isinstance(other, str)
    return one == other and type(one) is type(other)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_field_has_a_row_with_its_default(part: type) -> None:
    page = told(part.__name__)
    assert list(page) == [one.name for one in fields(part)]
    for one in fields(part):
        assert alike(page[one.name], default_of(one)), one.name


def test_no_part_of_a_declaration_is_left_out() -> None:
    in_code = {
        name for name, kind in vars(declared).items()
        if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")
        and kind.__module__ == declared.__name__
    }  # fmt: skip
    assert {part.__name__ for part in PARTS} == in_code - {"Declaration"}


def test_each_attribute_of_a_subject_has_a_row_with_its_default() -> None:
    page = told("Subject")
    names = [name for name in inspect.get_annotations(Subject) if not name.startswith("_")]
    assert set(page) == set(names)
    for name in names:
        assert alike(page[name], getattr(Subject, name, REQUIRED)), name


def test_each_method_of_a_subject_has_a_row() -> None:
    page = [row[0].strip("`") for row in rows("Methods")]
    methods = {
        f"{name}({', '.join(list(inspect.signature(function).parameters)[1:])})"
        for name, function in vars(Subject).items()
        if inspect.isfunction(function)
    }
    assert set(page) == methods


def test_each_capability_has_a_row() -> None:
    assert {row[0].strip("`") for row in rows("Capabilities")} == CAPABILITIES


RIGHT = RunTable(
    "jobs", id="id", status="status", terminal={"done"},
    lease=Lease(owner="worker", expires_at="expires_at", token="fence"),
)  # fmt: skip


def said(where: str, written: str) -> list[str]:
    """Everything that is said of a subject in which one thing is written so."""
    names = {part.__name__: part for part in PARTS}
    given = eval(f"dict({written})", names)
    if where == "RunTable":
        given = {"runs": replace(RIGHT, **given)}
    elif where == "Lease":
        given = {"runs": replace(RIGHT, lease=replace(RIGHT.lease, **given))}
    mine = type("Mine", (Subject,), {"runs": RIGHT, **given})()
    found = list(unfit(mine))
    found = found or [*contradictions(declaration_of(mine)), *missing_names(mine)]
    try:
        check(declaration_of(mine), re.findall(r"^CREATE .*;$", PAGE, re.MULTILINE))
    except SubjectError as error:
        found = found or list(error.problems)
    except (TypeError, AttributeError):  # what is told above comes first
        assert found
    return [str(one) for one in found]


@pytest.mark.parametrize("row", rows("Wrong, and what is said"), ids=lambda row: row[1].strip("`"))
def test_each_mistake_is_answered_as_the_page_says(row: list[str]) -> None:
    where, written, answer = (cell.strip("`") for cell in row)
    assert said(where, written) == [answer]


def test_what_is_right_is_not_complained_of() -> None:
    assert said("Subject", "") == []
