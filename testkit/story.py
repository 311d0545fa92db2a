"""A history as a reader needs it: who did what, in words, and who held which lease meanwhile.

`tell` makes entries of the events that matter and leaves out what only a checker needs; `bars` says
for each tenure when it was in force and when its lease had lapsed. `timeline` and `report` draw
both. Nothing of a history gets into a text here without having been made harmless.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from . import history as h
from .evidence_rows import Leases, declared, leases_of
from .harmless import harmless
from .verdict import Act, Attempt, Finding, Verdict

Kind = Literal[
    "script", "life", "hold", "signal", "clock", "lease", "write", "effect", "stale", "note"
]
#: Every kind of entry, in the order in which a reader filters by them.
KINDS: Final[Mapping[Kind, str]] = {
    "lease": "leases",
    "effect": "effects",
    "stale": "stale attempts",
    "write": "writes",
    "signal": "signals",
    "clock": "clock",
    "hold": "held",
    "life": "starts and ends",
    "script": "script",
    "note": "notes",
}
#: How much a kind matters when there is little room: 0 the most.
_RANKS: Final[Mapping[Kind, int]] = {
    "lease": 1, "stale": 1, "signal": 1, "clock": 1, "effect": 2, "hold": 3, "life": 4,
    "note": 4, "write": 5, "script": 6,
}  # fmt: skip
#: The rank of an action after which, with no other between them, a finding came about.
_CAUSE: Final = 1
#: Actions that an event of their own shows.
_SPEAKING: Final = frozenset(
    {
        "submit", "cancel", "approve", "spawn", "run", "until", "stop", "cont", "kill", "expire",
        "advance", "beat", "restart",
    }
)  # fmt: skip
_REFUSED: Final = frozenset({"refused", "failed"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. `who` is an incarnation, empty for what concerns the stage.

    `rank`: 0 matters most. `findings` rest on it; `decisive` for those whose last proof it is.
    """

    n: int
    at_ns: int
    who: str
    kind: Kind
    text: str
    rank: int
    findings: tuple[Finding, ...] = ()
    decisive: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A tenure on its worker's lane, in event numbers; `lapsed`: from where its lease had lapsed.

    `lost_at`: another one ended it. `until` None: in force at the end.
    """

    who: str
    run_id: str
    number: int
    token: int | None
    since: int
    lapsed: int | None
    until: int | None
    ended: str
    lost: bool


def tell(history: h.History, verdict: Verdict | None = None) -> tuple[Entry, ...]:
    """The entries of a history, in order. Without a verdict, commits are told by their rows."""
    return _Teller(history, verdict).entries()


def lanes_of(history: h.History, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The incarnations that have a lane: all but operators, in the order of their births."""
    born = [event.who for event in history if isinstance(event, h.Spawned)]
    seen = dict.fromkeys(born) | dict.fromkeys(entry.who for entry in entries if entry.who)
    return tuple(who for who in seen if not is_operator(who))


def bars(history: h.History, verdict: Verdict | None) -> tuple[Bar, ...]:
    """Every tenure as a bar. Raises `SubjectError` when a row can't be read as declared."""
    if verdict is None or not verdict.tenures:
        return ()
    leases = leases_of(history, declared(history))
    found = []
    for tenure in verdict.tenures:
        lapsed = _lapsed(history, leases, tenure.run_id, tenure.since, tenure.until)
        lost = tenure.until is not None and tenure.ended_by != tenure.who
        found.append(
            Bar(
                tenure.who, tenure.run_id, tenure.number, tenure.token, tenure.since, lapsed,
                tenure.until, tenure.ended, lost,
            )
        )  # fmt: skip
    return tuple(found)


def _lapsed(
    history: h.History, leases: Leases, run_id: str, since: int, until: int | None
) -> int | None:
    """The event from which on the lease had lapsed and was not renewed again."""
    lapsed = None
    expiries = leases.expiries(run_id)
    expiry = leases.expiry(run_id, since)
    for event in history:
        if event.n <= since or (until is not None and event.n >= until):
            continue
        if event.n in expiries:
            expiry, lapsed = expiries[event.n], None
        now = event.to_ns if isinstance(event, h.ClockMoved) else event.at_ns
        if lapsed is None and expiry is not None and expiry.lapsed(now):
            lapsed = event.n
    return lapsed


def seconds(at_ns: int, history: h.History) -> str:
    """A time of the stage as `+30.002s` since it began."""
    return f"{(at_ns - history.header.start_ns) / 1e9:+.3f}s"


def is_operator(who: str) -> bool:
    """Whether an incarnation acts for a person, and so has no lane."""
    return who.partition("#")[0] == "operator"


@dataclass(slots=True)
class _Found:
    """What the verdict says about each event, by its number."""

    acts: dict[int, list[Act]] = field(default_factory=dict)
    attempts: dict[int, list[Attempt]] = field(default_factory=dict)
    findings: dict[int, list[Finding]] = field(default_factory=dict)
    decisive: dict[int, list[Finding]] = field(default_factory=dict)


