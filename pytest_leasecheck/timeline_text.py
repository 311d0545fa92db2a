"""A history as lines of text that read without a manual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .testkit import history as h
from .testkit.verdict import Act, Verdict

#: So many lines of a long history are shown; the file has all of them.
_MOST: Final = 120
#: Longer values are cut: a payload of megabytes is in the file too.
_WIDEST: Final = 100


def draw(history: h.History, verdict: Verdict | None) -> list[str]:
    """One line for each event that a reader needs; `!` marks those that a finding rests on."""
    marked = {n for finding in verdict.findings for n in finding.at} if verdict else set()
    acts: dict[int, list[Act]] = {}
    for act in verdict.acts if verdict else ():
        acts.setdefault(act.n, []).append(act)
    lines = []
    for event in history:
        for who, text in _told(event, acts, shown=event.n in marked):
            mark = "!" if event.n in marked else " "
            at = (event.at_ns - history.header.start_ns) / 1e9
            where = "" if isinstance(event, h.Acted) else f"{who:<6}"
            lines.append(f"{mark}{event.n:>5} {at:>9.3f}s  {where}{_cut(text)}")
    if len(lines) > _MOST:
        kept = [line for line in lines[: -_MOST // 2] if line.startswith("!")]
        hidden = len(lines) - _MOST // 2 - len(kept)
        lines = [*kept, f"       … {hidden} lines more in the history", *lines[-_MOST // 2 :]]
    return lines


def _told(
    event: h.Event, acts: Mapping[int, list[Act]], *, shown: bool
) -> Iterator[tuple[str, str]]:
    """Who and what; nothing for events that are only interesting to a checker."""
    match event:
        case h.Acted(text=text):
            yield "", f"> {text.strip()}"
        case h.Spawned(who=who, name=name, job=job, pid=pid):
            yield who, f"starts as {name!r} (pid {pid}), to {job}"
        case h.Settled(who=who, state=state):
            yield who, state
        case h.Signalled(who=who, signal=signal, write_lock=lock):
            yield who, signal + (f"; write lock {lock}" if lock else "")
        case h.Returned(who=who, value=value, error=error):
            yield who, f"raised {error}" if error else f"returned {value}"
        case h.Ended(who=who, how=how):
            yield who, f"ended: {how}"
        case h.ClockMoved(to_ns=to_ns, why=why):
            yield "clock", f"moved to {to_ns / 1e9:.3f}s ({why})"
        case h.Commit(who=who):
            yield who or "?", f"commit: {_commit(event, acts.get(event.n, []))}"
        case h.EffectAsked(who=who):
            yield who, f"asks for effect {event.name}, token {event.token}, key {event.key}"
        case h.EffectDecided(who=who, outcome=outcome, why=why):
            yield who, f"effect {outcome}" + (f": {why}" if why else "")
        case h.EffectAnswered(who=who, how=how) if how != "delivered":
            yield who, f"response {how}"
        case h.LookedUp(who=who, key=key, found=found):
            yield who, f"asks what became of {key}: {found}"
        case h.Blind(who=who, why=why):
            yield who, f"out of sight: {why}"
        case h.Noted(who=who, text=text):
            yield who, text
        case h.Statement(who=who, sql=sql, rows=rows) if shown or rows == 0:
            yield who, f"{sql} -> {'read' if rows is None else f'{rows} rows'}"
        case _:
            return


def _commit(event: h.Commit, acts: list[Act]) -> str:
    """What a commit meant, then what it changed."""
    meant = ", ".join(f"{act.kind} {act.run_id}" for act in acts)
    changed = "; ".join(_change(change) for change in event.changes[:3])
    more = f"; {len(event.changes) - 3} changes more" if len(event.changes) > 3 else ""
    return " | ".join(part for part in (meant, changed + more) if part)


def _change(change: h.Change) -> str:
    key = "/".join(map(str, change.key))
    if change.new is None:
        return f"{change.table} {key} deleted"
    if change.old is None:
        return f"{change.table} {key} new"
    pairs = (
        f"{name}={value!r}"
        for name, value in change.new.items()
        if name not in change.old or change.old[name] != value
    )
    return f"{change.table} {key}: {', '.join(pairs)}"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
