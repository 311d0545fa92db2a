"""Whether a worker looked at its lease before it asked for an effect.

A look is a reading of its clock or of the table that the lease is in, by the thread that asks. What
counts is the moment in which that thread came to the effect's own point: a worker that is held
right there can't look any more, and is not to blame for what happens meanwhile. Nor is one that is
held where its look ends, and comes to its effect with nothing else done.
"""

from __future__ import annotations

from typing import Final

from .history import ClockRead, EffectAsked, LookedUp, Passed, Statement
from .ownership_state import Claim, Run

#: Points that are passed when what a look is made of is over.
_ENDINGS: Final = ("call:", "sql:", "txn:")


class Looks:
    """Looks, arrivals at effects, and questions to the provider, up to the event told last."""

    def __init__(self, lease_table: str) -> None:
        self._lease_table: Final = lease_table.lower()
        self._last: Final[dict[tuple[str, str], ClockRead | Statement]] = {}
        #: Who was held right where its look ended, and who has done something else since.
        self._held: Final[set[tuple[str, str]]] = set()
        self._went_on: Final[set[tuple[str, str]]] = set()
        self._arrived: Final[dict[tuple[str, str], Passed]] = {}
        self._asked_about: Final[dict[str, int]] = {}

    def looked(self, event: ClockRead | Statement) -> None:
        """A thread read its clock, or did something to a table."""
        if isinstance(event, ClockRead) or event.table.lower() == self._lease_table:
            self._last[event.who, event.thread] = event
            self._held.discard((event.who, event.thread))
            self._went_on.discard((event.who, event.thread))

    def passed(self, event: Passed) -> None:
        """A thread came to a point."""
        if event.phase == "before" and event.point.startswith("effect:"):
            self._arrived[event.who, event.thread] = event
        elif event.phase == "before" or not event.point.startswith(_ENDINGS):
            self._went_on.add((event.who, event.thread))
        elif event.held:
            self._held.add((event.who, event.thread))

    def looked_up(self, event: LookedUp) -> None:
        """Somebody asked the provider what became of a key."""
        self._asked_about[event.key] = event.n

    def asked_about(self, key: str | None) -> int:
        """When the provider was last asked about a key; 0: never."""
        return self._asked_about.get(key, 0) if key is not None else 0

    def unlooked(
        self, event: EffectAsked, run: Run | None, claim: Claim | None, *, skew_ns: int
    ) -> int:
        """When that thread looked last, if it came to its effect with its lease lost since; else 0.

        `claim` is the tenure of the `run` that it asks from.
        """
        key = (event.who, event.thread)
        arrived, look = self._arrived.get(key), self._last.get(key)
        if run is None or claim is None or arrived is None or look is None or arrived.n < look.n:
            return 0
        if key in self._held and key not in self._went_on:
            return 0
        if claim.until:
            lost = claim.ended_by != event.who and look.n < claim.until < arrived.n
        else:
            expiry = run.view.expiry
            lost = (
                expiry is not None
                and expiry.lapsed(arrived.at_ns + skew_ns)
                and expiry.live(look.at_ns + skew_ns)
            )
        return look.n if lost else 0
