"""One script as a report shows it."""

from __future__ import annotations

from dataclasses import dataclass

from ..history import History
from ..verdict import Verdict

#: How outcomes are written and marked; never by colour alone.
MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "not claimed": "–"}


@dataclass(frozen=True, slots=True)
class Item:
    """A script's name, what was seen and judged, and what a reader may want beside it.

    `story` is what happens, for one who knows nothing of leases; `error` why the script was not
    played to its end; `replay` the command that plays it again. Without a verdict it counts as
    inconclusive.
    """

    name: str
    history: History
    verdict: Verdict | None = None
    story: str = ""
    error: str = ""
    replay: str = ""

    @property
    def outcome(self) -> str:
        """`fail` when it was not played to its end; else the verdict's."""
        if self.error:
            return "fail"
        return self.verdict.outcome if self.verdict is not None else "inconclusive"

    @property
    def headline(self) -> str:
        """The one sentence for a reader in a hurry."""
        verdict = self.verdict
        faults = [item for item in verdict.findings if item.severity == "fault"] if verdict else []
        if faults:
            more = f" (and {_many(len(faults) - 1, 'more finding')})" if len(faults) > 1 else ""
            return f"{faults[0].title}: {faults[0].text}{more}"
        if self.error:
            return self.error.partition("\n")[0]
        if verdict is None:
            return "it was not judged"
        if verdict.outcome == "inconclusive":
            return f"nothing is proven: {'; '.join(verdict.missing)}"
        counts = verdict.counts
        stale = _many(counts.stale_attempts, "stale attempt")
        return (
            f"{stale}{_landed(verdict)};"
            f" {_many(counts.interruptions, 'interruption')},"
            f" {_many(counts.reconciliations, 'reconciliation')}"
        )


def _landed(verdict: Verdict) -> str:
    """What became of the stale attempts of a script without a fault: some may have landed."""
    if not verdict.counts.stale_attempts:
        return ""
    landed = sum(one.outcome == "landed" for one in verdict.attempts)
    return f", {landed} landed where no fence is claimed" if landed else ", none landed"


def _many(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"
