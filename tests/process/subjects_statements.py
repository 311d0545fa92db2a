"""Ways to talk to SQLite, each a job."""

from __future__ import annotations

import sqlite3
from sqlite3 import connect as connect_early
from typing import Any

from subjects_plain import Plain, Rollback, Truncating

from pytest_leasecheck.testkit.worker import Worker

NOTE = "UPDATE jobs SET note = ? WHERE id = 'a'"


def auto(worker: Worker) -> sqlite3.Connection:
    return sqlite3.connect(worker.db, isolation_level=None)


class _Jobs:
    def implicit_begin(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db)
        connection.execute(NOTE, ("one",))
        connection.execute(NOTE, ("two",))
        connection.commit()
        connection.close()

    def with_connection(self, worker: Worker) -> None:
        with sqlite3.connect(worker.db) as connection:
            connection.execute(NOTE, ("with",))

    def many(self, worker: Worker) -> None:
        with sqlite3.connect(worker.db) as connection:
            connection.executemany(
                "UPDATE jobs SET note = ? WHERE id = ?", [("m1", "a"), ("m2", "b")]
            )

    def script(self, worker: Worker) -> None:
        sqlite3.connect(worker.db).executescript(
            "BEGIN; UPDATE jobs SET note = 's' WHERE id = 'a'; COMMIT;"
            " UPDATE jobs SET note = 't' WHERE id = 'b';"
        )

    def autocommit(self, worker: Worker) -> None:
        auto(worker).execute(NOTE, ("auto",))

    def returning_read_out(self, worker: Worker) -> Any:
        return auto(worker).execute(NOTE + " RETURNING id", ("ret",)).fetchall()

    def returning_left(self, worker: Worker) -> None:
        connection = auto(worker)
        cursor = connection.execute("UPDATE jobs SET note = 'left' RETURNING id")
        cursor.close()
        connection.execute(NOTE, ("next",))

    def finds_it_locked(self, worker: Worker) -> int:
        other, mine = auto(worker), sqlite3.connect(worker.db, isolation_level=None, timeout=0)
        mine.execute(NOTE, ("mine",))
        other.execute("BEGIN IMMEDIATE")
        refused = 0
        for sql in ("UPDATE jobs SET note = 'late'", "BEGIN IMMEDIATE"):
            try:
                mine.execute(sql)
            except sqlite3.OperationalError:
                refused += 1
        other.execute("ROLLBACK")
        return refused

    def cte(self, worker: Worker) -> None:
        auto(worker).execute(
            "WITH chosen AS (SELECT id, replace (id, 'x', 'y') AS other FROM jobs WHERE id = 'a')"
            " UPDATE jobs SET note = 'cte' WHERE id IN (SELECT id FROM chosen)"
        )

    def commented(self, worker: Worker) -> None:
        auto(worker).execute(
            "-- claim 'it'\n/* two\nlines */ UPDATE /* or not */ jobs SET note = '--c' -- end\n"
        )

    def quoted(self, worker: Worker) -> None:
        connection = auto(worker)
        for name in ('"jobs"', "[jobs]", "`jobs`", 'main."jobs"', "main . jobs", "JOBS"):
            connection.execute(f"UPDATE {name} SET note = ? WHERE id = 'a'", (name,))

    def triggered(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.executescript(
            "CREATE TABLE log (id TEXT);"
            "CREATE TRIGGER noted AFTER UPDATE ON jobs BEGIN"
            " INSERT INTO log VALUES (new.id); INSERT INTO log VALUES (old.id); END;"
        )
        connection.execute("-- first a comment\nUPDATE jobs SET note = 'trigger' WHERE id = 'a'")

    def savepoints(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("SAVEPOINT outer")
        connection.execute("SAVEPOINT inner")
        connection.execute(NOTE, ("in",))
        connection.execute("RELEASE inner")
        connection.execute("RELEASE outer")

    def rolled_back(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db)
        connection.execute(NOTE, ("never",))
        connection.rollback()
        connection.close()

    def raised_inside(self, worker: Worker) -> None:
        connection = sqlite3.connect(worker.db)
        try:
            with connection:
                connection.execute(NOTE, ("never",))
                connection.execute("INSERT INTO jobs (id) VALUES ('a')")
        except sqlite3.IntegrityError:
            connection.execute(NOTE, ("after",))
            connection.commit()

    def changes_nothing(self, worker: Worker) -> None:
        auto(worker).execute("UPDATE jobs SET note = 'x' WHERE id = 'none'")

    def replaced(self, worker: Worker) -> None:
        auto(worker).execute("REPLACE INTO jobs VALUES ('a', 'queued', NULL, 0, 'new row')")

    def attached_to_memory(self, worker: Worker) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("ATTACH DATABASE ? AS theirs", (str(worker.db),))
        connection.execute("UPDATE theirs.jobs SET note = 'attached' WHERE id = 'a'")

    def attaches_another(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("ATTACH ':memory:' AS other")
        connection.execute("CREATE TABLE other.jobs (id)")
        connection.execute("INSERT INTO other.jobs VALUES ('elsewhere')")
        connection.execute(NOTE, ("here",))

    def cache_file(self, worker: Worker) -> None:
        with sqlite3.connect(str(worker.db) + ".cache") as cache:
            cache.execute("CREATE TABLE jobs (id, note)")
            cache.execute("INSERT INTO jobs VALUES ('a', 'cached')")
        auto(worker).execute(NOTE, ("real",))

    def read_only(self, worker: Worker) -> Any:
        connection = sqlite3.connect(f"file:{worker.db}?mode=ro", uri=True)
        try:
            connection.execute(NOTE, ("ro",))
        except sqlite3.OperationalError as error:
            return str(error), connection.execute("SELECT count(*) FROM jobs").fetchone()

    def temp_store(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("CREATE TEMP TABLE jobs_seen (id)")
        connection.execute(NOTE, ("temp",))

    def early_bound(self, worker: Worker) -> None:
        connect_early(worker.db, isolation_level=None).execute(NOTE, ("early",))

    def subclassed(self, worker: Worker) -> None:
        class Cursor(sqlite3.Cursor):
            pass

        class Connection(sqlite3.Connection):
            extra = 1

            def cursor(self, factory: Any = Cursor) -> Any:
                return super().cursor(factory)

        connection = sqlite3.connect(worker.db, factory=Connection, isolation_level=None)
        connection.cursor().execute(NOTE, ("sub",))

    def two_connections(self, worker: Worker) -> None:
        one, two = auto(worker), auto(worker)
        one.execute(NOTE, ("first",))
        two.execute(NOTE, ("second",))
        one.execute(NOTE, ("third",))

    def blobs(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute(NOTE, (b"\x00\xff",))
        connection.execute("UPDATE jobs SET note = CAST(X'6180FF' AS TEXT) WHERE id = 'a'")
        connection.execute("UPDATE jobs SET note = 'a' || char(0) || 'b' WHERE id = 'a'")

    def traced(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute(NOTE, ("seen",))
        connection.set_trace_callback(lambda _sql: None)
        connection.execute(NOTE, ("unseen",))

    def fts(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.execute("CREATE VIRTUAL TABLE docs USING fts5(body)")
        connection.execute("INSERT INTO docs VALUES ('some words')")
        connection.execute(NOTE, ("fts",))

    def stale_statement(self, worker: Worker) -> None:
        one, two = auto(worker), auto(worker)
        one.execute(NOTE, ("before",))
        two.execute("ALTER TABLE jobs ADD COLUMN extra")
        one.execute(NOTE, ("prepared anew",))

    def killed_midway(self, worker: Worker) -> None:
        connection = auto(worker)
        connection.create_function("halt", 0, lambda: worker.point("midway"))
        connection.execute("UPDATE jobs SET note = coalesce(halt(), 'midway')")


class Statements(_Jobs, Plain):
    pass


class RollbackStatements(_Jobs, Rollback):
    pass


class TruncatingStatements(_Jobs, Truncating):
    pass
