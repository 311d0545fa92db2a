"""Interrupted steps: what was started and not finished when a tenure was lost, and who decided.

A step is started by a commit that puts its row into one of the declared `started` statuses, in the
tenure in force then. It is interrupted when that tenure ends without it having been finished, other
than by the run's own end. A step that is started again and lost again is a new interruption; one
that is merely carried along by a recovery that is itself lost is still the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from . import footprints as facts
from .history import Change, Row
from .subject import Declaration, Steps
from .verdict import Interruption, Tenure

#: Ends of a tenure over which a step can be lost. A run that is finished or cancelled is over.
_LOSSES: Final = frozenset({"taken over", "reaped", "stolen", "released", "deleted"})


@dataclass(slots=True)
class _Step:
    """A step as it stands; `tenure` in which it was started last, 0 when it isn't under way."""

    tenure: int = 0
    started_at: int = 0
    #: Interruptions of it that nobody has finished it after.
    open: list[_Found] = field(default_factory=list)


@dataclass(slots=True)
class _Found:
    run_id: str
    step: str
    tenure: int
    started_at: int
    decisions: list[int]
    #: The tenure that the last decision was made in; None for an operator's.
    decided_in: int | None = None


def interruptions_of(declaration: Declaration, owned: facts.Ownership) -> tuple[Interruption, ...]:
    """Every interruption, with the event numbers of the decisions that were recorded about it."""
    return tuple(
        Interruption(item.run_id, item.step, item.tenure, item.started_at, tuple(item.decisions))
        for item in _find(declaration, owned)
    )


def in_flight(declaration: Declaration, owned: facts.Ownership) -> dict[str, tuple[str, ...]]:
    """Steps that are started at the end of the history, by run."""
    steps = declaration.steps
    if steps is None:
        return {}
    rows: dict[tuple[str, str], bool] = {}
    for touch in owned.touches:
        for change in touch.changes:
            if change.table == steps.table and change.new is not None:
                started = change.new.get(steps.status) in steps.started
                rows[touch.run_id, _name(change.new, steps.id)] = started
            elif change.table == steps.table and change.old is not None:
                rows.pop((touch.run_id, _name(change.old, steps.id)), None)
    found: dict[str, tuple[str, ...]] = {}
    for (run_id, name), started in rows.items():
        if started:
            found[run_id] = (*found.get(run_id, ()), name)
    return found


def _find(declaration: Declaration, owned: facts.Ownership) -> list[_Found]:
    spec = declaration.steps
    if spec is None:
        return []
    found: list[_Found] = []
    steps: dict[tuple[str, str], _Step] = {}
    asked = _asked(owned)
    for touch in owned.touches:
        _lose(touch, owned, spec, steps, found, asked)
        for change in touch.changes:
            if change.table == spec.table:
                _follow(change, touch, spec, steps)
        _decide(touch, declaration, steps, found)
    return found


def _asked(owned: facts.Ownership) -> dict[tuple[str, int], int]:
    """The first request for an effect in each tenure."""
    first: dict[tuple[str, int], int] = {}
    for ask in owned.asks:
        if ask.run_id is not None and ask.tenure is not None:
            first.setdefault((ask.run_id, ask.tenure), ask.event.n)
    return first


def _lose(
    touch: facts.Touch,
    owned: facts.Ownership,
    spec: Steps,
    steps: dict[tuple[str, str], _Step],
    found: list[_Found],
    asked: dict[tuple[str, int], int],
) -> None:
    """When this commit ended a tenure: what was started in it and isn't finished."""
    lost = owned.tenure(touch.run_id, touch.holder)
    if lost is None or lost.until != touch.n or lost.ended not in _LOSSES:
        return
    settled = _settled(touch, spec)
    for (run_id, name), step in steps.items():
        if run_id != touch.run_id:
            continue
        if step.tenure == lost.number and name not in settled:
            step.open.append(_Found(run_id, name, lost.number, step.started_at, []))
            step.tenure = 0
        elif step.open and _tried_again(lost, step.open[-1], asked):
            started = asked[run_id, lost.number]
            step.open.append(_Found(run_id, name, lost.number, started, []))
        else:
            continue
        found.append(step.open[-1])


def _tried_again(lost: Tenure, last: _Found, asked: dict[tuple[str, int], int]) -> bool:
    """Whether a recovery had decided to retry, and did ask for an effect, before it was lost.

    Some runtimes retry a step without marking it as started anew.
    """
    first = asked.get((lost.run_id, lost.number))
    decided = [n for n in last.decisions if lost.since <= n]
    return bool(decided) and first is not None and first > decided[0]


def _settled(touch: facts.Touch, spec: Steps) -> frozenset[str]:
    """Steps that a holder, or an operator, brought to rest in the commit that ended a tenure."""
    # An operator who edits (who restores a backup, too) has decided what the step is.
    edited = any(kind.startswith("operator") for kind in touch.kinds)
    if touch.holder is None or (touch.tenure != touch.holder and not edited):
        return frozenset()
    unsettled = {*spec.started, *spec.interrupted}
    return frozenset(
        _name(change.new, spec.id)
        for change in touch.changes
        if change.table == spec.table
        and change.new is not None
        and change.new.get(spec.status) not in unsettled
    )


def _follow(
    change: Change, touch: facts.Touch, spec: Steps, steps: dict[tuple[str, str], _Step]
) -> None:
    """A step's row changed."""
    row = change.new
    if row is None:
        return
    name = _name(row, spec.id)
    step = steps.setdefault((touch.run_id, name), _Step())
    status = row.get(spec.status)
    if status in spec.finished:
        step.tenure, step.open = 0, []
    elif status in spec.started and touch.tenure is not None:
        anew = change.old is None or change.old.get(spec.status) not in spec.started
        if anew or step.tenure != touch.tenure:
            step.tenure, step.started_at = touch.tenure, touch.n
    elif status not in spec.started:
        step.tenure = 0


def _decide(
    touch: facts.Touch,
    declaration: Declaration,
    steps: dict[tuple[str, str], _Step],
    found: list[_Found],
) -> None:
    """A decision is about the last interruption of its step.

    One that is written over another in the same row is one more, unless its own author says more
    about it, or an operator does, who was perhaps asked to.
    """
    spec = declaration.reconciliations
    if spec is None:
        return
    for change in touch.changes:
        if change.table != spec.table or change.new is None:
            continue
        if change.new.get(spec.decision) is None:
            continue
        before = change.old.get(spec.decision) if change.old is not None else None
        name = _name(change.new, spec.step)
        about = [item for item in found if item.run_id == touch.run_id and item.step == name]
        if not about:
            continue
        last = about[-1]
        if before is not None and last.decisions:
            edited = any(kind.startswith("operator") for kind in touch.kinds)
            same = before == change.new.get(spec.decision)
            if same or edited or touch.tenure == last.decided_in:
                continue
        last.decisions.append(touch.n)
        last.decided_in = touch.tenure


def _name(row: Row, columns: tuple[str, ...]) -> str:
    return "/".join(str(row.get(column)) for column in columns)
