"""frontrun (PyPI) on the same library: two owners in two processes that it interleaves."""

from __future__ import annotations

import importlib.util
import time
from itertools import pairwise
from pathlib import Path

from . import floor, tinylease

#: Why there is no figure, or nothing.
ABSENT = ""
if not (importlib.util.find_spec("frontrun") and importlib.util.find_spec("sqlglot")):
    ABSENT = "`frontrun[process]` is not installed (extra `bench`)"


def work(db: str, owner: str) -> None:
    """In frontrun's worker. A lease that lasts no time can be taken over at any moment."""
    leases = tinylease.Leases(db, owner=owner, lease_ttl_s=0.0)
    tinylease.work(leases)
    leases.close()


def measure(folder: Path, *, executions: int) -> list[float]:
    """Seconds per interleaving, with workers that are reused."""
    import frontrun

    db = folder / "frontrun.db"
    template = floor.template(folder)
    moments: list[float] = []

    def setup() -> str:
        for suffix in ("-wal", "-shm"):
            Path(f"{db}{suffix}").unlink(missing_ok=True)
        db.write_bytes(template)
        moments.append(time.perf_counter())
        return str(db)

    def invariant(_state: object) -> bool:
        payments, _steps, _tasks = tinylease.state_of(db)
        return len(payments) == 1

    result = frontrun.explore_processes(
        {
            owner: frontrun.Subprocess("tests.bench.frontrun_way:work", (str(db), owner))
            for owner in ("A", "B")
        },
        setup=setup,
        invariant=invariant,
        max_executions=executions,
        reuse_workers=True,
        stop_on_first=False,
        deadlock_timeout=5.0,
        total_timeout=60.0,
    )
    assert result.iterations > 1, result
    # The first one starts the processes; it is not counted.
    return [after - before for before, after in pairwise(moments[1:])]
