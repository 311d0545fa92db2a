"""What a commit was to a run: one decision table over who it was and how the run stood.

Who acts is one of: the holder (`mine`), an execution whose tenure is over (`stale`), a rightful
holder whose tenure somebody ended without right (`robbed`), a stranger to the run (`foreign`). What
is done is a claim, a finish, a release, a renewal or a write. `Case` has all that the decision
needs, and the functions here are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .history import Change
from .rows import Reader, View


class Case(NamedTuple):
    """One commit and one run.

    `role` is how the author stands to the run: `mine`, `stale`, `robbed`, `foreign`, or `own end`
    for an author whose own release or finish nobody has followed. `late`: the holder acted under a
    lapsed lease, by its clock. `lapsed`: a lease in force may be taken, by the author's clock.
    `reaper`: it acts as a janitor. `again`: the claim is of an identity that the author had before,
    or was made by a heartbeat. `other_owner`: the claim changes the owner's name.
    """

    role: str
    before: View
    after: View
    late: bool
    lapsed: bool
    reaper: bool
    claims: bool
    again: bool
    other_owner: bool
    renews: bool
    writes: bool


def kinds_of(case: Case) -> tuple[str, ...]:
    """The kinds of the acts that a commit comes to, the decisive one first."""
    before, after = case.before, case.after
    kinds: list[str] = []
    purged = before.exists and not after.exists  # a finished run's row may be cleared away
    if before.done and not purged and (not after.done or before.status != after.status):
        kinds.append("rewrites-terminal")
    if case.claims:
        return (*kinds, _claim(case))
    if after.done and not before.done:
        return (*kinds, _ends(case, "finish"))
    if before.held and not after.held:
        return (*kinds, _ends(case, "release"))
    if not before.exists and after.exists:
        return (*kinds, "submit" if case.role in ("foreign", "own end") else _said(case, "write"))
    rewrites = bool(kinds)
    if case.renews:
        kinds.append(_said(case, "renew"))
    if case.writes and (not rewrites or case.role in ("stale", "robbed")):
        kinds.append(_said(case, "write"))
    return tuple(kinds)


def _claim(case: Case) -> str:
    if case.again and case.role in ("stale", "robbed"):
        return f"{case.role}-renew"
    if not case.before.held or case.lapsed:
        return "acquire"
    return "steal" if case.role != "mine" or case.other_owner else "acquire"


def _ends(case: Case, base: str) -> str:
    if case.role in ("mine", "robbed"):
        return _said(case, base)
    if not case.before.held:
        if case.reaper or (case.role == "foreign" and base == "finish"):
            return "reap" if case.reaper else "foreign-finish"
        return _said(case, base)
    if case.reaper:
        return "reap" if case.lapsed else "steal"
    if case.lapsed and (base == "release" or case.role == "foreign"):
        return "reap"
    if case.role == "foreign":
        if base == "finish":
            return "foreign-finish"
        return "reap" if case.before.done else "steal"  # left behind, and cleared away
    return _said(case, base)


def _said(case: Case, base: str) -> str:
    """A kind with how its author stands to the run."""
    if case.role == "mine":
        return f"late-{base}" if case.late else base
    if case.role == "own end":
        return base
    return f"{case.role}-{base}"


def what_changed(
    reader: Reader, before: View, after: View, changes: Sequence[Change]
) -> tuple[bool, bool]:
    """Whether a commit renewed the lease, and whether it wrote anything beyond the lease."""
    renews = False
    writes = False
    for change in changes:
        if change.old is not None and change.new is not None and _is_migrated(reader, change):
            continue
        beat = reader.beat is not None and change.table == reader.beat.table
        if change.table != reader.lease_table or change.old is None or change.new is None:
            renews |= beat
            writes |= not beat
            continue
        old, new = change.old, change.new
        different = {column for column, value in new.items() if old.get(column) != value}
        renews |= not different.isdisjoint(reader.lease_columns)
        writes |= not different <= reader.lease_columns
    if before.held and after.held and before.expiry != after.expiry:
        renews = True
    return renews and before.held and after.held, writes or (renews and not after.held)


def _is_migrated(reader: Reader, change: Change) -> bool:
    """Whether a row only got values in columns that it did not have: what a migration does.

    In a column that says who holds what, a value counts from the start.
    """
    old, new = change.old or {}, change.new or {}
    different = {column for column, value in new.items() if old.get(column) != value}
    return different.isdisjoint(old) and different.isdisjoint(reader.lease_columns)


def touched_tables(changes: Sequence[Change]) -> str:
    """The tables of some changes, each once, for a sentence."""
    return ", ".join(dict.fromkeys(change.table for change in changes))
