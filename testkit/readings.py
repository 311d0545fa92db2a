"""By which time a worker acted: what its clock said when it last looked.

A holder that freezes between evaluating its guard and COMMIT commits after its expiry, and is
right; so lapse is judged by the value that the writing thread read last, else its process. In a
transaction of several statements the guard comes first: what was read after the first write is not
what it went by. A reading serves one commit: one that was already used for an earlier commit of the
same thread was not taken for this one. Where no reading was seen (SQLite's own clock, a patched
`time`), the stage's time counts: at the statement that asks SQLite for 'now', else when the
transaction's first statement was about to begin, because its values were bound before that.
"""

from __future__ import annotations

import re
from typing import Final

from .history import Acted, ClockRead, Commit, Passed, RolledBack, Statement
from .lives import label

_NOW: Final = re.compile(r"'now'|current_time|current_date|unixepoch\(\s*\)|'subsec", re.IGNORECASE)
_SKEW: Final = re.compile(r"skew\s+(\S+)\s+([+-]?)(\d+(?:\.\d+)?)(ms|s|m|h)?")
_DURATION_NS: Final = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, None: 10**6}


class Readings:
    """Clock readings and transactions under way, up to the event that was told last."""

    def __init__(self) -> None:
        self._by_thread: dict[tuple[str, str], ClockRead] = {}
        self._by_process: dict[str, ClockRead] = {}
        self._commits: dict[tuple[str, str], int] = {}
        self._began: dict[tuple[str, str], int] = {}
        #: The event at which a thread's last transaction began, by its point.
        self._opened: dict[tuple[str, str], int] = {}
        self._statements: dict[tuple[str, str], list[Statement]] = {}
        #: The last reading before the first write of a transaction under way.
        self._guards: dict[tuple[str, str], ClockRead | None] = {}
        #: Skew by the worker's label, in nanoseconds, as the script set it.
        self.skews: dict[str, int] = {}

    def read(self, event: ClockRead) -> None:
        """A worker looked at its clock."""
        self._by_thread[event.who, event.thread] = event
        self._by_process[event.who] = event

    def begins(self, event: Passed) -> None:
        """A thread is about to do something with the database, perhaps for the first time."""
        self._began.setdefault((event.who, event.thread), event.at_ns)
        if event.point == "txn:begin":
            self._opened[event.who, event.thread] = event.n

    def stated(self, event: Statement) -> None:
        """A statement of a transaction finished."""
        key = (event.who, event.thread)
        self._began.setdefault(key, event.at_ns)
        self._statements.setdefault(key, []).append(event)
        if event.rows is not None and key not in self._guards:
            self._guards[key] = self.last_read(*key)

    def acted(self, event: Acted) -> None:
        """The script may have set a worker's clock apart."""
        match = _SKEW.fullmatch(event.text.strip())
        if match:
            size = round(float(match[3]) * _DURATION_NS[match[4]])
            self.skews[match[1]] = -size if match[2] == "-" else size

    def over(self, event: Commit | RolledBack) -> None:
        """A transaction of a thread ended; call it after judging its commit."""
        key = (event.who, event.thread)
        self._began.pop(key, None)
        self._statements.pop(key, None)
        self._guards.pop(key, None)
        if isinstance(event, Commit):
            self._commits[key] = event.n

    def statements(self, event: Commit) -> list[Statement]:
        """What the transaction of a commit did, as far as it was seen."""
        done = self._statements.get((event.who, event.thread), ())
        return [one for one in done if one.connection == event.connection and one.txn == event.txn]

    def went_by(self, event: Commit) -> list[Statement]:
        """The same without reads of which it isn't sure that the transaction had begun by then."""
        opened = self._opened.get((event.who, event.thread), event.n)
        return [one for one in self.statements(event) if one.rows is not None or one.n > opened]

    def last_read(self, who: str, thread: str) -> ClockRead | None:
        """What that thread read last, else its process."""
        return self._by_thread.get((who, thread)) or self._by_process.get(who)

    def judged(self, event: Commit) -> int:
        """The time by which the author of a commit acted, in nanoseconds of its own clock."""
        key = (event.who, event.thread)
        read = self._guards[key] if key in self._guards else self.last_read(*key)
        if read is not None and read.n > self._commits.get(key, -1):
            return read.value_ns
        asked = [one.at_ns for one in self.statements(event) if _NOW.search(one.sql)]
        at_ns = max(asked) if asked else self._began.get(key, event.at_ns)
        return at_ns + self.skew(event.who)

    def latest(self, event: Commit) -> int:
        """The latest time that the author of a commit can have believed it was."""
        read = self.last_read(event.who, event.thread)
        now = event.at_ns + self.skew(event.who)
        return max(now, read.value_ns) if read is not None else now

    def skew(self, who: str) -> int:
        """How far a worker's clock is off, in nanoseconds, as far as the script set it."""
        return self.skews.get(label(who), 0) if self.skews else 0
