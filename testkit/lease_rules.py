"""The rules about leases: tokens (V2), renewals (V6), takes and late writes (V7), skew (V10)."""

from __future__ import annotations

from collections.abc import Iterator

from . import footprints as facts
from .sentences import (
    Facts,
    acts_of,
    ago,
    author_of,
    ending,
    its,
    left,
    named,
    numbers,
    since,
    tokened,
    victims_of,
)
from .tenancy import IN_GAP
from .verdict import Finding, Tenure


def tokens(given: Facts) -> Iterator[Finding]:
    """V2: tokens grow and never repeat."""
    for fault in given.owned.token_faults:
        tenure = given.owned.by_number[fault.run_id, fault.tenure]
        if fault.earlier is not None:
            earlier = given.owned.tenure(fault.run_id, fault.earlier)
            by = f"{earlier.who} in tenure {earlier.number}" if earlier else "an earlier claim"
            title = "a token was used twice"
            text = f"had been given to {by} already"
            victims = (earlier.who,) if earlier and earlier.who != tenure.who else ()
        else:
            title, victims = "a token fell", ()
            text = f"is lower than {fault.highest}, which an earlier claim of it had"
        yield Finding(
            "V2", title,
            f"{tenure.who} claimed run {fault.run_id!r} at event {fault.n} under token"
            f" {fault.token}, which {text}; a fence can't tell the two apart.",
            fault.run_id, tenure.who, victims, (fault.n,),
        )  # fmt: skip


def renewals(given: Facts) -> Iterator[Finding]:
    """V6: a renewal touches only its own, unexpired lease."""
    distinct = bool(given.declaration.runs.lease.token or given.declaration.runs.lease.generation)
    for act, touch in acts_of(given):
        if act.kind == "stale-renew":
            lost = given.owned.tenure(act.run_id, act.tenure)
            if lost is None:
                continue
            text = (
                f"{act.who} {_moved(touch)} the lease on run {act.run_id!r} at event {act.n}, but"
                f" {its(act, lost)} {ending(lost)}{since(given, lost, act.n)}."
            )
            yield Finding("V6", "another's lease was renewed", text, act.run_id, act.who,
                          victims_of(given, act, lost), numbers(lost.until, act.n))  # fmt: skip
        elif act.kind == "late-renew" and given.claims("checks_expiry") and distinct:
            who = named(given, act.who, act.tenure, act.run_id)
            text = (
                f"{who} extended its lease on run {act.run_id!r} at event {act.n}, when by its own"
                f" clock it had lapsed{ago(touch)}."
            )
            yield Finding("V6", "an expired lease was renewed", text, act.run_id,
                          act.who, (), (act.n,))  # fmt: skip


def _moved(touch: facts.Touch) -> str:
    """What a renewal did to a lease: a lock is given back by setting its expiry to now or 0."""
    before, after = touch.before.expiry, touch.after.expiry
    shorter = before is not None and after is not None and after.at_ns < before.at_ns
    return "cut short" if shorter else "extended"


def left_behind(given: Facts) -> Iterator[Finding]:
    """V5 for calls: one that returns gives its lease back at once, where that is claimed."""
    if not given.claims("releases"):
        return
    for item in given.owned.left:
        tenure = given.owned.by_number[item.run_id, item.tenure]
        text = (
            f"{tenure.who}'s call returned at event {item.n} and left run {item.run_id!r} leased"
            f" ({tokened(tenure)}): others must wait for an owner that does nothing any more."
        )
        yield Finding("V5", "a call left its lease behind", text, item.run_id, tenure.who, (),
                      (tenure.since, item.n))  # fmt: skip


def takes(given: Facts) -> Iterator[Finding]:
    """V7 between workers: no live lease is taken or released by another."""
    if given.declaration.runs.lease.expires_at is None:
        return
    for act, touch in acts_of(given):
        if act.who == "" or act.kind not in ("steal", "foreign-finish"):
            continue
        if act.kind == "foreign-finish" and not touch.before.held:
            continue
        holder = given.owned.tenure(act.run_id, act.holder)
        whose = f"{holder.who}'s ({tokened(holder)})" if holder else f"{touch.before.owner!r}'s"
        title = "a live lease was taken"
        what = "took"
        if not touch.after.held or touch.after.done:
            title = "a lease was released by another"
            what = "released" if act.kind == "steal" else "finished the run under"
        text = (
            f"{act.who} {what} {whose} lease on run {act.run_id!r} at event {act.n}{left(touch)}."
        )
        victims = (holder.who,) if holder else ()
        yield Finding("V7", title, text, act.run_id, act.who, victims, (act.n,))
    yield from _taken_at_the_edge(given)


