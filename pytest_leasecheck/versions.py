"""What a saved script was made with, and whether a replay meets the same."""

from __future__ import annotations

import json
import platform
import sqlite3
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Final

import pytest

from .testkit.lane import kit_version
from .testkit.subject import Subject

MADE_WITH: Final = "# made with: "


def versions(subject: Subject) -> dict[str, str]:
    """Kit, interpreter, SQLite, and the distribution that the subject comes from, if any."""
    found = {
        "pytest-leasecheck": kit_version(),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
    }
    top = type(subject).__module__.partition(".")[0]
    for name in packages_distributions().get(top, ()):
        try:
            found.setdefault(name, version(name))
        except PackageNotFoundError:  # its metadata went while we looked
            continue
    return found


def made_with(subject: Subject) -> str:
    """A comment line for a saved script."""
    return MADE_WITH + "; ".join(f"{name} {what}" for name, what in versions(subject).items())


def saved_versions(file: Path) -> Mapping[str, str]:
    """What a saved script or history says it was made with; empty when it says nothing."""
    try:
        with file.open("rb") as saved:
            lines = [saved.readline(1_000_000).decode("utf-8", "replace") for _ in range(4)]
    except OSError:
        return {}
    if lines[0].startswith("{"):
        return _of_header(lines[0])
    for line in lines:
        if line.startswith(MADE_WITH):
            pairs = (part.rpartition(" ") for part in line.removeprefix(MADE_WITH).split("; "))
            return {name.strip(): what.strip() for name, _, what in pairs}
    beside = file.with_name("history.jsonl")
    return saved_versions(beside) if file != beside and beside.exists() else {}


def _of_header(line: str) -> Mapping[str, str]:
    try:
        header = json.loads(line)
    except ValueError:
        return {}
    names = {"kit": "pytest-leasecheck", "python": "Python", "sqlite": "SQLite"}
    return {name: str(header[key]) for key, name in names.items() if header.get(key)}


def differences(file: Path, subject: Subject) -> str:
    """How what is here differs from what a file was made with; '' when it doesn't."""
    now = versions(subject)
    other = [
        f"{name} {then} then, {now.get(name, 'none')} now"
        for name, then in saved_versions(file).items()
        if now.get(name) != then
    ]
    return f"{file.name} was made with other versions: {'; '.join(other)}" if other else ""


class OtherVersions:
    """Says at the top of a replay's report what differs."""

    def __init__(self, told: str) -> None:
        self._told: Final = told

    def pytest_report_header(self) -> str:
        """The line."""
        return f"leasecheck: {self._told}"


def tell_differences(config: pytest.Config, file: Path, subject: Subject) -> None:
    """Have the report say that a replay meets other versions, if it does."""
    told = differences(file, subject)
    if told:
        config.pluginmanager.register(OtherVersions(told), "leasecheck-versions")
