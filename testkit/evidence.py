"""What a history proves, as a person would ask for it after an outage.

From a history and its verdict alone: when each lease was acquired and renewed, owner and token on
every effect, stale attempts and what refused each, the time spent with an outcome unknown, each
reconciliation with who decided it, and the run-lease checklist (first seed, "Useful evidence").
`timeline` and `report` draw it; `evidence_json` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from .checklist import Line, checklist_of
from .evidence_rows import Leases, Reconciled, declared, leases_of, reconciled_in
from .history import EffectAnswered, EffectAsked, EffectDecided, Event, History
from .subject import Declaration
from .unknown import Span, unknown_in
from .verdict import Act, Outcome, Tenure, Verdict

_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """An event and its time: `at_ns` of the stage's clock, `after_ms` since the stage began."""

    n: int
    at_ns: int
    after_ms: float


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """One tenure: when it was acquired and renewed, until when it then was to last, how it ended.

    `expires_ms` has one entry for the acquisition and one for each renewal: milliseconds since the
    stage began, None where the subject stores no expiry. `held_ms` is up to its end, or up to the
    end of the history while it is in force.
    """

    run_id: str
    number: int
    who: str
    owner: object
    token: int | None
    acquired: Moment
    renewed: tuple[Moment, ...]
    expires_ms: tuple[float | None, ...]
    over: Moment | None
    ended: str
    ended_by: str
    held_ms: float