def _taken_at_the_edge(given: Facts) -> Iterator[Finding]:
    """At one instant a lease can't count as live and as expired.

    That it counted as live is shown by what would be a late write a moment later. An outcome that
    is recorded then shows nothing: it may be recorded under a lapsed lease, too.
    """
    touches = {(touch.n, touch.run_id): touch for touch in given.owned.touches}
    for take in given.owned.edge_takes:
        loser = given.owned.by_number[take.run_id, take.loser]
        for acted in take.acted:
            if not _is_outcome(given, touches[acted, take.run_id]):
                yield Finding(
                    "V7", "a live lease was taken",
                    f"at the very instant of its expiry the lease on run {take.run_id!r} counted as"
                    f" live for {loser.who} (event {acted}) and as expired for whoever took it"
                    f" (event {take.n}).",
                    take.run_id, author_of(given, take.n), (loser.who,), (acted, take.n),
                )  # fmt: skip
                break


def strangers_writes(given: Facts) -> Iterator[Finding]:
    """V7 between workers: what only the holder may write, nobody else writes while it holds."""
    parts = given.declaration.writes
    own = {part.table for part in parts if not part.late_ok}
    own |= {given.declaration.steps.table} if given.declaration.steps else set()
    for act, touch in acts_of(given):
        expiry = touch.before.expiry
        if act.kind != "foreign-write" or (expiry is not None and not expiry.live(touch.at_ns)):
            continue
        holder = given.owned.tenure(act.run_id, act.holder)
        tables = dict.fromkeys(one.table for one in touch.changes if one.table in own)
        if holder is None or not tables or not act.who or _came_with_its_columns(given, holder):
            continue
        text = (
            f"{act.who}, which never had a lease on run {act.run_id!r}, wrote to its"
            f" {', '.join(tables)} at event {act.n}, when {holder.who} held it"
            f" ({tokened(holder)})."
        )
        yield Finding("V7", "a run was written without its lease", text, act.run_id, act.who,
                      (holder.who,), (holder.since, act.n))  # fmt: skip


def _came_with_its_columns(given: Facts, holder: Tenure) -> bool:
    """Whether the commit that granted a lease is the one that brought the leases' columns.

    Such a lease is a grace for whoever was at work before there were any (second seed, "The grace
    lease at migration"): it knows of none, and its writes are what the grace is for.
    """
    lease = given.declaration.runs.lease
    column = lease.owner or (lease.expires_at if isinstance(lease.expires_at, str) else None)
    table = lease.table or given.declaration.runs.table
    return column is not None and any(
        change.table == table and change.old is not None and column not in change.old
        for act, touch in acts_of(given)
        if act.n == holder.since
        for change in touch.changes
    )


def late_writes(given: Facts) -> Iterator[Finding]:
    """V7 for the holder: nothing starts under a lapsed lease, for one that checks its expiry."""
    if not given.claims("checks_expiry"):
        return
    for act, touch in acts_of(given):
        pauses = act.kind == "late-release" and touch.after.waiting and not touch.before.waiting
        if pauses or (act.kind in ("late-write", "late-finish") and not _is_outcome(given, touch)):
            what = "finished" if act.kind == "late-finish" else "changed"
            what = "paused" if pauses else what
            tables = ", ".join(dict.fromkeys(change.table for change in touch.changes))
            text = (
                f"{named(given, act.who, act.tenure, act.run_id)} {what} run {act.run_id!r} (in"
                f" {tables}) at event {act.n}, when by its own clock its lease had lapsed"
                f"{ago(touch)} and nobody had taken it."
            )
            yield Finding("V7", "a late write", text, act.run_id, act.who, (), (act.n,))
        elif act.detail == IN_GAP:
            text = (
                f"{act.who}'s lease on run {act.run_id!r} lapsed between its last look at the clock"
                f" and its commit at event {act.n}."
            )
            yield Finding(
                "V7", "lapsed in the gap", text, act.run_id, act.who, (), (act.n,), "note"
            )


def _is_outcome(given: Facts, touch: facts.Touch) -> bool:
    """Whether a commit only records what came of steps that were under way before it."""
    steps = given.declaration.steps
    if steps is None or touch.after.done:
        return False
    rows = [change for change in touch.changes if change.table == steps.table]
    started = {*steps.started, *steps.interrupted}
    return bool(rows) and all(
        change.old is not None
        and change.new is not None
        and change.old.get(steps.status) in started
        and change.new.get(steps.status) not in started
        for change in rows
    )


def skew(given: Facts) -> Iterator[Finding]:
    """V10: the skew that the subject says it bears changes nothing."""
    bears_ns = given.declaration.bears_skew_ms * 1_000_000
    for take in given.owned.skew_takes:
        if abs(take.skew_ns) > bears_ns:
            continue
        loser = given.owned.by_number[take.run_id, take.loser]
        yield Finding(
            "V10", "a live lease was taken",
            f"{take.who}, whose clock is {take.skew_ns / 1e9:+g} s off {loser.who}'s, took the"
            f" lease on run {take.run_id!r} at event {take.n} while {loser.who} ({tokened(loser)})"
            f" still counted as its holder; a skew of {bears_ns / 1e9:g} s is claimed to be borne.",
            take.run_id, take.who, (loser.who,), (take.n,),
        )  # fmt: skip
