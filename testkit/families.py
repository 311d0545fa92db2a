"""The families of scripts: every recorded point of a subject, times every fault.

From the map of an undisturbed run (`sweep.draw_map`) come variations: at this point the worker is
stopped and outlived, killed, restarted, doubled, reaped; its provider loses an answer; its
recovery is killed in turn. Each family is design section 9's; crashing at every point rather than
at likely ones is Pillai et al.'s (2014). Pure: the same map gives the same list, in the same
order, in any process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from . import script as acts
from .points import Pattern
from .script import Action, Script
from .subject import Declaration

#: The run that is swept.
RUN: Final = "run-1"
#: How a script begins, and how it ends.
BEGIN: Final[tuple[Action, ...]] = (acts.Submit(RUN), acts.Spawn("A"))
END: Final[tuple[Action, ...]] = (acts.Heal(), acts.Drain())

#: So many points of a long run belong to the cheap part.
CHEAP_POINTS: Final = 24
_CHEAP_FAMILIES: Final = ("kill", "stale", "stale-while-held")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a second worker passed after the first had been killed at `killed_at`."""

    killed_at: Pattern
    passed: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class PointMap:
    """What an undisturbed worker passed, in order, and what its recovery did.

    `effects` are requests to the provider (`effect:mail#1`), without phase. `holding` is where a
    worker that takes over stands with the lease in its hands, None when no recovery showed it.
    """

    points: tuple[Pattern, ...]
    effects: tuple[Pattern, ...] = ()
    holding: Pattern | None = None
    recoveries: tuple[Recovery, ...] = ()

    @property
    def unnamed(self) -> int:
        """How many points only their SQL tells apart: no effect, no call, no point of their own."""
        return sum(point.name.startswith(("sql:", "txn:")) for point in self.points)


@dataclass(frozen=True, slots=True)
class Variation:
    """One script of a family at one point.

    `moment` is the danger (`moments.MOMENTS`) that it seeks: a script in which it never came about
    is no failure, and proves nothing. `cheap` ones are played without being asked for.
    """

    family: str
    at: str
    script: Script
    moment: str
    cheap: bool = False

    @property
    def name(self) -> str:
        """Its id: `kill[txn:commit#3-before]`."""
        return f"{self.family}[{self.at}]"


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of script: what is done once A is held at a point.

    `needs` is the capability without which it means nothing.
    """

    name: str
    story: str
    moment: str
    then: Callable[[PointMap], Iterable[Action]]
    needs: str = ""


def _stale(_points: PointMap) -> Iterator[Action]:
    yield from (acts.Stop("A"), acts.Expire(), acts.Spawn("B"), acts.Run("B"))
    yield from (acts.Cont("A"), acts.Run("A"))


def _stale_while_held(points: PointMap) -> Iterator[Action]:
    if points.holding is None:
        return
    yield from (acts.Stop("A"), acts.Expire(), acts.Spawn("B"), acts.Until("B", points.holding))
    yield from (acts.Cont("A"), acts.Run("A"), acts.Run("B"))


def _lapse(_points: PointMap) -> Iterator[Action]:
    yield from (acts.Stop("A"), acts.Expire(), acts.Cont("A"), acts.Run("A"))


def _reap(_points: PointMap) -> Iterator[Action]:
    yield from (acts.Stop("A"), acts.Expire(), acts.Spawn("J", job="reap"), acts.Run("J"))
    yield from (acts.Cont("A"), acts.Run("A"))


def _kill(_points: PointMap) -> Iterator[Action]:
    yield from (acts.Kill("A"), acts.Expire(), acts.Spawn("B"), acts.Run("B"))


def _restart(_points: PointMap) -> Iterator[Action]:
    yield from (acts.Restart("A"), acts.Run("A"), acts.Expire(), acts.Run("A"))


def _twin(_points: PointMap) -> Iterator[Action]:
    yield from (acts.Duplicate("A", "B"), acts.Run("B"), acts.Expire(), acts.Run("B"))
    yield acts.Run("A")


#: At every point of the map, in this order.
FAMILIES: Final = (
    Family("kill", "A is killed there; its lease expires, B recovers", "take-over", _kill),
    Family("stale", "A is stopped there, B takes over and finishes, A goes on", "stale attempt",
           _stale),
    Family("stale-while-held", "A is stopped there and goes on while B holds the run",
           "stale attempt", _stale_while_held),
    Family("lapse", "A sleeps past its own expiry there, and nobody takes over", "lapse", _lapse),
    Family("reap", "A is stopped there, a janitor reaps, A goes on", "reap", _reap, "reaps"),
    Family("restart", "A is killed there and lives again under its name, which owns nothing",
           "restarted", _restart),
    Family("twin", "a second process under A's name works while A is held there",
           "two alive under one name", _twin),
)  # fmt: skip

_PROVIDER: Final = {
    "lose-response": "response lost",
    "delay-response": "effect",
    "delay-request": "effect",
    "twice": "request delivered twice",
    "fail": "effect failed",
}


def variations(points: PointMap, declaration: Declaration) -> tuple[Variation, ...]:
    """All of them for one subject: by family, and within one in the order of the map."""
    cheap = frozenset(_cheap_points(points))
    found = [
        Variation(family.name, label(point), _script(point, after), family.moment,
                  family.name in _CHEAP_FAMILIES and point in cheap)
        for family in FAMILIES
        if not family.needs or family.needs in declaration.capabilities
        for point in points.points
        if (after := tuple(family.then(points)))
    ]  # fmt: skip
    found += _killed_recoveries(points)
    found += _provider_faults(points)
    found += _locked_renewals(points, declaration)
    found += _skews(points, declaration)
    return _distinct(found)


def label(point: Pattern) -> str:
    """A point within an id: no blanks, nothing that a shell or pytest reads as its own."""
    return re.sub(r"\s+|::+", "-", str(point)).replace("/", "|")


def story_of(variation: Variation) -> str:
    """What happens in it, in a sentence."""
    told = {family.name: family.story for family in FAMILIES} | _OTHER_STORIES
    return f"{told[variation.family]} ({variation.at})."


_OTHER_STORIES: Final = {
    "kill-recovery": "A is killed, then B in the middle of its recovery, and a third recovers",
    "lock": "somebody else holds the write lock while A's lease is due for renewal",
    "skew": "B's clock is ahead or behind by what the subject says it bears",
    **{fault: f"the provider's fault for this effect is {fault}" for fault in _PROVIDER},
}


def _cheap_points(points: PointMap) -> list[Pattern]:
    """Around transactions and effects; of a long run so many of them, evenly spread."""
    chosen = [
        point for point in points.points
        if (point.name in ("txn:begin", "txn:commit") and point.phase == "before")
        or point.name.startswith("effect:")
    ]  # fmt: skip
    step = -(-len(chosen) // CHEAP_POINTS) or 1
    return chosen[::step]


def _script(point: Pattern, after: Iterable[Action]) -> Script:
    return Script((*BEGIN, acts.Until("A", point), *after, *END))


def _killed_recoveries(points: PointMap) -> Iterator[Variation]:
    for recovery in points.recoveries:
        for point in recovery.passed:
            after = (
                acts.Kill("A"), acts.Expire(), acts.Spawn("B"), acts.Until("B", point),
                acts.Kill("B"), acts.Expire(), acts.Spawn("C"), acts.Run("C"),
            )  # fmt: skip
            yield Variation(
                "kill-recovery", f"{label(recovery.killed_at)},{label(point)}",
                _script(recovery.killed_at, after), "killed",
            )  # fmt: skip


def _provider_faults(points: PointMap) -> Iterator[Variation]:
    for effect in points.effects:
        name = effect.name.removeprefix("effect:")
        before = Pattern(effect.name, effect.ordinal, "before")
        for fault, moment in _PROVIDER.items():
            after: list[Action] = [acts.Provider(fault, name), acts.Run("A")]
            if fault.startswith("delay"):
                after += [acts.Expire(), acts.Spawn("B"), acts.Run("B")]
                after += [acts.Provider("deliver", name), acts.Run("A")]
            yield Variation(fault, label(before), _script(before, after), moment)


def _locked_renewals(points: PointMap, declaration: Declaration) -> Iterator[Variation]:
    """Where a worker is in a call, its heartbeat beats against a held lock, up to its expiry."""
    if "heartbeats" not in declaration.capabilities:
        return
    for point in points.points:
        if point.name.startswith("effect:"):
            for part, share in (("briefly", 0.5), ("past-expiry", 1.5)):
                ms = int(declaration.lease_ttl_ms * share)
                after = (acts.Lock(), acts.Advance(ms), acts.Unlock(), acts.Spawn("B"),
                         acts.Run("B"), acts.Run("A"))  # fmt: skip
                yield Variation(
                    "lock", f"{label(point)},{part}", _script(point, after), "lock held"
                )


def _skews(points: PointMap, declaration: Declaration) -> Iterator[Variation]:
    """Within what is borne, a rival's clock makes no difference."""
    ms = declaration.bears_skew_ms
    if ms <= 0:
        return
    for point in points.points:
        if point.name == "txn:begin" and point.phase == "before":
            for sign, skew_ms in (("ahead", ms), ("behind", -ms)):
                after = (acts.Spawn("B"), acts.Skew("B", skew_ms), acts.Run("B"), acts.Run("A"))
                yield Variation(
                    "skew", f"{label(point)},{sign}", _script(point, after), "refused claim"
                )


