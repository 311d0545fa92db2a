"""The reference runtime on files of other versions, and beside processes of other versions."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.reference import filesystem, migrations
from pytest_leasecheck.testkit.subject import Writes
from pytest_leasecheck.testkit.worker import Worker

from .variants import RunLease

#: A table of mounts in which everything lies on a file server.
_ON_NFS = "36 35 98:0 / / rw,noatime - nfs4 server:/export rw\n"


class OldDatabase(RunLease):
    """A database from before the lease, with a run that was running when it was last used."""

    # Whoever migrates leaves a lease behind on purpose: the placeholder's.
    capabilities = RunLease.capabilities - {"releases"}

    def prepare(self, db: Path) -> None:
        """The old schema, and in it the run `old`, its first step in flight."""
        connection = sqlite3.connect(db, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in migrations.BEFORE_THE_LEASE:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO runs (run_id, status, plan) VALUES ('old', 'RUNNING', '[\"mail\"]')"
        )
        connection.execute(
            "INSERT INTO steps (run_id, idx, name, kind, args, status, attempt, idempotency_key)"
            " VALUES ('old', 0, 'mail', 'tool', 'null', 'EXECUTING', 1, 'old/0')"
        )
        connection.close()


class NewerDatabase(RunLease):
    """A database of a version that this runtime does not know."""

    def prepare(self, db: Path) -> None:
        """The present schema, under a later version's number."""
        super().prepare(db)
        connection = sqlite3.connect(db, isolation_level=None)
        connection.execute("PRAGMA user_version = 99")
        connection.close()

    def open_newer(self, worker: Worker) -> str:
        """Try to use it."""
        before = _contents(worker.db)
        try:
            reference.Store(worker.db, clock=worker.clock).close()
        except reference.NewerDatabase as error:
            same = "the file is as it was" if _contents(worker.db) == before else "the file changed"
            return f"{type(error).__name__}: {error.reason.partition('; ')[0]}; {same}"
        return "opened"


class OlderBinary(RunLease):
    """Beside current processes, one of a version that knows nothing of the lease's columns."""

    writes = (Writes("events", run="run_id", late_ok=True),)

    def work_as_older_version(self, worker: Worker) -> str:
        """What such a process does: it takes any running run for one whose process has died."""
        connection = sqlite3.connect(worker.db, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        steps = connection.execute(
            "SELECT run_id, idx, name, idempotency_key FROM steps WHERE status <> 'DONE'"
        ).fetchall()
        connection.execute("COMMIT")
        for run_id, idx, name, key in steps:
            receipt = worker.effect(name, run_id=run_id, key=key)
            connection.execute(
                "UPDATE steps SET status = 'DONE', result = ? WHERE run_id = ? AND idx = ?",
                (f'"{receipt}"', run_id, idx),
            )
        connection.execute("UPDATE runs SET status = 'SUCCEEDED' WHERE status = 'RUNNING'")
        connection.close()
        return "done"


class OnNetwork(RunLease):
    """A worker whose table of mounts says that every file lies on a file server."""

    def open_on_network(self, worker: Worker) -> str:
        """Refused before the file is touched."""
        return self._open(worker, "refuse")

    def open_on_network_anyway(self, worker: Worker) -> str:
        """Warned, for a consumer who says that it knows better."""
        return self._open(worker, "warn")

    def _open(self, worker: Worker, network: str) -> str:
        import warnings

        mounts = worker.db.with_name("mounts")
        mounts.write_text(_ON_NFS)
        real, filesystem._MOUNTS = filesystem._MOUNTS, str(mounts)  # type: ignore[misc]  # a stand-in
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                reference.Store(worker.db, clock=worker.clock, network=network).close()  # type: ignore[arg-type]  # one of two words
            return f"opened, {len(warned)} warning"
        except reference.NetworkFilesystem as error:
            return f"{type(error).__name__}: {error.filesystem}"
        finally:
            filesystem._MOUNTS = real  # type: ignore[misc]  # and back


def _contents(db: Path) -> dict[str, str]:
    """A digest of every file of the database. It is not open in this process."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(db.parent.glob(db.name + "*"))
    }
