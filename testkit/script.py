"""A script: an ordered list of actions on workers, clock, provider and database.

Text and object are the same thing: `parse_script(str(script)) == script`. One action a line, `#`
begins a comment. Text is in `script_text`; what an action does is in the lane's `acts`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .points import Pattern


@dataclass(frozen=True, slots=True)
class Submit:
    """`submit RUN`: enqueue one run, by the subject's `submit`."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """`cancel RUN`: the operator cancels, by the subject's `cancel`."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Approve:
    """`approve RUN`: the operator lets a waiting run go on."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Spawn:
    """`spawn A [as NAME] [to JOB]`: a new worker, held at its start.

    `name` is its configured owner name (its own label when left out); `job` names the subject's
    method that it will run (`work`, `reap`, or one of the subject's own).
    """

    worker: str
    name: str | None = None
    job: str = "work"


@dataclass(frozen=True, slots=True)
class Duplicate:
    """`duplicate A as B`: B is a second live process under A's configured name."""

    worker: str
    twin: str


@dataclass(frozen=True, slots=True)
class Run:
    """`run A`: let A go until it returned, exited, or waits for what it can't get by itself."""

    worker: str


@dataclass(frozen=True, slots=True)
class Until:
    """`until A POINT`: let A go until it is held there; not getting there is a failure."""

    worker: str
    point: Pattern


@dataclass(frozen=True, slots=True)
class Hold:
    """`hold A POINT`: from now on, whichever thread of A comes there is held, in any move."""

    worker: str
    point: Pattern


@dataclass(frozen=True, slots=True)
class Beat:
    """`beat A`: only A's due timers fire (its heartbeat); what is held stays held."""

    worker: str


@dataclass(frozen=True, slots=True)
class Stop:
    """`stop A`: SIGSTOP, confirmed by the kernel."""

    worker: str


@dataclass(frozen=True, slots=True)
class Cont:
    """`cont A`: SIGCONT, confirmed; A stays where it is held."""

    worker: str


@dataclass(frozen=True, slots=True)
class Kill:
    """`kill A`: SIGKILL, reaped."""

    worker: str


@dataclass(frozen=True, slots=True)
class Restart:
    """`restart A`: killed if it lives, then a new incarnation under the same configured name."""

    worker: str


@dataclass(frozen=True, slots=True)
class Expire:
    """`expire`: the clock is set just past every stored expiry. No timer fires."""


@dataclass(frozen=True, slots=True)
class Advance:
    """`advance 10s`: time passes; timers of workers that aren't stopped fire in deadline order."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class Skew:
    """`skew A +31s`: A's clock runs that much ahead (or, with `-`, behind)."""

    worker: str
    skew_ms: int


@dataclass(frozen=True, slots=True)
class Lock:
    """`lock`: somebody else holds the database's write lock."""


@dataclass(frozen=True, slots=True)
class Unlock:
    """`unlock`: and lets it go."""


@dataclass(frozen=True, slots=True)
class Provider:
    """`provider FAULT EFFECT`: what becomes of the next request for an effect (`*`: any).

    `lose-response`: carried out, the worker never hears. `delay-response`, `delay-request`: until
    `provider deliver EFFECT`. `twice`: the network delivers it two times. `fail`: refused with an
    error, nothing done. `deliver`: what is delayed arrives now.
    """

    fault: str
    effect: str


@dataclass(frozen=True, slots=True)
class Free:
    """`free A B …`: let them really race, all at once, until each has come to rest."""

    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heal:
    """`heal`: CONT everyone, clear the provider's faults, let the lock go, let everyone finish."""


@dataclass(frozen=True, slots=True)
class Drain:
    """`drain [N]`: new workers of new names, a TTL at a time, until all is finished; N at most."""

    most: int = 6


Action = (
    Submit | Cancel | Approve | Spawn | Duplicate | Run | Until | Hold | Beat | Stop | Cont | Kill
    | Restart | Expire | Advance | Skew | Lock | Unlock | Provider | Free | Heal | Drain
)  # fmt: skip

PROVIDER_FAULTS = (
    "lose-response", "delay-response", "delay-request", "twice", "fail", "deliver"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Script:
    """An ordered list of actions."""

    actions: tuple[Action, ...]

    def __str__(self) -> str:
        from .script_text import format_action

        return "".join(format_action(action) + "\n" for action in self.actions)


def parse_script(text: str) -> Script:
    """Read a script. Raises `ScriptError` with every problem of the text and its line."""
    from .script_text import parse

    return Script(parse(text))