def _by_event(verdict: Verdict | None) -> _Found:
    found = _Found()
    if verdict is None:
        return found
    for act in verdict.acts:
        found.acts.setdefault(act.n, []).append(act)
    for attempt in verdict.attempts:
        found.attempts.setdefault(attempt.n, []).append(attempt)
    for finding in verdict.findings:
        for n in finding.at:
            found.findings.setdefault(n, []).append(finding)
        if finding.at:
            found.decisive.setdefault(finding.at[-1], []).append(finding)
    return found


class _Teller:
    """One history, being told."""

    def __init__(self, history: h.History, verdict: Verdict | None) -> None:
        self._history: Final = history
        self._found: Final = _by_event(verdict)
        self._tenures: Final = {
            (item.run_id, item.number): item for item in (verdict.tenures if verdict else ())
        }
        self._names: Final[dict[tuple[str, int], str]] = {}

    def entries(self) -> tuple[Entry, ...]:
        """All entries; an action that led to nothing shown is itself shown."""
        told: list[Entry] = []
        waiting: Entry | None = None
        for event in self._history:
            entry = self._entry(event)
            if entry is None:
                continue
            if isinstance(event, h.Acted):
                told += [waiting] if waiting is not None else []
                speaking = event.text.split(" ")[0] in _SPEAKING
                waiting = entry if speaking and not entry.findings else None
                told += [] if waiting is not None else [entry]
            else:
                waiting = None
                told.append(entry)
        told += [waiting] if waiting is not None else []
        return tuple(_with_causes(told, self._history))

    def _entry(self, event: h.Event) -> Entry | None:
        findings = tuple(self._found.findings.get(event.n, ()))
        said = self._attempted(event) or self._said(event)
        if said is None:
            if not findings:
                return None
            said = _plainly(event)
        who, kind, text = said
        at_ns = event.to_ns if isinstance(event, h.ClockMoved) else event.at_ns
        entry = Entry(event.n, at_ns, who, kind, text, _RANKS[kind], findings)
        decisive = tuple(self._found.decisive.get(event.n, ()))
        if findings:
            entry = replace(entry, rank=0, decisive=decisive)
        return entry

    def _attempted(self, event: h.Event) -> tuple[str, Kind, str] | None:
        """A stale attempt. One that landed is told by its commit, too."""
        attempts = self._found.attempts.get(event.n)
        if not attempts or isinstance(event, h.Commit):
            return None
        attempt = attempts[0]
        token = self._tenures.get((attempt.run_id, attempt.tenure or 0))
        under = f" under token {token.token}" if token and token.token is not None else ""
        by = f" (refused by {', '.join(attempt.guards)})" if attempt.guards else ""
        what = harmless(attempt.what)
        if isinstance(event, h.EffectAsked):
            self._names[event.who, event.request] = harmless(event.name, most=60)
            what = f"asks for effect {harmless(event.name, most=60)}"
        return attempt.who, "stale", f"STALE, {harmless(attempt.outcome)}: {what}{under}{by}"

    def _said(self, event: h.Event) -> tuple[str, Kind, str] | None:
        match event:
            case h.Acted(text=text):
                return "", "script", harmless(text.strip())
            case h.Spawned(who=who, name=name, job=job):
                if is_operator(who):
                    return None
                same = harmless(name) == who.partition("#")[0]
                return who, "life", f"starts{'' if same else ' as ' + harmless(name)}, to {job}"
            case h.Passed(who=who, held=True, point=point, phase=phase):
                return who, "hold", f"held at {harmless(point)} {phase}"
            case h.Settled(who=who, state=state) if state.startswith("waits"):
                return who, "hold", harmless(state)
            case h.Signalled(who=who, signal=signal, write_lock=lock):
                held = " holding the write lock" if lock == "held" else ""
                return who, "signal", f"SIG{signal.removeprefix('SIG')}{held}"
            case h.ClockMoved(to_ns=to_ns, why=why, at_ns=at_ns):
                by = f"{(to_ns - at_ns) / 1e9:+.3f}s"
                return "", "clock", f"clock {by}, now {seconds(to_ns, self._history)} ({why})"
            case h.Returned(who=who, value=value, error=error):
                if is_operator(who) and not error:
                    return None
                result = f"raises {harmless(error)}" if error else f"returns {harmless(value)}"
                return who, "life", result
            case h.Ended(who=who, how=how) if how not in ("returned", "end of script"):
                return who, "life", f"is over: {harmless(how)}"
            case h.Commit(n=n, changes=changes) if changes or n in self._found.acts:
                return self._committed(event)
            case h.Blind(who=who, why=why):
                return who, "note", f"out of sight: {harmless(why)}"
            case h.Noted(who=who, text=text):
                return who, "note", harmless(text)
            case _:
                return self._effect(event)

    def _effect(self, event: h.Event) -> tuple[str, Kind, str] | None:
        match event:
            case h.EffectAsked(who=who, name=name, request=request):
                shown = self._names[who, request] = harmless(name, most=60)
                token = "no token" if event.token is None else f"token {event.token}"
                return who, "effect", f"asks for effect {shown} under {token}"
            case h.EffectDecided(who=who, request=request, outcome=outcome, why=why):
                name = self._names.get((who, request), f"request {request}")
                kind: Kind = "stale" if outcome in _REFUSED else "effect"
                because = f": {harmless(why)}" if why else ""
                return who, kind, f"effect {name} {harmless(outcome)}{because}"
            case h.EffectAnswered(who=who, request=request, how=how):
                name = self._names.get((who, request), f"request {request}")
                if how == "delivered":
                    return None
                if how == "returned":
                    return who, "effect", f"effect {name} done"
                if how == "lost":
                    return who, "effect", f"the response about {name} is lost"
                return who, "stale", f"effect {name} {harmless(how)}"
            case h.LookedUp(who=who, key=key, found=found):
                asked = f"asks what became of {harmless(key, most=60)}: {harmless(found)}"
                return who, "effect", asked
        return None

    # -- commits -----------------------------------------------------------------------------

    def _committed(self, event: h.Commit) -> tuple[str, Kind, str]:
        acts = self._found.acts.get(event.n, [])
        told = [self._act(act, event) for act in acts]
        rows = "; ".join(_changes(event.changes))
        kinds = {act.kind for act in acts}
        kind: Kind = "write"
        if any(
            name.startswith(("stale", "late", "foreign", "steal", "rewrites")) for name in kinds
        ):
            kind = "stale"
        elif kinds & {"acquire", "renew", "finish", "release", "reap"}:
            kind = "lease"
        text = "; ".join(told) or "commits"
        plain = kinds <= {"write", "submit"} or not kinds or kind == "stale"
        who = event.who or "?"
        return who, kind, f"{text}: {rows}" if plain and rows else text

    def _act(self, act: Act, event: h.Commit) -> str:
        run = harmless(act.run_id, most=60)
        before = self._tenures.get((act.run_id, act.holder or 0))
        mine = self._tenures.get((act.run_id, act.tenure or 0))
        token = f" under token {mine.token}" if mine and mine.token is not None else ""
        match act.kind:
            case "acquire":
                if before is not None:
                    return f"TAKES OVER {run} from {before.who}{token}"
                return f"ACQUIRES {run}{token}"
            case "finish":
                return f"finishes {run}{_status(event, self._history)}"
            case "renew" | "release" | "submit":
                return f"{act.kind}s {run}"
            case "reap":
                return f"reaps {run}" + (f" from {before.who}" if before else "")
            case "steal":
                return f"STEALS {run}" + (f" from {before.who}" if before else "")
            case "write":
                return f"writes {run}"
        first, _, rest = act.kind.partition("-")
        under = token if first in ("stale", "late") else ""
        return f"{first.upper()} {rest.replace('-', ' ')} of {run}{under}".replace("  ", " ")


