"""What the observer makes of a migration: a new column is no write, what is written in it is."""

import sqlite3

import pytest

from pytest_leasecheck.testkit.tables import Table


@pytest.fixture
def db():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, status TEXT)")
    connection.execute("INSERT INTO runs VALUES ('r1', 'RUNNING')")
    yield connection
    connection.close()


def migrated(db, *statements):
    table = Table(db, "runs", mirrored=False)
    for statement in statements:
        db.execute(statement)
    return table, table.changes(db, reshaped=True)


@pytest.mark.parametrize(
    "column", ["owner TEXT", "token INTEGER NOT NULL DEFAULT 0", "at DEFAULT 'x'"]
)
def test_mere_column_is_no_write(db, column):
    table, changes = migrated(db, f"ALTER TABLE runs ADD COLUMN {column}")
    assert changes == []
    db.execute("UPDATE runs SET status = 'DONE'")
    ((_table, key, old, new),) = table.changes(db, reshaped=False)
    assert (key, old) == (("r1",), {"id": "r1", "status": "RUNNING"})
    assert new["status"] == "DONE"


def test_what_a_migration_writes_in_its_new_column_is_a_write(db):
    _table, changes = migrated(
        db, "ALTER TABLE runs ADD COLUMN owner TEXT", "UPDATE runs SET owner = 'placeholder'"
    )
    ((_name, key, old, new),) = changes
    assert (key, old) == (("r1",), {"id": "r1", "status": "RUNNING"})
    assert new == {"id": "r1", "status": "RUNNING", "owner": "placeholder"}
