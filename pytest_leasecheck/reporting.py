"""The terminal summary: the subject, the three assertions with their counts, the evidence."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from .tally import PROMISES, Promise, Record, total, unpacked
from .testkit.advice import whose
from .testkit.checklist import merged
from .wrapped_lines import glued, unglued, write_wrapped

_WIDTH: Final = max(len(promise.text) for promise in PROMISES)


@dataclass(frozen=True, slots=True)
class Line:
    """A word in colour, and the rest of its line, with what is `glued` in it."""

    word: str
    told: str
    markup: Mapping[str, bool] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What is read."""
        return unglued(self.told)


#: How a scenario is told that is about a set-up which the subject lacks (`mount.play`).
_NO_VARIANT: Final = "the subject has no variant"

_HELD: Final = {"green": True}
_BROKEN: Final = {"red": True, "bold": True}
_OPEN: Final = {"yellow": True}


def write_summary(
    terminal: pytest.TerminalReporter,
    records: Mapping[str, Record],
    *,
    drawn: Sequence[tuple[str, str]] = (),
    base: Path,
) -> None:
    """Write our section; nothing when no test of ours ran. `drawn`: what else to say, at its end"""
    if not records and not drawn:
        return
    terminal.write_sep("=", "leasecheck")
    subjects = tuple(dict.fromkeys(record.subject for record in records.values()))
    for subject in subjects:
        own = {name: one for name, one in records.items() if one.subject == subject}
        write_wrapped(terminal, "subject", subject, markup={"bold": True})
        for line in summary(own):
            write_wrapped(terminal, line.word, line.told, word_markup=line.markup)
    folders = sorted({record.evidence for record in records.values() if record.evidence})
    if folders:
        write_wrapped(terminal, "evidence", glued(_shown(os.path.commonpath(folders), base)))
    lost = [one.lost for one in records.values() if one.lost]
    if lost:
        text = f"of {_number(len(lost), 'test')} not all could be kept: {lost[0]}"
        write_wrapped(terminal, "evidence", text, word_markup=_BROKEN)
    for word, text in drawn:
        write_wrapped(terminal, word, text)


def summary(records: Mapping[str, Record]) -> Iterator[Line]:
    """The lines about one subject's tests."""
    played = {name: one for name, one in records.items() if one.outcome != "not claimed"}
    for promise in PROMISES:
        yield _promise(promise, played)
        if "V1" in promise.invariants:
            yield from _refusals(played.values())
    headlines = {name for promise in PROMISES for name in promise.invariants}
    for name in sorted(_broken(played.values()) - headlines):
        told = f"; {name} is {whose(name)}" if whose(name) else ""
        yield Line("BROKEN", f"{_where(played, (name,))}{told}", _BROKEN)
    open_ = [name for name, one in played.items() if one.outcome == "inconclusive"]
    if open_:
        yield Line(
            "inconclusive", f"{_number(len(open_), 'test')} proved nothing: {_list(open_)}", _OPEN
        )
    failed = [name for name, one in played.items() if one.outcome == "fail" and not one.broken]
    if failed:
        yield Line("not played", f"{_number(len(failed), 'test')}: {_list(failed)}", _BROKEN)
    for note in sorted({title for one in played.values() for title in one.notes}):
        noted = [name for name, one in played.items() if note in one.notes]
        yield Line("noted", f"{glued(note)}: {_list(noted)}", _OPEN)
    yield from _not_claimed(records.values())
    for fallen in dict.fromkeys(what for one in played.values() for what in one.fallen):
        yield Line("fallen", fallen, _OPEN)
    yield from _checklist(played.values())


def _promise(promise: Promise, played: Mapping[str, Record]) -> Line:
    """One assertion: held, broken, or not shown, and what that rests on."""
    records = tuple(played.values())
    basis, times = _basis(promise, records)
    text = f"{glued(promise.text):<{_WIDTH}}  {basis}"
    broken = set(promise.invariants) & _broken(records)
    if broken:
        return Line("BROKEN", f"{text}; {_where(played, sorted(broken))}", _BROKEN)
    unclaimed = all(promise.invariants[0] in one.not_claimed for one in records)
    if records and unclaimed:
        return Line("not claimed", glued(promise.text), _OPEN)
    if not times:
        return Line("not shown", text, _OPEN)
    if any(one.outcome in ("inconclusive", "fail") for one in records):
        return Line("not broken", text, _OPEN)
    if any(one.notes for one in records) and "landed" in basis and "none landed" not in basis:
        # Where nothing is claimed to fence, what landed is named, and is no failure.
        return Line("held", f"{text} where no fence is claimed (noted below)", _OPEN)
    return Line("held", text, _HELD)


