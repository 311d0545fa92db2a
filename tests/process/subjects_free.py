"""Workers that really race: each writes its own name, in its own number of commits."""

from __future__ import annotations

import random
import sqlite3
import threading
from typing import Any

from subjects_plain import Plain

from pytest_leasecheck.testkit.worker import Worker


class Racing(Plain):
    rounds = 5

    def race(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db, isolation_level=None, timeout=30)
        for number in range(self.rounds):
            self._write(connection, f"{worker.name} {number}")

    def race_in_threads(self, worker: Worker) -> None:
        def second() -> None:
            connection = sqlite3.connect(worker.db, isolation_level=None, timeout=30)
            for number in range(self.rounds):
                self._write(connection, f"{worker.name} t{number}")

        thread = threading.Thread(target=second)
        thread.start()
        self.race(worker)
        thread.join()

    def _write(self, connection: sqlite3.Connection, note: str) -> Any:
        chance = random.random()
        run_id = "a" if chance < 0.5 else "b"
        if chance < 0.7:
            connection.execute("UPDATE jobs SET note = ? WHERE id = ?", (note, run_id))
            return
        connection.execute("BEGIN" if chance < 0.8 else "BEGIN IMMEDIATE")
        try:
            connection.execute("UPDATE jobs SET note = ? WHERE id = ?", (note, run_id))
            connection.execute("UPDATE jobs SET fence = fence + 1 WHERE id = ?", (run_id,))
            connection.execute("ROLLBACK" if chance > 0.95 else "COMMIT")
        except sqlite3.OperationalError:
            connection.execute("ROLLBACK")


class RacingRollback(Racing):
    journal = "DELETE"


class RacingOnTheWall(Racing):
    clock = "wall"


class Owning(Racing):
    """One that may keep the write lock, and racers that need it."""

    patience_s = 30.0

    def owns(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE jobs SET note = ? WHERE id = 'b'", (f"{worker.name} b",))
        worker.point("owns")
        connection.execute("COMMIT")

    def wants(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db, isolation_level=None, timeout=self.patience_s)
        connection.execute("UPDATE jobs SET note = ? WHERE id = 'a'", (worker.name,))

    def wants_in_thread(self, worker: Worker) -> None:
        thread = threading.Thread(target=self.wants, args=(worker,))
        thread.start()
        thread.join()

    def reads(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db, isolation_level=None)
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM jobs").fetchall()
        worker.point("owns")
        connection.execute("COMMIT")


class OwningRollback(Owning):
    journal = "DELETE"


class OwningOnTheWall(Owning):
    clock = "wall"


class Impatient(Owning):
    patience_s = 0.05
