"""Inside a worker: its bootstrap, and the handle that a subject's `work(worker)` gets.

A worker is one process and one incarnation. It is held at `start` until the script moves it, runs
the subject's job, reports what came of it, and stays, idle, until it is moved again (one more
pass by the same process) or the script ends. Real workers do the same in a loop.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import os
import random
import resource
import signal
import socket
import sqlite3
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from . import guard, measured, wire
from .blame import error_line, raised, without_ours
from .channel import Channel, thread_name
from .clock import ClockPage, WorkerClock, monotonic_ns
from .errors import LeasecheckError
from .evloop import Loops, carried, reach_async
from .messages import checked_name, effect_names
from .probe import Probe
from .subject import Subject
from .subject_source import SubjectSource
from .surroundings import Surroundings
from .timepatch import SkewedEyes, patch_time
from .vtime import Waits
from .wrapping import wrap_calls

T = TypeVar("T")

#: The signal on which a worker writes the stacks of its threads to its log, in C, whatever it does.
STACKS_SIGNAL: Final = signal.SIGRTMIN + 7


@dataclass(frozen=True, slots=True)
class Life:
    """What the lane tells a new incarnation. `who` is `A#1`, `name` its configured name."""

    who: str
    name: str
    job: str
    db: str
    log: str
    slot: int
    argument: str = ""

    @property
    def told(self) -> tuple[Any, ...]:
        """Its fields, as they travel."""
        return (self.who, self.name, self.job, self.db, self.log, self.slot, self.argument)


class EffectFailed(Exception):
    """The provider refused an effect, or failed: `outcome` is `refused` or `failed`."""

    def __init__(self, name: str, outcome: str, why: str) -> None:
        #: The effect's name.
        self.name: Final = name
        #: What the provider decided.
        self.outcome: Final = outcome
        super().__init__(f"effect {name!r} was {outcome}: {why}")


class Worker:
    """The kit's side of one incarnation, as the code under test sees it."""

    def __init__(self, life: Life, channel: Channel, page: ClockPage) -> None:
        self._life: Final = life
        self._channel: Final = channel
        self._page: Final = page
        self._issued = 0
        #: The clock of this worker: `now_ms()`, `time()`, `wait(event, timeout_ms)`, `sleep(s)`.
        self.clock: Final = WorkerClock(
            page, slot=life.slot, on_read=lambda ns: channel.record("clock-read", thread_name(), ns)
        )

    @property
    def who(self) -> str:
        """The incarnation, `A#1`. For logs; a subject that uses it as an identity cheats itself."""
        return self._life.who

    @property
    def name(self) -> str:
        """The configured owner name; two processes may have the same."""
        return self._life.name

    @property
    def db(self) -> Path:
        """The database's path."""
        return Path(self._life.db)

    def unique(self) -> str:
        """A suffix that no other incarnation of this stage gets, the same in each replay."""
        self._issued += 1
        return f"{self._life.who.replace('#', '.')}-{self._issued}"

    def point(self, name: str) -> None:
        """A place where a script may hold this worker. Use `apoint` in a coroutine."""
        points_reach(self._channel, name)

    async def apoint(self, name: str) -> None:
        """The same in a coroutine: the event loop goes on while this task is held."""
        name = checked_name(name, what="a point")
        ordinal = self._channel.count(name)
        await reach_async(self._channel, name, ordinal=ordinal, phase="before")

    def effect(
        self,
        name: str,
        *,
        run_id: str | None = None,
        token: int | None = None,
        key: str | None = None,
        apply: Callable[[str], T] | None = None,
    ) -> T | str:
        """Do what can't be taken back; answers with a receipt that is unique to this execution.

        Without `apply` it is a request to the stage's provider, which has the fence the subject
        declared, and is idempotent by `key`. With `apply`, the subject's own effect store is
        called with the receipt: whether it landed is read from what is committed. Return the
        receipt as the step's result, and a result that lands in the wrong tenure gives itself away.
        Raises `EffectFailed` when the provider refuses or fails, TypeError for a token without an
        order.
        """
        name = checked_name(name, what="an effect")
        run_id, token, key = effect_names(run_id, token, key)
        channel = self._channel
        point = f"effect:{name}"
        ordinal = channel.count(point)
        channel.reach(point, ordinal=ordinal, phase="before")
        self._issued += 1
        receipt = f"rcpt-{self._life.who}-x{self._issued}z"
        if apply is not None:
            payload = (thread_name(), name, run_id, token, key, receipt, True)
            request = channel.ask("effect", payload)
            how = "raised BaseException"
            try:
                result: T | str = apply(receipt)
                how = "returned"
            except BaseException as error:
                how = f"raised {type(error).__name__}"
                raise
            finally:
                channel.record("effect-answered", request[0], how)
        else:
            payload = (thread_name(), name, run_id, token, key, receipt, False)
            _request, outcome, why = channel.ask("effect", payload, wait="provider")
            if outcome not in ("accepted", "replayed"):
                raise EffectFailed(name, outcome, why)
            result = receipt
        channel.reach(point, ordinal=ordinal, phase="after")
        return result

    async def aeffect(self, name: str, **fields: Any) -> Any:
        """`effect` in a coroutine: the event loop goes on meanwhile."""
        return await carried(functools.partial(self.effect, name, **fields))

    def lookup(self, key: str) -> str | None:
        """Ask the provider what became of `key`: a receipt when it was applied, None when not.

        Raises `EffectFailed` when the provider can't tell.
        """
        self._issued += 1
        payload = (thread_name(), str(key), f"rcpt-{self._life.who}-x{self._issued}z")
        found, receipt = self._channel.ask("lookup", payload)
        if found == "unknown":
            raise EffectFailed(key, "failed", "the provider can't tell what became of it")
        return receipt if found == "accepted" else None