def _with_causes(told: Sequence[Entry], history: h.History) -> Iterator[Entry]:
    """A finding's own action matters, too: a `heal` lets go on what then does harm."""
    acted = [event.n for event in history if isinstance(event, h.Acted)]
    found = [entry.n for entry in told if entry.findings]
    for entry in told:
        later = bisect_right(acted, entry.n)
        upto = bisect_right(found, acted[later]) if later < len(acted) else len(found)
        led = entry.kind == "script" and upto > bisect_right(found, entry.n)
        yield replace(entry, rank=min(entry.rank, _CAUSE)) if led else entry


def _status(event: h.Commit, history: h.History) -> str:
    declaration = declared(history)
    column = declaration.runs.status if declaration is not None else None
    for change in event.changes:
        if column and declaration is not None and change.table == declaration.runs.table:
            return f": {harmless(change.new.get(column), most=60)}" if change.new else ""
    return ""


def _changes(changes: Sequence[h.Change], *, most: int = 4) -> Iterator[str]:
    """What each row's net change was, in a few words."""
    for change in changes[:most]:
        key = "/".join(harmless(part, most=40) for part in change.key)
        where = f"{harmless(change.table, most=40)} {key}"
        if change.new is None:
            yield f"{where} deleted"
        elif change.old is None:
            yield f"{where} new"
        else:
            pairs = [
                f"{harmless(name, most=40)}={harmless(value, most=40)}"
                for name, value in change.new.items()
                if name not in change.old or change.old[name] != value
            ]
            more = f" and {len(pairs) - 4} more" if len(pairs) > 4 else ""
            yield f"{where} {', '.join(pairs[:4])}{more}"
    if len(changes) > most:
        yield f"{len(changes) - most} rows more"


def _plainly(event: h.Event) -> tuple[str, Kind, str]:
    """An event that is only shown because a finding rests on it."""
    who = str(getattr(event, "who", ""))
    if isinstance(event, h.Statement):
        rows = "read" if event.rows is None else f"{event.rows} rows"
        return who, "write", f"{harmless(event.sql, most=300)} ({rows})"
    if isinstance(event, h.ClockRead):
        return who, "clock", f"reads its clock: {event.value_ns / 1e9:.3f}"
    if isinstance(event, h.Passed):
        return who, "hold", f"passes {harmless(event.point)} {event.phase}"
    words = " ".join(harmless(getattr(event, name, "")) for name in ("text", "state", "how"))
    return who, "note", f"{type(event).__name__.lower()} {words}".strip()
