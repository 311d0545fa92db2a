"""Ways to wait and to read the clock; each a job."""

from __future__ import annotations

import asyncio
import concurrent.futures
import datetime
import pickle
import queue
import sqlite3
import threading
import time
from datetime import date as early_date
from datetime import datetime as early_datetime
from pathlib import Path
from time import monotonic as early_monotonic
from time import sleep as early_sleep
from time import time as early_time
from typing import Any

from subjects_plain import Plain, update
from subjects_statements import auto

from pytest_leasecheck.testkit.worker import Worker


class _Waits:
    """Each waits for ten seconds of stage time for what never comes, and says what it got."""

    def event(self, worker: Worker) -> Any:
        return threading.Event().wait(10)

    def condition(self, worker: Worker) -> Any:
        condition = threading.Condition()
        with condition:
            return condition.wait_for(lambda: False, 10)

    def semaphore(self, worker: Worker) -> Any:
        return threading.Semaphore(0).acquire(timeout=10)

    def barrier(self, worker: Worker) -> Any:
        try:
            threading.Barrier(2).wait(10)
        except threading.BrokenBarrierError:
            return False

    def queued(self, worker: Worker) -> Any:
        try:
            queue.Queue[int]().get(timeout=10)
        except queue.Empty:
            return False

    def simple_queue(self, worker: Worker) -> Any:
        try:
            queue.SimpleQueue[int]().get(timeout=10)
        except queue.Empty:
            return False

    def full_queue(self, worker: Worker) -> Any:
        full = queue.Queue[int](1)
        full.put(1)
        try:
            full.put(2, timeout=10)
        except queue.Full:
            return False

    def timer(self, worker: Worker) -> Any:
        seen: list[str] = []
        timer = threading.Timer(10, lambda: seen.append("rang"))
        timer.start()
        timer.join()
        return "rang" not in seen

    def join(self, worker: Worker) -> Any:
        never = threading.Event()
        thread = threading.Thread(target=never.wait, daemon=True)
        thread.start()
        thread.join(10)
        alive = thread.is_alive()
        never.set()
        thread.join()
        return not alive

    def future(self, worker: Worker) -> Any:
        never = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(never.wait)
            done, _not_done = concurrent.futures.wait([waiting], timeout=10)
            never.set()
        return bool(done)

    def completed(self, worker: Worker) -> Any:
        never = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(never.wait)
            try:
                list(concurrent.futures.as_completed([waiting], timeout=10))
            except TimeoutError:
                return False
            finally:
                never.set()

    def slept(self, worker: Worker) -> Any:
        time.sleep(4)
        early_sleep(6)
        return False

    def own_clock(self, worker: Worker) -> Any:
        worker.clock.sleep(4)
        return worker.clock.wait(threading.Event(), 6_000)

    def asleep(self, worker: Worker) -> Any:
        asyncio.run(asyncio.sleep(10))
        return False

    def waited_for(self, worker: Worker) -> Any:
        async def run() -> bool:
            try:
                await asyncio.wait_for(asyncio.Event().wait(), 10)
            except TimeoutError:
                return False
            return True

        return asyncio.run(run())

    def called_later(self, worker: Worker) -> Any:
        async def run() -> bool:
            loop = asyncio.get_running_loop()
            done = loop.create_future()
            loop.call_later(10, done.set_result, False)
            return bool(await done)

        return asyncio.run(run())

    def executor_in_loop(self, worker: Worker) -> Any:
        async def run() -> bool:
            await asyncio.to_thread(early_sleep, 10)
            return False

        return asyncio.run(run())


