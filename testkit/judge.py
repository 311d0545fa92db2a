"""The verdict on one history: pure, and the same today, tomorrow and offline."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from .attempts import attempts_of
from .declaration_check import check_against, of_no_run
from .declaration_json import declaration_from_json
from .history import Blind, Commit, History
from .interruptions import interruptions_of
from .invariants import findings_of, not_claimed
from .moments import Seen, happened
from .ownership import fold
from .refusal import with_guards
from .scenario import ALL_INVARIANTS
from .sentences import Facts
from .subject import Declaration
from .verdict import Counts, Finding, Outcome, Verdict


def judge(
    history: History,
    *,
    requires: Collection[str] = (),
    holds: Collection[str] = ALL_INVARIANTS,
    drained: bool = True,
    declaration: Declaration | None = None,
) -> Verdict:
    """Fold a history, judge it by the invariants in `holds`, and see that it proves something.

    `requires` are moments (`moments.MOMENTS`) without which it proves nothing; `drained` says that
    it ends with a drain, so that what isn't finished by then never will be; `declaration` stands in
    for the one in the header. `fail` when there is a fault; else `inconclusive` when a required
    moment is missing or the kit was blind; else `pass`. Raises ValueError for an unknown moment,
    `HistoryError` or `SubjectError` for a declaration that doesn't fit.
    """
    if declaration is None:
        declaration = _declaration(history.header.declaration)
    check_against(history, declaration)
    owned = fold(history, declaration)
    attempts = attempts_of(history, declaration, owned)
    if any("refused by" in moment for moment in requires):  # asking again costs time
        attempts = with_guards(history, declaration, attempts, tenures=owned.tenures)
    interruptions = interruptions_of(declaration, owned)
    given = Facts(declaration, owned, interruptions, drained)
    findings = findings_of(given, history, holds=holds)
    seen = Seen(history, declaration, owned, attempts, interruptions)
    missing = [moment for moment in requires if not happened(seen, moment)]
    missing += _blindness(history)
    missing += [f"the runs of table {one}" for one in of_no_run(history, declaration)]
    touched = [run for run in owned.runs.values() if run.touched]
    return Verdict(
        outcome=_outcome(findings, missing),
        findings=findings,
        missing=tuple(missing),
        not_claimed=not_claimed(declaration, holds=holds),
        tenures=owned.tenures,
        acts=owned.acts,
        attempts=attempts,
        interruptions=interruptions,
        counts=Counts(
            scripts=1,
            runs=len(touched),
            stale_attempts=len(attempts),
            interruptions=len(interruptions),
            reconciliations=sum(len(item.decisions) for item in interruptions),
            effects=sum(item.event.outcome == "accepted" for item in owned.decisions),
            commits=owned.commits,
        ),
    )


def _declaration(plain: Mapping[str, object]) -> Declaration:
    """A header's declaration; scripts come in series of one subject, so the last one is kept."""
    if _last and _last[0][0] == plain:
        return _last[0][1]
    declaration = declaration_from_json(plain)
    _last[:] = [(plain, declaration)]
    return declaration


_last: Final[list[tuple[Mapping[str, object], Declaration]]] = []


def _outcome(findings: Collection[Finding], missing: Collection[str]) -> Outcome:
    if any(finding.severity == "fault" for finding in findings):
        return "fail"
    return "inconclusive" if missing else "pass"


def _blindness(history: History) -> list[str]:
    """What the kit could not see, so that nothing may be called clean."""
    blind = {
        f"sight of {event.who}: {event.why}" for event in history.events if isinstance(event, Blind)
    }
    if history.header.attribution == "off" and not any(
        isinstance(event, Commit) for event in history.events
    ):
        blind.add("attribution: it was off, so nobody's writes were seen")
    return sorted(blind)
