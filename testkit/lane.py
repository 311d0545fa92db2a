"""A lane, seen from pytest: start it, have scripts played, get histories, close it.

pytest never forks and never drives a worker: `multiprocess` spawns the lane, the lane does the
rest. A lane that dies takes its workers with it and raises `LaneDied`; the next one is new.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import marshal
import os
import pickle
import signal
import sys
import types
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from . import guard, lane_process
from .blame import from_wire
from .declaration_json import declaration_to_json
from .errors import TOLD_IN_WORDS, LaneDied, NeverReached, StageError, Unsettled, no_room
from .history import KINDS, Change, Commit, Event, Header, History
from .placement import cpu_for
from .script import Action, Script
from .silence import Patience
from .stage import Stage
from .subject import Subject, declaration_of
from .subject_check import refuse_unfit
from .subject_source import SubjectSource, source_of
from .workplace import SHARED_MEMORY, make_work_folder

__tracebackhide__ = TOLD_IN_WORDS

#: How long the guard may take to clear up before it is killed itself.
_GUARD_PATIENCE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """How a lane works. `folder` takes workers' logs.

    `deadline_s` is real time for one move, `start_deadline_s` for the subject's import and for its
    `prepare`.

    The lane ends with the process that started it, and with each process of `dies_with`.
    On a virtual clock it shares one processor with its workers when it is told which: `cpu`, or by
    its `number` among lanes that play side by side, which get others while there are enough.
    `places` are where databases may lie, in order; after them comes the system's temporary folder.
    A lane that shows no sign of life for `deadline_s` and `silence_s` more is killed.
    `forks_ahead`: a few processes wait to become workers, so that a script needn't wait for them.
    """

    folder: Path
    clock: Literal["auto", "virtual", "wall"] = "auto"
    workers: Literal["fresh", "warm"] = "fresh"
    hooks: bool = True
    attribution: Literal["commit", "move", "off"] = "commit"
    deadline_s: float = 10.0
    start_deadline_s: float = 60.0
    cpu: int | None = None
    number: int | None = None
    dies_with: tuple[int, ...] = ()
    places: tuple[str, ...] = (SHARED_MEMORY,)
    silence_s: float = 15.0
    forks_ahead: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """What a lane found out about its environment and its subject."""

    python: str = ""
    sqlite: str = ""
    hooks: bool = False
    imports: str = ""
    virtual: bool = False
    work: str = ""
    guarantees: tuple[str, ...] = ()
    fallen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a script: its history, up to `error` if there is one, and the workers' logs."""

    history: History
    error: StageError | None
    logs: Mapping[str, Path] = field(default_factory=dict)


