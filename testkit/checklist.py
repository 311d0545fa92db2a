"""The run-lease checklist of the first seed, line by line: shown, broken, or not shown.

A line *needs* certain things to have been seen to hold; what one history doesn't show another may,
so lines of several histories are merged (`merged`). A line is broken as soon as one history breaks
it. The last line speaks of documentation, which no history shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from .history import EffectDecided, Event, History, Returned, Spawned
from .verdict import Tenure, Verdict

if TYPE_CHECKING:
    from .evidence import EffectTold

Status = Literal["shown", "broken", "not shown"]


class _Rule(NamedTuple):
    """A line's text, what must have been seen for it, and which findings break it."""

    text: str
    needs: tuple[str, ...]
    broken_by: frozenset[str] = frozenset()


RULES: Final = (
    _Rule(
        "ownership is stored durably, run by run",
        ("a claim that another process read back",),
        frozenset(
            {
                "a live lease was taken",
                "a lease was released by another",
                "one run id, two runs",
                "a row vanished",
                "a row came back",
                "a row changed without a commit",
            }
        ),
    ),
    _Rule(
        "each change of ownership issues a higher fencing token",
        ("a new tenure under a higher token",),
        frozenset({"a token was used twice", "a token fell"}),
    ),
    _Rule("every irreversible step carries that token", ("an effect under its lease's token",)),
    _Rule(
        "the side-effect boundary refuses stale tokens atomically",
        ("a stale effect that was refused",),
        frozenset({"a stale write landed", "a stale effect was accepted"}),
    ),
    _Rule(
        "losing the lease is a state of its own, not a generic retry",
        ("a worker that lost its lease, and stopped",),
        frozenset(
            {
                "an expired lease was renewed",
                "another's lease was renewed",
                "a late start",
                "a late write",
            }
        ),
    ),
    _Rule(
        "an ambiguous outcome goes into reconciliation",
        ("an interrupted step with one decision",),
        frozenset(
            {"an interruption was never reconciled", "an interruption was reconciled twice"}
        ),
    ),
    _Rule(
        "restart and duplicate-request races are injected",
        ("a restart", "a duplicate request"),
    ),
    _Rule("a rebuild's documentation says how leases, state and credentials come back", ("",)),
)  # fmt: skip


class Seen(NamedTuple):
    """One of the things that a line needs, or what breaks it, and the events that show it."""

    what: str
    events: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the checklist. `number` counts from 1; `why` says what it rests on, or lacks."""

    number: int
    text: str
    status: Status
    why: str
    seen: tuple[Seen, ...] = ()
    broken: tuple[Seen, ...] = ()


def checklist_of(
    history: History, verdict: Verdict, *, effects: Sequence[EffectTold]
) -> tuple[Line, ...]:
    """The eight lines for one history."""
    seen: dict[int, list[Seen]] = {
        1: list(_claims(verdict)),
        2: list(_take_overs(verdict)),
        3: [_as_seen(3, item) for item in effects if _carries(item, verdict)],
        4: [_as_seen(4, item) for item in effects if item.stale and _refused(item)],
        5: list(_noticed(history, verdict)),
        6: list(_reconciled(verdict)),
        7: list(_injected(history)),
    }
    bare = [
        Seen(f"effect {item.name} under no token", (item.asked.n,))
        for item in effects
        if item.token is None and _has_token(verdict, item)
    ]
    lines = []
    for number, rule in enumerate(RULES, start=1):
        broken = [
            Seen(f"{finding.invariant}: {finding.title}", finding.at)
            for finding in verdict.findings
            if finding.severity == "fault" and finding.title in rule.broken_by
        ]
        broken += bare if number == 3 else []
        lines.append(_line(number, seen.get(number, []), broken))
    return tuple(lines)


def merged(checklists: Iterable[Sequence[Line]]) -> tuple[Line, ...]:
    """Several histories' checklists as one. Event numbers are of single histories: left out."""
    together: dict[int, tuple[list[Seen], list[Seen]]] = {
        number: ([], []) for number in range(1, len(RULES) + 1)
    }
    for lines in checklists:
        for line in lines:
            seen, broken = together[line.number]
            seen += [Seen(item.what, ()) for item in line.seen]
            broken += [Seen(item.what, ()) for item in line.broken]
    return tuple(_line(number, *found) for number, found in together.items())


