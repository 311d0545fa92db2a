"""aiq-runtime with an operator who puts a stale worker's lease back: all of it, or all but one.

Its guard is no SQL: it reads the lease's row and compares in Python. So that a guard is enough by
itself is shown by the library itself: everything else about the lease is as the stale worker had
it, and its commit is still refused. The control puts everything back, and the commit lands.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import ClassVar

from .aiq_subject import AiqQueue


class PutBack(AiqQueue):
    """The operator's `cancel` puts the first lease of the run back."""

    #: Columns that are left as the new owner's claim made them.
    left: ClassVar[tuple[str, ...]] = ()

    def approve(self, db: Path, run_id: str) -> None:
        """Keep the lease that is in force now."""
        with sqlite3.connect(db) as connection:
            connection.execute("CREATE TABLE kept AS SELECT * FROM effect_leases")
        connection.close()

    def cancel(self, db: Path, run_id: str) -> None:
        """Put the kept one back, but for `left`, with an expiry that is far away."""
        columns = ("lease_id", "worker_id", "fencing_token", "status")
        told = ", ".join(
            f"{name} = (SELECT {name} FROM kept)" for name in columns if name not in self.left
        )
        with sqlite3.connect(db) as connection:
            connection.execute(
                f"UPDATE effect_leases SET {told}, lease_expires_at_unix = 9e9 WHERE stream_id = ?",
                (run_id,),
            )
        connection.close()


class TokenLeft(PutBack):
    """Only the token is the new owner's."""

    left = ("fencing_token",)


class LeaseIdLeft(PutBack):
    """Only the lease's id is."""

    left = ("lease_id",)