class Lane:
    """One lane process. Use it as a context manager, or `close()` it; `atexit` does otherwise."""

    def __init__(self, subject: Subject | type[Subject] | str, *, options: LaneOptions) -> None:
        self.source: Final[SubjectSource] = source_of(subject)
        self.subject: Final[Subject] = self.source.load()
        refuse_unfit(self.subject)
        self.options: Final = options
        self.declaration: Final = declaration_of(self.subject)
        self._folder: Final = os.path.abspath(options.folder)
        self._closed = False
        self._owner_pid: Final = os.getpid()
        self._work = make_work_folder(options.places)
        self._mark: Final = uuid.uuid4().hex
        virtual = options.clock == "virtual" or (
            options.clock == "auto" and self.subject.clock != "wall"
        )
        spec = lane_process.LaneSpec(
            source=self.source,
            declaration=self.declaration,
            virtual=virtual,
            warm=options.workers == "warm",
            hooks=options.hooks,
            attribution=options.attribution,
            deadline_s=options.deadline_s,
            start_deadline_s=options.start_deadline_s,
            cpu=cpu_for(options.cpu, options.number) if virtual else None,
            dies_with=options.dies_with,
            mark=self._mark,
            work=self._work,
            brief_observer=self.subject.observer == "brief",
            forks_ahead=options.forks_ahead,
        )
        try:
            self._connection, self._process = _spawn(spec, self._mark)
        except BaseException as error:
            guard.kill_marked(self._mark)
            guard.remove_folder(self._work)
            if told := no_room(error):
                raise LaneDied(told) from None
            raise
        _open_lanes.add(self)
        silence_s = options.deadline_s + options.silence_s
        self._patience: Final = Patience(self._connection, silence_s=silence_s)
        # It waits for the children that import and prepare without a sign of life.
        kind, facts = self._receive(silence_s=2 * options.start_deadline_s + silence_s)
        if kind != "ready":
            self.close()
            raise from_wire(facts) if kind == "refused" else LaneDied(f"at its start:\n{facts}")
        self._patience.pid = facts.pop("pid")
        self._declaration_json = declaration_to_json(self.declaration)
        self.facts: Final = _facts(facts, virtual=virtual, work=self._work)

    def play(self, script: Script, *, name: str) -> Played:
        """Play a whole script on a stage of its own. `name` is its folder's name for logs."""
        logs = os.path.join(self._folder, name)
        answer = self._ask("play", name, logs, tuple(map(_packed, script.actions)))
        return self._played(answer, script=str(script))

    def open_stage(self, *, name: str) -> Stage:
        """Begin a stage whose actions come one by one. One at a time; close it when done."""
        _kind, error = self._ask("open", name, os.path.join(self._folder, name))
        if error is not None:
            raise error_from(error)
        return Stage(self)

    def act(self, action: Action) -> Mapping[str, str]:
        """Do one action; returns where each worker is. Raises `StageError`."""
        _kind, states, error = self._ask("act", action)
        if error is not None:
            failed = error_from(error)
            failed.states = dict(states)
            raise failed
        return dict(states)

    def shake(self, labels: Sequence[str], *, duration_ms: int, seed: int) -> Mapping[str, int]:
        """Let workers of the open stage race under random signals; see `shaking`.

        Raises `StageError`.
        """
        _kind, counts, error = self._ask("shake", list(labels), duration_ms, seed)
        if error is not None:
            raise error_from(error)
        return dict(counts)

    def look(self, *, script: str) -> History:
        """What has happened so far on the open stage."""
        _kind, header, rows = self._ask("look")
        return self._history(header, rows, script=script)

    def finish_stage(self, *, script: str) -> Played:
        """End the open stage."""
        return self._played(self._ask("finish"), script=script)

    def close(self) -> None:
        """End the lane and whatever it started; may be called twice.

        In a process that was forked from the lane's owner it does nothing.
        """
        if os.getpid() != self._owner_pid:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._connection.close()
        process = self._process
        if process.is_alive():
            process.terminate()  # the guard's: it kills the lane and whatever descends from it
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGCONT)  # who is stopped hears nothing
            process.join(timeout=_GUARD_PATIENCE_S)
            process.kill()
        process.join()
        guard.kill_marked(self._mark)
        guard.remove_folder(self._work)
        _open_lanes.discard(self)

    def __enter__(self) -> Lane:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the process lives."""
        return not self._closed and bool(self._process.is_alive())

    # -- the pipe ----------------------------------------------------------------------------

    def _ask(self, *command: Any) -> Any:
        if self._closed:
            raise LaneDied("it was closed")
        data = pickle.dumps(command)
        try:
            self._connection.send_bytes(data)
        except OSError:
            raise self._died() from None
        except BaseException:
            self.close()
            raise
        answer = self._receive()
        if answer[0] == "failed":
            self.close()
            raise LaneDied(answer[1])
        return answer

    def _receive(self, *, silence_s: float | None = None) -> Any:
        try:
            self._patience.wait(silence_s=silence_s)
            return marshal.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise self._died() from None
        except BaseException:  # interrupted: its answer would be taken for the next command's
            self.close()
            raise

    def _died(self) -> LaneDied:
        self._process.join(timeout=5)
        code = self._process.exitcode
        self.close()
        return LaneDied(f"signal {-code}" if code is not None and code < 0 else f"exit {code}")

    def _played(self, answer: Any, *, script: str) -> Played:
        _kind, header, rows, logs, error = answer
        history = self._history(header, rows, script=script)
        failed = error_from(error) if error is not None else None
        return Played(history, failed, logs={who: Path(log) for who, log in logs.items()})

    def _history(self, header: Any, rows: Any, *, script: str) -> History:
        start_ns, schema, tables = header
        facts = self.facts
        return History(
            Header(
                subject=self.declaration.subject,
                script=script,
                kit=kit_version(),
                python=facts.python,
                sqlite=facts.sqlite,
                clock="virtual" if facts.virtual else "wall",
                attribution=self.options.attribution if facts.hooks else "move",
                start_ns=start_ns,
                declaration=self._declaration_json,
                schema=tuple(schema),
                tables={table: dict(keyed) for table, keyed in tables.items()},
            ),
            tuple(_events(rows)),
        )


_open_lanes: Final[weakref.WeakSet[Lane]] = weakref.WeakSet()


def close_all() -> None:
    """Close every lane that is open. Runs at exit, before multiprocess's own handler."""
    for lane in list(_open_lanes):
        lane.close()