@dataclass(frozen=True, slots=True)
class EffectTold:
    """One request for an effect: who asked under which owner and token, and what came of it.

    `stale`: its tenure was over when it asked. `outcome` is `accepted`, `refused`, `replayed`,
    `failed`, or `` while nothing was decided; `decided` has one entry for each delivery. `answer`
    is what its worker learnt: `delivered`, `lost`, `returned`, `raised …`, or `` for nothing.
    """

    asked: Moment
    request: int
    who: str
    name: str
    run_id: str | None
    key: str | None
    owner: object
    token: int | None
    tenure: int | None
    stale: bool
    store: str
    outcome: str
    why: str
    decided: tuple[Moment, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class StaleAttempt:
    """What an execution tried after its tenure was over; `refused_by` each guard that sufficed."""

    at: Moment
    run_id: str
    who: str
    tenure: int | None
    token: int | None
    what: str
    outcome: str
    refused_by: tuple[str, ...]
    sql: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A time during which nobody could know what became of something.

    `what` is `effect mail` or `step 0`. It begins when the tenure of a step under way is lost, or
    when an effect's response is lost or its worker dies over it, and ends with the decision or the
    outcome that settles it (`settled_by`); `until` None: it never was settled.
    """

    run_id: str | None
    what: str
    who: str
    since: Moment
    until: Moment | None
    settled_by: str
    for_ms: float


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One recorded decision about an interrupted step; `decided_by` its policy or operator."""

    at: Moment
    run_id: str
    step: str
    who: str
    decision: str
    decided_by: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that one script's history shows.

    `unknown_ms` counts overlapping times of one run once.
    """

    subject: str
    script: str
    kit: str
    python: str
    sqlite: str
    clock: str
    outcome: Outcome
    start_ns: int
    leases: tuple[LeaseTimes, ...]
    effects: tuple[EffectTold, ...]
    stale_attempts: tuple[StaleAttempt, ...]
    unknown: tuple[Unknown, ...]
    unknown_ms: float
    reconciliations: tuple[Reconciliation, ...]
    checklist: tuple[Line, ...]


def evidence_of(history: History, verdict: Verdict) -> Evidence:
    """The evidence of one history. Raises `SubjectError` when a row can't be read as declared."""
    return _Collector(history, verdict).evidence()


class _Collector:
    """One history made ready to be asked."""

    def __init__(self, history: History, verdict: Verdict) -> None:
        self._history: Final = history
        self._verdict: Final = verdict
        self._events: Final[dict[int, Event]] = {event.n: event for event in history}
        self._last: Final = (
            history.events[-1] if history.events else Event(0, history.header.start_ns)
        )
        self._declaration: Final[Declaration | None] = declared(history)
        self._leases: Final[Leases] = leases_of(history, self._declaration)
        self._reconciled: Final[tuple[Reconciled, ...]] = tuple(
            reconciled_in(history, self._declaration)
        )
        self._spans: Final = unknown_in(
            history, verdict, leases=self._leases, reconciled=self._reconciled
        )

    def evidence(self) -> Evidence:
        """All of it."""
        header, verdict = self._history.header, self._verdict
        effects = tuple(self._effects())
        unknown = tuple(map(self._unknown, self._spans))
        return Evidence(
            subject=header.subject,
            script=header.script,
            kit=header.kit,
            python=header.python,
            sqlite=header.sqlite,
            clock=header.clock,
            outcome=verdict.outcome,
            start_ns=header.start_ns,
            leases=tuple(map(self._lease, verdict.tenures)),
            effects=effects,
            stale_attempts=tuple(self._stale()),
            unknown=unknown,
            unknown_ms=_total_ms(unknown, self._moment(self._last)),
            reconciliations=tuple(
                Reconciliation(
                    self._moment(item.event), item.run_id, item.step, item.event.who,
                    item.decision, item.decided_by,
                )
                for item in self._reconciled
            ),
            checklist=checklist_of(self._history, verdict, effects=effects),
        )  # fmt: skip

    def _moment(self, event: Event) -> Moment:
        after_ms = (event.at_ns - self._history.header.start_ns) / _MS
        return Moment(event.n, event.at_ns, after_ms)

    def _at(self, n: int) -> Moment:
        return self._moment(self._events.get(n) or Event(n, self._last.at_ns))

    def _unknown(self, span: Span) -> Unknown:
        since = self._moment(span.since)
        until = self._moment(span.until) if span.until is not None else None
        last = until or self._moment(self._last)
        return Unknown(
            span.run_id, span.what, span.who, since, until, span.settled_by,
            last.after_ms - since.after_ms,
        )  # fmt: skip

    # -- leases ------------------------------------------------------------------------------

    def _lease(self, tenure: Tenure) -> LeaseTimes:
        acquired = self._at(tenure.since)
        renewed = tuple(self._at(act.n) for act in self._renewals(tenure))
        over = self._at(tenure.until) if tenure.until is not None else None
        until = over or self._moment(self._last)
        return LeaseTimes(
            tenure.run_id, tenure.number, tenure.who, tenure.owner, tenure.token,
            acquired, renewed,
            tuple(self._expiry_ms(tenure.run_id, item.n) for item in (acquired, *renewed)),
            over, tenure.ended, tenure.ended_by, until.after_ms - acquired.after_ms,
        )  # fmt: skip

    def _renewals(self, tenure: Tenure) -> Iterable[Act]:
        return (
            act
            for act in self._verdict.acts
            if act.kind in ("renew", "late-renew")
            and (act.run_id, act.tenure) == (tenure.run_id, tenure.number)
        )

    def _expiry_ms(self, run_id: str, n: int) -> float | None:
        expiry = self._leases.expiry(run_id, n)
        return None if expiry is None else (expiry.at_ns - self._history.header.start_ns) / _MS

    def _tenure_at(self, who: str, run_id: str | None, token: int | None, n: int) -> Tenure | None:
        """The tenure that an incarnation acts from at event `n`: its token's, else its last one."""
        own = [
            tenure
            for tenure in self._verdict.tenures
            if tenure.who == who and tenure.run_id == run_id and tenure.since < n
        ]
        named = [tenure for tenure in own if token is not None and tenure.token == token]
        found = named or own
        return found[-1] if found else None

    # -- effects and attempts ----------------------------------------------------------------

    def _effects(self) -> Iterator[EffectTold]:
        decided: dict[tuple[str, int], list[EffectDecided]] = {}
        answered: dict[tuple[str, int], EffectAnswered] = {}
        for event in self._history:
            if isinstance(event, EffectDecided):
                decided.setdefault((event.who, event.request), []).append(event)
            elif isinstance(event, EffectAnswered):
                answered[event.who, event.request] = event
        for event in self._history:
            if isinstance(event, EffectAsked):
                key = (event.who, event.request)
                yield self._effect(event, decided.get(key, []), answered.get(key))

    def _effect(
        self, asked: EffectAsked, decided: list[EffectDecided], answer: EffectAnswered | None
    ) -> EffectTold:
        tenure = self._tenure_at(asked.who, asked.run_id, asked.token, asked.n)
        outcome, why = (decided[0].outcome, decided[0].why) if decided else ("", "")
        moments = tuple(map(self._moment, decided))
        if asked.store == "own":
            landed = self._leases.landed(asked, before=answer.n if answer else None)
            moments = (self._moment(landed),) if landed else ()
            raised = answer is not None and answer.how.startswith("raised")
            outcome = "accepted" if landed else "refused" if raised else ""
            why = answer.how if answer is not None and raised else ""
            if answer is not None and answer.how == "returned" and landed is None:
                outcome, why = "replayed", "the store answered and took nothing new"
        return EffectTold(
            self._moment(asked), asked.request, asked.who, asked.name, asked.run_id, asked.key,
            tenure.owner if tenure else None, asked.token, tenure.number if tenure else None,
            tenure is not None and tenure.until is not None and tenure.until < asked.n,
            asked.store, outcome, why, moments, answer.how if answer else "",
        )  # fmt: skip

    def _stale(self) -> Iterator[StaleAttempt]:
        tokens = {(item.run_id, item.number): item.token for item in self._verdict.tenures}
        for attempt in self._verdict.attempts:
            token = tokens.get((attempt.run_id, attempt.tenure or 0))
            yield StaleAttempt(
                self._at(attempt.n), attempt.run_id, attempt.who, attempt.tenure, token,
                attempt.what, attempt.outcome, attempt.guards, attempt.sql,
            )  # fmt: skip


def _total_ms(unknown: Iterable[Unknown], last: Moment) -> float:
    """The time in which something of a run was unknown; overlapping times count once."""
    total = 0.0
    until: dict[str | None, float] = {}
    for item in unknown:
        end = (item.until or last).after_ms
        begin = max(item.since.after_ms, until.get(item.run_id, item.since.after_ms))
        total += max(0.0, end - begin)
        until[item.run_id] = max(end, until.get(item.run_id, end))
    return total
