"""Begins and ends tenures, and records what each commit was to each run that it touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from . import footprints as facts
from .authors import Author, Authors
from .classify import Case, kinds_of, touched_tables, what_changed
from .history import Change, Commit, EffectAsked, History
from .lives import Life, worker_of
from .ownership_state import Claim, Run
from .readings import Readings
from .rows import Reader, View, as_token
from .sweeping import Sweeping
from .verdict import Act

#: Detail of an act whose lease lapsed between its author's last look at the clock and its commit.
IN_GAP: Final = "lapsed in the gap"


class Tenancy:
    """Tenures and acts so far. `found` are the lists that facts are collected in."""

    def __init__(
        self,
        reader: Reader,
        *,
        lives: Mapping[str, Life],
        times: Readings,
        found: Mapping[str, list[Any]],
        history: History,
    ) -> None:
        self._reader: Final = reader
        self._lives: Final = lives
        self._times: Final = times
        #: Whether commits are told move by move: a heartbeat's may seem to be another's.
        self._coarse: Final = history.header.attribution != "commit"
        self._found: Final = found
        asked = [one for one in history.events if type(one) is EffectAsked]
        self._authors: Final = Authors(reader, times=times, asks=found["asks"], asked=asked)
        self._sweeping: Final = Sweeping(reader)
        declaration = reader.declaration
        self._late_ok: Final = {item.table for item in declaration.writes if item.late_ok}
        self._checks_expiry: Final = "checks_expiry" in declaration.capabilities
        self.claims: Final[list[Claim]] = []
        #: Runs in force whose expiry has not passed yet, and when it surely will have.
        self.ends: Final[dict[str, tuple[int, Claim]]] = {}
        self.soonest: float = float("inf")
        #: Claims in force under a lapsed lease whose worker has not moved since.
        self.asleep: Final[list[Claim]] = []

    def judge(
        self,
        event: Commit,
        run: Run,
        *,
        changes: Sequence[Change],
        before: View,
        landed: Sequence[facts.Ask],
        reaper: bool,
        beating: bool,
    ) -> None:
        """What one commit was to one run, whose rows now read as `run.view`."""
        after, holder = run.view, run.current
        self._sweeping.note(after)
        life = self._lives.get(event.who)
        if life.is_operator if life else event.who.startswith("operator#"):
            author = Author("operator", None, "")
            job = life.job if life else "edit"
            kinds: tuple[str, ...] = (_operators_kind(job, before, after),)
            self._after_operator(event, run, before, after)
        else:
            author = self._authors.author_of(event, run, changes=changes, landed=landed)
            if self._coarse and holder is not None and self._beats(run, before, changes):
                author = Author("mine", holder, "")
            case = self._case(event, run, changes, before, author, reaper, beating)
            if case.role == "stale" and self._as_anybody(event, run, case, author, landed):
                author = Author("foreign", None, "")
                case = case._replace(role="foreign")
            if self._is_late_outcome(run, before, changes, author):
                kinds = ("write",)
                author = author._replace(why="a late outcome, as declared")
            elif self._claimed_within(run, case):
                kinds = ("acquire", "finish")
                author = Author("mine", self._pass_through(event, run, before), "")
            else:
                kinds = kinds_of(case)
                if author.role == "mine" and not case.late and self._in_gap(event, before):
                    author = author._replace(why=IN_GAP)
                self._settle(event, run, before, kinds, author)
        self._keep_time(event, run, before, kinds)
        number = author.claim.number if author.claim else None
        if kinds and kinds[0] in ("acquire", "steal") and run.current is not None:
            number = run.current.number
        held_by = holder.number if holder else None
        detail = author.why or touched_tables(changes)
        for kind in kinds:
            self._found["acts"].append(
                Act(event.n, run.run_id, event.who, event.thread, kind, number, held_by, detail)
            )
        self._found["touches"].append(
            facts.Touch(
                event.n, run.run_id, event.who, event.thread, tuple(changes), before, after,
                kinds, number, held_by, event.at_ns,
            )
        )  # fmt: skip

    # --- what

    def _case(
        self, event: Commit, run: Run, changes: Sequence[Change], before: View, author: Author,
        reaper: bool, beating: bool,
    ) -> Case:  # fmt: skip
        after = run.view
        expiry = before.expiry
        renews, writes = what_changed(self._reader, before, after, changes)
        lapsed = expiry is None or not expiry.live(self._times.latest(event))
        changed = after.held and (not before.held or before.identity != after.identity)
        nameless = (
            # the same name as the holder's, written by another process: a name is no identity
            renews and not changed and author.role in ("foreign", "stale", "own end")
            and (author.role == "foreign" or (lapsed and not self._reader.tells_claims_apart))
        )  # fmt: skip
        return Case(
            role=author.role,
            before=before,
            after=after,
            late=author.role == "mine"
            and expiry is not None
            and not expiry.live(event.at_ns + self._times.skew(event.who))
            and expiry.lapsed(self._times.judged(event)),
            lapsed=lapsed,
            reaper=reaper,
            claims=(changed or nameless) and not after.done,
            again=changed and self._is_old_claim(run, before, after, author, beating),
            other_owner=after.owner != before.owner
            and self._worker_of(event, before, after) == event.who,
            renews=renews,
            writes=writes,
        )

    def _as_anybody(
        self, event: Commit, run: Run, case: Case, author: Author, landed: Sequence[facts.Ask]
    ) -> bool:
        """Whether a past holder met a run as a janitor would, or a free one as any poll does."""
        expiry = case.before.expiry
        free = run.current is None or (expiry is not None and case.lapsed)
        if author.why or case.claims or case.renews:
            return False
        if case.reaper or not free:
            return case.reaper
        if any(ask.run_id == run.run_id and ask.event.who == event.who for ask in landed):
            return False
        return self._sweeping.went_by_free(
            self._times.went_by(event),
            former=run.by_who.get(event.who, ()),
            others={claim.run_id for claim in self.claims if claim.who == event.who},
        )

    def _beats(self, run: Run, before: View, changes: Sequence[Change]) -> bool:
        """Whether a commit extended the lease in force and did nothing else."""
        renews, writes = what_changed(self._reader, before, run.view, changes)
        same = run.view.held and run.view.identity == before.identity
        return self._reader.tells_claims_apart and same and renews and not writes

    def _claimed_within(self, run: Run, case: Case) -> bool:
        """Whether one commit claimed a run that was free and finished it, under a new token.

        Short jobs are; and where nothing is seen between two moves, longer ones as well.
        """
        if not case.after.done or case.before.done or case.reaper:
            return False
        token = self._reader.token_of((run.leases if self._reader.separate else run.rows).values())
        free = not case.before.held or case.lapsed
        may = case.role in ("stale", "foreign", "own end") or case.late
        return free and may and token is not None and token > (run.highest or 0)

    def _pass_through(self, event: Commit, run: Run, before: View) -> Claim:
        """A tenure that begins and ends with one commit."""
        if run.current is not None:
            self._note_take(event, run, run.current, before)
            self._end(event, run, run.current, "taken over", robbed=False)
        rows = (run.leases if self._reader.separate else run.rows).values()
        token = self._reader.token_of(rows)
        claim = self._begin(event, run, who=event.who, counts=True, token=token)
        self._end(event, run, claim, "finished", robbed=False)
        return claim

    def _is_old_claim(
        self, run: Run, before: View, after: View, author: Author, beating: bool
    ) -> bool:
        """Whether a claim by a past holder is no claim, but a renewal that came too late.

        It puts back what the author held before, or takes the name but no new token.
        """
        spec = self._reader.declaration.runs.lease
        if author.claim is None or author.role == "mine":
            return False
        own = run.by_who[author.claim.who]
        if self._reader.tells_claims_apart and any(
            claim.identity == after.identity for claim in own
        ):
            return True
        same_name = any(claim.owner == after.owner for claim in own)
        no_new_token = bool(spec.token) and before.held and after.token == before.token
        return same_name and (no_new_token or beating)

    def _is_late_outcome(
        self, run: Run, before: View, changes: Sequence[Change], author: Author
    ) -> bool:
        """Rows that a subject may add after the end, by the last execution of the run."""
        return (
            bool(self._late_ok)
            and before.done
            and author.claim is not None
            and run.claims[-1] is author.claim
            and all(change.old is None and change.table in self._late_ok for change in changes)
        )

    def _in_gap(self, event: Commit, before: View) -> bool:
        """Whether the lease lapsed between the author's last look at its clock and its commit."""
        expiry = before.expiry
        return expiry is not None and expiry.lapsed(event.at_ns + self._times.skew(event.who))

    # --- tenures

    def _settle(
        self, event: Commit, run: Run, before: View, kinds: tuple[str, ...], author: Author
    ) -> None:
        after, holder = run.view, run.current
        last = kinds[-1] if kinds else ""
        claimed = last in ("acquire", "steal") and after.held  # a lease may be stolen to release it
        if claimed or (after.held and not after.done and before.identity != after.identity):
            stolen = last != "acquire"
            who = self._worker_of(event, before, after)
            if holder is not None:
                if not stolen:
                    self._note_take(event, run, holder, before)
                how = "stolen" if stolen else "taken over"
                if holder.who == event.who != who:
                    how = "released"  # it handed the run to another
                self._end(event, run, holder, how, robbed=stolen)
            self._begin(event, run, who=who, counts=claimed)
        elif holder is not None and (after.done or not after.held):
            how = _HOW.get(kinds[0].rpartition("-")[2], "") if kinds else ""
            if not after.exists and not after.done:
                how = "deleted"
            elif not how:
                how = "finished" if after.done else "released"
            if how == "reaped":
                self._note_take(event, run, holder, before)
            rightful = author.role in ("mine", "robbed") or how == "reaped"
            self._end(event, run, holder, how, robbed=not rightful)

    def _begin(
        self, event: Commit, run: Run, *, who: str, counts: bool, token: int | None = None
    ) -> Claim:
        after = run.view
        token = as_token(after.token) if token is None else token
        number = len(run.claims) + 1
        thread = event.thread if who == event.who else ""
        claim = Claim(run.run_id, number, who, thread, after.owner, token, after.identity, event.n)
        if token is not None and counts:
            highest = run.highest
            if token in run.tokens or (highest is not None and token < highest):
                self._found["token_faults"].append(
                    facts.TokenFault(
                        event.n, run.run_id, number, token, run.tokens.get(token), highest or 0
                    )
                )
        if token is not None:
            run.tokens[token] = number
            run.highest = max(token, run.highest or token)
        run.current = claim
        run.claims.append(claim)
        run.by_who.setdefault(who, []).append(claim)
        run.robbed.pop(who, None)
        self.claims.append(claim)
        return claim

    def _worker_of(self, event: Commit, before: View, after: View) -> str:
        """Whose lease a claim is: its author's, or another's whom a dispatcher named."""
        owner = after.owner
        if owner == before.owner:
            stated = self._times.statements(event) if isinstance(owner, str) else ()
            if not any(f"'{owner!s}'" in one.sql for one in stated):
                return event.who  # the name was left as it stood
        return worker_of(event.who, owner, self._lives, n=event.n)

    def _end(self, event: Commit, run: Run, claim: Claim, how: str, *, robbed: bool) -> None:
        claim.until, claim.ended, claim.ended_by = event.n, how, event.who
        if robbed and claim.who != event.who:
            run.robbed[claim.who] = event.who
        run.current = None
        self.ends.pop(run.run_id, None)
        if claim in self.asleep:
            self.asleep.remove(claim)

    def _after_operator(self, event: Commit, run: Run, before: View, after: View) -> None:
        """An operator may do as it likes, and never holds a lease itself."""
        token = as_token(after.token)
        if token is not None:
            run.highest = max(token, run.highest or token)
        holder = run.current
        if holder is not None and (
            after.done or not after.held or after.identity != before.identity
        ):
            self._end(event, run, holder, "cancelled" if after.done else "released", robbed=False)

    # --- time

    def _note_take(self, event: Commit, run: Run, holder: Claim, before: View) -> None:
        """A lease in force was taken as expired: was it, by every clock that counts?"""
        expiry = before.expiry
        if expiry is None:
            return
        latest = self._times.latest(event)
        if holder.edge_ns == latest and not expiry.lapsed(latest) and self._checks_expiry:
            self._found["edge_takes"].append(
                facts.EdgeTake(event.n, run.run_id, holder.number, holder.edge_at)
            )
        skew = self._times.skew(event.who) - self._times.skew(holder.who)
        life = self._lives.get(holder.who)
        alive = life is None or life.alive_at(event.n)
        if skew and alive and expiry.live(event.at_ns + self._times.skew(holder.who)):
            self._found["skew_takes"].append(
                facts.SkewTake(event.n, run.run_id, holder.number, event.who, skew)
            )

    def _keep_time(self, event: Commit, run: Run, before: View, kinds: tuple[str, ...]) -> None:
        """When the lease in force will have lapsed now, and what its renewals come to."""
        claim, expiry = run.current, run.view.expiry
        if claim is None or expiry is None:
            self.ends.pop(run.run_id, None)
        elif expiry != before.expiry or claim.since == event.n:
            ends = expiry.at_ns + expiry.grain_ns
            if event.at_ns < ends:
                self.ends[run.run_id] = (ends, claim)
                claim.lapsed = claim.woke = False
                if claim in self.asleep:
                    self.asleep.remove(claim)
            self._note_growth(event, run, claim, expiry.at_ns - self._times.latest(event))
            if "late-renew" in kinds:
                claim.again_at = event.n
        elif claim.who == event.who and before.expiry is not None:
            judged = self._times.judged(event)
            if not expiry.live(judged) and not expiry.lapsed(judged):
                before_it = claim.edge_at if claim.edge_ns == judged else ()
                claim.edge_ns, claim.edge_at = judged, (*before_it, event.n)
        self.soonest = min((ends for ends, _claim in self.ends.values()), default=float("inf"))

    def _note_growth(self, event: Commit, run: Run, claim: Claim, length_ns: int) -> None:
        lengths = claim.lengths_ns
        lengths.append(length_ns)
        if len(lengths) < 3 or lengths[0] <= 0:
            return
        step = lengths[0] // 10
        declared = self._reader.declaration.lease_ttl_ms * 1_000_000
        grew = lengths[-1] > lengths[-2] + step and lengths[-2] > lengths[-3] + step
        if grew and lengths[-1] > max(lengths[0] * 3 // 2, declared + step):
            self._found["growths"].append(
                facts.Growth(event.n, run.run_id, claim.number, tuple(lengths))
            )

    def lapse(self, n: int, now_ns: int, why: str) -> None:
        """The stage's clock passed the soonest expiry."""
        for run_id, (ends, claim) in list(self.ends.items()):
            if now_ns >= ends:
                del self.ends[run_id]
                claim.lapsed = True
                self.asleep.append(claim)
                self._found["lapses"].append(facts.Lapse(n, run_id, claim.number, why))
        self.soonest = min((ends for ends, _claim in self.ends.values()), default=float("inf"))

    def woke(self, n: int, who: str) -> None:
        """A worker moved; note it when that was under a lapsed lease."""
        for claim in list(self.asleep):
            if claim.who == who:
                claim.woke = True
                self.asleep.remove(claim)
                self._found["wakes"].append(facts.Wake(n, claim.run_id, claim.number))


_HOW: Final = {
    "finish": "finished", "release": "released", "reap": "reaped", "steal": "stolen"
}  # fmt: skip


def _operators_kind(job: str, before: View, after: View) -> str:
    if not before.exists and after.exists:
        return "submit"
    return f"operator-{job}" if job in ("cancel", "approve") else "operator-edit"
