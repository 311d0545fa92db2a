"""The page: one self-contained HTML file for any number of scripts.

Nothing is loaded from anywhere: style and script are in it, and a content security policy with
their hashes forbids everything else. It can be read without its script, with a keyboard, in the
dark, and on paper. Whatever comes from a history is made harmless and escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from string import Template
from typing import Final

from ..checklist import Line, merged
from ..evidence import Evidence, evidence_of
from ..story import KINDS, Entry, seconds, tell
from .details import details_json
from .item import MARKS, Item
from .lanes import draw_lanes
from .legend import LEGEND
from .tables import evidence_tables
from .words import safe

#: So many entries of one script are shown; those that matter least go first.
MOST_ENTRIES: Final = 1_500

_PAGE: Final = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '$style_hash'; \
script-src '$script_hash'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<a class="skip" href="#scripts">to the scripts</a>
<header class="top"><h1>$title</h1><p class="soft">$lead</p></header>
<main>
$tiles
$checklist
$index
$scripts
</main>
<script>$script</script>
</body>
</html>
"""
)


def html_page(
    items: Sequence[Item], *, title: str = "Does a run survive losing its worker?"
) -> str:
    """The page of some scripts: what was proved, an index, and each one's lanes and events.

    Raises `SubjectError` when a row can't be read as its subject declares.
    """
    style = _resource("page.css")
    script = _resource("page.js")
    evidence = [
        evidence_of(item.history, item.verdict) if item.verdict is not None else None
        for item in items
    ]
    return _PAGE.substitute(
        title=safe(title),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        lead=safe(_lead(items)),
        tiles=_tiles(items, evidence),
        checklist=_checklist([found for found in evidence if found is not None]),
        index=_index(items),
        scripts="\n".join(
            _script(item, found, prefix=f"s{at}-")
            for at, (item, found) in enumerate(zip(items, evidence, strict=True))
        ),
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _lead(items: Sequence[Item]) -> str:
    if not items:
        return "No script was played."
    header = items[0].history.header
    subjects = ", ".join(dict.fromkeys(item.history.header.subject for item in items))
    clock = "a virtual clock" if header.clock == "virtual" else "the wall clock"
    return (
        f"{subjects}: real worker processes on one SQLite database, frozen, killed and restarted at"
        f" exact points, on {clock}. Judged from what was committed and accepted. (leasecheck"
        f" {header.kit}, Python {header.python}, SQLite {header.sqlite})"
    )


def _tiles(items: Sequence[Item], evidence: Sequence[Evidence | None]) -> str:
    passed = sum(item.outcome == "pass" for item in items)
    stale = [one for found in evidence if found for one in found.stale_attempts]
    landed = sum(one.outcome == "landed" for one in stale)
    at_fault = any(
        finding.invariant == "V1" and finding.severity == "fault"
        for item in items
        if item.verdict
        for finding in item.verdict.findings
    )
    # Where nothing is claimed to fence, what landed is named, and is no failure.
    rest = "" if at_fault or not landed else f"; {landed} landed where no fence is claimed"
    broken = sum(item.verdict.counts.interruptions for item in items if item.verdict)
    decided = sum(item.verdict.counts.reconciliations for item in items if item.verdict)
    unknown_ms = sum(found.unknown_ms for found in evidence if found)
    tiles = [
        (f"{passed} of {len(items)}", "scripts passed", passed < len(items)),
        (
            f"{len(stale) - landed} of {len(stale)}",
            f"stale attempts came to nothing{rest}",
            at_fault,
        ),
        (f"{decided} for {broken}", "decisions for interrupted steps", decided != broken),
        (f"{unknown_ms / 1000:,.1f} s", "with an outcome unknown", False),
    ]
    cells = "".join(
        f'<div class="tile{" alarm" if alarm else ""}"><b>{safe(big)}</b>{safe(small)}</div>'
        for big, small, alarm in tiles
    )
    return f'<section class="tiles" aria-label="in numbers">{cells}</section>'


def _checklist(evidence: Iterable[Evidence]) -> str:
    lines: tuple[Line, ...] = merged(found.checklist for found in evidence)
    rows = "".join(
        f'<tr><td class="n">{line.number}</td><td>{safe(line.text)}</td>'
        f"<td>{_status(line.status)}</td><td class='soft'>{safe(line.why)}</td></tr>"
        for line in lines
    )
    return (
        '<section class="card"><h2>Run-lease checklist</h2><div class="wide"><table><thead><tr>'
        "<th>#</th><th>before calling it failover-safe</th><th></th><th>by</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _status(status: str) -> str:
    mark = {"shown": "✓", "broken": "✗"}.get(status, "–")
    return f'<span class="badge {status.replace(" ", "-")}">{mark} {status}</span>'


def _badge(item: Item) -> str:
    kind = item.outcome.replace(" ", "-")
    return f'<span class="badge {kind}">{MARKS.get(item.outcome, "?")} {item.outcome}</span>'


def _index(items: Sequence[Item]) -> str:
    rows = "".join(
        f"<tr><td>{_badge(item)}</td>"
        f"<td class='name'><a href='#s{at}-top'>{safe(item.name)}</a></td>"
        f"<td>{safe(item.headline, most=300)}</td></tr>"
        for at, item in enumerate(items)
    )
    return (
        '<section class="card" id="scripts"><h2>Scripts</h2><div class="wide"><table><thead><tr>'
        "<th>outcome</th><th>script</th><th>what came of it</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _script(item: Item, evidence: Evidence | None, *, prefix: str) -> str:
    entries = _most_important(tell(item.history, item.verdict))
    parts = [
        f'<article class="card" id="{prefix}top" data-script>',
        f'<div class="head">{_badge(item)}<h2>{safe(item.name)}</h2></div>',
        f"<p>{safe(item.story, most=2_000)}</p>" if item.story else "",
        *_findings(item, prefix),
        _filters(entries),
        draw_lanes(item, entries, prefix=prefix),
        LEGEND,
        '<div class="both">',
        _events(item, entries, prefix),
        '<aside class="detail" aria-live="polite" aria-label="the chosen event"></aside></div>',
        *_evidence(evidence),
        f"<details><summary>The script</summary><pre>{_lines(item)}</pre></details>",
        f"<p class='soft'>Play it again: <code>{safe(item.replay)}</code></p>"
        if item.replay
        else "",
        f'<script type="application/json">{details_json(item.history, entries)}</script>',
        "</article>",
    ]
    return "\n".join(part for part in parts if part)


def _lines(item: Item) -> str:
    """The script as it is written; 200 lines of it at most."""
    return "\n".join(safe(line, most=300) for line in item.history.header.script.splitlines()[:200])


def _evidence(evidence: Evidence | None) -> Iterator[str]:
    if evidence is not None:
        yield "<details><summary>Evidence: leases, effects, stale attempts, decisions</summary>"
        yield from evidence_tables(evidence)
        yield "</details>"


def _most_important(entries: Sequence[Entry]) -> Sequence[Entry]:
    for rank in range(6, -1, -1):
        if len(entries) <= MOST_ENTRIES:
            break
        entries = [entry for entry in entries if entry.rank < rank]
    return entries[-MOST_ENTRIES:]


def _findings(item: Item, prefix: str) -> Iterator[str]:
    if item.error:
        yield f'<div class="finding"><b>Not played to its end</b>{safe(item.error)}</div>'
    verdict = item.verdict
    for finding in verdict.findings if verdict is not None else ():
        links = " ".join(f'<a href="#{prefix}e{n}">{n}</a>' for n in finding.at)
        shown = f" <small>(events {links})</small>" if links else ""
        kind = "finding note" if finding.severity == "note" else "finding"
        yield (
            f'<div class="{kind}"><b>{safe(finding.invariant)}: {safe(finding.title)}</b>'
            f"{safe(finding.text, most=2_000)}{shown}</div>"
        )
    for missing in verdict.missing if verdict is not None else ():
        yield f'<div class="finding note"><b>Nothing is proven</b>not seen: {safe(missing)}</div>'


def _filters(entries: Sequence[Entry]) -> str:
    kinds = {entry.kind for entry in entries}
    boxes = "".join(
        f'<label><input type="checkbox" value="{kind}" checked>{words}</label>'
        for kind, words in KINDS.items()
        if kind in kinds
    )
    return f'<fieldset class="filters"><legend>show</legend>{boxes}</fieldset>'


def _events(item: Item, entries: Sequence[Entry], prefix: str) -> str:
    rows = "".join(
        f'<tr id="{prefix}e{entry.n}" data-n="{entry.n}" data-kind="{entry.kind}" '
        f'class="k-row-{entry.kind}{_found(entry)}">'
        f'<td class="n">{entry.n}</td><td class="at">{seconds(entry.at_ns, item.history)}</td>'
        f'<td class="who">{safe(entry.who, most=60)}</td>'
        f'<td class="what">{safe(entry.text)}{_proves(entry)}</td></tr>'
        for entry in entries
    )
    return (
        '<div class="wide"><table class="events"><thead><tr><th>n</th><th>time</th><th>worker</th>'
        f"<th>what happened</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _found(entry: Entry) -> str:
    return f" found{' decisive' if entry.decisive else ''}" if entry.findings else ""


def _proves(entry: Entry) -> str:
    return "".join(
        f"<br><small>↳ {safe(finding.invariant)}: {safe(finding.title)}</small>"
        for finding in entry.decisive
    )
