"""The end (V5), and owners that must not lose what they work on (V7): liveness, with its reason.

First the faults, then everything is healed and drained, then this: what is still held, or was not
finished, and why, as far as the history tells. Only runs that some commit of the history touched
are judged: other people's rows are other people's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from . import footprints as facts
from .history import Acted, ClockMoved, ClockRead, Event, History, Passed, Returned, Settled
from .interruptions import in_flight
from .lives import Life, label
from .rows import View
from .sentences import Facts, cancelled, lasting, named, tokened
from .verdict import Finding, Tenure

#: Points in which a worker has the write lock.
_WRITING: Final = re.compile(r"txn:commit before|sql:(?!SELECT )\S+ .*")


def at_the_end(given: Facts, history: History) -> Iterator[Finding]:
    """V5 at the end: nothing is leased, running or in flight, and what can finish has finished."""
    if not given.drained:
        return
    under_way = in_flight(given.declaration, given.owned)
    for run in given.owned.runs.values():
        if not run.touched:
            continue
        if run.view.done or not run.view.exists:
            if not run.view.held and run.run_id in under_way and not cancelled(given, run.run_id):
                yield _in_flight(given, run, under_way[run.run_id])
            if not run.view.done:
                yield from _lost(given, run)
        elif run.view.held:
            yield _leased(given, run, history)
        elif not run.view.waiting:
            yield _unfinished(given, run, history)


def _lost(given: Facts, run: facts.RunEnd) -> Iterator[Finding]:
    """A run whose row a worker deleted before its end, and put back nowhere under another id."""
    gone = [
        touch for touch in given.owned.touches
        if touch.run_id == run.run_id and touch.before.exists and not touch.after.exists
    ]  # fmt: skip
    if not gone or gone[-1].before.done:
        return
    last = gone[-1]
    if any(kind.startswith("operator") for kind in last.kinds) or any(
        touch.n == last.n and touch.after.exists and not touch.before.exists
        for touch in given.owned.touches
    ):
        return
    text = (
        f"{last.who} deleted the row of run {run.run_id!r}, which was {last.before.status!r}, at"
        f" event {last.n}: nobody will finish it. (Where a finished run's row is deleted, declare"
        " gone=True.)"
    )
    yield Finding("V5", "a run was lost", text, run.run_id, last.who, (), (last.n,))


def _in_flight(given: Facts, run: facts.RunEnd, steps: tuple[str, ...]) -> Finding:
    names = ", ".join(repr(step) for step in steps)
    ends = (
        touch for touch in given.owned.touches
        if touch.run_id == run.run_id and touch.after.done and not touch.before.done
    )  # fmt: skip
    end = next(ends, None)
    by = end.who if end is not None else ""
    text = f"run {run.run_id!r} is {run.view.status!r}"
    if end is not None:
        text = f"{named(given, by, end.tenure, run.run_id)} left run {run.run_id!r}"
        text += f" {run.view.status!r} at event {end.n}"
    text += f", and its step {names} is still under way."
    return Finding("V5", "a step stayed in flight", text, run.run_id, by, (), (run.last,))


def _leased(given: Facts, run: facts.RunEnd, history: History) -> Finding:
    holder = given.owned.tenure(run.run_id, run.tenure)
    who = f"{holder.who} ({tokened(holder)})" if holder else f"owner {run.view.owner!r}"
    now_ns = history.events[-1].at_ns if history.events else 0
    text = f"run {run.run_id!r} is still held by {who}, {_until(run.view, now_ns)}"
    if holder is not None:
        text += f"; {_state(given, holder.who, history)}"
    text += f"; {_drain(given, history)}."
    return Finding("V5", "a run stayed leased", text, run.run_id, holder.who if holder else "", (),
                   (run.last,))  # fmt: skip


def _unfinished(given: Facts, run: facts.RunEnd, history: History) -> Finding:
    status = f"is {run.view.status!r}" if run.view.status is not None else "isn't finished"
    last = _last_tenure(given, run.run_id)
    text = f"run {run.run_id!r} {status} and nobody holds it"
    if last is not None:
        by = f" by {last.ended_by}" if last.ended_by != last.who else ""
        text += (
            f"; {last.who} had it last ({tokened(last)}), {last.ended}{by} at event {last.until}"
        )
    else:
        text += "; nobody ever claimed it"
    text += f"; {_drain(given, history)}."
    return Finding("V5", "a run never finished", text, run.run_id, last.ended_by if last else "",
                   (),
                   (run.last,))  # fmt: skip


def _last_tenure(given: Facts, run_id: str) -> Tenure | None:
    return next((one for one in reversed(given.owned.tenures) if one.run_id == run_id), None)


def _until(view: View, now_ns: int) -> str:
    if view.expiry is None:
        return "with no expiry"
    left = (view.expiry.at_ns - now_ns) / 1e9
    at = _clock(view.expiry.at_ns, dated=abs(left) > 86_400)
    if left > 0:
        return f"until {at} (in {lasting(left)})"
    return f"expired {lasting(-left)} ago, at {at}"


def _clock(at_ns: int, *, dated: bool) -> str:
    try:
        at = datetime.fromtimestamp(at_ns / 1e9, tz=UTC)
        return f"{at:%Y-%m-%d %H:%M:%S}" if dated else f"{at:%H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{at_ns} ns"


def _state(given: Facts, who: str, history: History) -> str:
    """Where a worker is at the end."""
    life = given.owned.lives.get(who)
    if life is not None and life.until is not None:
        return f"{who} ended ({life.how}) at event {life.until}"
    if life is not None and life.last:
        return f"{who} {life.last} and left it"
    for event in reversed(history.events):
        if isinstance(event, Settled) and event.who == who:
            return f"{who} {event.state}"
    return f"{who} lives"


def _drain(given: Facts, history: History) -> str:
    """Who tried to finish it last, and what they said."""
    since = next(
        (event.n for event in reversed(history.events)
         if isinstance(event, Acted) and event.text.startswith("drain")),
        None,
    )  # fmt: skip
    if since is None:
        return "the script did not drain"
    tried = [life for life in given.owned.lives.values()
             if life.since > since and not life.is_operator]  # fmt: skip
    if not tried:
        return "the drain started no worker"
    last: Life = tried[-1]
    said = last.last or (f"ended ({last.how})" if last.how else "did not return")
    count = f"{len(tried)} workers" if len(tried) > 1 else "one worker"
    return f"the drain ran {count}, the last of which, {last.who}, {said}"


def live_owners(given: Facts, history: History) -> Iterator[Finding]:
    """V7: a working owner with a heartbeat keeps its lease while time passes.

    Judged where the script let time pass with timers (`advance`), not where it set the clock past
    every expiry; not for a worker that was stopped, or held in its heartbeat, or whose write lock
    somebody else held in the second half of its lease: after the first there was time to try again.
    """
    if not given.claims("heartbeats"):
        return
    boundaries = [event.n for event in history.events if isinstance(event, Acted)]
    for lapse in given.owned.lapses:
        tenure = given.owned.by_number[lapse.run_id, lapse.tenure]
        end = next((n for n in boundaries if n > lapse.n), history.events[-1].n + 1)
        since = _last_renewal(given, tenure, before=lapse.n)
        if lapse.why != "advance" or _recovers(given, tenure, lapse.n, end):
            continue
        life = given.owned.lives.get(tenure.who)
        if life is None or not life.alive_at(lapse.n) or life.stopped_between(since, lapse.n):
            continue
        if _is_over(history.events, tenure.who, lapse.n):
            continue  # its call returned: what it left behind is another finding
        half_ns = given.declaration.lease_ttl_ms * 500_000
        if _was_held_up(history.events, tenure.who, since, most_ns=half_ns // 5):
            continue
        if _is_kept_from_beating(history.events, tenure.who, since, lapse.n, half_ns=half_ns):
            continue
        yield Finding(
            "V7", "a live owner lost its lease",
            f"{tenure.who} was at work on run {lapse.run_id!r} ({tokened(tenure)}), neither stopped"
            f" nor dead, and its lease lapsed at event {lapse.n}: it was extended last at event"
            f" {since}.",
            lapse.run_id, tenure.who, (), (since, lapse.n),
        )  # fmt: skip


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


def _was_held_up(events: tuple[Event, ...], who: str, commit: int, *, most_ns: int) -> bool:
    """Whether time passed between a renewal's look at the clock and its commit: a lock, a hold."""
    renewal = next(event for event in events if event.n == commit)
    by = (who, getattr(renewal, "thread", ""))
    looks = (event for event in reversed(events) if isinstance(event, ClockRead))
    look = next((one for one in looks if one.n < commit and (one.who, one.thread) == by), None)
    return look is not None and renewal.at_ns - look.at_ns > most_ns


