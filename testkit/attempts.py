"""What executions whose tenure was over still tried, and what came of it.

An attempt is a statement on a declared table that concerns the run, a request for an effect, or a
look at the lease after which the worker gave up: a transaction that only looked, or nothing at all
after it. A statement concerns a run when its text names the run's id, the key of the run's row or
of its lease's, or the owner or token of the tenure that is over. A new claim by a former holder is
no stale attempt: it is known by a declared `claims` call that it is made in, by the claim that its
transaction led to, or because it sets the owner's column. A process that has claimed the run again
is stale only in what names its former tenure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from . import footprints as facts
from .authors import names_value
from .history import (
    Commit,
    EffectAnswered,
    EffectDecided,
    History,
    Passed,
    RolledBack,
    Statement,
)
from .naming import Naming
from .rows import rows_of_runs
from .subject import Declaration
from .verdict import Act, Attempt, Tenure

_OUTCOMES: Final[Mapping[str, str]] = {
    "accepted": "landed",
    "refused": "refused by the provider",
    "replayed": "replayed",
    "failed": "failed",
}


class _Over(NamedTuple):
    """A tenure that is over against its worker's will, and when that worker claimed again."""

    tenure: Tenure
    since: int
    again: Tenure | None


class _Look(NamedTuple):
    """A read by a stale worker after which it has done nothing yet."""

    attempt: Attempt
    read: Statement


class _Txns(NamedTuple):
    """How each transaction ended, by incarnation, connection and number."""

    committed: Mapping[tuple[str, int, int], int]
    rolled_back: frozenset[tuple[str, int, int]]
    #: By run: commits that were right, as a declared late outcome is.
    harmless: Mapping[str, frozenset[int]]


def attempts_of(
    history: History, declaration: Declaration, owned: facts.Ownership
) -> tuple[Attempt, ...]:
    """Every stale attempt, in order. The guards of those that were refused are `refusal`'s."""
    over = _overs(owned)
    if not over:
        return ()
    return _Attempts(history, declaration, owned, over).find()


def _overs(owned: facts.Ownership) -> dict[str, list[_Over]]:
    """Lost tenures by incarnation. One that its own worker ended counts once another began."""
    found: dict[str, list[_Over]] = {}
    by_run: dict[str, list[Tenure]] = {}
    for tenure in owned.tenures:
        by_run.setdefault(tenure.run_id, []).append(tenure)
    for tenures in by_run.values():
        for index, tenure in enumerate(tenures):
            later = tenures[index + 1 :]
            since = tenure.until
            if since is None or (tenure.ended_by == tenure.who and not later):
                continue
            if tenure.ended_by == tenure.who:
                since = later[0].since
            elif _is_robbed(tenure):
                continue
            again = next((item for item in later if item.who == tenure.who), None)
            found.setdefault(tenure.who, []).append(_Over(tenure, since, again))
    return found


def _is_robbed(tenure: Tenure | None) -> bool:
    """Whether it was ended under its rightful holder, who is the victim, not the culprit."""
    return (
        tenure is not None
        and tenure.ended in ("finished", "released")
        and tenure.ended_by != tenure.who
    )


