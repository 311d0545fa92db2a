"""The rules about effects and interrupted steps: V1 at the provider, V4, V9 for keys.

A provider can refuse what is lower than the highest token it has seen, and no more; so it accepts a
stale request that comes before the new owner's first one. That window is named, and is a fault only
of a subject that claims to fence its effects and has no store of its own to fence them in. Where
the contract is at-least-once and nothing fences, a stale effect that was accepted is named too:
what it did wrong, if anything, is in V4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from . import footprints as facts
from .sentences import Facts, cancelled, ending, named, numbers, tokened
from .subject import Steps
from .verdict import Finding, Interruption


def stale_effects(given: Facts) -> Iterator[Finding]:
    """V1 at the provider: no effect is accepted from an execution whose tenure is over."""
    highest: dict[str, facts.Decision] = {}
    for item in given.owned.decisions:
        if item.event.outcome != "accepted" or item.ask.run_id is None:
            continue
        token = item.ask.event.token
        before = highest.get(item.ask.run_id)
        lower = False
        if token is not None:
            lower = before is not None and token < (before.ask.event.token or 0)
            if not lower:
                highest[item.ask.run_id] = item
        if item.over or lower:
            finding = _stale_effect(given, item, before if lower else None)
            if finding is not None:
                yield finding


def _stale_effect(
    given: Facts, item: facts.Decision, higher: facts.Decision | None
) -> Finding | None:
    ask, n = item.ask, item.event.n
    lost = given.owned.tenure(ask.run_id, ask.tenure)
    run_id = ask.run_id or ""
    who = item.event.who
    later = [
        tenure
        for tenure in given.owned.tenures
        if tenure.run_id == run_id and lost is not None and tenure.number > lost.number
        and tenure.since < n
    ]  # fmt: skip
    if higher is None and (lost is None or lost.ended_by == lost.who):
        return None  # nobody has taken the run: no newer owner whose effect could be crossed
    if higher is None and lost is not None and not later and lost.ended in _NOBODY_FOLLOWED:
        return None  # an operator ended it, or somebody without right, whose victim it is
    over = f"; its lease ({tokened(lost)}) {ending(lost)}" if lost and lost.until else ""
    victims = tuple(dict.fromkeys(one.who for one in later if one.who != who))
    at = numbers(lost.until if lost else None, ask.event.n, n)
    text = f"the provider accepted effect {ask.event.name!r} of run {run_id!r} from {who}"
    if higher is not None:
        other = higher.ask.event
        text += (
            f" under token {ask.event.token} at event {n}, after it had accepted token"
            f" {other.token} from {other.who} at event {higher.event.n}{over}."
        )
        return Finding("V1", "a stale effect was accepted", text, run_id, who,
                       victims or (other.who,), at)  # fmt: skip
    token = (
        f" under token {ask.event.token}" if ask.event.token is not None else " (without a token)"
    )
    text += f"{token} at event {n}{over}"
    # a fence in one transaction with the lease is a fence of the subject's own store, if it has one
    fault = given.claims("fences_effects") and given.declaration.effects is None
    if given.declaration.provider_fence == "highest seen" and ask.event.token is not None:
        text += (
            ", but the new owner had not shown it a higher one yet: a fence that only knows the"
            " highest token it has seen can't refuse that."
        )
        title = "the window of a highest-seen fence"
    else:
        title = "a stale effect was accepted"
        text += ", and nothing fences it there."
    return Finding("V1", title, text, run_id, who, victims, at, "fault" if fault else "note")


_NOBODY_FOLLOWED: Final = frozenset({"finished", "released", "cancelled"})


def late_starts(given: Facts) -> Iterator[Finding]:
    """V7: no effect is started under a lapsed lease, for a subject that checks its expiry."""
    if not given.claims("checks_expiry"):
        return
    for ask in given.owned.asks:
        if ask.unlooked and given.claims("validates"):
            yield _unchecked(given, ask)
        if not ask.late:
            continue
        tenure = given.owned.tenure(ask.run_id, ask.tenure)
        token = f" ({tokened(tenure)})" if tenure else ""
        yield Finding(
            "V7", "a late start",
            f"{ask.event.who} asked for effect {ask.event.name!r} of run {ask.run_id!r} at event"
            f" {ask.event.n}{token}, when by its own clock its lease had lapsed.",
            ask.run_id or "", ask.event.who, (), (ask.event.n,),
        )  # fmt: skip


def _unchecked(given: Facts, ask: facts.Ask) -> Finding:
    """The start of one that did not look at its lease again."""
    tenure = given.owned.tenure(ask.run_id, ask.tenure)
    token = f" ({tokened(tenure)})" if tenure else ""
    lost = f"it {ending(tenure)}" if tenure and tenure.until is not None else "it had lapsed"
    text = (
        f"{ask.event.who} asked for effect {ask.event.name!r} of run {ask.run_id!r} at event"
        f" {ask.event.n}{token} and had last looked at its lease at event {ask.unlooked}; since"
        f" then {lost}."
    )
    victims = (tenure.ended_by,) if tenure and tenure.ended_by else ()
    return Finding("V7", "an unchecked start", text, ask.run_id or "", ask.event.who, victims,
                   (ask.unlooked, ask.event.n))  # fmt: skip


def unasked(given: Facts) -> Iterator[Finding]:
    """V4 for lost requests: one that may have been carried out isn't made again unasked.

    Judged for a subject that claims `asks_first`, whoever asked the provider about the key. Where
    the run has waited for an operator since, it is made again at a person's word.
    """
    if not given.claims("asks_first"):
        return
    outcomes = {
        (item.event.who, item.event.request): item.event.outcome for item in given.owned.decisions
    }
    last: dict[str, facts.Ask] = {}
    for ask in given.owned.asks:
        event = ask.event
        if event.key is None or event.store != "provider":
            continue
        if ask.over:
            continue  # a stale request is no retry, and nobody could know that it would still come
        before = last.get(event.key)
        last[event.key] = ask
        if before is None or (before.run_id, before.tenure) == (ask.run_id, ask.tenure):
            continue
        known = outcomes.get((before.event.who, before.event.request), "")
        if known in ("refused", "failed") or ask.asked_about > before.event.n:
            continue
        if _has_waited(given, ask.run_id, before.event.n, event.n):
            continue
        text = (
            f"{_asker(given, ask)} asked for effect {event.name!r} of run {ask.run_id!r} again at"
            f" event {event.n}, and nobody had asked the provider about key {event.key!r} since"
            f" {before.event.who}'s request at event {before.event.n}, whose outcome was lost."
        )
        yield Finding("V4", "an effect was retried unasked", text, ask.run_id or "", event.who,
                      (), (before.event.n, event.n))  # fmt: skip


def _has_waited(given: Facts, run_id: str | None, first: int, last: int) -> bool:
    """Whether a run waited for somebody at some time between two events."""
    return any(
        touch.run_id == run_id and first < touch.n < last and touch.after.waiting
        for touch in given.owned.touches
    )


def ran_twice(given: Facts) -> Iterator[Finding]:
    """V4 for effects: exactly once means that the provider carries an effect out once.

    An effect is told by its key; without one by its name, run and tenure-crossing repetition.
    """
    if given.declaration.delivery != "exactly-once":
        return
    first: dict[tuple[str | None, str, str | None], facts.Decision] = {}
    for item in given.owned.decisions:
        if item.event.outcome != "accepted":
            continue
        asked = item.ask.event
        key = (None, asked.key, None) if asked.key else (item.ask.run_id, asked.name, None)
        full = (key[0], str(key[1]), key[2])
        earlier = first.setdefault(full, item)
        if earlier is item:
            continue
        same_request = earlier.ask is item.ask
        if not asked.key and not same_request and earlier.ask.tenure == item.ask.tenure:
            continue  # two steps of one execution may well do the same thing
        how = f"key {asked.key!r}" if asked.key else "no idempotency key"
        text = (
            f"the provider carried out effect {asked.name!r} of run {item.ask.run_id!r} for"
            f" {_asker(given, earlier.ask)} at event {earlier.event.n} and again for"
            f" {_asker(given, item.ask)} at event {item.event.n} ({how})"
        )
        text += ": the network delivered one request twice." if same_request else "."
        culprit, victims = _to_blame(
            (earlier.event.who, item.event.who), stale=(earlier.over, item.over)
        )
        yield Finding("V4", "the effect ran twice", text, item.ask.run_id or "", culprit,
                      victims, (earlier.event.n, item.event.n))  # fmt: skip


def _to_blame(askers: tuple[str, str], *, stale: tuple[bool, bool]) -> tuple[str, tuple[str, ...]]:
    """The culprit of two that did the same, and the victims.

    Who came second, unless the first one's tenure was over: the rightful one can't know of that.
    """
    first, second = askers
    if stale == (True, False):
        first, second = second, first
    return second, (first,) if first != second else ()


def _asker(given: Facts, ask: facts.Ask) -> str:
    """Who asked, with the tenure it asked from."""
    return named(given, ask.event.who, ask.tenure, ask.run_id or "")


def ran_again_under_another_key(given: Facts) -> Iterator[Finding]:
    """V4 for effects: a step that was lost after its effect isn't done again under a new key.

    Which step an effect was for is known where results are stored: by the receipt that landed in
    the step's row, and for one that was lost because only that step was under way.
    """
    spec = given.declaration.steps
    if given.declaration.delivery != "exactly-once" or not given.interruptions:
        return
    if spec is None or spec.result is None:
        return
    accepted = [
        item for item in given.owned.decisions
        if item.event.outcome == "accepted" and item.ask.event.key
    ]  # fmt: skip
    landed = _landed_in(given, spec, accepted)
    keys = [(ask.event.key, ask.event.n) for ask in given.owned.asks]
    for item in given.interruptions:
        alone = sum(
            (one.run_id, one.tenure) == (item.run_id, item.tenure) for one in given.interruptions
        )
        for first in accepted:
            lost = first.ask.event
            if (first.ask.run_id, first.ask.tenure) != (item.run_id, item.tenure) or alone > 1:
                continue
            if lost.n < item.started_at or lost.receipt in landed:
                continue
            if any(key == lost.key and n > lost.n for key, n in keys):
                continue  # it was asked for again under its own key
            for again in accepted:
                other = again.ask.event
                if (
                    other.n > lost.n
                    and other.name == lost.name
                    and other.key != lost.key
                    and landed.get(other.receipt) == (item.run_id, item.step)
                ):
                    text = (
                        f"the provider carried out effect {lost.name!r} of step {item.step!r} of"
                        f" run {item.run_id!r} for {lost.who} at event {first.event.n} (key"
                        f" {lost.key!r}), and when that was lost again for {other.who} at event"
                        f" {again.event.n} under another key, {other.key!r}."
                    )
                    yield Finding("V4", "the effect ran twice", text, item.run_id, other.who,
                                  (lost.who,) if lost.who != other.who else (),
                                  (first.event.n, again.event.n))  # fmt: skip


def _landed_in(
    given: Facts, spec: Steps, decisions: Sequence[facts.Decision]
) -> dict[str, tuple[str, str]]:
    """The run and step in whose result each receipt landed."""
    receipts = [item.ask.event.receipt for item in decisions]
    landed: dict[str, tuple[str, str]] = {}
    for touch in given.owned.touches:
        for change in touch.changes:
            if change.table == spec.table and change.new is not None and spec.result:
                result = str(change.new.get(spec.result))
                name = "/".join(str(change.new.get(column)) for column in spec.id)
                for receipt in receipts:
                    if receipt in result:
                        landed.setdefault(receipt, (touch.run_id, name))
    return landed


def one_per_key(given: Facts) -> Iterator[Finding]:
    """V9 for effects: one effect per key, at the provider and in the subject's own store."""
    first: dict[str, facts.Decision] = {}
    for item in given.owned.decisions:
        key = item.ask.event.key
        if item.event.outcome != "accepted" or key is None:
            continue
        earlier = first.setdefault(key, item)
        if earlier is not item:
            culprit, victims = _to_blame(
                (earlier.event.who, item.event.who), stale=(earlier.over, item.over)
            )
            yield Finding(
                "V9", "one key, two effects",
                f"key {key!r} was accepted for {earlier.event.who} at event {earlier.event.n} and"
                f" again for {item.event.who} at event {item.event.n}.",
                item.ask.run_id or "", culprit, victims, (earlier.event.n, item.event.n),
            )  # fmt: skip
    yield from _rows_per_key(given)