def points_reach(channel: Channel, name: str) -> None:
    """A consumer's own point: one instant, phase `before`."""
    name = checked_name(name, what="a point")
    channel.reach(name, ordinal=channel.count(name), phase="before")


_current: Channel | None = None
_worker: Worker | None = None


def point(name: str) -> None:
    """A place where a script may hold this process; does nothing outside a worker.

    For a consumer's own code: `from pytest_leasecheck import point`.
    """
    if _current is not None:
        points_reach(_current, name)


async def apoint(name: str) -> None:
    """`point` for coroutines: the event loop goes on while this task is held."""
    if _current is not None:
        name = checked_name(name, what="a point")
        await reach_async(_current, name, ordinal=_current.count(name), phase="before")


def present_worker() -> Worker | None:
    """The worker that this process is; None outside one.

    For a subject's `submit`, `cancel` and `approve`, which are given no worker, and in which a
    runtime may want the stage's clock.
    """
    return _worker


@dataclass(frozen=True, slots=True)
class Body:
    """Everything about a worker that can be made before its fork, once for all of them."""

    channel: Channel
    page: ClockPage
    eyes: SkewedEyes
    probe: Probe | None
    #: The declared tables.
    tables: tuple[str, ...]
    #: Whether it may live several lives.
    warm: bool


def prepare(
    page: ClockPage, *, library: Any, turns: bool, tables: tuple[str, ...], warm: bool
) -> Body:
    """Patch waits, loops and SQLite's clock in this process; they serve who is forked from it.

    Here, where no channel is alive, everything patched does what it did before.
    """
    channel = Channel()
    waits = Waits(channel, page)
    waits.install()
    Loops(waits).install()
    eyes = SkewedEyes(page, channel)
    probe = None
    if library is not None:
        probe = Probe(channel, page, library=library, turns=turns)
        probe.install(now_ns=eyes.peek_ns, note_read=eyes.note)
    return Body(channel, page, eyes, probe, tables, warm)


def become_like_workers(body: Body, source: Subject | SubjectSource) -> None:
    """Everything of a worker's that needs no life yet: done once, in the process that forks them.

    A subject that is still to be imported is known to each worker by itself.
    """
    _leave_terminal()
    _point_modules_at(body.channel)
    if body.probe is not None:
        body.probe.listen()
    if isinstance(source, Subject):
        _know(body, source)


