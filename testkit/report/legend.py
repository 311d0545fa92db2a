"""What the marks of the drawing mean."""

from __future__ import annotations

from typing import Final


def _mark(kind: str, shape: str, words: str) -> str:
    return (
        '<li><svg width="20" height="20" viewBox="-10 -10 20 20" aria-hidden="true">'
        f'<g class="mark k-{kind}">{shape}</g></svg>{words}</li>'
    )


def _bar(extra: str, words: str) -> str:
    return (
        '<li><svg width="34" height="16" aria-hidden="true"><g class="tenure run0">'
        f'<rect class="bar" x="1" y="1" width="32" height="14" rx="5"/>{extra}</g></svg>'
        f"{words}</li>"
    )


LEGEND: Final = (
    '<ul class="legend">'
    + _bar("", "a lease in force")
    + _bar(
        '<path class="lapsed" fill="none" d="M12 1.5H28Q33 1.5 33 8T28 14.5H12Z"/>'
        '<path stroke="currentColor" d="M15 14 25 2M21 14 31 2"/>',
        "lapsed, and nobody has taken it",
    )
    + _mark("lease", '<circle r="7"/>', "lease changes")
    + _mark("write", '<rect x="-4.5" y="-4.5" width="9" height="9" rx="1.5"/>', "write")
    + _mark("effect", '<path d="M0-8 8 0 0 8-8 0Z"/>', "effect")
    + _mark("stale", '<path d="M-6-6 6 6M6-6-6 6"/>', "stale, or refused")
    + _mark("hold", '<rect x="-5.5" y="-5.5" width="11" height="11" rx="2"/>', "held at a point")
    + _mark("signal", '<path d="M-4-7V7M4-7V7"/>', "SIGSTOP")
    + _mark("signal", '<path d="M-5-7 7 0-5 7Z"/>', "SIGCONT")
    + _mark("signal", '<path d="M-7-7 7 7M7-7-7 7M0-9V9"/>', "SIGKILL")
    + "<li>dotted: stopped</li></ul>"
)
