"""How a plain run was understood, commit by commit: what `--leasecheck-explain` prints.

A declaration that is slightly wrong makes wrong verdicts, or none. This page lets its author see
what the kit made of each commit, which changes it gave no meaning to, and what it left aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from . import history as h
from .declaration_check import names_of, unexplained
from .declaration_json import declaration_from_json
from .errors import Problem, SubjectError
from .evidence_rows import leases_of
from .ownership import fold
from .subject import Declaration
from .verdict import Act, Tenure

_MOST_OF_A_VALUE: Final = 48
_NS_A_MS: Final = 1_000_000
_TIME: Final = "%Y-%m-%d %H:%M:%S"
#: What the acts are called in a sentence; the others by their own names.
_WORDS: Final[Mapping[str, str]] = {
    "submit": "enqueues",
    "acquire": "takes the lease of",
    "renew": "renews its lease of",
    "write": "writes to",
    "finish": "finishes",
    "release": "releases",
    "reap": "releases the expired lease of",
    "steal": "takes the live lease of another on",
}
_LEFT_ASIDE: Final[Mapping[type[h.Event], str]] = {
    h.Passed: "points passed",
    h.Settled: "moves that ended",
    h.ClockRead: "readings of the clock",
    h.RolledBack: "transactions rolled back",
}


def explain(history: h.History) -> str:
    """The history of a plain run as aligned text: number, stage's time in ms, who, what.

    Raises `HistoryError` when the history carries no declaration that can be read.
    """
    header = history.header
    declaration = declaration_from_json(header.declaration)
    acts, tenures, problems = _understood(history, declaration)
    by_event: dict[int, list[Act]] = {}
    for act in acts:
        by_event.setdefault(act.n, []).append(act)
    rows: list[tuple[str, str, str, str]] = [("n", "ms", "who", "what")]
    for event in history.events:
        lines = [" ".join(text.split("\n")) for text in _said(event, by_event.get(event.n, []))]
        at_ms = (event.at_ns - header.start_ns) // _NS_A_MS
        who = _who(event)
        for place, text in enumerate(lines):
            rows.append((str(event.n), str(at_ms), who, text) if place == 0 else ("", "", "", text))
    problems += [*unexplained(history, declaration), *_over_at_once(history, declaration, tenures)]
    parts = [
        f"How a run of {header.subject or declaration.subject} was understood"
        f" (clock {header.clock}, attribution {header.attribution})",
        _aligned(rows),
        _section("Tenures", [_tenure(tenure) for tenure in tenures] or ["none: no lease was seen"]),
        _section("Left aside", _left_aside(history, declaration)),
    ]
    if problems:
        parts.append(_section("Not explained by the declaration", map(str, problems)))
    return "\n\n".join(parts) + "\n"


def _understood(
    history: h.History, declaration: Declaration
) -> tuple[Sequence[Act], Sequence[Tenure], list[Problem]]:
    try:
        ownership = fold(history, declaration)
    except SubjectError as error:
        return (), (), list(error.problems)
    return ownership.acts, ownership.tenures, []


def _over_at_once(
    history: h.History, declaration: Declaration, tenures: Sequence[Tenure]
) -> Iterator[Problem]:
    """Leases that were over when they were claimed, all of them: a wrong unit, or zone."""
    try:
        leases = leases_of(history, declaration)
    except SubjectError:  # told as what could not be understood
        return
    claimed_ns = {event.n: event.at_ns for event in history.events if isinstance(event, h.Commit)}
    claims = [
        (expiry.at_ns, claimed_ns[tenure.since])
        for tenure in tenures
        if (expiry := leases.expiry(tenure.run_id, tenure.since)) is not None
    ]
    if claims and all(ends_ns < now_ns for ends_ns, now_ns in claims):
        ends, now = (datetime.fromtimestamp(max(at_ns, 0) // 10**9, UTC) for at_ns in claims[0])
        unit = declaration.runs.lease.unit
        text = f"read with unit={unit!r} a lease that was claimed at {now:{_TIME}} ended at"
        what = f"{text} {ends:{_TIME}} (UTC), before it began; is the `unit` another?"
        yield Problem("runs.lease.expires_at", what)


def _said(event: h.Event, acts: Sequence[Act]) -> Iterator[str]:
    """What an event was, in words; nothing for what is only counted."""
    match event:
        case h.Commit():
            tables = {change.table for change in event.changes}
            yield from [_act(act, tables) for act in acts] or [
                "a commit that means nothing for any run"
            ]
            for change in event.changes:
                yield f"  {_change(change)}"
        case h.Acted():
            yield f"script: {event.text}"
        case h.Spawned():
            yield f"begins to live as {event.name!r}, to {event.job}"
        case h.Statement() if event.rows == 0:
            yield f"{event.verb} {event.table} changed nothing: {_short(event.sql)}"
        case h.EffectAsked():
            given = {"run": event.run_id, "token": event.token, "key": event.key}
            shown = ", ".join(
                f"{name} {_short(value)}" for name, value in given.items() if value is not None
            )
            yield f"asks for effect {event.name}, request {event.request} ({shown or 'no token'})"
        case h.EffectDecided():
            why = f": {event.why}" if event.why else ""
            yield f"request {event.request} is {event.outcome}{why}"
        case h.EffectAnswered():
            yield f"request {event.request}: the answer is {event.how}"
        case h.LookedUp():
            yield f"asks what became of key {event.key!r}: {event.found}"
        case h.ClockMoved():
            yield f"the clock moves ({event.why})"
        case h.Signalled():
            yield f"{event.signal}; the write lock is {event.write_lock}"
        case h.Returned():
            raised = f"raised {_short(event.error)}" if event.error else _cut(event.value)
            yield f"its work came back: {raised}"
        case h.Ended():
            yield f"is over: {event.how}"
        case h.Blind():
            yield f"BLIND: {event.why}"
        case h.Noted():
            yield f"note: {event.text}"


def _who(event: h.Event) -> str:
    who = getattr(event, "who", "")
    return who or ("?" if isinstance(event, h.Commit) else "")


def _act(act: Act, tables: Collection[str]) -> str:
    words = _WORDS.get(act.kind, act.kind.replace("-", " ") + ":")
    tenure = f" (tenure {act.tenure})" if act.tenure is not None else ""
    # The tables are told change by change.
    more = act.detail and not set(act.detail.split(", ")) <= set(tables)
    return f"{words} {act.run_id!r}{tenure}" + (f": {act.detail}" if more else "")


def _tenure(tenure: Tenure) -> str:
    end = (
        f"to event {tenure.until}: {tenure.ended} by {tenure.ended_by}"
        if tenure.until is not None
        else "and still in force"
    )
    owner = f", as {_short(tenure.owner)}" if tenure.owner is not None else ""
    return f"{tenure}{owner}: from event {tenure.since} {end}"


def _change(change: h.Change) -> str:
    key = ", ".join(map(_short, change.key))
    if change.new is None:
        return f"{change.table}[{key}] is deleted"
    if change.old is None:
        given = {name: value for name, value in change.new.items() if value is not None}
        told = ", ".join(f"{name} {_short(value)}" for name, value in given.items())
        return f"{change.table}[{key}] is new: {told}"
    told = ", ".join(
        f"{name} {_short(change.old.get(name))} -> {_short(value)}"
        for name, value in change.new.items()
        if change.old.get(name) != value
    )
    return f"{change.table}[{key}]: {told or 'written, but not changed'}"


def _left_aside(history: h.History, declaration: Declaration) -> list[str]:
    """What played no part: events that are only counted, columns and tables without a meaning."""
    counts = Counter(_LEFT_ASIDE[type(event)] for event in history if type(event) in _LEFT_ASIDE)
    statements = [event for event in history if isinstance(event, h.Statement)]
    counts["reads"] = sum(statement.rows is None for statement in statements)
    lines = [f"{count} {what}" for what, count in counts.items() if count]
    meant = {(table, column) for _, table, column in names_of(declaration)}
    other: dict[str, set[str]] = {}
    changed: set[str] = set()
    for event in history:
        for change in event.changes if isinstance(event, h.Commit) else ():
            changed.add(change.table)
            old, new = change.old or {}, change.new or {}
            names = {name for name in {*old, *new} if old.get(name) != new.get(name)}
            other.setdefault(change.table, set()).update(
                name for name in names if (change.table, name) not in meant
            )
    for table, columns in other.items():
        if columns:
            shown = ", ".join(sorted(columns))
            lines.append(f"columns of {table} with no declared meaning of their own: {shown}")
    still = [table for table in declaration.tables if table not in changed]
    if still:
        lines.append(f"declared tables that never changed: {', '.join(still)}")
    return lines or ["nothing"]


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)])


def _aligned(rows: Sequence[tuple[str, str, str, str]]) -> str:
    """Numbers to the right, words to the left; nothing behind the last word."""
    n, ms, who = (max(len(row[column]) for row in rows) for column in range(3))
    return "\n".join(
        f"{row[0]:>{n}}  {row[1]:>{ms}}  {row[2]:<{who}}  {row[3]}".rstrip() for row in rows
    )


def _short(value: object) -> str:
    """A value on one line, and no longer than is readable."""
    if value is None:
        return "NULL"
    return _cut(repr(value))


def _cut(text: str) -> str:
    if len(text) <= _MOST_OF_A_VALUE:
        return text
    half = _MOST_OF_A_VALUE // 2 - 1
    return f"{text[:half]}…{text[-half:]}"
