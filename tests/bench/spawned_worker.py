"""A worker for multiprocess's `spawn`: talks over a pipe, reads a clock in shared memory."""

from typing import Any

from tests.bench import tinylease


def live(end: Any, db: str, owner: str, clock: Any, held: bool) -> None:
    """One pass; says what came of it, and waits to be killed."""

    def paying(pay: Any) -> None:
        if held:
            end.send("held")
            end.recv()
        pay()

    leases = tinylease.Leases(db, owner=owner, clock=lambda: clock.value)
    end.send(tinylease.work(leases, paying=paying))
    end.recv()
