"""The rules about runs and rows: stale writes (V1), terminal states (V3), what a lease may outlive
(V5, at every commit), counts (V8), one run per id (V9), nothing without a commit (V11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from . import footprints as facts
from .history import Change, Value
from .rows import View, read_time
from .sentences import (
    Facts,
    acts_of,
    ending,
    event_no,
    its,
    lease_names,
    named,
    named_at,
    numbers,
    since,
    victims_of,
)
from .verdict import Finding


def stale_writes(given: Facts) -> Iterator[Finding]:
    """V1 for commits: nothing lands by an execution whose tenure is over."""
    effects = given.declaration.effects
    for act, touch in acts_of(given):
        if not act.kind.startswith("stale-") or act.kind == "stale-renew":
            continue
        lost = given.owned.tenure(act.run_id, act.tenure)
        if lost is None or (touch.before.done and lost.ended == "cancelled"):
            continue
        stored = {change.table for change in touch.changes}
        # An effect's transaction may touch the run's own row, to see that the lease is held.
        only_effects = (
            effects is not None
            and act.kind == "stale-write"
            and effects.table in stored
            and stored <= {effects.table, given.declaration.runs.table}
        )
        title = "a stale effect was accepted" if only_effects else "a stale write landed"
        what = {"stale-write": "changed", "stale-finish": "finished"}.get(act.kind, "released")
        what = "deleted" if touch.before.exists and not touch.after.exists else what
        what = "stored an effect of" if only_effects else what
        tables = ", ".join(dict.fromkeys(change.table for change in touch.changes))
        text = (
            f"{act.who} {what} run {act.run_id!r} (in {tables}) at event {act.n}, but"
            f" {its(act, lost)} {ending(lost)}{since(given, lost, act.n)}"
        )
        yield Finding("V1", title, text + ".", act.run_id, act.who,
                      victims_of(given, act, lost), numbers(lost.until, act.n))  # fmt: skip


def terminal(given: Facts) -> Iterator[Finding]:
    """V3: a terminal state is written once, and a result is recorded once."""
    finishers: dict[str, tuple[str, int]] = {}
    results: dict[tuple[str, object], tuple[str, int]] = {}
    for touch in given.owned.touches:
        yield from _rewrites(given, touch, finishers)
        yield from _second_results(given, touch, results, finishers)
        if touch.after.done and not touch.before.done:
            finishers[touch.run_id] = (touch.who, touch.n)


def _rewrites(
    given: Facts, touch: facts.Touch, finishers: Mapping[str, tuple[str, int]]
) -> Iterator[Finding]:
    by, at = finishers.get(touch.run_id, ("somebody before the first event", 0))
    culprit, victims = _blamed(given, touch, by)
    who = named(given, touch.who, touch.tenure, touch.run_id)
    first = named_at(given, by, at, touch.run_id)
    cancelled = "operator-cancel" in touch.kinds and touch.before.done and touch.after.done
    if "rewrites-terminal" in touch.kinds or (
        cancelled and touch.before.status != touch.after.status
    ):
        if not touch.after.done:
            what = f"took it up again ({touch.before.status!r} became {touch.after.status!r})"
        else:
            what = f"changed its end from {touch.before.status!r} to {touch.after.status!r}"
        text = f"run {touch.run_id!r} was ended by {first}{event_no(at)}, and {who} {what}"
    elif touch.before.done and _stale_after_cancel(given, touch):
        what = ", ".join(dict.fromkeys(change.table for change in touch.changes))
        text = f"run {touch.run_id!r} was cancelled by {by}{event_no(at)}, and {who} wrote"
        text += f" {what}"
    else:
        return
    yield Finding("V3", "a finished run was changed", f"{text} at event {touch.n}.", touch.run_id,
                  culprit, victims, numbers(at, touch.n))  # fmt: skip


def _stale_after_cancel(given: Facts, touch: facts.Touch) -> bool:
    lost = given.owned.tenure(touch.run_id, touch.tenure)
    stale = any(kind.startswith("stale-") for kind in touch.kinds)
    return stale and lost is not None and lost.ended == "cancelled"


def _second_results(
    given: Facts,
    touch: facts.Touch,
    results: dict[tuple[str, object], tuple[str, int]],
    finishers: Mapping[str, tuple[str, int]],
) -> Iterator[Finding]:
    """A step's or a run's result that is stored over another execution's."""
    steps, runs = given.declaration.steps, given.declaration.runs
    operator = any(kind == "submit" or kind.startswith("operator") for kind in touch.kinds)
    for change in touch.changes:
        new = change.new
        if new is None:  # the next row of this key is another step's
            results.pop((change.table, change.key), None)
        if new is None or operator:
            continue
        if steps is not None and change.table == steps.table:
            if new.get(steps.status) not in steps.finished:
                continue
            key = (change.table, change.key)
            value = new.get(steps.result) if steps.result else None
            was = change.old.get(steps.result) if change.old and steps.result else None
            first = results.get(key)
            if first is None:
                results[key] = (touch.who, touch.n)
            elif value != was or not steps.result:
                name = "/".join(str(new.get(column)) for column in steps.id)
                yield _twice(given, touch, first, f"the result of step {name!r}")
        elif change.table == runs.table and touch.before.done and change.old is not None:
            own = any(kind.partition("-")[0] in ("stale", "robbed") for kind in touch.kinds)
            stored = _results_in(given, change) if own else ()
            if stored and not _stale_after_cancel(given, touch):
                first = finishers.get(touch.run_id, ("", 0))
                yield _twice(given, touch, first, "its result", ", ".join(stored))