def _distinct(found: Iterable[Variation]) -> tuple[Variation, ...]:
    """Each id once: names that differ only in what an id can't show are numbered."""
    seen: dict[str, int] = {}
    told = []
    for one in found:
        seen[one.name] = seen.get(one.name, 0) + 1
        again = seen[one.name]
        at = one.at if again == 1 else f"{one.at},{again}"
        told.append(Variation(one.family, at, one.script, one.moment, one.cheap))
    return tuple(told)


# -- the map on its way between processes ------------------------------------------------------


def map_to_plain(points: PointMap) -> dict[str, object]:
    """A map as plain data, for another process."""
    return {
        "points": [_plain(point) for point in points.points],
        "effects": [_plain(point) for point in points.effects],
        "holding": _plain(points.holding) if points.holding is not None else None,
        "recoveries": [
            [_plain(one.killed_at), [_plain(point) for point in one.passed]]
            for one in points.recoveries
        ],
    }


def map_from_plain(plain: dict[str, object]) -> PointMap:
    """The same map again."""
    holding = plain["holding"]
    return PointMap(
        points=_patterns(plain["points"]),
        effects=_patterns(plain["effects"]),
        holding=_pattern(holding) if holding is not None else None,
        recoveries=tuple(
            Recovery(_pattern(killed_at), _patterns(passed))
            for killed_at, passed in _listed(plain["recoveries"])
        ),
    )


def _plain(point: Pattern) -> list[object]:
    return [point.name, point.ordinal, point.phase]


def _listed(plain: object) -> list[list[object]]:
    assert isinstance(plain, list)
    return plain


def _patterns(plain: object) -> tuple[Pattern, ...]:
    return tuple(map(_pattern, _listed(plain)))


def _pattern(plain: object) -> Pattern:
    assert isinstance(plain, list)
    name, ordinal, phase = islice(plain, 3)
    return Pattern(name, ordinal, phase)
