"""Whether everything that can finish has finished: what the end of a script is judged by."""

from __future__ import annotations

from collections.abc import Mapping

from .history import Key, Row
from .rows import Reader, index_beats, stored_expiries
from .subject import Declaration


def unfinished_runs(
    declaration: Declaration, tables: Mapping[str, Mapping[Key, Row]]
) -> tuple[str, ...]:
    """The runs that are neither over nor waiting for a person, or that somebody still holds."""
    reader = Reader(declaration)
    beats = index_beats(reader, tables)
    run_of = reader.run_of[declaration.runs.table]
    leases: dict[str | None, list[Row]] = {}
    if reader.separate:
        lease_of = reader.run_of[reader.lease_table]
        for row in tables.get(reader.lease_table, {}).values():
            leases.setdefault(lease_of(row), []).append(row)
    open_runs = []
    for row in tables.get(declaration.runs.table, {}).values():
        run_id = run_of(row)
        view = reader.view([row], leases.get(run_id, []), known=True, beats=beats)
        if view.held or not (view.done or view.waiting):
            open_runs.append(str(run_id))
    return tuple(open_runs)


def held_expiries_ns(
    declaration: Declaration, tables: Mapping[str, Mapping[Key, Row]]
) -> list[int]:
    """For each held lease, the first moment that is surely past its stored expiry."""
    return [expiry.at_ns + expiry.grain_ns for expiry in stored_expiries(declaration, tables)]