def _rows_per_key(given: Facts) -> Iterator[Finding]:
    spec = given.declaration.effects
    if spec is None or spec.key is None:
        return
    rows: dict[object, tuple[object, facts.Touch]] = {}
    for touch in given.owned.touches:
        for change in touch.changes:
            if change.table != spec.table or change.new is None or change.old is not None:
                continue
            key = change.new.get(spec.key)
            if key is None:
                continue
            row, earlier = rows.setdefault(key, (change.key, touch))
            if row != change.key:
                culprit, victims = _to_blame(
                    (earlier.who, touch.who), stale=(_is_stale(earlier), _is_stale(touch))
                )
                yield Finding(
                    "V9", "one key, two effects",
                    f"{touch.who} stored a second effect under key {key!r} at event {touch.n};"
                    f" {earlier.who} had stored the first at event {earlier.n}.",
                    touch.run_id, culprit, victims, (earlier.n, touch.n),
                )  # fmt: skip


def _is_stale(touch: facts.Touch) -> bool:
    return any(kind.startswith("stale-") for kind in touch.kinds)


def reconciliations(given: Facts) -> Iterator[Finding]:
    """V4 for steps: each interruption has exactly one recorded decision."""
    if not given.claims("reconciles") or given.declaration.reconciliations is None:
        return
    deciders = {touch.n: touch.who for touch in given.owned.touches}
    for item in given.interruptions:
        if len(item.decisions) > 1:
            yield _twice_decided(given, item, deciders)
        elif not item.decisions and _is_due(given, item):
            lost = given.owned.by_number[item.run_id, item.tenure]
            text = (
                f"step {item.step!r} of run {item.run_id!r} was started by {lost.who}"
                f" ({tokened(lost)}) at event {item.started_at} and lost with its tenure, which"
                f" {ending(lost)}; nobody recorded what became of it."
            )
            other = lost.ended_by if lost.ended_by != lost.who else _next_holder(given, item)
            culprit = other or lost.who
            yield Finding("V4", "an interruption was never reconciled", text, item.run_id,
                          culprit, (), numbers(item.started_at, lost.until))  # fmt: skip


def _next_holder(given: Facts, item: Interruption) -> str:
    after = given.owned.tenure(item.run_id, item.tenure + 1)
    return after.who if after else ""


def _twice_decided(given: Facts, item: Interruption, deciders: dict[int, str]) -> Finding:
    by = [f"{deciders.get(n, 'somebody')} at event {n}" for n in item.decisions]
    lost = given.owned.by_number[item.run_id, item.tenure]
    text = (
        f"step {item.step!r} of run {item.run_id!r}, which {lost.who} ({tokened(lost)}) lost, was"
        f" decided about by {' and by '.join(by)}: one interruption has one decision."
    )
    culprit = deciders.get(item.decisions[-1], "")
    first = deciders.get(item.decisions[0], "")
    victims = (first,) if first != culprit else ()
    return Finding("V4", "an interruption was reconciled twice", text, item.run_id, culprit,
                   victims, (item.started_at, *item.decisions))  # fmt: skip


def _is_due(given: Facts, item: Interruption) -> bool:
    """Whether a decision should have been recorded by the end of the history."""
    run = given.owned.runs.get(item.run_id)
    if run is None or run.view.waiting:
        return False  # an operator is being waited for
    if cancelled(given, item.run_id):
        return False
    return run.view.done or given.drained
