"""What a history comes to: tenures, classified writes, findings, and the verdict over them.

Pure data. `ownership` makes tenures and classified writes, `attempts` the attempts, `invariants`
the findings, `moments` what must have happened for a scenario to count, `judge` all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "fail", "inconclusive", "not claimed"]


@dataclass(frozen=True, slots=True)
class Tenure:
    """The time one claim of a run was in force.

    `number` counts the claims of that run from 1. `since` and `until` are event numbers: the
    commit that granted it, the commit that ended it (None: in force at the end). `ended` is
    `released`, `finished`, `taken over`, `reaped`, `stolen`, `deleted`, `''` while in force.
    """

    run_id: str
    number: int
    who: str
    thread: str
    owner: object
    token: int | None
    since: int
    until: int | None = None
    ended: str = ""
    ended_by: str = ""

    def __str__(self) -> str:
        token = f", token {self.token}" if self.token is not None else ""
        return f"{self.who} (tenure {self.number} of {self.run_id}{token})"


@dataclass(frozen=True, slots=True)
class Act:
    """What one commit did to one run, classified (design section 7).

    `kind`: acquire, renew, write, finish, release, reap, steal, stale-write, stale-renew,
    stale-release, stale-finish, late-write, late-renew, late-finish, late-release, robbed-*,
    foreign-*, rewrites-terminal, submit, operator-*. `tenure` is the number of the tenure that the
    actor acted from (its last one, for a stale act), None when it never had one; `holder` the
    tenure in force before the commit.
    """

    n: int
    run_id: str
    who: str
    thread: str
    kind: str
    tenure: int | None
    holder: int | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt by an execution whose tenure was over.

    `what` reads `UPDATE steps` or `effect charge`; `outcome` is `landed`, `changed nothing`,
    `rolled back`, `refused by the provider`, `gave up after reading`, `died`. `guards`: what
    refused it (`token`, `owner`, `expiry`, `status`, `key`, `constraint`), each enough by itself
    when there are several; `token (in the program)` when it read another token than its own, and
    gave up; empty while nobody asked (`refusal`).
    """

    n: int
    run_id: str
    who: str
    tenure: int | None
    what: str
    outcome: str
    guards: tuple[str, ...] = ()
    sql: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must not be, with the culprit, the victims and the evidence.

    `title` is the short class of it, always one of `invariants.TITLES` (`a stale write landed`,
    `the effect ran twice`, `the result was recorded twice`, `a late write`, …); `text` the whole
    sentence, with names of workers, tokens and tenures; `at` the numbers of the events that show
    it, the decisive one last. `severity` `note` marks what is named but does not fail (the window
    of a `highest seen` fence; lapsed in the gap).
    """

    invariant: str
    title: str
    text: str
    run_id: str
    culprit: str
    victims: tuple[str, ...] = ()
    at: tuple[int, ...] = ()
    severity: Literal["fault", "note"] = "fault"


@dataclass(frozen=True, slots=True)
class Interruption:
    """A step that was started and not finished when its tenure was lost."""

    run_id: str
    step: str
    tenure: int
    started_at: int
    decisions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """What a verdict rests on."""

    scripts: int = 0
    runs: int = 0
    stale_attempts: int = 0
    interruptions: int = 0
    reconciliations: int = 0
    effects: int = 0
    commits: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one script, and everything it rests on.

    `missing` says which required moments never came about (inconclusive); `not_claimed` which
    invariants were not judged, each with its reason.
    """

    outcome: Outcome
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]
    not_claimed: Mapping[str, str]
    tenures: tuple[Tenure, ...]
    acts: tuple[Act, ...]
    attempts: tuple[Attempt, ...]
    interruptions: tuple[Interruption, ...]
    counts: Counts
