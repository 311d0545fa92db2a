"""A point that was never reached: what the declaration could name instead, from what was passed.

Scenarios say where a worker is held in the subject's own words, `danger`, `danger_after` and
`long_call`; their defaults suit a runtime whose side effects go through `worker.effect(...)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_DOCS: Final = "docs/howto/declare-a-subject.md, 'Where a worker is held'"
#: What says most about a place, first.
_TELLING: Final = ("effect:", "call:", "txn:commit", "sql:")


def hint_on(
    point: str, *, passed: Sequence[str], danger: str, danger_after: str, long_call: str
) -> str:
    """What to declare so that `point` is a place that the subject passes; empty: nothing helps.

    `passed` are points as an error lists them: `txn:commit#2 before`.
    """
    # Of two that name one place, what most scenarios go by.
    places = {long_call: "long_call", danger_after: "danger_after", danger: "danger"}
    name = places.get(point, "")
    if not point or not name:
        return ""
    seen = [one for one in passed if not one.startswith("start#")]
    if not seen:
        return (
            f"{point!r} is the subject's `{name}`, and the worker passed no point on its way there:"
            " did its work() raise, open another file than worker.db, or find no run to claim?"
            " --leasecheck-explain shows a plain run"
        )
    phase = "after" if name == "danger_after" else "before"
    place = _telling(seen, phase)
    like = f', like {name} = "{place}"' if place else ""
    what = {
        "danger": "what it passes before what can't be taken back",
        "danger_after": "where that has happened, and nothing of it is recorded yet",
        "long_call": "where it is inside a long call, its heartbeat going",
    }[name]
    default = ", as nothing else is declared" if point.startswith("effect:*") else ""
    return (
        f"workers are held at {point!r}, the subject's `{name}`{default}; this one passes no such"
        f" point. Declare {what}{like} ({_DOCS})"
    )


def _telling(passed: Sequence[str], phase: str) -> str:
    """The last point of the most telling kind, which is nearest to what counts."""
    fitting = [one for one in passed if one.endswith(f" {phase}")]
    for kind in _TELLING:
        of_kind = [one for one in fitting if one.startswith(kind)]
        if of_kind:
            return of_kind[-1]
    return fitting[-1] if fitting else ""
