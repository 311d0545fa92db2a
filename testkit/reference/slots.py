"""How many runs may be in one tool at once: a counter that equals the steps that hold a slot."""

from __future__ import annotations

import sqlite3

from . import guards
from .errors import ToolBusy
from .records import StepRow


def take(connection: sqlite3.Connection, step: StepRow, *, limit: int) -> None:
    """Take a slot for a step, in the transaction that starts it. Raises ToolBusy."""
    connection.execute("INSERT OR IGNORE INTO tool_slots VALUES (?, 0)", (step.name,))
    taken = connection.execute(
        f"UPDATE tool_slots SET in_use = in_use + 1 WHERE tool = :tool AND {guards.SLOT_FREE}",
        {"tool": step.name, "most": limit},
    )
    if taken.rowcount != 1:
        raise ToolBusy(step.name, limit)
    connection.execute(
        "UPDATE steps SET holds_slot = 1 WHERE run_id = ? AND idx = ?", (step.run_id, step.idx)
    )


def give_back(connection: sqlite3.Connection, run_id: str, idx: int) -> None:
    """Give a step's slot back, if it holds one: twice is once."""
    given = connection.execute(
        f"UPDATE steps SET holds_slot = 0 WHERE run_id = ? AND idx = ? AND {guards.SLOT_HELD}",
        (run_id, idx),
    )
    if given.rowcount:
        connection.execute(
            "UPDATE tool_slots SET in_use = in_use - 1 WHERE tool ="
            " (SELECT name FROM steps WHERE run_id = ? AND idx = ?)",
            (run_id, idx),
        )
