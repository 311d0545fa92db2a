"""In the lane: several movers, one commit at a time.

Who is about to commit asks for the turn, and has it until the observer has read what it changed:
so every commit has its author though several workers race. Who waits for the write lock meanwhile
is let try again, as SQLite would do by itself.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from . import quiet
from .clock import ClockPage, real_monotonic
from .processes import WorkerProcess

if TYPE_CHECKING:
    from .livestage import LiveStage

#: SQLite looks again for a lock after a tenth of a second at most; a busy machine takes longer.
_LOOKS_AGAIN_S: Final = 1.0
_BETWEEN_LOOKS_MS: Final = 20.0


class Turnstile:
    """Whose turn it is, and who waits for it, in order of arrival."""

    def __init__(self) -> None:
        self._turn: WorkerProcess | None = None
        self._queue: deque[tuple[WorkerProcess, int]] = deque()

    def is_free_for(self, worker: WorkerProcess) -> bool:
        """Whether it is nobody else's turn."""
        return self._turn is None or self._turn is worker

    def ask(self, worker: WorkerProcess, thread: int) -> None:
        """A thread wants to commit; it is answered when its turn comes."""
        self._queue.append((worker, thread))
        self._next()

    def give_back(self, worker: WorkerProcess) -> None:
        """A worker's turn is over, if it had it."""
        if self._turn is worker:
            self._turn = None
            self._next()

    def _next(self) -> None:
        while self._turn is None and self._queue:
            worker, thread = self._queue.popleft()
            if not worker.ended:
                self._turn = worker
                worker.answer(thread, True)


@contextmanager
def race(stage: LiveStage, *, several: bool) -> Iterator[None]:
    """Who moves moves wherever there is a processor: each commit waits for its turn.

    `several`: more than one does. Then what is committed unseen may be of any of them.
    """
    stage.page.turnstile, stage.racing = True, several
    stage.placement.spread(_pids(stage))
    try:
        yield
    finally:
        stage.placement.gather(_pids(stage))
        stage.page.turnstile, stage.racing = not stage.page.virtual, False


def _pids(stage: LiveStage) -> list[int]:
    """The lane itself, for whoever is forked in a race, and everyone alive."""
    return [os.getpid(), *(worker.pid for worker in stage.everyone if not worker.ended)]


def settle_race(stage: LiveStage, *movers: WorkerProcess) -> None:
    """Serve racers until all are at rest, and who waits for the write lock can't get it.

    He is let try again while others move, and once more when the last of them has come to rest:
    then whoever has the lock is held, stopped or no racer. Raises `Unsettled`.
    """
    stage.settle(*movers)
    count = -1
    while len(stage.rows) > count and try_again(stage.page, *movers):
        count = len(stage.rows)
        stage.settle(*movers)
    if not stage.page.virtual:
        _wake_sleepers(stage, movers)


def _wake_sleepers(stage: LiveStage, movers: Sequence[WorkerProcess]) -> None:
    """On the wall clock who waits for the write lock sleeps, and sees late that it is free."""
    until = real_monotonic() + _LOOKS_AGAIN_S
    while real_monotonic() < until:
        sleepers = [one for one in movers if one.sleeps_for_lock]
        if not sleepers:
            return
        asleep = all(quiet.rest_of(one.pid) for one in sleepers)
        if asleep and stage.write_lock() != "free" and not stage.serve(0):
            return
        if stage.serve(_BETWEEN_LOOKS_MS):
            stage.settle(*movers)
            until = real_monotonic() + _LOOKS_AGAIN_S


def try_again(page: ClockPage, *movers: WorkerProcess) -> bool:
    """In a race: whoever waits for the write lock is let try again; False: nobody does."""
    waiting = [
        (worker, thread)
        for worker in movers
        if page.turnstile and not worker.stopped
        for thread, rest in worker.rests.items()
        if rest.wait == "lock"
    ]
    for worker, thread in waiting:
        worker.answer(thread, "go", armed=worker.holds)
    return bool(waiting)
