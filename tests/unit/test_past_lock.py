"""When a locked database can be read as the file that it is, and who locks it for good."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.pastlock import unwritten, why_illegible
from pytest_leasecheck.testkit.sight import is_wal
from pytest_leasecheck.testkit.sql_text import keeps_to_itself


@pytest.mark.parametrize(
    "text",
    [
        "PRAGMA locking_mode=EXCLUSIVE",
        "pragma main.locking_mode = exclusive;",
        "PRAGMA locking_mode('exclusive')",
        "-- mine\nPRAGMA /* all of it */ \"locking_mode\" = 'EXCLUSIVE'",
    ],
)
def test_who_asks_for_the_file_for_itself_is_recognised(text: str) -> None:
    assert keeps_to_itself(text)


@pytest.mark.parametrize(
    "text",
    [
        "PRAGMA locking_mode",
        "PRAGMA locking_mode = NORMAL",
        "PRAGMA journal_mode = WAL -- not locking_mode=EXCLUSIVE",
        "BEGIN EXCLUSIVE",
        "SELECT 'PRAGMA locking_mode=EXCLUSIVE'",
    ],
)
def test_who_does_not_is_not(text: str) -> None:
    assert not keeps_to_itself(text)


def _open(path: Path, journal: str, *, keeps: bool = False) -> sqlite3.Connection:
    sql = sqlite3.connect(path, isolation_level=None)
    sql.execute(f"PRAGMA journal_mode = {journal}")
    if keeps:
        sql.execute("PRAGMA locking_mode = EXCLUSIVE")
    sql.execute("CREATE TABLE t (x)")
    return sql


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("journal", ["DELETE", "TRUNCATE", "PERSIST"])
def test_file_is_legible_until_pages_are_written_and_again_after_the_commit(
    tmp_path: Path, journal: str, keeps: bool
) -> None:
    path = tmp_path / "x.db"
    with closing(_open(path, journal, keeps=keeps)) as sql:
        assert why_illegible(str(path)) == ""
        sql.execute("BEGIN EXCLUSIVE")
        sql.execute("INSERT INTO t VALUES ('one')")
        assert why_illegible(str(path)) == ""
        sql.execute("PRAGMA cache_size = 1")
        sql.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 100)
        assert "cache spilled" in why_illegible(str(path))
        sql.execute("COMMIT")
        assert why_illegible(str(path)) == ""


def test_wal_is_illegible_and_names_the_likely_cause(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(_open(path, "WAL", keeps=True)):
        assert "locking_mode=EXCLUSIVE" in why_illegible(str(path))
    assert is_wal(str(path))  # closed: here, a raw look drops no lock
    assert not is_wal(str(tmp_path / "none.db"))


def test_who_writes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(_open(path, "DELETE")) as sql:
        with unwritten(str(path)):
            pass
        with (
            pytest.raises(sqlite3.OperationalError, match="written to"),
            unwritten(str(path)),
        ):
            sql.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 100)
