"""Claims that contradict one another within a declaration, told before anything is played."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from itertools import combinations
from typing import Final, get_args

from .errors import Problem
from .subject import CAPABILITIES, Declaration, TimeUnit

_DELIVERIES: Final = ("at-least-once", "exactly-once")
_FENCES: Final = ("none", "highest seen")
#: Units of stored times; the last member of the union is None.
_UNITS: Final = frozenset(get_args(get_args(TimeUnit)[0])) | {None}


def contradictions(declaration: Declaration) -> Iterator[Problem]:
    """Everything in the declaration that can't be true whatever the database is."""
    yield from _of_runs(declaration)
    yield from _of_steps(declaration)
    yield from _of_capabilities(declaration)
    yield from _of_choices(declaration)


def _of_runs(declaration: Declaration) -> Iterator[Problem]:
    runs, lease = declaration.runs, declaration.runs.lease
    if not runs.id:
        yield Problem("runs.id", "names no column")
    if lease.owner is None and not lease.held:
        yield Problem("runs.lease", "nothing tells when a row is a lease: give owner, or held")
    if lease.table is None and lease.run is not None:
        yield Problem("runs.lease.run", "is given, but no table that it would be a column of")
    if not runs.terminal and not runs.gone:
        yield Problem("runs.terminal", "no run is ever finished: give terminal, or gone=True")
    for field, values in (("terminal", runs.terminal), ("waiting", runs.waiting)):
        yield from _bare(f"runs.{field}", values)
        if values and runs.status is None:
            yield Problem(f"runs.{field}", "is given, but no status column to find it in")
    for column, held in lease.held.items():
        yield from _bare(f"runs.lease.held.{column}", held)
        if not held:
            yield Problem(f"runs.lease.held.{column}", "is empty: no row could be a lease")
        if column == runs.status and lease.table in (None, runs.table):
            yield from _common("a run can't be leased and {}", held, terminal=runs.terminal)
    yield from _common("a run can't be waiting and {}", runs.waiting, terminal=runs.terminal)


def _of_steps(declaration: Declaration) -> Iterator[Problem]:
    steps = declaration.steps
    if steps is None:
        return
    sets = {
        "started": steps.started, "finished": steps.finished, "interrupted": steps.interrupted
    }  # fmt: skip
    for name, values in sets.items():
        yield from _bare(f"steps.{name}", values)
        if not values and name != "interrupted":
            yield Problem(f"steps.{name}", "is empty")
    for (one, left), (other, right) in combinations(sets.items(), 2):
        both = set(left) & set(right)
        if both:
            shown = ", ".join(sorted(map(repr, both)))
            yield Problem(f"steps.{other}", f"{shown} can't be {one} and {other}")


def _of_capabilities(declaration: Declaration) -> Iterator[Problem]:
    claims, lease = declaration.capabilities, declaration.runs.lease
    effects = declaration.effects
    for claim in sorted(claims - CAPABILITIES):
        near = get_close_matches(claim, CAPABILITIES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(CAPABILITIES))}"
        yield Problem("capabilities", f"{claim!r} is no capability; {hint}")
    needs = {
        "checks_expiry": (lease.expires_at is not None, "an expiry: runs.lease.expires_at"),
        "heartbeats": (lease.expires_at is not None, "an expiry: runs.lease.expires_at"),
        "reaps": (lease.expires_at is not None, "an expiry: runs.lease.expires_at"),
        "reconciles": (
            declaration.steps is not None and declaration.reconciliations is not None,
            "steps and reconciliations: where they are recorded",
        ),
        "asks_approval": (bool(declaration.runs.waiting), "runs.waiting: the statuses of waiting"),
        "fences_effects": (
            effects is not None and (effects.token is not None or lease.token is not None),
            "effects, the table in which an effect is fenced, and a token to fence it by",
        ),
    }
    for claim, (given, what) in needs.items():
        if claim in claims and not given:
            yield Problem("capabilities", f"{claim!r} needs {what}")


def _of_choices(declaration: Declaration) -> Iterator[Problem]:
    lease = declaration.runs.lease
    if lease.unit not in _UNITS:
        known = ", ".join(sorted(unit for unit in _UNITS if unit))
        yield Problem("runs.lease.unit", f"{lease.unit!r} is no unit; known: {known}")
    for name, value, known_values in (
        ("delivery", declaration.delivery, _DELIVERIES),
        ("provider_fence", declaration.provider_fence, _FENCES),
    ):
        if value not in known_values:
            yield Problem(name, f"{value!r} is none of {', '.join(map(repr, known_values))}")
    if declaration.lease_ttl_ms <= 0:
        yield Problem("lease_ttl_ms", f"a lease of {declaration.lease_ttl_ms} ms is no lease")
    if declaration.bears_skew_ms < 0:
        yield Problem("bears_skew_ms", f"{declaration.bears_skew_ms} ms is no amount of skew")


def _bare(where: str, values: Collection[str | int]) -> Iterator[Problem]:
    """A text is a collection of its letters, which nobody ever means."""
    if isinstance(values, (str, bytes)):
        yield Problem(where, f"is the text {values!r}; write {{{values!r}}}")


def _common(
    text: str, values: Collection[str | int], *, terminal: Collection[str | int]
) -> Iterator[Problem]:
    both = set(values) & set(terminal)
    if both and not isinstance(values, str):
        yield Problem("runs.terminal", text.format(", ".join(sorted(map(repr, both)))))
