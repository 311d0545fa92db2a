"""The lane: the process that forks, signals and reaps the workers of one stage at a time.

Single-threaded, pinned to one core with its workers, and it never opens SQLite: a fork with an
open database breaks locks. It imports the subject once, so that a worker is a fork away; when that
import opens SQLite or starts threads (some libraries do), the lane stays clean and each worker
imports for itself, which is slower, and said.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import marshal
import os
import pickle
import select
import signal
import socket
import sqlite3
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from . import guard, measured, names, processes, sqlite_api, worker
from .acts import Actor
from .blame import to_wire
from .clock import ClockPage
from .errors import (
    LeasecheckError,
    NeverReached,
    StageError,
    SubjectError,
    Unsettled,
    no_room,
)
from .livestage import LiveStage
from .nursery import Nursery
from .observer import ObserverClient, ObserverFailed, start_observer
from .placement import placement
from .preparing import look_at_import, make_template
from .processes import WorkerProcess
from .provider import Provider
from .shaking import shake
from .subject import Declaration, Subject
from .subject_source import SubjectSource
from .worker import Life
from .workplace import make_private_folder

#: How many scripts may leave cycles behind before they are collected.
_SCRIPTS_A_COLLECTION: Final = 50


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """Everything the lane is told when it is started. `work` is for databases, `logs` for logs."""

    source: SubjectSource
    declaration: Declaration
    virtual: bool
    warm: bool
    hooks: bool
    attribution: str
    deadline_s: float
    start_deadline_s: float
    cpu: int | None
    dies_with: tuple[int, ...]
    mark: str
    work: str
    brief_observer: bool
    forks_ahead: bool


def main(connection: Any, spec: LaneSpec, parent_pid: int) -> None:
    """The lane's life: announce itself, then serve one command after the other."""
    status = 1
    try:
        guard.stand_guard(
            spec.mark, folder_path=spec.work, parent_pid=parent_pid, others=spec.dies_with
        )
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        lane = _Lane(connection, spec)
        lane.start()
        lane.serve()
        status = 0
    except (EOFError, BrokenPipeError):
        status = 0
    except LeasecheckError as error:  # about the subject: nothing of ours to be seen
        with contextlib.suppress(OSError):
            connection.send_bytes(marshal.dumps(("refused", to_wire(error))))
    except BaseException as error:
        with contextlib.suppress(OSError):
            told = no_room(error) or traceback.format_exc()
            connection.send_bytes(marshal.dumps(("failed", told)))
    finally:
        os._exit(status)


