"""Mermaid for a CI job's summary: who said what to whom, and who held which lease when.

Text in Mermaid ends at a line break or `;`, and `#` begins an entity; everything that isn't a
letter, a digit or harmless is written as an entity, so a hostile id stays a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..harmless import harmless
from ..history import History
from ..story import Entry, bars, lanes_of, seconds, tell
from ..verdict import Verdict
from .item import MARKS, Item

#: GitHub draws no diagram beyond about this much text.
_MOST_LINES: Final = 60
_PLAIN: Final = frozenset(" .,()/'=_+-!?@")
_OUTSIDE: Final = "outside"


def sequence(history: History, verdict: Verdict | None = None, *, most: int = _MOST_LINES) -> str:
    """A `sequenceDiagram` of at most `most` messages; what matters least is left out first."""
    entries: Sequence[Entry] = tell(history, verdict)
    for rank in range(6, -1, -1):
        if len(entries) <= most:
            break
        entries = [entry for entry in entries if entry.rank < rank]
    entries = entries[-most:]
    lanes = lanes_of(history, entries)
    names = {who: f"w{at}" for at, who in enumerate(lanes)}
    lines = ["sequenceDiagram"]
    lines += [f"    participant {name} as {label(who, most=40)}" for who, name in names.items()]
    lines += ["    participant db as database", f"    participant {_OUTSIDE} as outside world"]
    for entry in entries:
        lines += _messages(entry, names, history)
    return "\n".join(lines) + "\n"


def _messages(entry: Entry, names: dict[str, str], history: History) -> Iterator[str]:
    text = label(entry.text, most=110)
    who = names.get(entry.who)
    if who is None:
        over = f"{next(iter(names.values()), 'db')},{_OUTSIDE}"
        yield f"    Note over {over}: {label(seconds(entry.at_ns, history))} {text}"
    elif entry.kind in ("lease", "write"):
        yield f"    {who}->>db: {text}"
    elif entry.kind == "effect":
        asks = entry.text.startswith("asks")
        yield f"    {who}->>{_OUTSIDE}: {text}" if asks else f"    {_OUTSIDE}-->>{who}: {text}"
    elif entry.kind == "stale":
        to = _OUTSIDE if "effect" in entry.text else "db"
        yield f"    {who}-x{to}: {text}"
    else:
        yield f"    Note over {who}: {text}"
    for finding in entry.decisive:
        yield f"    Note over db: ✗ {label(f'{finding.invariant} {finding.title}', most=110)}"


def leases_chart(history: History, verdict: Verdict) -> str:
    """A `gantt` chart of tenures over event numbers; `crit` are those that were lost."""
    lines = ["gantt", "    dateFormat x", "    axisFormat %Q", "    title who held what, by event"]
    last = history.events[-1].n if history.events else 0
    section = None
    for bar in sorted(bars(history, verdict), key=lambda bar: (bar.run_id, bar.since)):
        if bar.run_id != section:
            section = bar.run_id
            lines.append(f"    section {label(bar.run_id, most=40)}")
        token = f" token {bar.token}" if bar.token is not None else ""
        state = "crit" if bar.lost else "active" if bar.until is None else "done"
        until = max(bar.until or last, bar.since + 1)
        name = label(f"{bar.who}{token}", most=60)
        lines.append(f"    {name} :{state}, {bar.since}, {until}")
    return "\n".join(lines) + "\n"


def job_summary(items: Sequence[Item], *, most_diagrams: int = 20) -> str:
    """Markdown for a CI job: a table of all scripts, and a diagram for each that did not pass.

    GitHub refuses a summary of more than a megabyte, so only the first have their diagram.
    """
    passed = sum(item.outcome == "pass" for item in items)
    lines = [f"### leasecheck: {passed} of {len(items)} scripts passed", ""]
    lines += ["| | script | what came of it |", "|---|---|---|"]
    for item in items:
        mark = f"{MARKS.get(item.outcome, '?')} {item.outcome}"
        lines.append(f"| {mark} | {_cell(item.name, 80)} | {_cell(item.headline, 300)} |")
    drawn = [item for item in items if item.outcome not in ("pass", "not claimed")]
    for item in drawn[:most_diagrams]:
        lines += ["", f"<details><summary>{_cell(item.name, 80)}</summary>", "", "```mermaid"]
        lines += [sequence(item.history, item.verdict).rstrip(), "```", ""]
        if item.verdict is not None and item.verdict.tenures:
            lines += ["```mermaid", leases_chart(item.history, item.verdict).rstrip(), "```", ""]
        lines += ["</details>"]
    if len(drawn) > most_diagrams:
        lines += ["", f"… and {len(drawn) - most_diagrams} more that did not pass"]
    return "\n".join(lines) + "\n"


def label(text: str, *, most: int = 60) -> str:
    """A text as a label: what Mermaid or HTML could read as its own is an entity."""
    shown = harmless(text, most=most)
    return "".join(char if char.isalnum() or char in _PLAIN else f"#{ord(char)};" for char in shown)


def _cell(text: str, most: int) -> str:
    """A text in a Markdown table that neither ends the cell nor means anything."""
    return "".join(
        char if char.isalnum() or char in " .,:;()/'=+-" else f"&#{ord(char)};"
        for char in harmless(text, most=most)
    )
