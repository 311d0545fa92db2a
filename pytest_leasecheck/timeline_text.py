"""A history as lines of text that read without a manual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .testkit import history as h
from .testkit.verdict import Verdict

#: So many lines of a long history are shown; the file has all of them.
_MOST: Final = 120
#: Longer values are cut: a payload of megabytes is in the file too.
_WIDEST: Final = 100


def draw(history: h.History, verdict: Verdict | None) -> list[str]:
    """One line for each event that a reader needs; `!` marks those that a finding rests on."""
    marked = {n for finding in verdict.findings for n in finding.at} if verdict else set()
    meant = _meanings(verdict) if verdict else {}
    start_ns = history.header.start_ns
    told = [
        (event, who, text)
        for event in history
        for who, text in _told(event, meant, header=history.header, marked=event.n in marked)
    ]
    width = max((len(who) for _, who, _ in told), default=0)
    lines = []
    for event, who, text in told:
        mark = "!" if event.n in marked else " "
        at = (event.at_ns - start_ns) / 1e9
        where = "" if isinstance(event, h.Acted) else f"{who:<{width}}  "
        lines.append(f"{mark}{event.n:>5} {at:>9.3f}s  {where}{_cut(text)}")
    if len(lines) > _MOST:
        kept = [line for line in lines[: -_MOST // 2] if line.startswith("!")]
        hidden = len(lines) - _MOST // 2 - len(kept)
        lines = [*kept, f"       … {hidden} lines more in the history", *lines[-_MOST // 2 :]]
    return lines


def _meanings(verdict: Verdict) -> dict[int, list[str]]:
    """What the checkers made of an event, by its number."""
    meant: dict[int, list[str]] = {}
    for act in verdict.acts:
        meant.setdefault(act.n, []).append(f"{act.kind} {act.run_id}")
    for attempt in verdict.attempts:
        by = f" by {', '.join(attempt.guards)}" if attempt.guards else ""
        text = f"stale attempt, {attempt.what}: {attempt.outcome}{by}"
        meant.setdefault(attempt.n, []).append(text)
    return meant


def _told(
    event: h.Event, meant: Mapping[int, list[str]], *, header: h.Header, marked: bool
) -> Iterator[tuple[str, str]]:
    """Who and what; nothing for events that are only interesting to a checker."""
    # A commit says what it meant itself; of anything else that means something, this is all.
    if not isinstance(event, h.Commit):
        for text in meant.get(event.n, ()):
            yield getattr(event, "who", ""), text
    match event:
        case h.Acted(text=text):
            yield "", f"> {text.strip()}"
        case h.Spawned(who=who, name=name, job=job, pid=pid):
            yield who, f"starts as {name!r} (pid {pid}), to {job}"
        case h.Settled(who=who, state=state) if state != "returned":
            yield who, state
        case h.Signalled(who=who, signal=signal, write_lock=lock):
            yield who, signal + (f"; write lock {lock}" if lock else "")
        case h.Returned(who=who, value=value, error=error):
            yield who, f"raised {error}" if error else f"returned {value}"
        case h.Ended(who=who, how=how) if how not in ("returned", "end of script"):
            yield who, f"ended: {how}"
        case h.ClockMoved(to_ns=to_ns, why=why):
            yield "clock", f"moved to {(to_ns - header.start_ns) / 1e9:.3f}s ({why})"
        case h.Commit(who=who):
            yield who or "?", f"commit: {_commit(event, meant.get(event.n, []), header)}"
        case h.EffectAsked(who=who):
            yield who, f"asks for effect {event.name}, token {event.token}, key {event.key}"
        case h.EffectDecided(who=who, outcome=outcome, why=why):
            yield who, f"effect {outcome}" + (f": {why}" if why else "")
        case h.EffectAnswered(who=who, how=how) if how not in ("delivered", "returned"):
            yield who, f"response {how}"
        case h.LookedUp(who=who, key=key, found=found):
            yield who, f"asks what became of {key}: {found}"
        case h.Blind(who=who, why=why):
            yield who, f"out of sight: {why}"
        case h.Noted(who=who, text=text):
            yield who, text
        case h.Statement(who=who, sql=sql, rows=rows) if marked or event.n in meant:
            yield who, f"{sql} -> {'read' if rows is None else f'{rows} rows'}"
        case _:
            return


def _commit(event: h.Commit, meant: list[str], header: h.Header) -> str:
    """What a commit meant, then what it changed."""
    changed = "; ".join(_change(change, header) for change in event.changes[:3])
    more = f"; {len(event.changes) - 3} changes more" if len(event.changes) > 3 else ""
    return " | ".join(part for part in (", ".join(meant), changed + more) if part)


def _change(change: h.Change, header: h.Header) -> str:
    key = "/".join(map(str, change.key))
    if change.new is None:
        return f"{change.table} {key} deleted"
    if change.old is None:
        return f"{change.table} {key} new"
    changed = [
        name
        for name, value in change.new.items()
        if name not in change.old or change.old[name] != value
    ]
    first = _telling_columns(header)
    changed.sort(key=lambda name: first.index(name) if name in first else len(first))
    return f"{change.table} {key}: {', '.join(f'{name}={change.new[name]!r}' for name in changed)}"


def _telling_columns(header: h.Header) -> list[object]:
    """The columns that tell who owns a run, which are shown before a line is cut."""
    runs = header.declaration.get("runs")
    lease = runs.get("lease") if isinstance(runs, Mapping) else None
    if not isinstance(runs, Mapping) or not isinstance(lease, Mapping):
        return []
    return [lease.get("token"), lease.get("owner"), runs.get("status")]


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
