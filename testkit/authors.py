"""Who made a commit, seen from one run: the holder, a former one, a robbed one, a stranger.

Two executions in one process are told apart by what gives them away: a receipt that was issued to
the former one, the owner or the token that its statements compare with, the token in a declared
effect row. Where there is none of these, a process counts as its latest tenure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .footprints import Ask
from .history import Change, Commit, EffectAsked, Key, Row, Statement
from .ownership_state import Claim, Run
from .readings import Readings
from .rows import Reader


class Author(NamedTuple):
    """An author and the run: `claim` is the tenure it acts from, `why` how that is known.

    `role`: `mine`, `stale`, `robbed`, `foreign`, `operator`, or `own end` for an author whose own
    release or finish nobody has followed.
    """

    role: str
    claim: Claim | None
    why: str


class Authors:
    """Tells authors apart.

    `asks` are the requests for effects so far, `asked` those of the whole history.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        times: Readings,
        asks: Sequence[Ask],
        asked: Sequence[EffectAsked] = (),
    ) -> None:
        self._reader: Final = reader
        self._times: Final = times
        self._asks: Final = asks
        self._asked: Final = asked

    def author_of(
        self, event: Commit, run: Run, *, changes: Sequence[Change], landed: Sequence[Ask]
    ) -> Author:
        """Who made a commit, seen from one run; `landed` are requests whose receipts it stores."""
        who, holder = event.who, run.current
        own = run.by_who.get(who, ())
        if holder is not None and holder.who == who:
            older, why = self._older(event, run, holder, changes, landed)
            return Author("stale", older, why) if older else Author("mine", holder, "")
        if not own:
            return Author("foreign", None, "")
        last = own[-1]
        if who in run.robbed:
            return Author("robbed", last, f"robbed by {run.robbed[who]}")
        if last.ended_by == who and run.claims[-1] is last:
            return Author("own end", last, f"after its own {_ENDED.get(last.ended, last.ended)}")
        return Author("stale", last, "")

    def _older(
        self, event: Commit, run: Run, holder: Claim, changes: Sequence[Change],
        landed: Sequence[Ask],
    ) -> tuple[Claim | None, str]:  # fmt: skip
        """The former tenure of the same process that this commit comes from, if it does."""
        for ask in landed:
            if ask.run_id != run.run_id or ask.event.who != event.who or ask.tenure is None:
                continue
            if ask.tenure < holder.number and self._carried_over(event, ask, run, holder):
                continue
            if ask.tenure < holder.number or self._first_of_two(ask, run, holder):
                why = f"receipt of tenure {ask.tenure}, asked for at event {ask.event.n}"
                return run.claims[ask.tenure - 1], why
        former = [claim for claim in run.by_who[event.who] if claim is not holder]
        if not former:
            return None, ""
        statements = self._times.statements(event)
        for claim in reversed(former):
            if any(self._names(one.sql, claim, now=holder) for one in statements):
                return claim, f"its statement names what tenure {claim.number} held"
            if self._row_names(changes, claim, holder):
                return claim, f"it stored token {claim.token}"
        return None, ""

    def _carried_over(self, event: Commit, ask: Ask, run: Run, holder: Claim) -> bool:
        """Whether an execution stores what a former one of its process was answered.

        A runtime that keeps answers need not ask twice: its transaction goes by the present token
        or owner, and it never asks for that effect itself. A former execution that reads the
        present token, and stores its own answer under that, is met by one that asks.
        """
        former = run.claims[(ask.tenure or 1) - 1]
        spec = self._reader.declaration.runs.lease
        present = any(
            column is not None
            and isinstance(now, int | str)
            and now != then
            and names_value(condition_of(one.sql), column, now)
            for one in self._times.statements(event)
            for column, now, then in (
                (spec.token, holder.token, former.token),
                (spec.owner, holder.owner, former.owner),
            )
        )
        return present and not any(
            asked.name == ask.event.name
            and asked.who == event.who
            and asked.run_id in (None, run.run_id)
            and asked.n > holder.since
            for asked in self._asked
        )

    def _first_of_two(self, ask: Ask, run: Run, holder: Claim) -> bool:
        """Whether a request was made before what must have been a second claim.

        Where nothing tells a renewal and a claim apart, a second request for the run after the
        lapsed lease was extended shows that a second execution had begun.
        """
        again = holder.again_at
        return ask.event.n < again and any(
            other.run_id == run.run_id
            and other.event.who == ask.event.who
            and other.event.n > again
            for other in self._asks
        )

    def _row_names(self, changes: Sequence[Change], claim: Claim, holder: Claim) -> bool:
        """Whether an effect row carries the former tenure's token."""
        effects = self._reader.declaration.effects
        if effects is None or effects.token is None or claim.token in (None, holder.token):
            return False
        rows = (change.new for change in changes if change.table == effects.table)
        return any(row is not None and row.get(effects.token) == claim.token for row in rows)

    def _names(self, sql: str, claim: Claim, *, now: Claim) -> bool:
        """Whether a statement goes by what a former tenure held, and not by what holds now."""
        spec = self._reader.declaration.runs.lease
        if isinstance(claim.owner, str) and claim.owner != now.owner and len(claim.owner) > 2:
            quoted = "'" + claim.owner.replace("'", "''") + "'"
            if quoted in sql and str(now.owner) not in sql:
                return True
        if spec.token and claim.token is not None and claim.token != now.token:
            return names_value(sql, spec.token, claim.token)
        return False


_WHERE: Final = re.compile(r"\bWHERE\b", re.IGNORECASE)
#: How a tenure that its own worker ended is spoken of.
_ENDED: Final[Mapping[str, str]] = {"finished": "finish", "released": "release"}


def condition_of(sql: str) -> str:
    """All that comes after a statement's first WHERE."""
    found = _WHERE.search(sql)
    return sql[found.end() :] if found else ""


def names_value(sql: str, column: str, value: int | str) -> bool:
    """Whether a statement compares a column with this number or text."""
    column = re.escape(column)
    literal = (
        re.escape("'" + value.replace("'", "''") + "'")
        if isinstance(value, str)
        else rf"'?{value}\b"
    )
    return bool(re.search(rf"\b{column}\b[\"`\]]?\s*(?:==?|IS)\s*{literal}", sql, re.IGNORECASE))


def names_row(sql: str, key: Key, row: Row) -> bool:
    """Whether a statement compares every column of a row's key with what this row has there."""
    return all(
        isinstance(value, int | str)
        and any(names_value(sql, name, value) for name, found in row.items() if found == value)
        for value in key
    )


def names_run(statement: Statement, run_id: str) -> bool:
    """Whether a statement names a run by a value in its text."""
    sql = statement.sql
    if "'" + run_id.replace("'", "''") + "'" in sql:
        return True
    if run_id.isdigit():
        return bool(re.search(rf"(?:[=(,]|\bIN\b|\bIS\b)\s*{run_id}(?![\w.'])", sql, re.IGNORECASE))
    return all("'" + part + "'" in sql for part in run_id.split("/")) if "/" in run_id else False
