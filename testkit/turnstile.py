"""In the lane: several movers, one commit at a time.

Who is about to commit asks for the turn, and has it until the observer has read what it changed:
so every commit has its author though several workers race.
"""

from __future__ import annotations

from collections import deque

from .processes import WorkerProcess


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
