"""In the lane: a worker's effects go to the provider, and its answers come back, late or never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from .processes import Rest, WorkerProcess
from .provider import Decision, Delayed, Provider, Request


class Boundary:
    """Requests of one stage. `record` appends an event, `arrival` numbers who comes to rest."""

    def __init__(
        self, provider: Provider, *, record: Callable[..., None], arrival: Callable[[], int]
    ) -> None:
        self._provider: Final = provider
        self._record: Final = record
        self._arrival: Final = arrival
        self._requests = 0

    def ask(self, worker: WorkerProcess, thread: int, payload: Any, *, dead: bool) -> None:
        """A worker asks for an effect; `dead`: it has died since, and nobody waits."""
        name, effect, run_id, token, key, receipt, own = payload
        self._requests += 1
        request = Request(self._requests, worker.who, effect, run_id, token, key, receipt)
        store = "own" if own else "provider"
        self._record(
            "effect-asked", worker.who, name, request.number, effect, run_id, token, key, receipt,
            store,
        )  # fmt: skip
        if own:
            worker.answer(thread, (request.number,))
            return
        fault = self._provider.take_fault(effect)
        if fault == "fail":
            down = Decision("failed", "the provider is down")
            self._record("effect-decided", request.who, request.number, down.outcome, down.why)
            if not dead:
                self._respond(worker, thread, request, down)
            return
        worker.rests[thread] = Rest("provider", request, self._arrival())
        if fault == "delay-request":
            self._provider.delayed.append(Delayed(request, None))
            return
        decision = self._decide(request)
        if fault == "twice":
            self._decide(request)
        if fault == "delay-response":
            self._provider.delayed.append(Delayed(request, decision))
        elif fault == "lose-response":
            self._record("effect-answered", request.who, request.number, "lost")
            worker.answer(thread, (request.number, "lost", "no response came"))
        elif not dead:
            self._respond(worker, thread, request, decision)

    def look_up(self, worker: WorkerProcess, thread: int, payload: Any) -> None:
        """A worker asks what became of a key."""
        name, key, receipt = payload
        found = self._provider.lookup(key)
        self._record("looked-up", worker.who, name, key, found)
        worker.answer(thread, (found, receipt))

    def deliver(self, name: str, *, to: Iterable[WorkerProcess]) -> Iterator[WorkerProcess]:
        """What is under way for effects of this name arrives, one after the other.

        Yields who is answered by it; it must have come to rest before the next one is answered, or
        two would move at once.
        """
        for item in self._provider.take_delayed(name):
            decision = item.decision or self._decide(item.request)
            for worker in to:
                for thread, rest in list(worker.rests.items()):
                    if rest.wait == "provider" and rest.what is item.request:
                        self._respond(worker, thread, item.request, decision)
                        yield worker

    def _decide(self, request: Request) -> Decision:
        decision = self._provider.decide(request)
        self._record("effect-decided", request.who, request.number, decision.outcome, decision.why)
        return decision

    def _respond(
        self, worker: WorkerProcess, thread: int, request: Request, decision: Decision
    ) -> None:
        self._record("effect-answered", request.who, request.number, "delivered")
        worker.answer(thread, (request.number, decision.outcome, decision.why))
