"""A subject whose jobs do to their process, their channel and their database what they please.

`spawn A to JOB` picks one; `work` is the well-behaved one, for the script that comes after.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject
from pytest_leasecheck.testkit.worker import STACKS_SIGNAL, Worker

_CLAIM = (
    "UPDATE jobs SET status = 'running', owner = ?, token = token + 1, expires_at = ?"
    " WHERE id = (SELECT id FROM jobs WHERE status = 'queued' LIMIT 1) RETURNING id"
)


class Small(Subject):
    """Claims one job, and finishes it. Well-behaved."""

    runs = RunTable(
        "jobs",
        id="id",
        status="status",
        terminal={"done"},
        lease=Lease(owner="owner", expires_at="expires_at", token="token", unit="s"),
    )
    clock = "given"
    lease_ttl_ms = 30_000

    def prepare(self, db: Path) -> None:
        connection = sqlite3.connect(db)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT, owner TEXT,"
            " expires_at REAL, token INTEGER)"
        )
        connection.close()

    def submit(self, db: Path, run_id: str) -> None:
        with contextlib.closing(sqlite3.connect(db)) as connection, connection:
            connection.execute("INSERT INTO jobs VALUES (?, 'queued', NULL, NULL, 0)", (run_id,))

    def work(self, worker: Worker) -> str:
        with contextlib.closing(sqlite3.connect(worker.db)) as connection:
            with connection:
                expires_at = worker.clock.time() + self.lease_ttl_ms / 1000
                found = connection.execute(_CLAIM, (worker.unique(), expires_at)).fetchall()
            if not found:
                return "nothing to do"
            with connection:
                worker.point("inside")
                connection.execute(
                    "UPDATE jobs SET status = 'done', owner = NULL WHERE id = ?", found[0]
                )
                worker.point("holds the write lock")
        return "done"


class Hostile(Small):
    """Every job but `work` misbehaves in one way."""

    # -- ends badly ----------------------------------------------------------------------------

    def never_there(self, worker: Worker) -> str:
        return "without a point"

    def segfault(self, worker: Worker) -> None:
        ctypes.string_at(1)

    def leave(self, worker: Worker) -> NoReturn:
        os._exit(3)

    def system_exit(self, worker: Worker) -> NoReturn:
        raise SystemExit("enough")

    def crash(self, worker: Worker) -> NoReturn:
        raise RuntimeError("a bug of its own")

    # -- never comes to rest -------------------------------------------------------------------

    def spin(self, worker: Worker) -> NoReturn:
        while True:
            pass

    def spin_unmoved(self, worker: Worker) -> NoReturn:
        signal.signal(STACKS_SIGNAL, lambda *_: None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            pass

    def commit_for_ever(self, worker: Worker) -> NoReturn:
        with contextlib.closing(sqlite3.connect(worker.db, isolation_level=None)) as connection:
            while True:
                connection.execute("INSERT OR REPLACE INTO jobs (id) VALUES ('again')")

    def deadlock(self, worker: Worker) -> None:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()

    def endless_threads(self, worker: Worker) -> str:
        for number in range(3):
            threading.Thread(target=threading.Event().wait, name=f"idle{number}").start()
        return "left three threads"

    def spinning_thread(self, worker: Worker) -> str:
        threading.Thread(target=self.spin, args=(worker,), name="spinner", daemon=True).start()
        return "left a thread that spins"

    # -- its process's surroundings ------------------------------------------------------------

    def shout(self, worker: Worker) -> str:
        line = "x" * 1023 + "\n"
        for _ in range(100 * 1024):
            sys.stdout.write(line)
        sys.stdout.flush()
        print("the last line", flush=True)
        return "hoarse"

    def shout_for_ever(self, worker: Worker) -> NoReturn:
        block = b"y" * 65536
        while True:
            os.write(1, block)

    def close_output(self, worker: Worker) -> NoReturn:
        sys.stdout.close()
        sys.stderr.close()
        os.close(1)
        os.close(2)
        raise RuntimeError("nobody hears this")

    def change_surroundings(self, worker: Worker) -> str:
        os.chdir("/")
        os.environ.clear()
        os.umask(0o777)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.signal(STACKS_SIGNAL, signal.SIG_IGN)
        return self.work(worker)

    def describe(self, worker: Worker) -> str:
        umask = os.umask(0)
        os.umask(umask)
        handled = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)]
        return f"{os.getcwd()} {len(os.environ) > 2} {umask:o} {time.time() > 1e9} {handled}"

    def patch_time(self, worker: Worker) -> str:
        time.time = lambda: 0.0
        time.monotonic = lambda: 0.0
        time.sleep = lambda _seconds: None
        return self.work(worker)

    def fork_and_come_back(self, worker: Worker) -> str:
        """The child runs the rest of the job, and returns into the kit's own code."""
        if os.fork():
            os.wait()
        return "returned twice"

    def leave_children(self, worker: Worker) -> str:
        leave_children(worker)
        worker.point("has children")
        return "left them"

    def die_with_heirs(self, worker: Worker) -> NoReturn:
        """A child of its own keeps every descriptor open."""
        libc = ctypes.CDLL(None)
        if libc.fork() == 0:  # no hook of Python's sees it
            while True:
                signal.pause()
        os._exit(4)

    # -- the channel ---------------------------------------------------------------------------

    def close_channel(self, worker: Worker) -> str:
        os.closerange(3, 64)
        return "alone"

    def write_garbage(self, worker: Worker) -> str:
        os.write(3, b"\0hello, is there anybody?")
        return "wrote into a stranger's descriptor"

    def write_wrong_message(self, worker: Worker) -> str:
        import marshal

        os.write(3, b"\0" + marshal.dumps(("commit", 1, [("passed", "no", "such")], None, 7)))
        return "nearly a message"

    def write_half_a_message(self, worker: Worker) -> NoReturn:
        os.write(3, b"\1" + b"x" * 100)
        os._exit(5)

    def promise_a_line(self, worker: Worker) -> NoReturn:
        """A message that a descriptor is to follow; none does."""
        import marshal

        os.write(3, b"\0" + marshal.dumps(("line", 99, [], None, "helper")))
        os._exit(6)

    def write_half_and_wait(self, worker: Worker) -> NoReturn:
        os.write(3, b"\1" + b"x" * 100)
        while True:
            signal.pause()

    # -- the database --------------------------------------------------------------------------

    def fill_disk(self, worker: Worker) -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with contextlib.closing(sqlite3.connect(worker.db)) as connection, connection:
            connection.execute("INSERT INTO jobs (id) VALUES (?)", ("x" * 200_000,))
        return "there was room"

    def litter(self, worker: Worker) -> str:
        for number in range(20):
            (worker.db.parent / f"litter{number}").write_bytes(b"z" * 100_000)
        locked = worker.db.parent / "locked"
        locked.mkdir()
        (locked / "in").write_text("x")
        locked.chmod(0)
        return "left a mess"

    def delete_database(self, worker: Worker) -> str:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{worker.db}{suffix}")
        return "deleted"

    def put_a_link_in_its_place(self, worker: Worker) -> str:
        folder = worker.db.parent
        folder.rename(f"{folder}-moved")
        folder.symlink_to(os.environ["PRECIOUS"])
        return "a link"

    def name_oddly(self, worker: Worker) -> str:
        told = []
        for call in (worker.point, worker.effect):
            try:
                call(b"no text")
            except TypeError as error:
                told.append(str(error))
        return "; ".join(told)

    def scribble(self, worker: Worker) -> str:
        for suffix, spared in (("", 0), ("-wal", 56)):
            with open(f"{worker.db}{suffix}", "r+b") as file:
                file.seek(spared)
                file.write(os.urandom(16384))
        return "scribbled"

    def take_trace_callback(self, worker: Worker) -> str:
        seen: list[str] = []
        with contextlib.closing(sqlite3.connect(worker.db)) as connection:
            connection.set_trace_callback(seen.append)
            for name in ("unseen1", "unseen2"):
                with connection:
                    connection.execute("INSERT INTO jobs (id) VALUES (?)", (name,))
        return f"saw {len(seen)} itself"

    def take_trace_midway(self, worker: Worker) -> str:
        """Replaced while a statement is open, whose end will therefore never be told."""
        with contextlib.closing(sqlite3.connect(worker.db)) as connection:
            connection.execute("INSERT INTO jobs (id) VALUES ('s1'), ('s2'), ('s3')")
            connection.commit()
            cursor = connection.execute("SELECT id FROM jobs")
            cursor.fetchone()
            connection.set_trace_callback(None)
            connection.execute("INSERT INTO jobs (id) VALUES ('unseen')")
            connection.commit()
        return "blinded"

    def write_in_child(self, worker: Worker) -> str:
        """What a child of the worker's own commits, nobody of the kit is there to see."""
        if os.fork() == 0:
            with contextlib.closing(sqlite3.connect(worker.db)) as connection, connection:
                connection.execute("INSERT INTO jobs (id) VALUES ('childs')")
            os._exit(0)
        os.wait()
        return "let a child write"

    def effect_in_child(self, worker: Worker) -> str:
        if os.fork() == 0:
            try:
                worker.effect("charge", run_id="r1")
            except RuntimeError as error:
                os.write(1, f"refused: {error}\n".encode())
            finally:
                os._exit(0)
        os.wait()
        return "let a child act"

    def sleep_in_child(self, worker: Worker) -> str:
        if os.fork() == 0:
            worker.clock.sleep(0.01)
            time.sleep(0.01)
            threading.Event().wait(0.01)
            os._exit(0)
        os.wait()
        return "the child woke up"

    # -- points in odd places --------------------------------------------------------------------

    def point_in_thread(self, worker: Worker) -> str:
        thread = threading.Thread(target=worker.point, args=("in thread",), name="helper")
        thread.start()
        thread.join()
        return "joined"

    def point_in_coroutine(self, worker: Worker) -> str:
        ticks: list[int] = []

        async def tick() -> None:
            for number in range(3):
                ticks.append(number)
                await asyncio.sleep(0)

        async def both() -> None:
            await asyncio.gather(worker.apoint("in coroutine"), tick())

        asyncio.run(both())
        return f"{len(ticks)} ticks"


def leave_children(worker: Worker) -> None:
    """A plain child, a double fork in a session of its own, and one without an environment."""
    folder = worker.db.parent
    _start_sleeper(folder / "child")
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _sleep_for_ever(folder / "daemon")
        os._exit(0)
    os.wait()
    subprocess.Popen(
        ["sleep", "1000"], env={"PATH": os.environ["PATH"]}, start_new_session=True
    )  # fmt: skip


def _start_sleeper(mark: Path) -> None:
    if os.fork() == 0:
        _sleep_for_ever(mark)


def _sleep_for_ever(mark: Path) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    mark.write_text(str(os.getpid()))
    while True:
        signal.pause()
