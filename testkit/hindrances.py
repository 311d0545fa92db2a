"""What kept a worker's heartbeat from beating, where that was the script's doing.

A script holds threads, and in doing so whatever they have: SQLite's one write lock, a connection,
the beat itself. A worker is *hindered* while

- a thread of it is held inside a statement, a transaction's edge or a beat, where no real thread
  ever rests for long;
- the script's own `lock`, or a transaction of another worker that has written, keeps the write
  lock; or one that may have it, and this worker has tried in vain to write since it was opened;
- a thread of it waits within a statement that writes, and no transaction of its own is in the way.

A thread held in a call, an effect or a point of the subject's own hinders nobody: calls take long
in real life too, and a beat that waits for one is the fault that is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .history import Acted, Commit, Ended, Event, Passed, RolledBack, Signalled, Statement

#: A thread of an incarnation.
By = tuple[str, str]

_HEARTBEAT: Final = "heartbeat"
#: Points at which no thread rests of itself.
_BRIEF: Final = ("sql:", "txn:", _HEARTBEAT)


@dataclass(slots=True)
class _Txn:
    """A transaction from the event `n` on; `wrote`: it surely has the write lock.

    Not yet `begun`, its thread may itself be waiting for the lock.
    """

    n: int
    begun: bool = False
    wrote: bool = False


class Hindrances:
    """Follows a history, event by event; at each, `hinder` tells of a worker whether it can beat.

    Points don't tell of which connection they are, so a thread has one transaction at a time.
    """

    def __init__(self) -> None:
        self._locked = False
        #: Where each thread is, if a point is the last that was heard of it.
        self._at: Final[dict[By, Passed]] = {}
        self._beating: Final[set[By]] = set()
        self._txns: Final[dict[By, _Txn]] = {}
        #: Statements that changed nothing: they matched no row, or failed.
        self._void: Final[set[By]] = set()
        #: When a worker last set out to write, if nothing of it was committed since.
        self._tried: Final[dict[str, int]] = {}

    def see(self, event: Event) -> None:
        """Take the next event in."""
        if isinstance(event, Passed):
            self._pass(event, (event.who, event.thread))
        elif isinstance(event, Acted):
            verb = event.text.partition(" ")[0]
            self._locked = verb == "lock" or (self._locked and verb not in ("unlock", "heal"))
        elif isinstance(event, Commit | RolledBack):
            self._txns.pop((event.who, event.thread), None)
            if isinstance(event, Commit):
                self._tried.pop(event.who, None)
        elif isinstance(event, Statement):
            (self._void.discard if event.rows else self._void.add)((event.who, event.thread))
        elif isinstance(event, Ended) or (
            isinstance(event, Signalled) and event.signal == "SIGKILL"
        ):
            for known in (self._at, self._txns):
                for by in [by for by in known if by[0] == event.who]:
                    del known[by]
        if not isinstance(event, Passed):
            self._at.pop((getattr(event, "who", ""), getattr(event, "thread", "")), None)

    def _pass(self, event: Passed, by: By) -> None:
        self._at[by] = event
        before = event.phase == "before"
        if event.point == _HEARTBEAT:
            (self._beating.add if before else self._beating.discard)(by)
        elif event.point == "txn:begin":
            self._txns[by] = _Txn(event.n, begun=not before)
        elif event.point == "txn:commit":
            if before:  # SQLite says so with the lock in hand
                self._txns.setdefault(by, _Txn(event.n)).wrote = True
            else:
                self._txns.pop(by, None)
        elif _writes(event.point) and by in self._txns and not before and by not in self._void:
            self._txns[by].wrote = True
        if before and (_writes(event.point) or event.point.startswith("txn:")):
            self._tried[event.who] = event.n
            self._void.discard(by)

    def hinder(self, who: str, *, beater: str) -> bool:
        """Whether this worker can't beat now. `beater`: a thread that does nothing but beat."""
        others = [txn for by, txn in self._txns.items() if by[0] != who]
        if self._locked or any(txn.wrote for txn in others):
            return True
        tried = self._tried.get(who, 0)
        if any(txn.begun and txn.n < tried for txn in others):
            return True
        return any(
            self._is_kept(by, at, beater=beater) for by, at in self._at.items() if by[0] == who
        )

    def _is_kept(self, by: By, at: Passed, *, beater: str) -> bool:
        """Whether a thread is held where it beats or writes, or waits there for others' lock."""
        if at.held:
            return at.point.startswith(_BRIEF) or by in self._beating or by[1] == beater
        waits = at.phase == "before" and (_writes(at.point) or at.point.startswith("txn:"))
        return waits and not any(
            txn.begun or txn.wrote
            for own, txn in self._txns.items()
            if own[0] == by[0] and own != by
        )


def _writes(point: str) -> bool:
    return point.startswith("sql:") and not point.startswith("sql:SELECT ")
