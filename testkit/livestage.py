"""In the lane: one script's world while it is played. Messages in, events out, moves between.

A *move* lets one worker go and ends when every thread of it is in a known wait, or it is over.
Whoever is not the mover is held or stopped. Every message of a worker is served here: a commit is
read by the observer before its author goes on, an effect goes to the provider, and the lane's one
counter puts all of it in order.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, Sequence
from typing import Any, Final

from . import logs, processes, quiet, wire
from .boundary import Boundary
from .channel import TIMEKEEPER
from .clock import ClockPage, real_monotonic
from .messages import checked
from .observer import ObserverClient
from .placement import Placement
from .processes import Rest, WorkerProcess, alive
from .provider import Provider
from .sight import Sight
from .turnstile import Turnstile, try_again

#: A pattern as it travels: name, ordinal, phase.
WirePattern = tuple[str, int | None, str]
#: Messages after which a worker waits for us; what it committed before is there to be read.
_RESTS: Final = ("hold", "returned", "effect", "lookup")
_PATIENCE_MS: Final = (2, 5, 10, 20, 50)
#: So many deadlines may a move take whose worker keeps telling us of commits and effects.
_BUSY: Final = 5
#: What may end by itself is called rest only when it has lasted this long.
_LASTING_S: Final = 1.0
#: How long real time passes between two looks where no commit is told.
_BETWEEN_LOOKS_MS: Final = 25.0
_RACED: Final = "no commit was told, and several moved at once: it may have been of any of them"


class LiveStage:
    """The world of one script."""

    def __init__(
        self,
        *,
        page: ClockPage,
        observer: ObserverClient | None,
        provider: Provider,
        deadline_s: float,
        by_move: bool,
        placement: Placement,
        db: str = "",
    ) -> None:
        self.page: Final = page
        self.provider: Final = provider
        self.placement: Final = placement
        self._sight: Final = Sight(db, observer, lost=self.blind)
        self._deadline_s: Final = deadline_s
        #: Attribution move by move, where commits can't be seen one by one.
        self._by_move = by_move
        self._blind: set[tuple[str, str]] = set()
        #: Whether several move at once.
        self.racing = False
        self.rows: list[tuple[Any, ...]] = []
        #: Label -> its present incarnation; `everyone` has the past ones too.
        self.workers: dict[str, WorkerProcess] = {}
        self.everyone: list[WorkerProcess] = []
        self.logs: dict[str, str] = {}
        #: Declared tables as last read.
        self.tables: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        self._by_fd: dict[int, WorkerProcess] = {}
        self._poller = select.poll()
        self._arrivals = 0
        self._turnstile: Final = Turnstile()
        self._boundary: Final = Boundary(provider, record=self.record, arrival=self._arrive)

    # -- events ------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """The stage's time."""
        return self.page.now_ns()

    def record(self, kind: str, *fields: Any) -> None:
        """Append an event."""
        self.rows.append((kind, len(self.rows) + 1, self.page.now_ns(), *fields))

    def note(self, text: str, *, who: str = "") -> None:
        """A remark for the reader."""
        self.record("noted", who, text)

    def observe(
        self,
        who: str,
        thread: str = "",
        connection: int = 0,
        txn: int = 0,
        *,
        wrote: bool = False,
        moving: bool = False,
    ) -> None:
        """Read what has been committed since the last look, and put it to `who`.

        A commit of statements that `wrote` is an event even if it changed nothing in the end.
        `moving`: whoever has locked the file may be in the middle of a commit.
        """
        past_lock = self._by_move and not moving
        changes = self._sight.look(who, told=txn > 0, past_lock=past_lock)
        if changes is None or not (changes or wrote):
            return
        if self.racing and self._by_move and not txn:
            self.blind(who, _RACED)
            who = ""
        for table, key, _old, new in changes:
            rows = self.tables.setdefault(table, {})
            if new is None:
                rows.pop(key, None)
            else:
                rows[key] = new
        self.record("commit", who, thread, connection, txn, changes)

    def close(self) -> None:
        """The stage is over."""
        self._sight.close()

    def write_lock(self) -> str:
        """Whether the database's write lock is free at this moment."""
        return self._sight.write_lock()

    def blind(self, who: str, why: str) -> None:
        """Sight was lost; said once. From now on what changed is looked for after each move too."""
        self._by_move = True
        if (who, why) not in self._blind:
            self._blind.add((who, why))
            self.record("blind", who, why)

    # -- workers -----------------------------------------------------------------------------

    def add(self, worker: WorkerProcess) -> None:
        """A new incarnation enters; it comes to its start."""
        self.workers[worker.label] = worker
        self.everyone.append(worker)
        self._by_fd[worker.fd] = worker
        self._poller.register(worker.fd, select.POLLIN)
        life = worker.life
        self.logs[life.who] = life.log
        self.record("spawned", life.who, worker.pid, life.name, life.job)
        self.settle(worker)

    def leave(self, worker: WorkerProcess, how: str) -> None:
        """An incarnation is over: what it had sent is served, then its channel is closed."""
        processes.kill_session(worker)
        if worker.fd in self._by_fd:
            self._drain(worker)
            self._poller.unregister(worker.fd)
            del self._by_fd[worker.fd]
        worker.rests.clear()
        logs.trim(worker.life.log)
        if self._turnstile.is_free_for(worker):
            self.observe(worker.who)  # before the next turn; in another's, what is there is theirs
        self._turnstile.give_back(worker)
        self.record("ended", worker.who, how)
        processes.close(worker)

    def let_out(self, worker: WorkerProcess, how: str) -> None:
        """A warm worker leaves this script alive, to serve as another one.

        The script tells of it as of one that is killed: whether it may stay warm is no part of it.
        """
        self._poller.unregister(worker.fd)
        del self._by_fd[worker.fd]
        self.everyone.remove(worker)
        self.record("ended", worker.who, how)

    def _drain(self, worker: WorkerProcess) -> None:
        worker.end.setblocking(False)
        try:
            while True:
                self._handle(worker, checked(wire.receive(worker.fd)), dead=True)
        except Exception:  # the end, or what is no message: nothing more can be had from it
            return

    # -- moves -------------------------------------------------------------------------------

    def move(
        self, worker: WorkerProcess, *, until: WirePattern | None = None, again: bool = False
    ) -> bool:
        """Let a worker go: each thread that rests, in order of arrival, then its due timers.

        Ends early, True, when a thread is held at `until`. `again`: one that had returned does
        its job once more.
        """
        self.settle(worker)  # the provider, or a signal, may have set it going
        start = self._arrivals
        armed = [*worker.holds, *([until] if until else [])]
        waits = ("held", "lock", "returned") if again else ("held", "lock")
        going = sorted(
            (rest.arrived, thread) for thread, rest in worker.rests.items() if rest.wait in waits
        )
        for _arrived, thread in going:
            if thread in worker.rests and not worker.ended:
                worker.answer(thread, "go", armed=armed)
                self.settle(worker)
                if worker.is_at(until, since=start):
                    return self._end_move(worker, reached=True)
        while self._retry(worker, armed=armed) or self.fire_due(worker, armed=armed):
            if worker.is_at(until, since=start):
                return self._end_move(worker, reached=True)
        return self._end_move(worker, reached=False)

    def _retry(self, worker: WorkerProcess, *, armed: list[WirePattern]) -> bool:
        """A thread that waited for a lock which another of its own has let go tries again."""
        for thread, rest in worker.rests.items():
            if rest.wait == "lock" and rest.arrived <= worker.let_go:
                worker.answer(thread, "go", armed=armed)
                self.settle(worker)
                return True
        return False

    def _end_move(self, worker: WorkerProcess, *, reached: bool) -> bool:
        if self._by_move or not self.page.turnstile:
            self.observe(worker.who)  # what came past every hook is the mover's too
        self.record("settled", worker.who, worker.state(self.now_ns()))
        return reached

    def fire_due(self, worker: WorkerProcess, *, armed: list[WirePattern] | None = None) -> bool:
        """Fire the earliest timer of a worker that is due, and let it settle. False: none is."""
        timers = worker.timers()
        if worker.ended or worker.stopped or not timers or timers[0][0] > self.now_ns():
            return False
        worker.fire(timers[0][1], armed=worker.holds if armed is None else armed)
        self.settle(worker)
        return True

    def settle(self, *movers: WorkerProcess) -> None:
        """Serve everyone until the movers are at rest. Raises `Unsettled` at the deadline."""
        began = real_monotonic()
        patience = iter(_PATIENCE_MS)
        pause_ms = next(patience)
        while not all(worker.settled for worker in movers):
            if self.serve(pause_ms):
                processes.refuse(movers, since=began, allowed_s=_BUSY * self._deadline_s)
                continue
            pause_ms = next(patience, _PATIENCE_MS[-1])
            try_again(self.page, *movers)
            for worker in movers:
                if not worker.settled:
                    lasting = real_monotonic() > began + _LASTING_S
                    self._look_from_outside(worker, lasting=lasting)
            processes.refuse(movers, since=began, allowed_s=self._deadline_s)
        self._look(*movers)

    def serve(self, timeout_ms: float) -> bool:
        """Handle whatever messages are there, waiting at most that long for one."""
        ready = self._poller.poll(timeout_ms)
        for fd, _events in ready:
            worker = self._by_fd.get(fd)
            if worker is None:
                continue
            try:
                message = checked(wire.receive(fd))
            except (EOFError, OSError):
                self.gone(worker)
            except Exception as error:  # marshal has many; whatever it is, it is no message
                self.blind(worker.who, f"it wrote into the kit's channel: {error}"[:300])
                self.gone(worker)
            else:
                try:
                    self._handle(worker, message)
                except EOFError:
                    self.gone(worker)
        return bool(ready)

    def pass_time(self, timeout_ms: float) -> None:
        """Time passes for real: serve, and where no commit is told, look meanwhile."""
        if not self._by_move:
            self.serve(timeout_ms)
            return
        self.serve(min(timeout_ms, _BETWEEN_LOOKS_MS))
        busy = [
            worker
            for worker in alive(self.everyone)
            if not worker.stopped and any(r.wait != "returned" for r in worker.rests.values())
        ]
        count = len(self.rows)
        if busy:
            self.observe(busy[0].who, moving=True)
        if len(busy) > 1 and len(self.rows) > count:
            names = ", ".join(worker.who for worker in busy)
            self.blind(busy[0].who, f"no commit was told, and it may have been of {names}")

    def gone(self, worker: WorkerProcess) -> None:
        """The channel is closed: the process has died, or closed it; either way it is over."""
        if not worker.ended:
            processes.kill(worker)
        self.leave(worker, worker.ended)

    def kill_unsettled(self) -> None:
        """Nobody who could not be brought to rest goes on while a test decides what to do."""
        for worker in alive(self.everyone):
            if not worker.settled:
                self.gone(worker)

    def _look_from_outside(self, worker: WorkerProcess, *, lasting: bool) -> None:
        """Is it at rest without having said so? What may end by itself must have lasted."""
        logs.thin(worker.life.log)
        if processes.has_died(worker):
            self.leave(worker, worker.ended)
            return
        calls = quiet.rest_of(worker.pid)
        # It may rest because it has just told us something: only silence after the look counts.
        if calls is None or self.serve(0):
            return
        waits = {"lock", "read", "loop"} | ({"timed"} if lasting else set())
        if set(calls) <= waits and (self.page.virtual or lasting):
            idle = "loop" in calls
            worker.quiet = "idle in its event loop" if idle else "waits for its own threads"

    # -- messages ----------------------------------------------------------------------------

    def _handle(self, worker: WorkerProcess, message: Any, *, dead: bool = False) -> None:
        kind, thread, rows, settlement, payload = message
        who = worker.life.who
        if self._by_move and not self.page.turnstile and kind in _RESTS:
            # Without points at commits this is the finest that can be had: what was committed
            # belongs before the point that is reached now, or before the call's end.
            before = len(rows) - (kind != "returned")
            self._take_in(worker, rows[:before])
            self.observe(who)
            rows = rows[before:]
        self._take_in(worker, rows)
        worker.quiet = ""
        if settlement is not None:
            worker.settlement = settlement
        if kind == "commit":
            name, connection, txn, wrote = payload
            worker.let_go = self._arrivals
            self.observe(who, name, connection, txn, wrote=wrote)
            self._turnstile.give_back(worker)
            worker.answer(thread, True)
        elif kind in ("hold", "returned") or (kind == "wait" and not dead):
            self._rest(worker, thread, kind, payload)
        elif kind == "effect":
            self._look(worker)
            self._boundary.ask(worker, thread, payload, dead=dead)
        elif kind == "lookup":
            self._boundary.look_up(worker, thread, payload)
        elif kind == "line":
            processes.take_line(worker, thread, timekeeper=payload == TIMEKEEPER)
        elif kind == "turn":
            self._turnstile.ask(worker, thread)
        elif kind == "exclusive":
            self._sight.note_exclusive(who, note=lambda text: self.note(text, who=who))
            worker.answer(thread, True)
        elif kind == "no-commit":
            self._turnstile.give_back(worker)
            worker.answer(thread, True)

    def _take_in(self, worker: WorkerProcess, rows: Sequence[Any]) -> None:
        """Record what a worker tells of itself."""
        who = worker.life.who
        events, now_ns = self.rows, self.page.now_ns()
        for row in rows:
            event = row[0]
            if event == "blind":
                self.blind(who, row[1])
                continue
            events.append((event, len(events) + 1, now_ns, who, *row[1:]))
            if event == "passed":
                worker.passed.append(row)
            elif event == "rolled-back":
                worker.let_go = self._arrivals

    def _arrive(self) -> int:
        self._arrivals += 1
        return self._arrivals

    def _rest(self, worker: WorkerProcess, thread: int, kind: str, payload: Any) -> None:
        wait = {"hold": "held", "wait": "lock", "returned": "returned"}[kind]
        worker.rests[thread] = Rest(wait, payload, self._arrive())
        if kind == "returned":
            self._look(worker)
            worker.suspect = worker.suspect or bool(payload[2])
            self.record("returned", worker.who, *payload[:3])  # its place is for errors

    def _look(self, *movers: WorkerProcess) -> None:
        """Where no commit is told: what has been committed by now is the only mover's.

        Done wherever the order tells: before an effect, a return, another's move.
        """
        if self._by_move and (len(movers) == 1 or (self.racing and movers)):
            self.observe(movers[0].who)

    # -- effects -----------------------------------------------------------------------------

    def deliver(self, name: str) -> Iterator[WorkerProcess]:
        """What is under way for effects of this name arrives; yields who is answered by it."""
        return self._boundary.deliver(name, to=self.everyone)