def _results_in(given: Facts, change: Change) -> tuple[str, ...]:
    """Columns of a run's row in which a result can have been stored.

    Nothing declares them. A result is text or bytes: what counts a row's revisions, or says when it
    was changed, is none.
    """
    old, new = change.old or {}, change.new or {}
    exempt = {*lease_names(given.declaration), given.declaration.runs.status}
    return tuple(
        sorted(
            name
            for name, value in new.items()
            if name not in exempt and old.get(name) != value and _is_result(value)
        )
    )


def _is_result(value: Value) -> bool:
    if not isinstance(value, str | bytes) or not value:
        return False
    try:
        read_time(value)
    except ValueError:
        return True
    return False


def _twice(
    given: Facts, touch: facts.Touch, first: tuple[str, int], what: str, columns: str = ""
) -> Finding:
    by, at = first
    culprit, victims = _blamed(given, touch, by)
    shown = f" ({columns})" if columns else ""
    who = named(given, touch.who, touch.tenure, touch.run_id)
    text = (
        f"{named_at(given, by or 'somebody', at, touch.run_id)} recorded {what} of run"
        f" {touch.run_id!r}{event_no(at)}, and {who} stored another{shown} over it at event"
        f" {touch.n}."
    )
    return Finding("V3", "the result was recorded twice", text, touch.run_id, culprit, victims,
                   numbers(at, touch.n))  # fmt: skip


def _blamed(given: Facts, touch: facts.Touch, other: str) -> tuple[str, tuple[str, ...]]:
    """Culprit and victims: one who was robbed of its tenure is no culprit."""
    lost = given.owned.tenure(touch.run_id, touch.tenure)
    if lost is not None and any(kind.startswith("robbed-") for kind in touch.kinds):
        return lost.ended_by, (touch.who,)
    return touch.who, (other,) if "#" in other and other != touch.who else ()


def safety(given: Facts) -> Iterator[Finding]:
    """V5 at every commit: a run that isn't running holds no lease."""
    told: set[str] = set()
    for touch in given.owned.touches:
        after = touch.after
        if not after.held or not (after.done or after.waiting) or _ended_by_its_expiry(touch):
            told.discard(touch.run_id)
            continue
        if touch.run_id in told or _only_looked(given, touch):
            continue
        told.add(touch.run_id)
        title = "a lease outlived its run's end" if after.done else "a resting run held a lease"
        yield Finding(
            "V5", title,
            f"{named(given, touch.who, touch.tenure, touch.run_id)} left run {touch.run_id!r}"
            f" {after.status!r} at event {touch.n}, and its lease {_stands(after)}.",
            touch.run_id, touch.who, (), (touch.n,),
        )  # fmt: skip


def _stands(after: View) -> str:
    return "still stands" if after.owner is None else f"still names {after.owner!r}"


