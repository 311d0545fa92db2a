"""What a scenario's own checks look at in a history, and how they say what they found.

The general invariants judge every history alike; these helpers serve the promises that only one
story can show: a sequence of events, a row that must not have moved, a word that came back.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any, Final

from pytest_leasecheck.testkit.history import Acted, Commit, History, Returned
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lives import label
from pytest_leasecheck.testkit.verdict import Finding, Verdict

#: What `Scenario.also` holds.
Check = Callable[[History, Verdict], tuple[Finding, ...]]
#: Tables as they stand: rows by key.
Tables = dict[str, dict[tuple[Any, ...], dict[str, Any]]]

#: The number in front of a finding that is a scenario's own, and not one of V1 to V11.
OWN: Final = "own"


def broken(promise: str, text: str, *, at: tuple[int, ...] = (), run_id: str = "") -> Finding:
    """The finding that a promise was not kept."""
    return Finding(OWN, promise, text, run_id, "", (), at)


def limit(what: str, text: str, *, at: tuple[int, ...] = ()) -> Finding:
    """The note that a limit showed itself: named, and no fault."""
    return Finding(OWN, what, text, "", "", (), at, "note")


def tables_after(history: History, n: int | None = None) -> Tables:
    """The declared tables after event `n` (at the end, when it is None)."""
    tables: Tables = {
        table: {key: dict(row) for key, row in rows.items()}
        for table, rows in history.header.tables.items()
    }
    for event in history.events:
        if n is not None and event.n > n:
            break
        if not isinstance(event, Commit):
            continue
        for change in event.changes:
            rows = tables.setdefault(change.table, {})
            if change.new is None:
                rows.pop(change.key, None)
            else:
                rows[change.key] = dict(change.new)
    return tables


def rows_of(history: History, table: str, n: int | None = None) -> list[dict[str, Any]]:
    """The rows of one table after event `n`, in the order of their keys."""
    rows = tables_after(history, n).get(table, {})
    return [rows[key] for key in sorted(rows, key=str)]


def story_of(history: History, run_id: str = "r1", n: int | None = None) -> list[dict[str, Any]]:
    """A run's recorded events in order, each with `kind` and the fields of its body."""
    rows = [row for row in rows_of(history, "events", n) if row["run_id"] == run_id]
    rows.sort(key=lambda row: int(row["seq"]))
    return [{**json.loads(row["body"]), "kind": row["kind"]} for row in rows]


def kinds_of(history: History, run_id: str = "r1", n: int | None = None) -> list[str]:
    """The kinds of a run's recorded events, in order."""
    return [event["kind"] for event in story_of(history, run_id, n)]


def commits_by(history: History, worker: str) -> list[Commit]:
    """What a worker (`A`), or one of its incarnations (`A#2`), committed that changed a row."""
    return [
        event
        for event in history.events
        if isinstance(event, Commit) and event.changes and worker in _names(event.who)
    ]


def returned_by(history: History, worker: str) -> list[Any]:
    """What a worker's passes came back with: the value, or the exception's text."""
    return [
        event.error or _value(event.value)
        for event in history.events
        if isinstance(event, Returned) and worker in _names(event.who)
    ]


def _names(who: str) -> tuple[str, str]:
    return who, label(who)


def acted_at(history: History, text: str, *, nth: int = 1) -> int:
    """The event number at which an action began; 0 when it never did."""
    found = [e.n for e in history.events if isinstance(e, Acted) and e.text == text]
    return found[nth - 1] if len(found) >= nth else 0


def titles_of(history: History) -> list[str]:
    """The titles of everything that all invariants find, whatever the scenario itself holds."""
    return [finding.title for finding in judge(history).findings]


# --- checks that several stories need --------------------------------------------------------


def events_are(*kinds: str, run_id: str = "r1") -> Check:
    """The run's recorded events are exactly these."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        found = kinds_of(history, run_id)
        if found == list(kinds):
            return ()
        return (broken("the events of a run are pinned", f"expected {kinds}, found {found}"),)

    return check


def says(worker: str, *expected: object) -> Check:
    """A worker's passes came back with these values, in order."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        found = returned_by(history, worker)
        if found == list(expected):
            return ()
        text = f"{worker} came back with {found}, not {list(expected)}"
        return (broken("what a call comes back with", text),)

    return check


def writes_nothing(worker: str) -> Check:
    """A worker committed no change."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        found = commits_by(history, worker)
        if not found:
            return ()
        tables = {change.table for commit in found for change in commit.changes}
        text = f"{worker} changed {', '.join(sorted(tables))}"
        return (broken("a refusal changes nothing", text, at=tuple(one.n for one in found)),)

    return check


def ends(status: str, run_id: str = "r1") -> Check:
    """The run stands so at the end."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        found = [row["status"] for row in rows_of(history, "runs") if row["run_id"] == run_id]
        if found == [status]:
            return ()
        return (broken("how the run ends", f"run {run_id!r} is {found}, not {status}"),)

    return check


def happens(title: str, why: str) -> Check:
    """A limit, shown and not hidden: the invariants do find this, and the check names it."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        if title in titles_of(history):
            return (limit(title, why),)
        return (broken("a limit is shown", f"{title!r} was to be shown, and was not found"),)

    return check


def decided(*decisions: tuple[str, str], run_id: str = "r1") -> Check:
    """The run's reconciliations are exactly these: outcome and by whom."""

    def check(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
        rows = [row for row in rows_of(history, "reconciliations") if row["run_id"] == run_id]
        rows.sort(key=lambda row: int(row["id"]))
        found = [(row["outcome"], row["decided_by"]) for row in rows]
        if found == list(decisions):
            return ()
        text = f"expected {list(decisions)}, found {found}"
        return (broken("one recorded decision an interruption", text),)

    return check


def _value(text: str) -> Any:
    """A value from its repr where that can be had, else the repr."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