def _is_kept_from_beating(
    events: tuple[Event, ...], who: str, since: int, until: int, *, half_ns: int
) -> bool:
    """Whether the script itself held the heartbeat, or the write lock that it needs."""
    locked = False
    late_ns = next(event.at_ns for event in events if event.n == since) + half_ns
    held: dict[str, str] = {}
    writing: set[tuple[str, str]] = set()  # others who are held in a transaction of theirs
    for event in events:
        if event.n > until:
            break
        if isinstance(event, Acted):
            words = event.text.split()
            locked = words[:1] == ["lock"] or (locked and words[:1] not in (["unlock"], ["heal"]))
            if words[:2] == ["hold", label(who)] and "heartbeat" in event.text:
                return True
        elif isinstance(event, Passed) and event.who == who:
            if event.held:
                held[event.thread] = event.point
            else:
                held.pop(event.thread, None)
        elif isinstance(event, Passed):
            writing.discard((event.who, event.thread))
            if event.held and _WRITING.fullmatch(f"{event.point} {event.phase}"):
                writing.add((event.who, event.thread))
        elif (
            isinstance(event, ClockMoved)
            and (locked or writing)
            and event.n >= since
            and event.to_ns > late_ns
        ):
            return True
    return any(point.startswith(("sql:", "txn:", "heartbeat")) for point in held.values())
