"""Since when, and until when, nobody could know what became of a step or an effect.

It begins when the tenure of a step under way is lost; for an effect when its response is lost, or
its worker dies before one came. It ends with the decision that was recorded about it, with the
step's outcome, or when somebody asked for the same key and was told. (First seed, "Separate
liveness from ownership": OUTCOME_UNKNOWN.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .evidence_rows import Leases, Reconciled
from .history import (
    Commit,
    EffectAnswered,
    EffectAsked,
    EffectDecided,
    Ended,
    Event,
    History,
    LookedUp,
    Signalled,
)
from .verdict import Verdict


class Span(NamedTuple):
    """`since` and `until` are events; `until` None: it never was settled."""

    run_id: str | None
    what: str
    who: str
    since: Event
    until: Event | None
    settled_by: str


def unknown_in(
    history: History, verdict: Verdict, *, leases: Leases, reconciled: tuple[Reconciled, ...]
) -> tuple[Span, ...]:
    """Every such time, in the order in which they began."""
    finder = _Finder(history, leases, reconciled)
    spans = [*finder.steps(verdict), *finder.effects()]
    return tuple(sorted(spans, key=lambda span: span.since.n))


class _Finder:
    """One history, with its events by number."""

    def __init__(
        self, history: History, leases: Leases, reconciled: tuple[Reconciled, ...]
    ) -> None:
        self._history: Final = history
        self._events: Final[Mapping[int, Event]] = {event.n: event for event in history}
        self._leases: Final = leases
        self._decided: Final = {(item.event.n, item.run_id): item for item in reconciled}

    def steps(self, verdict: Verdict) -> Iterator[Span]:
        """Steps that were under way when their tenure was lost."""
        tenures = {(item.run_id, item.number): item for item in verdict.tenures}
        for item in verdict.interruptions:
            tenure = tenures.get((item.run_id, item.tenure))
            lost = self._events.get(tenure.until or 0) if tenure is not None else None
            if tenure is None or lost is None:
                continue
            finished = self._leases.finished(item.run_id, item.step, after=lost.n)
            decided = [n for n in item.decisions if n > lost.n]
            until: Event | None = finished
            by = f"its outcome, written by {finished.who}" if finished is not None else ""
            if decided and (finished is None or decided[0] <= finished.n):
                until = self._events.get(decided[0])
                by = self._decision(decided[0], item.run_id)
            yield Span(item.run_id, f"step {item.step}", tenure.who, lost, until, by)

    def effects(self) -> Iterator[Span]:
        """Effects whose worker never heard what came of them."""
        ends: dict[tuple[str, int], Event] = {}
        deaths: dict[str, Event] = {}
        for event in self._history:
            if isinstance(event, EffectAnswered):
                ends[event.who, event.request] = event
            elif isinstance(event, (Signalled, Ended)) and _is_death(event):
                deaths.setdefault(event.who, event)
        for asked in self._history:
            if not isinstance(asked, EffectAsked):
                continue
            answer = ends.get((asked.who, asked.request))
            lost = answer if isinstance(answer, EffectAnswered) and answer.how == "lost" else None
            since = lost or (deaths.get(asked.who) if answer is None else None)
            if since is not None and since.n > asked.n:
                until, by = self._settled(asked, since)
                yield Span(asked.run_id, f"effect {asked.name}", asked.who, since, until, by)

    def _settled(self, asked: EffectAsked, since: Event) -> tuple[Event | None, str]:
        again: set[int] = set()
        same = asked.key is not None
        for event in self._history:
            if event.n <= since.n:
                continue
            if isinstance(event, LookedUp) and same and event.key == asked.key:
                if event.found != "unknown":
                    return event, f"{event.who} asked the provider: {event.found}"
            elif isinstance(event, EffectAsked) and same and event.key == asked.key:
                again.add(event.request)
            elif isinstance(event, EffectDecided) and event.request in again:
                return event, f"{event.who} asked for it again: {event.outcome}"
            elif isinstance(event, Commit) and (event.n, asked.run_id) in self._decided:
                return event, self._decision(event.n, asked.run_id)
        return None, ""

    def _decision(self, n: int, run_id: str | None) -> str:
        item = self._decided.get((n, run_id or ""))
        if item is None:
            return "a recorded decision"
        return f"{item.decision}, decided by {item.decided_by or 'nobody named'}"


def _is_death(event: Signalled | Ended) -> bool:
    if isinstance(event, Signalled):
        return event.signal.endswith("KILL")
    return event.how.startswith(("signal", "exit"))
