"""The session's lanes: one for each subject, started when first needed, replaced when it died."""

from __future__ import annotations

import atexit
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from . import engine
from .options import Settings
from .testkit.errors import SubjectFailed

if TYPE_CHECKING:
    from .testkit.lane import Lane
    from .testkit.subject import Subject


class Lanes:
    """Lanes by subject. `close` is idempotent and also runs at exit.

    Only one lane is kept for subjects that are given test by test, so that a thousand classes in
    a thousand tests don't leave as many processes.
    """

    def __init__(self, settings: Settings, *, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._lanes: dict[type[Subject], tuple[Subject, Lane]] = {}
        self._hung: dict[type[Subject], tuple[Subject, SubjectFailed]] = {}
        self._registered = False

    def lane_for(self, subject: Subject) -> Lane:
        """The subject's lane; starts it when there is none. Raises `LeasecheckError`."""
        kind = type(subject)
        kept = self._lanes.get(kind)
        if kept is not None and (kept[0] is subject or _same(kept[0], subject)):
            return kept[1]
        self.drop(subject)
        while len(self._lanes) > 1:
            self.drop(next(iter(self._lanes.values()))[0])
        lane = self._start(subject)
        self._lanes[kind] = (subject, lane)
        if not self._registered:
            # Registered after multiprocess's own function, and so called before it: that one
            # joins its children, and would wait for ever for one that is stopped.
            atexit.register(self.close)
            self._registered = True
        return lane

    def _start(self, subject: Subject) -> Lane:
        """Start a lane, unless its subject was waited for to the deadline before.

        Two hundred tests of a subject whose `prepare` hangs would be hours of waiting.
        """
        hung = self._hung.get(type(subject))
        if hung is not None and (hung[0] is subject or _same(hung[0], subject)):
            raise hung[1]
        try:
            return engine.start_lane(subject, settings=self._settings, folder=self._folder)
        except SubjectFailed as error:
            if error.hung:
                told = f"{error} (it is not asked again in this session)"
                self._hung[type(subject)] = (subject, SubjectFailed(told, hung=True))
            raise

    def drop(self, subject: Subject) -> None:
        """Close the subject's lane, dead or alive; the next test gets a new one."""
        kept = self._lanes.pop(type(subject), None)
        if kept is not None:
            with contextlib.suppress(Exception):  # it may be dead, which is why it is dropped
                kept[1].close()

    def close(self) -> None:
        """Close all lanes."""
        while self._lanes:
            self.drop(next(iter(self._lanes.values()))[0])
        if self._registered:
            atexit.unregister(self.close)
            self._registered = False


def _same(one: Subject, other: Subject) -> bool:
    """Two instances of one class that were given the same attributes are one subject."""
    try:
        return bool(vars(one) == vars(other))
    except Exception:  # an attribute whose comparison fails is not known to be the same
        return False