def _know(body: Body, subject: Subject) -> None:
    """Its dotted names become points, and its clock the stage's."""
    page = body.page
    wrap_calls(body.channel, subject)
    if subject.clock == "patched" and page.virtual:
        patch_time(now_ns=body.eyes.now_ns, monotonic_ns=functools.partial(monotonic_ns, page))


def live(
    end: socket.socket, *, parent_pid: int, body: Body, source: Subject | SubjectSource, alone: bool
) -> None:
    """The life of a worker process, right after the fork. Never returns.

    Who it is to be is the first thing that the lane says; until then it is nobody. `alone`: it is
    forked from a process that has not become like workers.
    """
    status = 70
    channel = body.channel
    try:
        os.setsid()
        gc.enable()  # the lane collects when it has time; the subject's is ordinary Python
        line = socket.socket(fileno=guard.keep_only(end.detach()))
        try:
            life = Life(*wire.receive(line.fileno()))
        except (EOFError, OSError):  # the lane has ended
            os._exit(0)
        guard.die_with_parent(parent_pid)
        _log_to(life.log)
        if alone:
            become_like_workers(body, source)
        channel.born(line)
        body.eyes.slot = life.slot
        if isinstance(source, Subject):
            subject = source
        else:
            if body.probe is not None:
                body.probe.watch(life.db, tables=())  # importing it may open it
            subject = source.load()
            _know(body, subject)
        _serve(body, life, subject=subject)
        status = 0
    except BaseException as error:
        _print_error(error)
    finally:
        channel.forget()
        measured.save()
        os._exit(status)


def _serve(body: Body, life: Life | None, *, subject: Subject) -> None:
    """Live one life after the other (more than one when warm), until the lane says to end."""
    global _worker
    channel, page, eyes, probe = body.channel, body.page, body.eyes, body.probe
    surroundings = Surroundings() if body.warm else None
    while life is not None:
        random.seed(life.who)
        eyes.slot = life.slot
        if probe is not None:
            probe.watch(life.db, tables=body.tables)
        worker = _worker = Worker(life, channel, page)
        command = channel.ask("hold", ("start", 1, "before"), wait="held")
        while command == "go":
            outcome = _run_job(subject, worker, life)
            if not channel.alive:  # a child that it forked has come back with it
                os._exit(0)
            command = channel.ask("returned", (thread_name(), *outcome), wait="returned")
        life = Life(*command[1]) if command[0] == "again" else None
        if life is not None and surroundings is not None:
            surroundings.restore()
            _log_to(life.log)
            channel.reset()


def _run_job(subject: Subject, worker: Worker, life: Life) -> tuple[str, str, str]:
    """One pass of the job: its value's repr, its error's text, and where that was raised."""
    try:
        if life.job == "hold_write_lock":
            return _hold_write_lock(worker), "", ""
        job = getattr(subject, life.job)
        value = job(worker.db, life.argument) if life.argument else job(worker)
        return repr(value)[:2000], "", ""
    except BaseException as error:  # SystemExit and KeyboardInterrupt are outcomes like others
        _print_error(error)
        return "", error_line(error), raised(error).place


def _print_error(error: BaseException) -> None:
    """The traceback goes to the log, unless the subject closed it, or filled the disk."""
    with contextlib.suppress(Exception):
        if isinstance(error, LeasecheckError):
            print(error, file=sys.stderr)
        else:
            traceback.print_exception(without_ours(error))
        sys.stderr.flush()


def _hold_write_lock(worker: Worker) -> str:
    """The `lock` action: somebody who is no worker holds the database's write lock."""
    connection = sqlite3.connect(worker.db, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    worker.point("locked")
    connection.execute("ROLLBACK")
    connection.close()
    return "released"


def _leave_terminal() -> None:
    """There is no input, no core dump; Ctrl-C is pytest's, and SIGTERM ends it like any process."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if sys.stdout is not None:  # a worker is killed, not flushed
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text stream
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(file=2, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _log_to(log: str) -> None:
    """From now on output goes there, and stacks when they are asked for."""
    try:
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    except OSError:  # no room: a worker without a log is still a worker
        out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    faulthandler.unregister(STACKS_SIGNAL)  # a subject may have taken it since
    faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)


def _point_modules_at(channel: Channel) -> None:
    global _current
    _current = channel
