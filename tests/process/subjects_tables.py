"""What happens to tables: migrations, kinds of tables, many rows; each a job."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import ClassVar

from subjects_plain import Plain
from subjects_statements import auto

from pytest_leasecheck.testkit.subject import Writes
from pytest_leasecheck.testkit.worker import Worker

KINDS = """
    CREATE TABLE ids (job TEXT, part INTEGER, body, PRIMARY KEY (job, part)) WITHOUT ROWID;
    CREATE TABLE exact
        (job TEXT, size INTEGER, twice INTEGER AS (size * 2), k TEXT PRIMARY KEY) STRICT;
    CREATE TABLE child (job TEXT REFERENCES jobs (id) ON DELETE CASCADE, body);
    CREATE TABLE "odd ""name" (rowid TEXT, job TEXT, "a b");
    CREATE TABLE loose (job TEXT, body, k TEXT PRIMARY KEY);
    INSERT INTO child VALUES ('a', 'one'), ('a', 'two'), ('b', 'three');
"""


class Tables(Plain):
    writes: ClassVar = tuple(
        Writes(table, run="job")
        for table in ("ids", "exact", "child", 'odd "name', "loose", "later")
    )

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connection = sqlite3.connect(db)
        connection.executescript(KINDS)
        connection.close()

    def kinds(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("INSERT INTO ids VALUES ('a', 1, X'00')")
        connection.execute("INSERT INTO exact (job, size, k) VALUES ('a', 4, 'k')")
        connection.execute("UPDATE exact SET size = 5")
        connection.execute("INSERT INTO \"odd \"\"name\" VALUES ('x', 'a', 'y')")
        connection.execute("INSERT INTO loose VALUES ('a', 1, NULL), ('a', 2, NULL)")
        connection.execute("UPDATE loose SET body = 3 WHERE body = 2")

    def cascade(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM jobs WHERE id = 'a'")

    def created_later(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("CREATE TABLE later (job TEXT, body)")
        connection.execute("INSERT INTO later VALUES ('a', 'late')")
        connection.execute("DROP TABLE later")

    def new_column(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("ALTER TABLE jobs ADD COLUMN extra INTEGER DEFAULT 7")
        connection.execute("UPDATE jobs SET extra = 8 WHERE id = 'a'")

    def rebuilt(self, worker: Worker) -> None:
        with auto(worker) as connection:
            connection.executescript(
                "BEGIN;"
                "CREATE TABLE new_child (n INTEGER, job TEXT, body, PRIMARY KEY (job, body));"
                "INSERT INTO new_child SELECT rowid, job, body FROM child;"
                "DROP TABLE child; ALTER TABLE new_child RENAME TO child; COMMIT;"
            )
        connection.execute("UPDATE child SET n = 9 WHERE body = 'two'")

    def without_rowid(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.executescript(
            "BEGIN; CREATE TABLE n (body, job TEXT, k TEXT PRIMARY KEY) WITHOUT ROWID;"
            "DROP TABLE loose; ALTER TABLE n RENAME TO loose; COMMIT;"
        )
        connection.execute("INSERT INTO loose VALUES (1, 'a', 'kk')")


class Crowd(Plain):
    """Five thousand rows of others in the same table."""

    crowd = 5000

    def prepare(self, db: Path) -> None:
        super().prepare(db)
        connection = sqlite3.connect(db)
        with connection:
            connection.executemany(
                "INSERT INTO jobs VALUES (?, 'queued', NULL, 0, 'other')",
                [(f"x{number:05}",) for number in range(self.crowd)],
            )
        connection.close()

    def crowd_work(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("UPDATE jobs SET note = 'mine' WHERE id = 'a'")
        connection.execute("UPDATE jobs SET note = 'first' WHERE id = 'x00000'")
        connection.execute("DELETE FROM jobs WHERE id = 'x04999'")
        connection.execute("INSERT INTO jobs VALUES ('z', 'queued', NULL, 0, X'01')")
        connection.execute("REPLACE INTO jobs VALUES ('a', 'queued', 'o', 1, 'again')")
        connection.execute("ALTER TABLE jobs ADD COLUMN extra COLLATE NOCASE DEFAULT 'x'")
        connection.execute("UPDATE jobs SET extra = 'X' WHERE id = 'a'")
        connection.execute("UPDATE jobs SET extra = 'x' WHERE id = 'a'")
        connection.execute("UPDATE jobs SET note = CAST(X'FF' AS TEXT) WHERE id = 'b'")
        connection.execute("UPDATE jobs SET note = 'well' WHERE id = 'b'")

    def many_commits(self, worker: Worker) -> None:
        connection = auto(worker)
        for number in range(100):
            connection.execute("UPDATE jobs SET note = ? WHERE id = 'a'", (number,))


class Brief(Crowd):
    observer = "brief"
