"""What must have happened for a scenario to count: no vacuous pass.

The grammar, whole::

    moment := NAME [' by ' WHO | ' of ' WHO | ': ' WHO]
    WHO    := a worker of the script (A) or one of its incarnations (A#2)
    NAME   := one of MOMENTS

Antithesis calls such things *sometimes* assertions: a test in which the danger never came about has
shown nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from . import footprints as facts
from .history import (
    Acted,
    Commit,
    EffectAnswered,
    Ended,
    History,
    LookedUp,
    RolledBack,
    Signalled,
    Spawned,
    Statement,
)
from .lives import label
from .subject import Declaration
from .verdict import Attempt, Interruption, Tenure


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a moment may be found in."""

    history: History
    declaration: Declaration
    owned: facts.Ownership
    attempts: tuple[Attempt, ...]
    interruptions: tuple[Interruption, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment: what it means, and the incarnations that it happened to."""

    meaning: str
    find: Callable[[Seen], Iterable[str]]


def happened(seen: Seen, moment: str) -> bool:
    """Whether a moment came about. Raises ValueError for one that there is none of."""
    name, who = parse_moment(moment)
    found = MOMENTS[name].find(seen)
    return any(not who or who in (one, label(one)) for one in found)


def parse_moment(text: str) -> tuple[str, str]:
    """A moment's name and whose it is ('' for anybody's). Raises ValueError that lists them all."""
    plain = " ".join(text.split())
    if plain in MOMENTS:
        return plain, ""
    match = _WHOSE.fullmatch(plain)
    if match is not None and match["name"] in MOMENTS:
        return match["name"], match["who"]
    known = ", ".join(MOMENTS)
    raise ValueError(f"{text!r} is no moment that a script can require; there are: {known}")


_WHOSE: Final = re.compile(r"(?P<name>.+?)(?: (?:by|of) |: ?)(?P<who>\S+)")
_DATA: Final = ("token", "owner", "expiry", "status", "key", "constraint")


def _attempts(
    *, effect: bool | None = None, guard: str = "", outcome: str = ""
) -> Callable[[Seen], Iterator[str]]:
    def find(seen: Seen) -> Iterator[str]:
        for attempt in seen.attempts:
            if effect is not None and attempt.what.startswith("effect ") != effect:
                continue
            if guard and guard not in attempt.guards:
                continue
            if not outcome or attempt.outcome == outcome:
                yield attempt.who

    return find


def _acts(*kinds: str) -> Callable[[Seen], Iterator[str]]:
    return lambda seen: (act.who for act in seen.owned.acts if act.kind in kinds)


def _taken_over(seen: Seen) -> Iterator[str]:
    before: dict[str, Tenure] = {}
    for tenure in seen.owned.tenures:
        last = before.get(tenure.run_id)
        if tenure.ended == "taken over":
            yield tenure.ended_by
        if last is not None and last.ended == "reaped" and last.who != tenure.who:
            yield tenure.who  # in two commits: the lease is put back first, then claimed
        before[tenure.run_id] = tenure


def _lapsed(seen: Seen) -> Iterator[str]:
    return (seen.owned.by_number[one.run_id, one.tenure].who for one in seen.owned.lapses)


def _woke(seen: Seen) -> Iterator[str]:
    return (seen.owned.by_number[one.run_id, one.tenure].who for one in seen.owned.wakes)


def _interrupted(seen: Seen) -> Iterator[str]:
    return (seen.owned.by_number[one.run_id, one.tenure].who for one in seen.interruptions)


def _reconciled(seen: Seen) -> Iterator[str]:
    deciders = {touch.n: touch.who for touch in seen.owned.touches}
    for item in seen.interruptions:
        yield from (deciders.get(n, "") for n in item.decisions)


def _signalled(signal: str) -> Callable[[Seen], Iterator[str]]:
    return lambda seen: (
        event.who
        for event in seen.history.events
        if isinstance(event, Signalled) and event.signal == signal
    )


def _killed(seen: Seen) -> Iterator[str]:
    yield from _signalled("SIGKILL")(seen)
    for event in seen.history.events:
        if isinstance(event, Ended) and event.how == "signal 9":
            yield event.who


def _restarted(seen: Seen) -> Iterator[str]:
    labels: set[str] = set()
    for event in seen.history.events:
        if isinstance(event, Spawned):
            if label(event.who) in labels and "#" in event.who and not event.who.endswith("#1"):
                yield event.who
            labels.add(label(event.who))


def _namesakes(seen: Seen) -> Iterator[str]:
    lives = [life for life in seen.owned.lives.values() if life.name and not life.is_operator]
    for life in lives:
        if any(
            other is not life and other.name == life.name and other.alive_at(life.since)
            for other in lives
        ):
            yield life.who


def _effects(*outcomes: str) -> Callable[[Seen], Iterator[str]]:
    def find(seen: Seen) -> Iterator[str]:
        for item in seen.owned.decisions:
            if not outcomes or item.event.outcome in outcomes:
                yield item.event.who

    return find


def _any_effect(seen: Seen) -> Iterator[str]:
    yield from _effects("accepted", "replayed")(seen)
    own = {ask.event.request for ask in seen.owned.asks if ask.event.store == "own"}
    for event in seen.history.events:
        if isinstance(event, EffectAnswered) and event.request in own and event.how == "returned":
            yield event.who


def _lost_answers(seen: Seen) -> Iterator[str]:
    for event in seen.history.events:
        if isinstance(event, EffectAnswered) and event.how == "lost":
            yield event.who


def _delivered_twice(seen: Seen) -> Iterator[str]:
    told: set[tuple[str, int]] = set()
    for item in seen.owned.decisions:
        key = (item.event.who, item.event.request)
        if key in told:
            yield item.event.who
        told.add(key)


def _looked_up(seen: Seen) -> Iterator[str]:
    return (event.who for event in seen.history.events if isinstance(event, LookedUp))


def _refused_claims(seen: Seen) -> Iterator[str]:
    """Workers that looked at the database while another's lease was live, and got nothing.

    That is: from one of its statements or transactions on, some run was held by another under a
    live lease, and up to then the worker had claimed nothing since the lease began.
    """
    for event in seen.history.events:
        if not isinstance(event, Statement | RolledBack | Commit):
            continue
        life = seen.owned.lives.get(event.who)
        if life is not None and (life.is_operator or life.job != "work"):
            continue
        for tenure in seen.owned.tenures:
            if tenure.who == event.who or not _in_force(tenure.since, tenure.until, event.n):
                continue
            if _lapsed_by(seen, tenure.run_id, tenure.number, event.n):
                continue
            mine = (
                one for one in seen.owned.tenures
                if one.who == event.who and one.since <= event.n
            )  # fmt: skip
            if not any(one.since >= tenure.since or one.until is None for one in mine) and not any(
                one.who == event.who and one.run_id == tenure.run_id and one.since < tenure.since
                for one in seen.owned.tenures
            ):
                yield event.who


def _in_force(since: int, until: int | None, n: int) -> bool:
    return since < n and (until is None or n < until)


def _lapsed_by(seen: Seen, run_id: str, number: int, n: int) -> bool:
    """Whether a tenure's lease had lapsed, and had not been extended since, by event `n`."""
    lapse = max(
        (one.n for one in seen.owned.lapses
         if one.run_id == run_id and one.tenure == number and one.n < n),
        default=0,
    )  # fmt: skip
    return lapse > 0 and not any(
        act.run_id == run_id and act.tenure == number and lapse < act.n < n
        and act.kind in ("renew", "late-renew")
        for act in seen.owned.acts
    )  # fmt: skip