class _Lane:
    """The state of a lane between two commands."""

    def __init__(self, connection: Any, spec: LaneSpec) -> None:
        self._connection: Final = connection
        self._spec: Final = spec
        self._page: Final = ClockPage(virtual=spec.virtual)
        self._placement: Final = placement(spec.cpu)
        self._placement.gather([os.getpid()])
        self._library = sqlite_api.load() if spec.hooks else None
        self._subject: Subject | None = None
        self._observer: ObserverClient | None = None
        self._template = b""
        self._body: worker.Body
        self._nursery: Nursery | None = None
        self._pid: Final = os.getpid()
        self._pool: list[WorkerProcess] = []
        self._stage: LiveStage | None = None
        self._actor: Actor | None = None
        self._place = ""
        #: What the observer found in the template: its schema, and its rows by table.
        self._opened: tuple[list[str], dict[str, Any]] | None = None
        self._db = ""
        self._header: tuple[Any, ...] = ()
        self._played = 0
        self._measured = False

    def start(self) -> None:
        """Import the subject, make the template database, start the observer, report facts."""
        source, deadline_s = self._spec.source, self._spec.start_deadline_s
        imports = look_at_import(source, deadline_s=deadline_s)
        if imports == "clean":
            self._subject = source.load()
        path = os.path.join(self._spec.work, "template.db")
        self._template = make_template(self._subject or source, path, deadline_s=deadline_s)
        if self._spec.attribution != "off":
            self._observer = start_observer(parent_pid=os.getpid(), library=self._library)
        self._measured = measured.running()
        names.remember()
        self._body = worker.prepare(
            self._page,
            library=self._library,
            turns=self._spec.attribution == "commit",
            tables=self._spec.declaration.tables,
            warm=self._spec.warm,
        )
        gc.collect()
        gc.freeze()
        gc.disable()  # collected in `_tidy`, not in the middle of a move
        if self._spec.forks_ahead:
            with contextlib.suppress(OSError):  # no room for one
                self._nursery = Nursery(
                    self._live, begin=self._nurse, patience_s=self._spec.deadline_s
                )
        facts = {
            "python": sys.version.split()[0],
            "sqlite": sqlite3.sqlite_version,
            "hooks": self._library is not None,
            "imports": imports,
            "pid": os.getpid(),
        }
        self._connection.send_bytes(marshal.dumps(("ready", facts)))

    # -- commands ----------------------------------------------------------------------------

    def serve(self) -> None:
        """Commands: play (a whole script), open, act, close."""
        while True:
            command, *arguments = pickle.loads(self._next_command())  # from pytest, by a pipe
            answer = getattr(self, "_do_" + command)(*arguments)
            self._connection.send_bytes(marshal.dumps(answer))
            self._tidy()

    def _tidy(self) -> None:
        """While pytest looks at the answer."""
        if self._stage is None and self._played % _SCRIPTS_A_COLLECTION == 0:
            gc.collect()

    def _next_command(self) -> bytes:
        """The next command; whoever moves on a wall clock meanwhile is served."""
        if self._stage is not None and not self._page.virtual:
            poller = select.poll()
            poller.register(self._connection.fileno(), select.POLLIN)
            while not poller.poll(0):
                self._stage.serve(5)
        data: bytes = self._connection.recv_bytes()
        return data

    def _do_play(self, name: str, logs: str, actions: tuple[bytes, ...]) -> tuple[Any, ...]:
        error = self._open(name, logs)
        if error is not None:
            return ("played", (self._page.now_ns(), [], {}), [], {}, error)
        error = self._perform(map(_unpacked, actions))
        return ("played", *self._finish(), error)

    def _do_open(self, name: str, logs: str) -> tuple[Any, ...]:
        return ("opened", self._open(name, logs))

    def _do_act(self, action: Any) -> tuple[Any, ...]:
        assert self._stage is not None
        error = self._perform((action,))
        if error is not None and error[0] == "Unsettled":
            self._stage.kill_unsettled()
        states = {
            label: one.state(self._stage.now_ns()) for label, one in self._stage.workers.items()
        }
        return ("acted", states, error)

    def _do_shake(self, labels: list[str], duration_ms: int, seed: int) -> tuple[Any, ...]:
        assert self._actor is not None
        ttl_ms = self._spec.declaration.lease_ttl_ms
        try:
            counts = shake(
                self._actor, labels, duration_ms=duration_ms, seed=seed, lease_ttl_ms=ttl_ms
            )
        except StageError as error:
            return ("shaken", {}, _wire_error(error))
        return ("shaken", counts, None)

    def _do_look(self) -> tuple[Any, ...]:
        assert self._stage is not None
        return ("looked", self._header, self._stage.rows)

    def _do_finish(self) -> tuple[Any, ...]:
        return ("played", *self._finish(), None)

    def _perform(self, actions: Iterable[Any]) -> tuple[Any, ...] | None:
        assert self._actor is not None
        try:
            for action in actions:
                self._actor.perform(action)
        except StageError as error:
            return _wire_error(error)
        except SubjectError as error:  # a time that can't be read, say
            return _wire_error(StageError(str(error)))
        return None

    # -- one stage ---------------------------------------------------------------------------

    def _open(self, name: str, logs: str) -> tuple[Any, ...] | None:
        """Begin a stage; when there is no room for one, the error."""
        try:
            self._set_up(logs)
        except (OSError, ObserverFailed) as error:
            self._stage = self._actor = None
            guard.remove_folder(self._place)
            return _wire_error(StageError(f"the stage of {name!r} could not be set up: {error}"))
        return None

    def _set_up(self, logs: str) -> None:
        spec = self._spec
        self._played += 1
        self._page.reset()
        self._page.turnstile = not spec.virtual
        make_private_folder(logs)
        self._place = os.path.join(spec.work, str(self._played))
        os.mkdir(self._place, mode=0o700)
        self._db = os.path.join(self._place, "stage.db")
        with open(os.open(self._db, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
            file.write(self._template)
        schema: list[str] = []
        tables: dict[str, Any] = {}
        if self._observer is not None and not self._observer.lives:
            self._observer = start_observer(parent_pid=os.getpid(), library=self._library)
            self._opened = None
        if self._observer is not None and self._opened is not None:
            self._observer.open_same(self._db)
            schema, tables = self._opened
        elif self._observer is not None:
            self._opened = schema, tables = self._observer.open(
                self._db, tables=spec.declaration.tables, brief=spec.brief_observer
            )
        self._header = (self._page.now_ns(), schema, tables)
        self._stage = LiveStage(
            page=self._page,
            observer=self._observer,
            db=self._db,
            provider=Provider(spec.declaration.provider_fence),
            deadline_s=spec.deadline_s,
            by_move=spec.attribution == "move" or self._library is None,
            placement=self._placement,
        )
        self._stage.tables = {table: dict(rows) for table, rows in tables.items()}
        self._actor = Actor(
            self._stage,
            declaration=spec.declaration,
            start=self._start_worker,
            end=self._end,
            db=self._db,
            folder=logs,
        )

    def _finish(self) -> tuple[Any, ...]:
        """End the stage: nobody of it lives, its files are gone; what happened is returned."""
        stage = self._stage
        assert stage is not None
        if not (self._spec.warm or self._measured):
            processes.doom(stage.everyone, placement=self._placement)
        for one in list(stage.everyone):
            self._end(one, "end of script")
        if self._observer is not None:
            stage.observe("")
            with contextlib.suppress(ObserverFailed):
                self._observer.close()
        if self._nursery is not None:
            self._nursery.catch_up()
        strays = guard.kill_children(spare=self._own_children())
        if strays and not (self._nursery is not None and self._nursery.left_some()):
            stage.note(f"{strays} processes that workers had left behind were killed")
        stage.close()
        guard.remove_folder(self._place)
        with contextlib.suppress(OSError):  # a worker may have moved it, and put others beside it
            for name in os.listdir(self._spec.work):
                guard.remove_folder(os.path.join(self._spec.work, name))
        self._stage = self._actor = None
        return (self._header, stage.rows, stage.logs)

    def _end(self, one: WorkerProcess, how: str) -> None:
        """A worker's part in this script is over: kept for another one if it may be."""
        stage = self._stage
        assert stage is not None
        if one.ended:
            return
        if self._may_stay_warm(one):
            stage.let_out(one, how)
            self._pool.append(one)
        else:
            if self._measured:
                processes.let_end(one)
            processes.kill(one)
            stage.leave(one, how)

    def _own_children(self) -> set[int]:
        observer = {self._observer.pid} if self._observer is not None else set()
        nursery = self._nursery.pids if self._nursery is not None else set()
        return observer | nursery | {one.pid for one in self._pool}

    def _may_stay_warm(self, one: WorkerProcess) -> bool:
        """Whether nothing happened to a worker that another script could notice."""
        waits = one.settlement[2] if one.settlement else []
        rests = [rest.wait for rest in one.rests.values()]
        idle = rests == ["returned"] and len(waits) == 1 and one.settled and not one.quiet
        if self._measured or not (self._spec.warm and idle) or one.suspect or one.stopped:
            return False
        return not processes.has_children(one)

    def _start_worker(self, label: str, life: Life) -> WorkerProcess:
        while self._pool:
            one = self._pool.pop()
            if processes.has_died(one):
                processes.close(one)
                continue
            thread = next(iter(one.rests))
            one.holds.clear()
            one.passed.clear()
            one.let_go = -1  # arrivals are counted anew
            one.label, one.life = label, life
            one.answer(thread, ("again", life.told), armed=[("start", None, "before")])
            return one
        spare = self._nursery.take() if self._nursery is not None else None
        if spare is None:
            spare = processes.fork_worker(lambda end: self._live(end, alone=True))
        else:
            self._placement.join(spare.pid)
        return processes.begin_life(spare, label, life)

    def _live(self, end: socket.socket, *, alone: bool = False) -> None:
        """A worker's life. `alone`: it comes from the lane itself, and not from the nursery."""
        source = self._spec.source if self._subject is None else self._subject
        worker.live(end, parent_pid=self._pid, body=self._body, source=source, alone=alone)

    def _nurse(self) -> None:
        """In the nursery: become what all workers have in common, wherever there is time."""
        self._placement.spread([os.getpid()])
        source = self._spec.source if self._subject is None else self._subject
        worker.become_like_workers(self._body, source)


@functools.lru_cache(maxsize=1024)
def _unpacked(action: bytes) -> Any:
    return pickle.loads(action)  # from pytest, by a pipe


def _wire_error(error: StageError) -> tuple[Any, ...]:
    """A stage's error as plain data; `lane.error_from` reads it."""
    if isinstance(error, NeverReached):
        return ("NeverReached", error.worker, error.point, str(error), error.passed, error.log)
    if isinstance(error, Unsettled):
        return ("Unsettled", error.worker, "", str(error), error.stacks, error.log)
    return ("StageError", error.worker, "", str(error), "", error.log)
