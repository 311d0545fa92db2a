"""What the first seed asks for after an outage, each as a table of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..evidence import Evidence, Moment
from .words import safe


def evidence_tables(evidence: Evidence) -> Iterator[str]:
    """Leases, effects, stale attempts, times with an outcome unknown, reconciliations."""
    yield _leases(evidence)
    yield _effects(evidence)
    yield _stale(evidence)
    yield _unknown(evidence)
    yield _reconciliations(evidence)


def _leases(evidence: Evidence) -> str:
    names = ("run", "tenure", "worker", "owner", "token", "acquired", "renewed", "ended")
    return _table(
        "Leases", names,
        [
            (one.run_id, one.number, one.who, one.owner, one.token, _when(one.acquired),
             ", ".join(map(_when, one.renewed)) or "never",
             f"{one.ended} {_when(one.over)}" if one.over else "in force")
            for one in evidence.leases
        ],
    )  # fmt: skip


def _effects(evidence: Evidence) -> str:
    names = (
        "effect", "run", "asked", "worker", "owner", "token", "stale", "outcome", "answer",
    )  # fmt: skip
    return _table(
        "Effects", names,
        [
            (one.name, one.run_id, _when(one.asked), one.who, one.owner, one.token,
             "yes" if one.stale else "no", one.outcome or "undecided", one.answer or "none")
            for one in evidence.effects
        ],
    )  # fmt: skip


def _stale(evidence: Evidence) -> str:
    names = ("at", "run", "worker", "token", "attempt", "outcome", "refused by")
    return _table(
        "Stale attempts", names,
        [
            (_when(one.at), one.run_id, one.who, one.token, one.what, one.outcome,
             ", ".join(one.refused_by) or ("nothing" if one.outcome == "landed" else "not asked"))
            for one in evidence.stale_attempts
        ],
    )  # fmt: skip


def _unknown(evidence: Evidence) -> str:
    names = ("what", "run", "worker", "since", "for", "settled by")
    return _table(
        f"Outcome unknown: {evidence.unknown_ms / 1000:,.3f} s", names,
        [
            (one.what, one.run_id, one.who, _when(one.since), f"{one.for_ms / 1000:,.3f} s",
             f"{one.settled_by} {_when(one.until)}" if one.until else "never settled")
            for one in evidence.unknown
        ],
    )  # fmt: skip


def _reconciliations(evidence: Evidence) -> str:
    return _table(
        "Reconciliations", ("at", "run", "step", "worker", "decision", "decided by"),
        [
            (_when(one.at), one.run_id, one.step, one.who, one.decision,
             one.decided_by or "nobody named")
            for one in evidence.reconciliations
        ],
    )  # fmt: skip


def _when(moment: Moment | None) -> str:
    return "" if moment is None else f"{moment.after_ms / 1000:+.3f}s (event {moment.n})"


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return f"<h3>{safe(title)}</h3><p class='soft'>none</p>"
    head = "".join(f"<th>{safe(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<h3>{safe(title)}</h3><div class='wide'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    return f"<td>{safe('–' if value is None else value, most=200)}</td>"
