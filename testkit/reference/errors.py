"""What the reference runtime refuses, each refusal with its culprit as attributes."""

from __future__ import annotations

from typing import Final


class RuntimeRefusal(Exception):
    """The base of everything that this runtime raises on purpose."""


class RunNotFound(RuntimeRefusal):
    """No run has this id."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"no run has the id {run_id!r}")
        self.run_id: Final = run_id


class RunStateError(RuntimeRefusal):
    """The run is not in a state from which this can be done. Nothing was changed."""

    def __init__(self, run_id: str, status: str, reason: str) -> None:
        super().__init__(f"run {run_id!r} is {status}: {reason}")
        self.run_id: Final = run_id
        self.status: Final = status
        self.reason: Final = reason


class RunExists(RunStateError):
    """A run with this id has been started or submitted before."""


class RunLeased(RunStateError):
    """The run is executed elsewhere, or was until a process died whose lease still counts.

    Not a failure of the run: retry after ``expires_at_ms`` (milliseconds of the lease's
    clock), and do not cancel the run. (Second seed, "What a consumer does with ErrRunLeased".)
    """

    def __init__(self, run_id: str, owner: str, expires_at_ms: int) -> None:
        super().__init__(run_id, "RUNNING", f"leased by {owner!r} until {expires_at_ms} ms")
        self.owner: Final = owner
        self.expires_at_ms: Final = expires_at_ms


class LeaseLost(RuntimeRefusal):
    """The loop no longer holds the lease: another owner took it, or it expired unrenewed.

    The step in flight, if any, is left to the next owner. What was found out is ``reason``;
    the refusal that showed it, if there was one, is the ``__cause__``.
    """

    def __init__(self, run_id: str, owner: str, token: int, reason: str) -> None:
        super().__init__(f"{owner!r} lost the lease of run {run_id!r} (token {token}): {reason}")
        self.run_id: Final = run_id
        self.owner: Final = owner
        self.token: Final = token
        self.reason: Final = reason


class StaleToken(RuntimeRefusal):
    """The effect store refused an effect: its token, owner or lease is no longer in force."""

    def __init__(self, run_id: str, owner: str, token: int, reason: str) -> None:
        super().__init__(f"effect of {owner!r} on run {run_id!r} refused: {reason}")
        self.run_id: Final = run_id
        self.owner: Final = owner
        self.token: Final = token
        self.reason: Final = reason


class ToolFailed(RuntimeRefusal):
    """Raised by a tool that *knows* its effect did not happen: the step and the run fail.

    Any other exception of a tool leaves the outcome unknown, as a crash would.
    """


class ToolBusy(RuntimeRefusal):
    """All slots of a tool are taken; the step was not started and may be resumed later."""

    def __init__(self, tool: str, limit: int) -> None:
        super().__init__(f"all {limit} slots of tool {tool!r} are taken; resume the run later")
        self.tool: Final = tool
        self.limit: Final = limit


class UnknownTool(RuntimeRefusal):
    """A plan names a tool that this driver was not given."""

    def __init__(self, tool: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no tool is named {tool!r}; this driver has: {', '.join(known) or '-'}")
        self.tool: Final = tool
        self.known: Final = known


class InvalidRunId(RuntimeRefusal, ValueError):
    """A run id (or an idempotency key) that could not be stored unharmed."""

    def __init__(self, run_id: object, reason: str) -> None:
        super().__init__(f"this run id can't be stored: {reason}")
        self.run_id: Final = run_id
        self.reason: Final = reason


class InvalidPayload(RuntimeRefusal, ValueError):
    """Arguments or a result that JSON would not give back as they were."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this payload can't be stored: {reason}")
        self.reason: Final = reason


class InvalidTtl(RuntimeRefusal, ValueError):
    """A lease TTL that no heartbeat could keep."""

    def __init__(self, ttl_ms: object, reason: str) -> None:
        super().__init__(f"lease_ttl_ms={ttl_ms!r}: {reason}")
        self.ttl_ms: Final = ttl_ms


class StoreError(RuntimeRefusal):
    """The database file can't be used as this runtime's store. It was left as it is."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path: Final = path
        self.reason: Final = reason


class NewerDatabase(StoreError):
    """The file was written by a newer version of this runtime."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            path,
            f"its schema is version {found}, this runtime knows up to {known}; "
            "use the newer version, or another file",
        )
        self.found: Final = found
        self.known: Final = known


class ForeignDatabase(StoreError):
    """The file is a database, but not one of this runtime's."""


class NetworkFilesystem(StoreError):
    """The file lies on a filesystem whose locks can't be trusted."""

    def __init__(self, path: str, filesystem: str) -> None:
        super().__init__(
            path,
            f"lies on {filesystem}, where two processes can both believe they hold SQLite's "
            "write lock, and the lease is written through that lock; use a local disk",
        )
        self.filesystem: Final = filesystem
