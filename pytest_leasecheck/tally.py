"""What each test proved, small enough to travel as junit properties, and the sum of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from .testkit.checklist import RULES, Line, Seen
from .testkit.errors import LeasecheckError
from .testkit.evidence import evidence_of
from .testkit.history import History
from .testkit.verdict import Attempt, Counts, Verdict

_PREFIX: Final = "leasecheck."
#: Under which name an exploration tells what it did, in numbers (`exploration.note`).
EXPLORED: Final = f"{_PREFIX}explored"
_BROKEN: Final = "broken: "


@dataclass(frozen=True, slots=True)
class Record:
    """One test's contribution.

    `broken` are invariants; `refused` is out of `counts.stale_attempts`, `refused_by` says by
    what (`token or owner`: each was enough); `notes` are the titles of
    what is named but does not fail; `checklist` is what it adds to the run-lease checklist, by line
    (`7 a restart`; `4 broken: V1: a stale write landed`); `fallen` what could not be guaranteed.
    """

    subject: str
    outcome: str
    counts: Counts = field(default_factory=Counts)
    refused: int = 0
    broken: tuple[str, ...] = ()
    refused_by: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    not_claimed: Mapping[str, str] = field(default_factory=dict)
    evidence: str = ""
    #: Why evidence could not be kept.
    lost: str = ""
    checklist: tuple[str, ...] = ()
    fallen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """One of the three assertions, in the words that users know, and the invariants behind it."""

    text: str
    invariants: tuple[str, ...]


#: The three headlines, in order.
PROMISES: Final = (
    Promise("a stale token never writes", ("V1", "V3", "V6")),
    Promise("each interrupted step is reconciled exactly once", ("V4",)),
    Promise("no run stays leased", ("V5",)),
)


def record_of(
    subject: str, verdict: Verdict, *, history: History | None = None, evidence: str = ""
) -> Record:
    """What a verdict contributes."""
    refused = [attempt for attempt in verdict.attempts if attempt.outcome != "landed"]
    faults = [finding for finding in verdict.findings if finding.severity == "fault"]
    return Record(
        subject=subject,
        outcome=verdict.outcome,
        counts=verdict.counts,
        refused=len(refused),
        refused_by=Counter(map(_refusal, refused)),
        broken=tuple(sorted({finding.invariant for finding in faults})),
        notes=tuple(sorted({item.title for item in verdict.findings if item not in faults})),
        not_claimed=dict(verdict.not_claimed),
        evidence=evidence,
        checklist=_packed(history, verdict),
    )


def to_properties(record: Record) -> list[tuple[str, object]]:
    """A record as flat name-value pairs: readable in a junit file, and safe to send."""
    pairs: list[tuple[str, object]] = [
        ("subject", record.subject),
        ("outcome", record.outcome),
        *((item.name, getattr(record.counts, item.name)) for item in fields(Counts)),
        ("refused", record.refused),
    ]
    if record.refused_by:
        told = (f"{what}={count}" for what, count in record.refused_by.items())
        pairs.append(("refused by", "; ".join(told)))
    if record.notes:
        pairs.append(("notes", "; ".join(record.notes)))
    if record.broken:
        pairs.append(("broken", " ".join(record.broken)))
    if record.evidence:
        pairs.append(("evidence", record.evidence))
    if record.lost:
        pairs.append(("evidence lost", record.lost))
    if record.checklist:
        pairs.append(("checklist", "; ".join(record.checklist)))
    if record.fallen:
        pairs.append(("fallen", "; ".join(record.fallen)))
    pairs += [(f"not claimed.{name}", why) for name, why in record.not_claimed.items()]
    return [(_PREFIX + name, value) for name, value in pairs]


def from_properties(properties: Iterable[Iterable[object]]) -> Record | None:
    """The record among a report's properties; None when the test was none of ours."""
    found: dict[str, object] = {}
    for pair in properties:
        name, value = pair
        if isinstance(name, str) and name.startswith(_PREFIX):
            found[name.removeprefix(_PREFIX)] = value
    if "outcome" not in found:
        return None
    claims = "not claimed."
    return Record(
        subject=str(found.get("subject", "")),
        outcome=str(found["outcome"]),
        counts=Counts(**{item.name: _number(found.get(item.name)) for item in fields(Counts)}),
        refused=_number(found.get("refused")),
        broken=tuple(str(found.get("broken", "")).split()),
        refused_by=_refusals(str(found.get("refused by", ""))),
        notes=tuple(filter(None, str(found.get("notes", "")).split("; "))),
        not_claimed={
            name.removeprefix(claims): str(why)
            for name, why in found.items()
            if name.startswith(claims)
        },
        evidence=str(found.get("evidence", "")),
        lost=str(found.get("evidence lost", "")),
        checklist=tuple(filter(None, str(found.get("checklist", "")).split("; "))),
        fallen=tuple(filter(None, str(found.get("fallen", "")).split("; "))),
    )


def together(one: Record, other: Record) -> Record:
    """Two plays of one test as one record."""
    worst = ("fail", "inconclusive", "pass", "not claimed")
    return Record(
        subject=other.subject,
        outcome=min(one.outcome, other.outcome, key=worst.index),
        counts=total((one, other)),
        refused=one.refused + other.refused,
        broken=_union(one.broken, other.broken),
        refused_by=Counter(one.refused_by) + Counter(other.refused_by),
        notes=_union(one.notes, other.notes),
        not_claimed={**one.not_claimed, **other.not_claimed},
        evidence=other.evidence or one.evidence,
        lost=other.lost or one.lost,
        checklist=_union(one.checklist, other.checklist),
        fallen=_union(one.fallen, other.fallen),
    )


def _union(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def total(records: Iterable[Record]) -> Counts:
    """All counts added up."""
    records = tuple(records)
    return Counts(
        **{
            item.name: sum(getattr(one.counts, item.name) for one in records)
            for item in fields(Counts)
        }
    )


def _packed(history: History | None, verdict: Verdict) -> tuple[str, ...]:
    """What a history adds to the checklist, line by line."""
    if history is None:
        return ()
    try:
        lines = evidence_of(history, verdict).checklist
    except LeasecheckError:  # rows that can't be read as declared are told elsewhere
        return ()
    told = [f"{line.number} {item.what}" for line in lines for item in line.seen]
    told += [f"{line.number} {_BROKEN}{item.what}" for line in lines for item in line.broken]
    return tuple(dict.fromkeys(told))


def unpacked(checklist: Iterable[str]) -> tuple[Line, ...]:
    """The lines of a checklist that came with a record."""
    seen: dict[int, list[Seen]] = {}
    broken: dict[int, list[Seen]] = {}
    for told in checklist:
        number, _, what = told.partition(" ")
        lines = broken if what.startswith(_BROKEN) else seen
        if number.isdecimal() and 0 < int(number) <= len(RULES):
            lines.setdefault(int(number), []).append(Seen(what.removeprefix(_BROKEN), ()))
    return tuple(
        Line(number, rule.text, "not shown", "", tuple(seen.get(number, ())),
             tuple(broken.get(number, ())))
        for number, rule in enumerate(RULES, start=1)
    )  # fmt: skip


def _refusal(attempt: Attempt) -> str:
    """What stopped an attempt, as short as it can be said."""
    return " or ".join(attempt.guards) or attempt.outcome


def _refusals(text: str) -> dict[str, int]:
    pairs = (part.rpartition("=") for part in text.split("; ") if part)
    return {what: _number(count) for what, _, count in pairs}


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float | str) else 0