class _Attempts:
    """One pass over the events that come after the first loss."""

    def __init__(
        self,
        history: History,
        declaration: Declaration,
        owned: facts.Ownership,
        over: dict[str, list[_Over]],
    ) -> None:
        self._events: Final = history.events
        self._lease: Final = declaration.runs.lease
        self._lease_table: Final = (declaration.runs.lease.table or declaration.runs.table).lower()
        self._claims: Final = {f"call:{name}" for name in declaration.claims}
        self._over: Final = over
        self._owned: Final = owned
        self._first: Final = min(item.since for items in over.values() for item in items)
        self._found: Final[list[Attempt]] = []
        #: The last look of a stale worker at a run, until it does more than look.
        self._looks: Final[dict[tuple[str, str], _Look]] = {}
        #: Looks whose transaction is over: by worker, run and text, the last of each.
        self._over_with: Final[dict[tuple[str, str, str], Attempt]] = {}
        self._claiming: Final[dict[tuple[str, str], int]] = {}
        self._runs_of: Final[dict[str, set[str]]] = {}
        for tenure in owned.tenures:
            self._runs_of.setdefault(tenure.who, set()).add(tenure.run_id)
        #: Runs that anybody ever held.
        self._held: Final = {run for run, _ in owned.by_number}
        self._touched: Final = {(touch.run_id, touch.n) for touch in owned.touches}
        self._naming: Final = Naming(self._held, rows_of_runs(history, declaration, self._held))

    def find(self) -> tuple[Attempt, ...]:
        """Every stale attempt of the history, in its order."""
        txns = self._transactions()
        acquired = {
            (act.who, act.run_id, act.n)
            for act in self._owned.acts
            if act.kind in ("acquire", "steal", "operator-edit")
        }
        asks = {(ask.event.who, ask.event.request): ask for ask in self._owned.asks}
        answers = {
            (event.who, event.request): event.how
            for event in self._events
            if type(event) is EffectAnswered
        }
        decided: set[tuple[str, int]] = set()
        for event in self._events:
            if type(event) is Passed:
                self._follow(event)
            elif event.n <= self._first:
                continue
            elif type(event) is Statement:
                self._statement(event, txns, acquired)
            elif type(event) is RolledBack:
                self._close(event.who, event.thread)
            elif type(event) is EffectDecided:
                key = (event.who, event.request)
                ask = asks.get(key)
                if ask is not None:
                    self._effect(ask, event, first=key not in decided)
                decided.add(key)
        for ask in self._owned.asks:
            key = (ask.event.who, ask.event.request)
            if ask.over and key not in decided:
                self._own_effect(ask, answers.get(key))
        self._unseen(txns)
        self._found.extend(look.attempt for look in self._looks.values())
        self._found.extend(self._over_with.values())
        return tuple(sorted(self._found, key=lambda attempt: attempt.n))

    def _follow(self, event: Passed) -> None:
        if event.point in self._claims:
            key = (event.who, event.thread)
            step = 1 if event.phase == "before" else -1
            self._claiming[key] = max(0, self._claiming.get(key, 0) + step)
        elif event.point == "txn:commit" and event.phase == "after":
            self._close(event.who, event.thread)

    def _close(self, who: str, thread: str) -> None:
        """A transaction is over: a look in it that nothing followed has come to nothing."""
        for key, look in list(self._looks.items()):
            if (look.read.who, look.read.thread) == (who, thread):
                del self._looks[key]
                self._over_with[(*key, look.read.sql)] = look.attempt

    def _transactions(self) -> _Txns:
        committed: dict[tuple[str, int, int], int] = {}
        rolled_back = set()
        for event in self._events:
            if type(event) is Commit:
                committed[event.who, event.connection, event.txn] = event.n
            elif type(event) is RolledBack:
                rolled_back.add((event.who, event.connection, event.txn))
        return _Txns(committed, frozenset(rolled_back), self._harmless())

    def _harmless(self) -> Mapping[str, frozenset[int]]:
        right: dict[str, set[int]] = {}
        wrong = {
            (act.run_id, act.n)
            for act in self._owned.acts
            if act.kind.startswith("stale-") or act.kind == "rewrites-terminal"
        }
        for act in self._owned.acts:
            if (act.run_id, act.n) not in wrong:
                right.setdefault(act.run_id, set()).add(act.n)
        return {run_id: frozenset(numbers) for run_id, numbers in right.items()}

    # --- statements

    def _statement(
        self, event: Statement, txns: _Txns, acquired: set[tuple[str, str, int]]
    ) -> None:
        for over in self._over.get(event.who, ()):
            tenure = over.tenure
            key = (event.who, event.connection, event.txn)
            commit = txns.committed.get(key, -1)
            if event.n <= over.since or not self._concerns(event, over, commit):
                continue
            led_to_claim = (event.who, tenure.run_id, commit) in acquired
            if led_to_claim or self._is_claim(event, over):
                self._looks.pop((event.who, tenure.run_id), None)
                continue
            what = f"{event.verb} {event.table}"
            if event.rows is None:
                attempt = Attempt(
                    event.n, tenure.run_id, event.who, tenure.number, what,
                    "gave up after reading", (), event.sql,
                )  # fmt: skip
                self._looks[event.who, tenure.run_id] = _Look(attempt, event)
                return
            self._looks.pop((event.who, tenure.run_id), None)
            outcome = self._came_to(event, key, txns)
            if outcome == "landed" and commit in txns.harmless.get(tenure.run_id, ()):
                return
            self._found.append(
                Attempt(
                    event.n, tenure.run_id, event.who, tenure.number, what,
                    outcome, (), event.sql,
                )
            )  # fmt: skip
            return

    def _came_to(self, event: Statement, key: tuple[str, int, int], txns: _Txns) -> str:
        if not event.rows:
            return "changed nothing"
        if key in txns.committed:
            return "landed"
        if key in txns.rolled_back:
            return "rolled back"
        life = self._owned.lives.get(event.who)
        return "died" if life is not None and life.until is not None else "rolled back"

    def _concerns(self, event: Statement, over: _Over, commit: int) -> bool:
        """Whether a statement is about the run of a tenure that is over, and from that tenure.

        `commit`: the number of the commit that it came to, -1 for none.
        """
        tenure = over.tenure
        names = self._naming.named_by(event)
        named = tenure.run_id in names
        if names and not named:
            return False  # its worker has, or had, other runs, under the same owner perhaps
        if over.again is not None and event.n > over.again.since:
            return self._names_tenure(event.sql, tenure, unlike=over.again)
        if named:
            return True
        if self._names_tenure(event.sql, tenure):
            return not any(
                other.who == event.who and other.run_id != tenure.run_id and other.since < event.n
                and self._names_tenure(event.sql, other)
                for other in self._owned.tenures
            )  # fmt: skip
        # a runtime with one lease in all, or that goes by a number of its own
        if len(self._runs_of[event.who]) != 1 or not event.rows:
            return False
        return commit < 0 or (tenure.run_id, commit) in self._touched  # else another run's rows

    def _names_tenure(self, sql: str, tenure: Tenure, *, unlike: Tenure | None = None) -> bool:
        """Whether a statement has what a tenure held, and that is not what `unlike` holds too."""
        owner, token = tenure.owner, tenure.token
        if (
            isinstance(owner, str)
            and len(owner) > 2
            and (unlike is None or owner != unlike.owner)
            and "'" + owner.replace("'", "''") + "'" in sql
        ):
            return True
        column = self._lease.token
        if column is None or token is None or (unlike is not None and token == unlike.token):
            return False
        return names_value(sql, column, token)

    def _is_claim(self, event: Statement, over: _Over) -> bool:
        """Whether a statement tries to claim, as far as its text and its call tell."""
        if self._claiming.get((event.who, event.thread)):
            return True
        if event.table.lower() != self._lease_table or event.rows is None:
            return False
        sets = re.search(r"\bSET\b(.*?)(\bWHERE\b|$)", event.sql, re.IGNORECASE | re.DOTALL)
        spec = self._lease
        text = sets[1] if sets else ""
        grows = spec.token is not None and re.search(
            rf"\b{re.escape(spec.token)}\b[\"`\]]?\s*=", text, re.IGNORECASE
        )
        if event.verb in ("INSERT", "REPLACE"):
            return self._lease.table is not None
        if spec.owner is None:
            return bool(grows)
        named = re.search(
            rf"\b{re.escape(spec.owner)}\b[\"`\]]?\s*=(?!\s*(?:NULL\b|''(?!')))",
            text,
            re.IGNORECASE,
        )
        same = over.tenure.token is not None and names_value(
            text, spec.token or "", over.tenure.token
        )
        return bool(named) and not same and (bool(grows) or spec.token is None)

    def _unseen(self, txns: _Txns) -> None:
        """Stale acts whose statements nobody saw: without hooks, the commit is all there is."""
        seen = {
            txns.committed.get((event.who, event.connection, event.txn))
            for event in self._events
            if type(event) is Statement and event.n > self._first
        }
        told: set[tuple[int, str]] = set()
        for act in self._owned.acts:
            if (
                act.kind.startswith("stale-")
                and act.n not in seen
                and (act.n, act.run_id) not in told
            ):
                told.add((act.n, act.run_id))
                self._looks.pop((act.who, act.run_id), None)
                self._found.append(_landed(act))

    # --- effects

    def _effect(self, ask: facts.Ask, event: EffectDecided, *, first: bool) -> None:
        over = ask.over or self._lost_by(ask, event.n)
        if not over or ask.run_id is None or _is_robbed(self._owned.tenure(ask.run_id, ask.tenure)):
            return
        self._looks.pop((event.who, ask.run_id), None)
        guards: tuple[str, ...] = ()
        if event.outcome in ("refused", "replayed"):
            guards = ("token",) if event.outcome == "refused" else ("key",)
        n = ask.event.n if ask.over and first else event.n
        self._found.append(
            Attempt(
                n, ask.run_id, event.who, ask.tenure, f"effect {ask.event.name}",
                _OUTCOMES.get(event.outcome, event.outcome), guards,
            )
        )  # fmt: skip

    def _lost_by(self, ask: facts.Ask, n: int) -> bool:
        """Whether the asker had lost its tenure to somebody by event `n`."""
        tenure = self._owned.tenure(ask.run_id, ask.tenure)
        if tenure is None:
            return False
        return any(
            item.tenure is tenure and n > item.since for item in self._over.get(tenure.who, ())
        )

    def _own_effect(self, ask: facts.Ask, how: str | None) -> None:
        if ask.run_id is None or not self._lost_by(ask, ask.event.n):
            return
        self._looks.pop((ask.event.who, ask.run_id), None)
        if how is None:
            life = self._owned.lives.get(ask.event.who)
            outcome = "died" if life is not None and life.until is not None else "unanswered"
        else:
            outcome = "landed" if self._landed_own(ask) else "changed nothing"
        self._found.append(
            Attempt(
                ask.event.n, ask.run_id, ask.event.who, ask.tenure, f"effect {ask.event.name}",
                outcome,
            )
        )  # fmt: skip

    def _landed_own(self, ask: facts.Ask) -> bool:
        return any(
            act.who == ask.event.who and act.run_id == ask.run_id and act.n > ask.event.n
            and act.kind.startswith("stale-")
            for act in self._owned.acts
        )  # fmt: skip


def _landed(act: Act) -> Attempt:
    what = f"change {act.detail}" if act.detail else act.kind.removeprefix("stale-")
    return Attempt(act.n, act.run_id, act.who, act.tenure, what, "landed")
