"""V7 for owners: one that works and has a heartbeat must not lose its lease while time passes.

Judged where the script let time pass with timers (`advance`), not where it set the clock past
every expiry; not for a worker that was stopped, or that the script kept from beating in the second
half of its lease (`hindrances`): after the first there was time to try again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .footprints import Lapse
from .hindrances import Hindrances
from .history import Acted, ClockMoved, ClockRead, Commit, Event, History, Passed, Returned
from .sentences import Facts, tokened
from .verdict import Finding, Tenure

#: The coarsest grain that an expiry is stored with: a second.
_GRAIN_NS: Final = 1_000_000_000


def live_owners(given: Facts, history: History) -> Iterator[Finding]:
    """V7: a working owner with a heartbeat keeps its lease while time passes."""
    if not given.claims("heartbeats"):
        return
    for lapse in given.owned.lapses:
        if lapse.why != "advance":
            continue
        tenure = given.owned.by_number[lapse.run_id, lapse.tenure]
        since = _last_renewal(given, tenure, before=lapse.n)
        if _is_excused(given, history.events, tenure, lapse, since=since):
            continue
        yield Finding(
            "V7", "a live owner lost its lease",
            f"{tenure.who} was at work on run {lapse.run_id!r} ({tokened(tenure)}), neither stopped"
            f" nor dead, and its lease lapsed at event {lapse.n}: it was extended last at event"
            f" {since}.",
            lapse.run_id, tenure.who, (), (since, lapse.n),
        )  # fmt: skip


def _is_excused(
    given: Facts, events: tuple[Event, ...], tenure: Tenure, lapse: Lapse, *, since: int
) -> bool:
    """Whether the owner did not live and work, or could not help it."""
    life = given.owned.lives.get(tenure.who)
    if life is None or not life.alive_at(lapse.n) or life.stopped_between(since, lapse.n):
        return True
    ends = (event.n for event in events if event.n > lapse.n and isinstance(event, Acted))
    if _recovers(given, tenure, lapse.n, next(ends, events[-1].n + 1)):
        return True
    if _is_over(events, tenure.who, lapse.n):
        return True  # its call returned: what it left behind is another finding
    ttl_ns = given.declaration.lease_ttl_ms * 1_000_000
    ends_ns = _ends_ns(given, tenure.run_id, since)
    late_ns = ends_ns - ttl_ns // 2
    return _was_held_up(
        events, tenure.who, since, bound_ns=ends_ns - ttl_ns, most_ns=ttl_ns // 10
    ) or _was_kept_from_beating(events, tenure, since, lapse.n, late_ns=late_ns)


def _ends_ns(given: Facts, run_id: str, n: int) -> int:
    """Until when commit `n` granted or extended the lease."""
    touch = next(one for one in given.owned.touches if (one.n, one.run_id) == (n, run_id))
    assert touch.after.expiry is not None  # else it would not have lapsed
    return touch.after.expiry.at_ns


def _last_renewal(given: Facts, tenure: Tenure, *, before: int) -> int:
    renewed = [
        act.n
        for act in given.owned.acts
        if act.run_id == tenure.run_id and act.tenure == tenure.number and act.n < before
        and act.kind in ("renew", "late-renew")
    ]  # fmt: skip
    return renewed[-1] if renewed else tenure.since


def _recovers(given: Facts, tenure: Tenure, first: int, last: int) -> bool:
    """Whether the owner was about to beat, or to end its tenure, within the same action."""
    return any(
        act.run_id == tenure.run_id and act.who == tenure.who and first <= act.n < last
        and act.kind in ("renew", "finish", "release", "late-finish", "late-release")
        for act in given.owned.acts
    )  # fmt: skip


def _is_over(events: tuple[Event, ...], who: str, until: int) -> bool:
    """Whether a worker's call had returned, and no other had begun."""
    for event in reversed(events):
        if event.n < until and isinstance(event, Passed | Returned) and event.who == who:
            return isinstance(event, Returned)
    return False


def _was_held_up(
    events: tuple[Event, ...], who: str, commit: int, *, bound_ns: int, most_ns: int
) -> bool:
    """Whether time passed between a renewal's look at the clock and its commit: a lock, a hold.

    That is its last look, or one since its thread's commit before, of the very time that it bound.
    """
    renewal = next(event for event in events if event.n == commit)
    by = (who, getattr(renewal, "thread", ""))
    last = True
    for event in reversed(events[: events.index(renewal)]):
        if not isinstance(event, ClockRead | Commit) or (event.who, event.thread) != by:
            continue
        if isinstance(event, Commit):
            return False
        is_its_look = last or abs(event.value_ns - bound_ns) < _GRAIN_NS
        if is_its_look and renewal.at_ns - event.at_ns > most_ns:
            return True
        last = False
    return False


def _was_kept_from_beating(
    events: tuple[Event, ...], tenure: Tenure, since: int, until: int, *, late_ns: int
) -> bool:
    """Whether the script itself kept it from that while time passed after `late_ns`."""
    threads = {event.n: getattr(event, "thread", "") for event in events}
    # Whoever renews and does not claim does nothing else: held anywhere, it does not beat.
    beater = threads[since] if threads[since] != threads[tenure.since] else ""
    stage = Hindrances()
    for event in events:
        if event.n > until:
            return False
        late = isinstance(event, ClockMoved) and event.n > since and event.to_ns > late_ns
        if late and stage.hinder(tenure.who, beater=beater):
            return True
        stage.see(event)
    return False