@functools.cache
def kit_version() -> str:
    """The version of the distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pytest-leasecheck")
    except PackageNotFoundError:
        return "unknown"


@functools.lru_cache(maxsize=1024)
def _packed(action: Action) -> bytes:
    """An action for the pipe: scripts say the same few again and again."""
    return pickle.dumps(action)


def error_from(wired: Any) -> StageError:
    """A stage's error as the lane told it."""
    kind, worker, point, text, extra, log = wired
    kinds: dict[str, type[StageError]] = {"NeverReached": NeverReached, "Unsettled": Unsettled}
    error: StageError = StageError.__new__(kinds.get(kind, StageError))
    Exception.__init__(error, text)
    error.__dict__.update(worker=worker, log=log)
    if kind == "NeverReached":
        error.__dict__.update(point=point, passed=tuple(extra))
    elif kind == "Unsettled":
        error.__dict__.update(stacks=extra)
    return error


def _events(rows: Any) -> Iterator[Event]:
    for kind, *fields in rows:
        if kind == "commit":
            n, at_ns, who, thread, connection, txn, changes = fields
            changed = tuple(Change(*change) for change in changes)
            yield Commit(n, at_ns, who, thread, connection, txn, changed)
        else:
            yield KINDS[kind](*fields)


def _facts(facts: Mapping[str, Any], *, virtual: bool, work: str) -> Facts:
    guarantees = ["real processes, real signals, confirmed by the kernel"]
    fallen = []
    if facts["hooks"]:
        guarantees.append("every commit has its author; SQL and transaction points")
    else:
        fallen.append(
            "libsqlite3's symbols are hidden here: changes are attributed move by move, there are"
            " no sql: and txn: points, and lock waits are real"
        )
    if virtual:
        guarantees.append("virtual clock: expiry is an assignment")
    else:
        fallen.append("wall clock: expiry is waited for")
    if not work.startswith(SHARED_MEMORY + "/"):
        fallen.append("/dev/shm has no room: databases lie on disk, commits are slower")
    return Facts(
        **facts, virtual=virtual, work=work, guarantees=tuple(guarantees), fallen=tuple(fallen)
    )


def _pipe() -> tuple[Any, Any]:
    """Two connected ends, made without `socket.socket`, which pytest-socket replaces in a test."""
    import _socket

    from multiprocess.connection import Connection

    ends = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    for end in ends:
        end.setblocking(True)  # whatever default timeout the test has set
    one, other = (Connection(end.detach()) for end in ends)
    return one, other


def _spawn(spec: lane_process.LaneSpec, mark: str) -> tuple[Any, Any]:
    """Start the lane as a fresh interpreter: same hash seed each time, and no second `__main__`."""
    import multiprocess
    from multiprocess import resource_tracker

    context = multiprocess.get_context("spawn")
    ours, theirs = _pipe()
    process = context.Process(
        target=lane_process.main, args=(theirs, spec, os.getpid()), name="leasecheck-lane"
    )
    resource_tracker.ensure_running()  # else it would carry the mark, and be killed with the lane
    kept = {name: os.environ.get(name) for name in ("PYTHONHASHSEED", guard.MARK)}
    os.environ.update({"PYTHONHASHSEED": "0", guard.MARK: mark})
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")  # spawn would import pytest's script
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    theirs.close()
    atexit.unregister(close_all)
    atexit.register(close_all)  # registered after multiprocess's own, so it runs first
    return ours, process
