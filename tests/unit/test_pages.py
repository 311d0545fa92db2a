"""README and docs as files: the two lines, the length, and links that lead somewhere."""

import re
from pathlib import Path
from typing import get_args

import pytest

from pytest_leasecheck.testkit.script import Action

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
# To a file of the project: neither `scheme:...` nor a heading of the same page.
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing


def test_readme_is_short_and_has_the_two_lines() -> None:
    lines = (PROJECT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    # .ci/run runs these, in this order, in a fresh environment.
    assert [line.split(" && ")[-1] for line in lines if line.startswith("python3 -m venv")] == [
        ".venv/bin/pytest --leasecheck --leasecheck-subject=reference leasecheck",
        ".venv/bin/pytest -n auto",
    ]


def test_reference_has_a_row_for_each_action() -> None:
    page = (PROJECT / "docs" / "reference" / "script.md").read_text()
    documented = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    in_code = {(action.__doc__ or "").split("`")[1] for action in get_args(Action)}
    assert documented == in_code


def test_reference_has_a_row_for_each_option() -> None:
    page = (PROJECT / "docs" / "reference" / "options.md").read_text()
    documented = set(re.findall(r"^\| `(--leasecheck[a-z-]*)", page, flags=re.MULTILINE))
    plugin = (PROJECT / "pytest_leasecheck" / "plugin.py").read_text()
    assert documented == set(re.findall(r'"(--leasecheck[a-z-]*)",$', plugin, flags=re.MULTILINE))