def _basis(promise: Promise, records: Sequence[Record]) -> tuple[str, int]:
    """The counts behind an assertion, and how often it could have been broken."""
    counts = total(records)
    if "V1" in promise.invariants:
        landed = counts.stale_attempts - sum(one.refused for one in records)
        told = f"{landed} landed" if landed else "none landed"
        attempts = _number(counts.stale_attempts, "stale attempt")
        tail = f", {told}" if counts.stale_attempts else ""
        return f"{_number(counts.scripts, 'script')}, {attempts}{tail}", counts.stale_attempts
    if "V4" in promise.invariants:
        reconciled = _number(counts.reconciliations, "reconciliation")
        return (
            f"{_number(counts.interruptions, 'interruption')}, {reconciled}",
            counts.interruptions,
        )
    return f"{_number(counts.runs, 'run')} checked", counts.runs


def _refusals(records: Iterable[Record]) -> Iterator[Line]:
    """What stopped the stale attempts: a fence is worth more than luck."""
    by: Counter[str] = Counter()
    for record in records:
        by.update(record.refused_by)
    if by:
        told = ", ".join(f"{what} ({count})" for what, count in by.most_common())
        yield Line("  refused by", told)


def _not_claimed(records: Iterable[Record]) -> Iterator[Line]:
    """What was not judged, by reason: never silently passed."""
    reasons: dict[str, list[str]] = {}
    for record in records:
        for name, why in record.not_claimed.items():
            why = why.removeprefix("not claimed: ")
            named = reasons.setdefault(_NO_VARIANT if why.startswith(_NO_VARIANT) else why, [])
            if name not in named:
                named.append(name)
    lacking = reasons.pop(_NO_VARIANT, None)
    if lacking:
        what = "of a runtime (`variants`) that this subject does not offer"
        yield Line(
            "not claimed", f"{_number(len(lacking), 'scenario')} about set-ups {what}", _OPEN
        )
    for why, names in reasons.items():
        yield Line("not claimed", f"{why} ({_list(names)})")


def _checklist(records: Iterable[Record]) -> Iterator[Line]:
    """The run-lease checklist: how much of it all tests together show, and what is open."""
    lines = merged(unpacked(record.checklist) for record in records if record.checklist)
    if not any(line.seen for line in lines):
        return
    shown = sum(line.status == "shown" for line in lines)
    broken = [f"{line.number} ({line.why})" for line in lines if line.status == "broken"]
    # The last line is about documentation, which no test shows.
    missing = [
        f"{line.number} ({line.why.removeprefix('not seen: ')})"
        for line in lines[:-1]
        if line.status == "not shown"
    ]
    told = [f"{shown} of {len(lines) - 1} shown"]
    told += [f"broken: {', '.join(broken)}"] if broken else []
    told += [f"not shown: {', '.join(missing)}"] if missing else []
    told += [f"line {len(lines)} is about documentation, which no test shows"]
    yield Line("checklist", "; ".join(told), _BROKEN if broken else _OPEN if missing else _HELD)


def _broken(records: Iterable[Record]) -> set[str]:
    return {name for record in records for name in record.broken}


def _where(played: Mapping[str, Record], invariants: Sequence[str]) -> str:
    at = [name for name, one in played.items() if set(invariants) & set(one.broken)]
    return f"{', '.join(invariants)} in {_list(at)}"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(map(glued, names[:4]))
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _number(count: int, what: str) -> str:
    return glued(f"{count} {what}" if count == 1 else f"{count} {what}s")


def _shown(path: str, base: Path) -> str:
    try:
        return str(Path(path).relative_to(base))
    except ValueError:
        return path