def _cancels(seen: Seen) -> Iterator[str]:
    for tenure in seen.owned.tenures:
        if tenure.ended == "cancelled":
            yield tenure.who


def _locked(seen: Seen) -> Iterator[str]:
    return (
        "" for event in seen.history.events if isinstance(event, Acted) and event.text == "lock"
    )


MOMENTS: Final[Mapping[str, Moment]] = {
    "stale attempt": Moment(
        "an execution whose tenure was over tried to write, or looked and gave up", _attempts()
    ),
    "stale write attempt": Moment("one tried to write to the database", _attempts(effect=False)),
    "stale effect attempt": Moment("one asked for an effect", _attempts(effect=True)),
    **{
        f"stale attempt refused by {guard}": Moment(
            f"one was refused, and the {guard} was enough to refuse it", _attempts(guard=guard)
        )
        for guard in _DATA
    },
    "stale attempt that gave up": Moment(
        "one looked at the lease and gave up", _attempts(outcome="gave up after reading")
    ),
    "take-over": Moment("a worker claimed a run whose lease another let expire", _taken_over),
    "steal": Moment("a worker took or ended another's live lease", _acts("steal")),
    "claim": Moment("a worker claimed a run", _acts("acquire", "steal")),
    "refused claim": Moment(
        "a worker looked for work while another's lease was live, and got none", _refused_claims
    ),
    "reap": Moment("a janitor released an expired lease", _acts("reap")),
    "renewal": Moment("a holder extended its lease", _acts("renew", "late-renew")),
    "release": Moment("a holder released its lease", _acts("release", "late-release")),
    "finish": Moment("a holder finished its run", _acts("finish", "late-finish")),
    "late outcome": Moment(
        "a holder wrote under a lapsed lease that nobody had taken",
        _acts("late-write", "late-finish"),
    ),
    "cancel": Moment("an operator ended a run under its holder", _cancels),
    "lapse": Moment("a holder's lease expired with nobody having taken it", _lapsed),
    "woke past expiry": Moment("a holder moved after its lease had lapsed, untaken", _woke),
    "interruption": Moment("a step was lost with its holder's tenure", _interrupted),
    "reconciliation": Moment("a decision about an interrupted step was recorded", _reconciled),
    "killed": Moment("a worker was killed", _killed),
    "stopped": Moment("a worker was stopped", _signalled("SIGSTOP")),
    "continued": Moment("a stopped worker went on", _signalled("SIGCONT")),
    "restarted": Moment("a worker lived again under its name", _restarted),
    "two alive under one name": Moment("two workers had one configured name", _namesakes),
    "effect": Moment("an effect was carried out, or answered from its key", _any_effect),
    "effect refused": Moment("the provider refused an effect", _effects("refused")),
    "effect replayed": Moment("the provider knew the key already", _effects("replayed")),
    "effect failed": Moment("the provider failed with nothing done", _effects("failed")),
    "response lost": Moment("an effect's response never reached its worker", _lost_answers),
    "request delivered twice": Moment("the network delivered a request twice", _delivered_twice),
    "look-up": Moment("a worker asked the provider what became of a key", _looked_up),
    "lock held": Moment("somebody else held the write lock", _locked),
}
