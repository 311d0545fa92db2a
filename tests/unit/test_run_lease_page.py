"""The table of promises can't rot: whatever it names exists, and every scenario is in it."""

import importlib
import pkgutil
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import reduce
from pathlib import Path

import pytest

from pytest_leasecheck import scenarios
from pytest_leasecheck.scenarios import limits
from pytest_leasecheck.scenarios.reference_subject import ReferenceSubject
from pytest_leasecheck.testkit.script import parse_script

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "reference" / "run-lease.md"
COLUMNS = ("promise", "seed", "code", "scenario", "mutant")


@dataclass(frozen=True, slots=True)
class Promise:
    """One row: its line on the page, its text, and the names in its columns."""

    line: int
    text: str
    seed: str
    code: tuple[str, ...]
    scenarios: tuple[str, ...]
    mutants: tuple[str, ...]


def names_in(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def promises() -> list[Promise]:
    found = []
    for number, line in enumerate(PAGE.read_text().splitlines(), start=1):
        if not line.startswith("|") or line.startswith(("|---", "| promise |", "| limit |")):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == len(COLUMNS), f"line {number} has {len(cells)} cells"
        text, seed, code, scenario, mutant = cells
        found.append(
            Promise(number, text, seed, names_in(code), names_in(scenario), names_in(mutant))
        )
        assert names_in(mutant) or mutant == "-", f"line {number}: no mutant is written '-'"
    return found


PROMISES = promises()
IDS = [f"line {one.line}" for one in PROMISES]


def known_scenarios() -> set[str]:
    found = set()
    for module in pkgutil.iter_modules(scenarios.__path__):
        told = importlib.import_module(f"{scenarios.__name__}.{module.name}")
        found |= {f"{module.name}/{one.name}" for one in getattr(told, "SCENARIOS", ())}
    return found


KNOWN = known_scenarios()
MUTANTS = "".join(file.read_text() for file in sorted((PROJECT / "tests" / "mutants").glob("*.py")))


@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
def test_row_is_complete_and_its_names_exist(promise):
    assert promise.text
    assert re.match(r"[12] \w", promise.seed)
    assert promise.code
    for name in promise.code:
        module, _, path = name.partition(".")
        found = importlib.import_module(f"pytest_leasecheck.testkit.reference.{module}")
        assert reduce(getattr, path.split("."), found) is not None
    assert promise.scenarios
    for name in promise.scenarios:
        file, _, test = name.partition("::")
        if test:
            assert f"def {test}(" in (PROJECT / file).read_text()
        else:
            assert [one for one in KNOWN if fnmatchcase(one, name)], f"no scenario {name}"


@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
def test_mutants_of_a_row_exist(promise):
    missing = [name for name in promise.mutants if f'"{name}"' not in MUTANTS]
    assert not missing


def test_every_scenario_has_a_row():
    told = [name for promise in PROMISES for name in promise.scenarios]
    missing = [one for one in sorted(KNOWN) if not any(fnmatchcase(one, name) for name in told)]
    assert not missing


def test_a_promise_is_told_once():
    texts = [promise.text for promise in PROMISES]
    assert len(texts) == len(set(texts))


def test_script_on_the_page_about_the_window_is_the_scenario_s():
    page = (PROJECT / "docs" / "explanation" / "window-of-a-fence.md").read_text()
    (script,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    (scenario,) = [one for one in limits.SCENARIOS if one.name == "checked_and_then_overtaken"]
    assert parse_script(script) == scenario.script_for(ReferenceSubject())
    for file, name in re.findall(r"leasecheck/(\w+)::(\w+)", page):
        assert f"{file}/{name}" in KNOWN
