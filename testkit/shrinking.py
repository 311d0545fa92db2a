"""From a failing script to the fewest deviations from a plain run that still fail.

Greedy deletion in halves, quarters and single actions (Zeller's delta debugging, 1999), then each
action made plainer. What a script must have to be one is kept: `submit`, the first worker, and the
end that heals and drains. Pure: how a script is tried is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from . import script as acts
from .errors import ScriptError
from .points import Pattern
from .possible import LABELS
from .script import Action, Script, parse_script

#: Scripts that are tried at most.
MOST_TRIALS: Final = 300
_END: Final = (acts.Heal, acts.Drain)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest failing script that was found, and how many were tried.

    `ended` when trials were over before nothing more could be left out.
    """

    script: Script
    trials: int
    ended: bool


def shrink(
    script: Script,
    fails: Callable[[Script], bool],
    *,
    most: int = MOST_TRIALS,
    enough: Callable[[], bool] = lambda: False,
) -> Shrunk:
    """Leave out of a failing script what need not be there.

    `fails` plays one and says whether it fails in the same way; `script` itself does. No more than
    `most` are played, and none once there is `enough`.
    """
    trials = _Trials(fails, most, enough)
    middle, rest = _parts(script)
    changed = True
    while changed and not trials.spent:
        changed = False
        size = max(1, len(middle) // 2)
        while size and not trials.spent:
            at = 0
            while at < len(middle):
                fewer = middle[:at] + middle[at + size :]
                if trials.fails((*fewer, *rest)):
                    middle, changed = fewer, True
                else:
                    at += size
            size //= 2
        for places in _belonging(middle):
            fewer = tuple(action for at, action in enumerate(middle) if at not in places)
            if trials.fails((*fewer, *rest)):
                middle, changed = fewer, True
                break  # the others have other places now; they are tried in the next round
        for at, action in enumerate(middle):
            for plainer in _plainer(action):
                simpler = (*middle[:at], plainer, *middle[at + 1 :])
                if trials.fails((*simpler, *rest)):
                    middle, changed = simpler, True
                    break
    named = _named_in_order(middle)
    if trials.fails((*named, *rest)):
        middle = named
    return Shrunk(Script((*middle, *rest)), trials.count, trials.spent)


def _belonging(actions: Sequence[Action]) -> Iterator[tuple[int, ...]]:
    """Places of actions of which none can be left out alone.

    A lock that is taken and let go, a worker that is stopped and continued, all that one does.
    """
    for first, opening in enumerate(actions):
        closing: Action | None = None
        if isinstance(opening, acts.Lock):
            closing = acts.Unlock()
        elif isinstance(opening, acts.Stop):
            closing = acts.Cont(opening.worker)
        if closing in actions[first:]:
            yield first, actions.index(closing, first)
    for label in LABELS:
        names = [(getattr(one, "worker", ""), getattr(one, "twin", "")) for one in actions]
        if places := tuple(at for at, named in enumerate(names) if label in named):
            yield places


def _named_in_order(actions: Sequence[Action]) -> tuple[Action, ...]:
    """The same with workers called A, B, C in the order in which they come."""
    coming = [
        action.twin if isinstance(action, acts.Duplicate) else action.worker
        for action in actions
        if isinstance(action, acts.Spawn | acts.Duplicate)
    ]
    names = dict(zip(dict.fromkeys(coming), LABELS, strict=False))
    renamed = []
    for action in actions:
        changed: dict[str, Any] = {
            field.name: names.get(value, value)
            for field in fields(action)
            if field.name in ("worker", "twin") and (value := getattr(action, field.name))
        }
        if isinstance(action, acts.Free):
            changed["workers"] = tuple(names.get(one, one) for one in action.workers)
        renamed.append(replace(action, **changed) if changed else action)
    return tuple(renamed)


class _Trials:
    """Counts what was tried; the same script is not tried twice."""

    def __init__(
        self, fails: Callable[[Script], bool], most: int, enough: Callable[[], bool]
    ) -> None:
        self._fails: Final = fails
        self._most: Final = most
        self._enough: Final = enough
        self._known: Final[dict[tuple[Action, ...], bool]] = {}

    @property
    def count(self) -> int:
        """How many were tried."""
        return len(self._known)

    @property
    def spent(self) -> bool:
        """Whether no more may be tried."""
        return self.count >= self._most or self._enough()

    def fails(self, actions: Sequence[Action]) -> bool:
        """Whether this script is one, and fails too."""
        script = Script(tuple(actions))
        if script.actions not in self._known:
            if self.spent or not _is_script(script):
                return False
            self._known[script.actions] = self._fails(script)
        return self._known[script.actions]


def _parts(script: Script) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """What may be left out, and the end that may not."""
    actions = script.actions
    cut = len(actions)
    while cut and isinstance(actions[cut - 1], _END):
        cut -= 1
    return actions[:cut], actions[cut:]


def _is_script(script: Script) -> bool:
    """Whether it can be written down and read again: no worker moves before it is there."""
    try:
        return parse_script(str(script)) == script
    except ScriptError:
        return False


def _plainer(action: Action) -> Iterator[Action]:
    """Simpler actions of the same kind, the simplest first."""
    match action:
        case acts.Until(worker, point):
            yield acts.Run(worker)
            if point.ordinal is not None:
                yield acts.Until(worker, Pattern(point.name, None, point.phase))
        case acts.Restart(worker):
            yield acts.Kill(worker)
        case acts.Duplicate(_, twin):
            yield acts.Spawn(twin)
        case acts.Spawn(worker, name, "work") if name is not None:
            yield acts.Spawn(worker)
        case acts.Provider(_, effect) if effect != "*":
            yield replace(action, effect="*")
        case acts.Advance():
            yield acts.Expire()