class Waiting(_Waits, Plain):
    def in_order(self, worker: Worker) -> None:
        """Three timers; each writes when it fires."""
        threads = [
            threading.Thread(target=self._late, args=(worker, "a", seconds))
            for seconds in (7, 3, 5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _late(self, worker: Worker, run_id: str, seconds: int) -> None:
        time.sleep(seconds)
        update(worker.db, run_id, f"{worker.name}{seconds}")

    def one_late(self, worker: Worker) -> None:
        self._late(worker, "a", 4)

    def slow_beat(self, worker: Worker) -> None:
        done = threading.Event()

        def beat() -> None:
            number = 0
            while not done.wait(3):
                number += 1
                worker.point("beat")
                update(worker.db, "a", f"beat{number}")

        threading.Thread(target=beat, name="beat", daemon=True).start()
        worker.point("body")
        done.set()

    def locks(self, worker: Worker) -> Any:
        lock = threading.Lock()
        lock.acquire()
        return lock.acquire(timeout=0.01)

    def idle_loop(self, worker: Worker) -> None:
        asyncio.run(asyncio.Event().wait())  # type: ignore[arg-type]

    def busy(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db, isolation_level=None, timeout=7)
        connection.execute("UPDATE jobs SET note = 'got it' WHERE id = 'a'")

    def holds(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE jobs SET note = 'holder' WHERE id = 'b'")
        worker.point("holding")
        connection.execute("COMMIT")
        worker.point("let go")

    def own_two_writers(self, worker: Worker) -> None:
        """A thread waits for the lock that the main thread of the same process holds."""
        connection = auto(worker)
        connection.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=update, args=(worker.db, "b", "second"))
        thread.start()
        worker.point("holding")
        connection.execute("UPDATE jobs SET note = 'first' WHERE id = 'a'")
        connection.execute("COMMIT")
        thread.join()

    def late_own_writer(self, worker: Worker) -> None:
        """The thread comes to the lock while the main thread, which holds it, sleeps."""
        connection = auto(worker)
        connection.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=update, args=(worker.db, "b", "second"))
        thread.start()
        time.sleep(5)
        connection.execute("UPDATE jobs SET note = 'first' WHERE id = 'a'")
        connection.execute("COMMIT")
        thread.join()


class Patched(_Waits, Plain):
    clock = "patched"

    def readings(self, worker: Worker) -> Any:
        moment = {
            "time": time.time(),
            "early": early_time(),
            "ns": time.time_ns() / 1e9,
            "now": datetime.datetime.now(datetime.UTC).timestamp(),
            "early now": early_datetime.now(datetime.UTC).timestamp(),
            "local": early_datetime.now().timestamp(),
            "gmtime": time.mktime(time.gmtime()) - time.mktime(time.gmtime(0)),
            "own": worker.clock.time(),
            "sqlite": sqlite3.connect(worker.db)
            .execute("SELECT CAST(strftime('%s', 'now') AS REAL)")
            .fetchone()[0],
        }
        return sorted({value - 1_893_456_000 for value in moment.values()})

    def days(self, worker: Worker) -> Any:
        return early_date.today().isoformat(), datetime.date.today().isoformat()

    def monotonics(self, worker: Worker) -> Any:
        before = time.monotonic(), early_monotonic(), time.monotonic_ns() / 1e9
        time.sleep(10)
        after = time.monotonic(), early_monotonic(), time.monotonic_ns() / 1e9
        return [round(b - a, 6) for a, b in zip(before, after, strict=True)]

    def kinds(self, worker: Worker) -> Any:
        now = early_datetime.now()
        made = datetime.datetime(2030, 1, 2, tzinfo=datetime.UTC)
        copied = pickle.loads(pickle.dumps([now, made, early_date(2030, 1, 2)]))
        connection = sqlite3.connect(":memory:")
        stored = connection.execute("SELECT ?, ?", (made.isoformat(), str(now))).fetchone()
        return (
            isinstance(now, datetime.datetime),
            isinstance(made, early_datetime),
            isinstance(made, datetime.date),
            type(now) is type(made),
            copied == [now, made, early_date(2030, 1, 2)],
            early_datetime.strptime("2030-01-02", "%Y-%m-%d").year,
            early_datetime.fromisoformat("2030-01-02T00:00:00+00:00") == made,
            len(stored),
        )

    def reads_then_writes(self, worker: Worker) -> None:
        worker.point("reading")
        time.time()
        update(worker.db, "a", "x")

    def sqlites_now(self, worker: Worker) -> None:
        auto(worker).execute("UPDATE jobs SET note = strftime('%s', 'now') WHERE id = 'a'")


class OnTheWall(Plain):
    """Real time: a lease of 300 ms, a heartbeat thread, an event loop."""

    clock = "wall"
    lease_ttl_ms = 300

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connection = sqlite3.connect(db)
        with connection:
            connection.execute("ALTER TABLE jobs ADD COLUMN expires_at REAL")
        connection.close()

    def claim(self, worker: Worker) -> bool:
        with sqlite3.connect(worker.db) as connection:
            return bool(
                connection.execute(
                    "UPDATE jobs SET owner = ?, fence = fence + 1, status = 'running',"
                    " expires_at = ? WHERE id = 'a' AND (owner IS NULL OR expires_at < ?)",
                    (worker.name, time.time() + 0.3, time.time()),
                ).rowcount
            )

    def beating(self, worker: Worker) -> None:
        self.claim(worker)
        done = threading.Event()

        def beat() -> None:
            while not done.wait(0.02):
                with sqlite3.connect(worker.db) as connection:
                    connection.execute(
                        "UPDATE jobs SET expires_at = ?, note = ? WHERE owner = ?",
                        (time.time() + 0.3, worker.name, worker.name),
                    )

        thread = threading.Thread(target=beat, name="beat", daemon=True)
        thread.start()
        worker.point("body")
        done.set()
        thread.join()

    def claiming(self, worker: Worker) -> bool:
        claimed = self.claim(worker)
        worker.point("claimed")
        return claimed

    def sleeping(self, worker: Worker) -> str:
        for _ in range(5):
            time.sleep(0.02)
        worker.point("awake")
        return "slept"

    def looping(self, worker: Worker) -> str:
        async def run() -> str:
            beats = asyncio.create_task(self.ticks(worker))
            await asyncio.sleep(0.05)
            await worker.apoint("awake")
            beats.cancel()
            return "looped"

        return asyncio.run(run())

    async def ticks(self, worker: Worker) -> None:
        while True:
            await asyncio.sleep(0.01)

    def holds(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("BEGIN IMMEDIATE")
        worker.point("holding")
        connection.execute("COMMIT")

    def stubborn(self, worker: Worker) -> None:
        update(worker.db, "b", worker.name)


OnTheWall.runs = type(OnTheWall.runs)(
    "jobs", id="id", status="status", terminal={"done"},
    lease=type(OnTheWall.runs.lease)(
        owner="owner", token="fence", expires_at="expires_at", unit="s"
    ),
)  # fmt: skip