def _ended_by_its_expiry(touch: facts.Touch) -> bool:
    """Whether a commit gave a lease back by putting its expiry into the past, as locks often are.

    The owner's name stays in such a row, and says who had it last.
    """
    before, after = touch.before.expiry, touch.after.expiry
    if after is None or after.live(touch.at_ns):
        return False
    return after != before or touch.before.done


def _only_looked(given: Facts, touch: facts.Touch) -> bool:
    """Whether a commit locked a run that was over, and its author saw that and did no more.

    Where leases are a table of their own, one must have the lock to be sure of the status.
    """
    table = given.declaration.runs.lease.table
    before, who = touch.before, touch.who
    if table is None or not before.done or before.identity == touch.after.identity:
        return False
    later = (one for one in given.owned.touches if one.run_id == touch.run_id and one.n > touch.n)
    then = next(later, None)
    if then is None or then.who != who or any(one.table != table for one in then.changes):
        return False
    acted = any(
        ask.event.who == who and ask.run_id == touch.run_id and touch.n < ask.event.n < then.n
        for ask in given.owned.asks
    )
    return not acted and (not then.after.held or _ended_by_its_expiry(then))


def growth(given: Facts) -> Iterator[Finding]:
    """V5: a lease that outlives its time by every renewal keeps a dead owner's run for longer."""
    told: set[tuple[str, int]] = set()
    for item in given.owned.growths:
        if (item.run_id, item.tenure) in told:
            continue
        told.add((item.run_id, item.tenure))
        tenure = given.owned.by_number[item.run_id, item.tenure]
        lengths = ", ".join(f"{length / 1e9:g} s" for length in item.lengths_ns)
        yield Finding(
            "V5", "a lease grew with its renewals",
            f"{tenure.who}'s lease on run {item.run_id!r} was to last {lengths} after the claim and"
            " each renewal: if its owner dies, the run is kept from others for that long.",
            item.run_id, tenure.who, (), (item.n,),
        )  # fmt: skip


def counts(given: Facts) -> Iterator[Finding]:
    """V8: counters equal live holders, and stay within their bounds."""
    for item in given.owned.miscounts:
        bound = f", with {item.most} as its bound" if item.most is not None else ""
        counter = next(
            one for one in given.declaration.counters
            if (one.table, one.column) == (item.table, item.column)
        )  # fmt: skip
        whom = f"rows of {', '.join(counter.of)} count" if counter.of else "runs are held"
        yield Finding(
            "V8", "a count was wrong",
            f"after {item.who}'s commit at event {item.n}, {item.table}.{item.column} says"
            f" {item.says}{bound}, and {item.holders} {whom}.",
            "", item.who, (), (item.n,),
        )  # fmt: skip


def twins(given: Facts) -> Iterator[Finding]:
    """V9 for runs: one run per id, and per key."""
    for item in given.owned.twins:
        if item.first:
            yield Finding(
                "V9", "one key, two runs",
                f"{item.who} started run {item.run_id!r} at event {item.n} by key {item.key!r},"
                f" which had started run {item.first!r}: both can be executed.",
                item.run_id, item.who, (), (item.n,),
            )  # fmt: skip
            continue
        yield Finding(
            "V9", "one run id, two runs",
            f"{item.who} made a second row for run {item.run_id!r} at event {item.n}: both can be"
            " executed.",
            item.run_id, item.who, (), (item.n,),
        )  # fmt: skip


def committed(given: Facts) -> Iterator[Finding]:
    """V11: every change comes with a commit, and what was committed stays."""
    told: set[tuple[int, str, str]] = set()
    for item in given.owned.misfits:
        key = (item.n, item.table, item.what)
        if key in told:
            continue
        told.add(key)
        title = {
            "vanished": "a row vanished",
            "came back": "a row came back",
        }.get(item.what, "a row changed without a commit")
        row = "/".join(str(part) for part in item.change.key)
        seen = f"in {item.who}'s commit" if item.who else "outside every commit that was seen"
        text = f"row {row} of {item.table} {item.what}, found {seen} at event {item.n}."
        yield Finding("V11", title, text, item.run_id or "", item.who, (), (item.n,))
