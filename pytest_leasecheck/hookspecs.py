"""Hooks that a consumer's conftest or plugin may implement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .testkit.history import History
    from .testkit.scenario import Scenario
    from .testkit.verdict import Finding, Verdict


@pytest.hookspec
def pytest_leasecheck_scenarios(config: pytest.Config) -> Sequence[Scenario]:  # type: ignore[empty-body]  # a specification
    """Scenarios to play beside ours; they are mounted as `leasecheck/NAME OF YOUR PLUGIN`.

    Called at configure time, in pytest-xdist's controller and in each of its workers: answer the
    same in all of them.
    """


@pytest.hookspec
def pytest_leasecheck_invariants(  # type: ignore[empty-body]  # a specification
    config: pytest.Config,
) -> Sequence[Callable[[History, Verdict], Sequence[Finding]]]:
    """Invariants to judge beside ours: pure functions from a history and its verdict to findings.

    A finding of severity `fault` fails the test; give it a name of your own (`MINE1`).
    """


@pytest.hookspec
def pytest_leasecheck_history(history: History, verdict: Verdict | None, item: pytest.Item) -> None:
    """See each history once it is judged; `verdict` is None when it could not be.

    Called in the process that played it, before the item passes or fails.
    """