def _line(number: int, seen: Sequence[Seen], broken: Sequence[Seen]) -> Line:
    rule = RULES[number - 1]
    counts = {need: sum(item.what == need for item in seen) for need in rule.needs}
    missing = [need for need, count in counts.items() if not count]
    status: Status = "broken" if broken else "not shown" if missing else "shown"
    if broken:
        why = "; ".join(dict.fromkeys(item.what for item in broken))
    elif number == len(RULES):
        why = "a history can't show documentation"
    elif missing:
        had = [need for need, count in counts.items() if count]
        why = f"not seen: {', '.join(missing)}" + (f" (seen: {', '.join(had)})" if had else "")
    else:
        why = ", ".join(
            f"{need} ({count}×)" if count > 1 else need for need, count in counts.items()
        )
    return Line(number, rule.text, status, why, tuple(seen), tuple(broken))


def _need(number: int, at: int = 0) -> str:
    return RULES[number - 1].needs[at]


def _as_seen(number: int, item: EffectTold) -> Seen:
    last = [moment.n for moment in item.decided]
    return Seen(_need(number), (item.asked.n, *last))


def _claims(verdict: Verdict) -> Iterator[Seen]:
    return (Seen(_need(1), (tenure.since,)) for tenure in verdict.tenures)


def _take_overs(verdict: Verdict) -> Iterator[Seen]:
    last: dict[str, Tenure] = {}
    for tenure in verdict.tenures:
        before = last.get(tenure.run_id)
        old, new = before.token if before is not None else None, tenure.token
        if before is not None and old is not None and new is not None and new > old:
            yield Seen(_need(2), (before.since, tenure.since))
        last[tenure.run_id] = tenure


def _tenure_of(verdict: Verdict, item: EffectTold) -> Tenure | None:
    for tenure in verdict.tenures:
        if (tenure.run_id, tenure.number) == (item.run_id, item.tenure):
            return tenure
    return None


def _has_token(verdict: Verdict, item: EffectTold) -> bool:
    tenure = _tenure_of(verdict, item)
    return tenure is not None and tenure.token is not None


def _carries(item: EffectTold, verdict: Verdict) -> bool:
    tenure = _tenure_of(verdict, item)
    return tenure is not None and item.token is not None and tenure.token == item.token


def _refused(item: EffectTold) -> bool:
    return item.outcome == "refused"


def _noticed(history: History, verdict: Verdict) -> Iterator[Seen]:
    """Losers that came back from `work` afterwards, and of whom nothing landed in between."""
    landed = {
        (attempt.who, attempt.run_id) for attempt in verdict.attempts if attempt.outcome == "landed"
    }
    for tenure in verdict.tenures:
        lost = tenure.until is not None and tenure.ended_by not in ("", tenure.who)
        if not lost or (tenure.who, tenure.run_id) in landed:
            continue
        for event in history:
            assert tenure.until is not None
            if isinstance(event, Returned) and event.who == tenure.who and event.n > tenure.until:
                yield Seen(_need(5), (tenure.until, event.n))
                break


def _reconciled(verdict: Verdict) -> Iterator[Seen]:
    for item in verdict.interruptions:
        if len(item.decisions) == 1:
            yield Seen(_need(6), (item.started_at, *item.decisions))


def _injected(history: History) -> Iterator[Seen]:
    """A worker that lived twice; a request that was decided twice; two workers under one name."""
    lives: dict[str, int] = {}
    decided: dict[tuple[str, int], int] = {}
    for event in history:
        n = _before(event, lives, decided)
        if n is not None:
            yield Seen(_need(7, 0 if isinstance(event, Spawned) else 1), (n, event.n))


def _before(event: Event, lives: dict[str, int], decided: dict[tuple[str, int], int]) -> int | None:
    if isinstance(event, Spawned):
        label = event.who.partition("#")[0]
        before = lives.get(label) if label != "operator" else None
        lives[label] = event.n
        return before
    if isinstance(event, EffectDecided):
        before = decided.get((event.who, event.request))
        decided[event.who, event.request] = event.n
        return before
    return None
