"""What the page shows of one event when it is chosen: its fields as pairs of text, harmless."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Final

from ..harmless import harmless
from ..history import Change, Commit, Event, History
from ..story import Entry, seconds

_LONGEST: Final = 2_000
_ROWS: Final = 40
_SKIPPED: Final = frozenset({"n", "at_ns", "changes"})


def details_json(history: History, entries: Iterable[Entry]) -> str:
    """A JSON object from event number to pairs, safe inside a `<script>` element."""
    events = {event.n: event for event in history}
    data = {
        str(entry.n): list(_pairs(entry, events[entry.n], history))
        for entry in entries
        if entry.n in events
    }
    return script_safe(json.dumps(data, ensure_ascii=True, separators=(",", ":")))


def script_safe(text: str) -> str:
    """JSON that can't end a `<script>` element, or begin a comment in it."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _pairs(entry: Entry, event: Event, history: History) -> Iterator[tuple[str, str]]:
    yield "event", f"{entry.n} · {type(event).__name__} · {seconds(entry.at_ns, history)}"
    yield "what", entry.text
    for finding in entry.findings:
        yield finding.invariant, harmless(f"{finding.title}: {finding.text}", most=_LONGEST)
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name not in _SKIPPED and value not in (None, ""):
            yield field.name, harmless(value, most=_LONGEST)
    if isinstance(event, Commit):
        for change in event.changes[:_ROWS]:
            yield _row(change)
        if len(event.changes) > _ROWS:
            yield "…", f"{len(event.changes) - _ROWS} rows more, in the history"


def _row(change: Change) -> tuple[str, str]:
    key = "/".join(harmless(part, most=60) for part in change.key)
    name = f"{harmless(change.table, most=60)} {key}"
    if change.new is None:
        return name, "deleted"
    old = change.old or {}
    pairs = (
        f"{harmless(column, most=60)}: {_old(change, column)}{harmless(value, most=300)}"
        for column, value in change.new.items()
        if column not in old or old[column] != value
    )
    return name, ("new\n" if change.old is None else "") + "\n".join(pairs)


def _old(change: Change, column: str) -> str:
    if change.old is None or column not in change.old:
        return ""
    return f"{harmless(change.old[column], most=300)} → "
