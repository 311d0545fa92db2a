"""Whether everything that can finish has finished: what the end of a script is judged by."""

from __future__ import annotations

from collections.abc import Mapping

from .history import Key, Row
from .rows import Reader, index_beats, stored_expiries
from .subject import Declaration


def unfinished_runs(
    declaration: Declaration, tables: Mapping[str, Mapping[Key, Row]], *, now_ns: int
) -> tuple[str, ...]:
    """The runs that are neither over nor waiting for a person, or that somebody still holds.

    A lease whose time is up holds no run that is over: many a lock is given back like that. A
    run whose row is gone and whose lease stands was moved, and isn't over.
    """
    reader = Reader(declaration)
    beats = index_beats(reader, tables)
    run_of = reader.run_of[declaration.runs.table]
    leases: dict[str | None, list[Row]] = {}
    if reader.separate:
        lease_of = reader.run_of[reader.lease_table]
        for row in tables.get(reader.lease_table, {}).values():
            leases.setdefault(lease_of(row), []).append(row)
    found = [(run_of(row), [row]) for row in tables.get(declaration.runs.table, {}).values()]
    if declaration.runs.gone:
        known = {run_id for run_id, _row in found}
        found += [(run_id, []) for run_id in leases if run_id not in known]
    open_runs = []
    for run_id, own in found:
        view = reader.view(own, leases.get(run_id, []), known=True, beats=beats)
        held = view.held and (view.expiry is None or view.expiry.live(now_ns) or not view.done)
        if held or not (view.done or view.waiting):
            open_runs.append(str(run_id))
    return tuple(open_runs)


def held_expiries_ns(
    declaration: Declaration, tables: Mapping[str, Mapping[Key, Row]]
) -> list[int]:
    """For each held lease, the first moment that is surely past its stored expiry."""
    return [expiry.at_ns + expiry.grain_ns for expiry in stored_expiries(declaration, tables)]
