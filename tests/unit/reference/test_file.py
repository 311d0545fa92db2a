"""The file: migrations, hardening, and where it may lie."""

import sqlite3
import sys
import threading

import pytest

from pytest_leasecheck.testkit.reference import (
    PRE_LEASE_OWNER,
    ForeignDatabase,
    NetworkFilesystem,
    NewerDatabase,
    RunLeased,
    RunStatus,
    Store,
    Tool,
)
from pytest_leasecheck.testkit.reference import store as store_module
from pytest_leasecheck.testkit.reference.connection import connect, use_wal
from pytest_leasecheck.testkit.reference.filesystem import filesystem_of, network_filesystem
from pytest_leasecheck.testkit.reference.migrations import BEFORE_THE_LEASE, LATEST, user_version


@pytest.fixture
def old(tmp_path):
    """A database from before the lease: one run executing, one waiting."""
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    for statement in BEFORE_THE_LEASE:
        connection.execute(statement)
    for run_id, status, step in (
        ("r", "RUNNING", "EXECUTING"),
        ("w", "WAITING_FOR_APPROVAL", "PENDING"),
    ):
        connection.execute("INSERT INTO runs VALUES (?, ?, '[]')", (run_id, status))
        connection.execute(
            "INSERT INTO steps VALUES (?, 0, 'charge', 'tool', 'null', ?, 1, ?, NULL)",
            (run_id, step, f"{run_id}/0"),
        )
    connection.commit()
    connection.close()
    return path


def test_running_run_from_before_the_lease_gets_a_grace_lease(world, clock, old):
    with Store(old, clock=clock) as store:
        lease = store.lease("r")
        assert (lease.owner, lease.expires_at_ms) == (PRE_LEASE_OWNER, 1_030_000)
        assert lease.fencing_token == 1
        assert store.lease("w").owner == ""
        two = world.driver(Tool("charge", lambda call: "x", read_only=True), store=store)
        with pytest.raises(RunLeased) as caught:
            two.resume("r")
        assert caught.value.owner == PRE_LEASE_OWNER
        clock.pass_ms(30_000)
        assert two.resume("r").status is RunStatus.SUCCEEDED
        (event,) = [e for e in store.events("r") if e.kind == "lease.taken_over"]
        assert event.body["previous_owner"] == PRE_LEASE_OWNER


def test_two_that_migrate_at_once_migrate_once(clock, old):
    gate, opened, errors = threading.Barrier(2), [], []

    def migrate():
        gate.wait(10)
        try:
            opened.append(Store(old, clock=clock))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=migrate) for _ in "12"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert errors == []
    assert [store.lease("r").fencing_token for store in opened] == [1, 1]
    for store in opened:
        store.close()


def test_second_look_under_the_lock_finds_the_work_done(clock, old, monkeypatch):
    from pytest_leasecheck.testkit.reference import migrations

    looks = []
    real = migrations._is_old

    def look(connection, path):
        looks.append(real(connection, path))
        if len(looks) == 1:
            Store(old, clock=clock).close()
        return looks[-1]

    monkeypatch.setattr(migrations, "_is_old", look)
    Store(old, clock=clock).close()
    # First: old. The other process: old, old. Under the lock: no longer.
    assert looks == [True, True, True, False] or looks == [True, False]


def test_reopening_changes_nothing(world, clock, old):
    Store(old, clock=clock).close()
    before = old.read_bytes()
    clock.pass_ms(50_000)
    Store(old, clock=clock).close()
    assert old.read_bytes() == before


def test_newer_file_is_refused_and_left_untouched(clock, tmp_path):
    (folder := tmp_path / "newer").mkdir()
    path = folder / "newer.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (whatever)")
    connection.execute(f"PRAGMA user_version = {LATEST + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NewerDatabase, match="use the newer version") as caught:
        Store(path, clock=clock)
    assert (caught.value.found, caught.value.known) == (LATEST + 1, LATEST)
    assert path.read_bytes() == before
    assert [entry.name for entry in folder.iterdir()] == ["newer.db"]


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE jobs (id)",
        "CREATE TABLE runs (id); CREATE TABLE steps (id); CREATE TABLE events (id)",
    ],
)
def test_other_people_s_database_is_refused_and_left_untouched(clock, tmp_path, schema):
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path)
    connection.executescript(schema)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ForeignDatabase):
        Store(path, clock=clock)
    assert path.read_bytes() == before


def test_file_that_is_no_database_is_refused_and_left_untouched(clock, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(ForeignDatabase, match="no SQLite database"):
        Store(path, clock=clock)
    assert path.read_text().startswith("not a database")


def test_every_connection_is_hardened(world):
    own = world.store.own_connection(busy_timeout_ms=10)
    with world.store.db() as first:
        for connection in (first, own):
            assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
            assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
            assert connection.isolation_level is None
            if sys.version_info >= (3, 12):
                assert connection.getconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
        assert first.execute("PRAGMA busy_timeout").fetchone() == (50,)
        assert first.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert user_version(first) == LATEST
    assert own.execute("PRAGMA busy_timeout").fetchone() == (10,)
    own.close()


def test_wal_that_can_t_be_had_now_is_done_without(tmp_path):
    path = str(tmp_path / "x.db")
    one, two = connect(path, busy_timeout_ms=10), connect(path, busy_timeout_ms=10)
    one.execute("BEGIN EXCLUSIVE")
    use_wal(two)
    one.execute("ROLLBACK")
    use_wal(two)
    assert two.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    one.close()
    two.close()


MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /srv rw - nfs4 server:/export rw
31 30 8:2 / /srv/local rw - xfs /dev/sdb rw
32 22 0:41 / /mnt/my\040share rw shared:7 master:2 - cifs //host/share rw
33 22 8:3 / /over rw - ext4 /dev/sdc rw
34 22 0:42 / /over rw - fuse.sshfs host: rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "filesystem"),
    [
        ("/var/x.db", "ext4"),
        ("/srv/x.db", "nfs4"),
        ("/srvx/x.db", "ext4"),
        ("/srv/local/x.db", "xfs"),
        ("/mnt/my share/x.db", "cifs"),
        ("/over/x.db", "fuse.sshfs"),
    ],
)
def test_innermost_last_mount_says_what_a_path_lies_on(path, filesystem):
    assert filesystem_of(path, MOUNTS) == filesystem


def test_no_mounts_no_answer(tmp_path):
    assert filesystem_of("/x", "") == ""
    assert network_filesystem(str(tmp_path)) == ""


def test_network_filesystem_is_refused_before_the_file_is_made(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(store_module, "network_filesystem", lambda path: "nfs4")
    with pytest.raises(NetworkFilesystem, match="lies on nfs4") as caught:
        Store(tmp_path / "x.db", clock=clock)
    assert caught.value.filesystem == "nfs4"
    assert not (tmp_path / "x.db").exists()
    with pytest.warns(RuntimeWarning, match="lies on nfs4"):
        Store(tmp_path / "x.db", clock=clock, network="warn").close()
