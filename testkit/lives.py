"""Who lived when: every incarnation with its role, its stops and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .history import Ended, History, Returned, Signalled, Spawned

#: Jobs that an operator does: with a person's authority, outside every lease.
OPERATOR_JOBS = frozenset({"submit", "cancel", "approve", "prepare"})

#: How a worker ends that the stage takes down with itself.
_END_OF_SCRIPT = "end of script"


@dataclass(slots=True)
class Life:
    """One incarnation. Event numbers; `until` None: alive at the end."""

    who: str
    name: str
    job: str
    since: int
    until: int | None = None
    how: str = ""
    stops: list[tuple[int, int | None]] = field(default_factory=list)
    last: str = ""

    @property
    def is_operator(self) -> bool:
        """Whether it acts with an operator's authority."""
        return self.job in OPERATOR_JOBS or label(self.who) == "operator"

    def alive_at(self, n: int) -> bool:
        """Whether it lived when event `n` happened."""
        return self.since <= n and (self.until is None or n < self.until)

    def stopped_between(self, first: int, last: int) -> bool:
        """Whether it was SIGSTOPped at any moment between two events."""
        return any(a <= last and (b is None or b >= first) for a, b in self.stops)


def label(who: str) -> str:
    """The worker that a script names, of an incarnation: `A` of `A#2`."""
    return who.partition("#")[0]


def worker_of(author: str, owner: object, lives: Mapping[str, Life], *, n: int) -> str:
    """Whose a lease is that `author` wrote at event `n` with this owner's name.

    Its author's; but where the name is the configured one of another worker, as a dispatcher's
    claims have it, that worker's: of several the one that lives, else the next to be born.
    """
    own = lives.get(author)
    if own is None or not isinstance(owner, str) or own.name == owner:
        return author
    named = [life for life in lives.values() if life.name == owner and not life.is_operator]
    alive = (life.who for life in named if life.alive_at(n))
    return next(alive, next((life.who for life in named if life.since > n), author))


def lives_of(history: History) -> dict[str, Life]:
    """Every incarnation of a history, in the order of their births."""
    lives: dict[str, Life] = {}
    for event in history.events:
        kind = type(event)
        if kind is Spawned:
            assert isinstance(event, Spawned)
            lives[event.who] = Life(event.who, event.name, event.job, event.n)
        elif kind is Ended or kind is Signalled or kind is Returned:
            assert isinstance(event, Ended | Signalled | Returned)
            life = lives.get(event.who)
            if life is None:
                life = lives[event.who] = Life(event.who, "", "", 0)
            _tell(life, event)
    return lives


def _tell(life: Life, event: Ended | Signalled | Returned) -> None:
    if isinstance(event, Returned):
        life.last = f"raised {event.error}" if event.error else f"returned {event.value}"
    elif isinstance(event, Ended):
        if event.how == _END_OF_SCRIPT:
            return  # it lived as long as the history tells
        life.until = life.until or event.n
        life.how = event.how
    elif event.signal == "SIGKILL":
        life.until, life.how = event.n, "signal 9"
    elif event.signal == "SIGSTOP":
        life.stops.append((event.n, None))
    elif event.signal == "SIGCONT" and life.stops and life.stops[-1][1] is None:
        life.stops[-1] = (life.stops[-1][0], event.n)
