"""The end (V5): liveness, with its reason.

First the faults, then everything is healed and drained, then this: what is still held, or was not
finished, and why, as far as the history tells. Only runs that some commit of the history touched
are judged: other people's rows are other people's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from . import footprints as facts
from .history import Acted, History, Settled
from .interruptions import in_flight
from .lives import Life
from .rows import View
from .sentences import Facts, cancelled, lasting, named, tokened
from .verdict import Finding, Tenure


def at_the_end(given: Facts, history: History) -> Iterator[Finding]:
    """V5 at the end: nothing is leased, running or in flight, and what can finish has finished."""
    if not given.drained:
        return
    under_way = in_flight(given.declaration, given.owned)
    for run in given.owned.runs.values():
        if not run.touched:
            continue
        if run.view.done or not (run.view.exists or run.view.held):
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
