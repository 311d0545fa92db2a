"""The reference runtime looked at from inside, and fed with what breaks others; skewed clocks."""

from __future__ import annotations

import sqlite3
from typing import Any, ClassVar

from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.reference import heartbeat
from pytest_leasecheck.testkit.worker import Worker

from .reference_subject import outside_tool
from .variants import RunLease

_GOOD_IDS = ("'; DROP TABLE runs; --", '"quoted"', "line\nbreak", "\u202eright to left", "x" * 1024)
_BAD_IDS: tuple[Any, ...] = ("nul\0", "lone \ud800", "", "x" * 1025, 7)
_LOOP: list[object] = []
_LOOP.append(_LOOP)
_GOOD_PAYLOADS: tuple[object, ...] = (
    "nul\0 inside", "lone \udfff", {"'": '"'}, "x" * 10_000_000, [None, True, 2**70], ""
)  # fmt: skip
_BAD_PAYLOADS: tuple[object, ...] = ({1: "a"}, float("nan"), b"bytes", _LOOP)


class Hardened(RunLease):
    """Looks at connections, and tries hostile ids and payloads."""

    def inspect_connections(self, worker: Worker) -> str:
        """Work with a call that a heartbeat falls into, and look at both connections."""
        found: list[bool] = []
        beats: list[heartbeat.Heartbeat] = []

        class Watched(heartbeat.Heartbeat):
            def __enter__(self) -> heartbeat.Heartbeat:  # type: ignore[override]  # the same
                beats.append(self)
                return super().__enter__()

        from pytest_leasecheck.testkit.reference import driver as driving

        driving.Heartbeat = Watched  # type: ignore[attr-defined]  # a stand-in
        try:
            with self.opened(worker) as store:

                def run(call: reference.Call) -> object:
                    worker.point("holding")
                    with store.db() as connection:
                        found.append(_is_hard(connection))
                    assert beats[0]._own is not None  # it has beaten by now
                    found.append(_is_hard(beats[0]._own))
                    return "looked"

                tools = (reference.Tool("charge", run), outside_tool("mail", worker))
                self.pursue(self.driver(worker, store, tools=tools), store.run("r1"))
        finally:
            driving.Heartbeat = heartbeat.Heartbeat  # type: ignore[attr-defined]  # and back
        return f"{len(found)} connections, {'all' if all(found) else 'not all'} hardened"

    def try_hostile(self, worker: Worker) -> dict[str, str]:
        """Store what can be stored, read it back, count what is refused."""
        with self.opened(worker) as store:
            came_back: list[object] = []

            def run(call: reference.Call) -> object:
                came_back.append(call.args)
                return call.args

            driver = self.driver(worker, store, tools=(reference.Tool("echo", run),))
            for run_id in _GOOD_IDS:
                driver.start(run_id, [reference.Step("echo", run_id)])
            ids = sum(store.run(run_id).finished for run_id in _GOOD_IDS)
            before = len(store.runs())
            bad_ids = [_refusal(driver, run_id, None) for run_id in _BAD_IDS]
            came_back.clear()
            for number, payload in enumerate(_GOOD_PAYLOADS):
                driver.start(f"p{number}", [reference.Step("echo", payload)])
            payloads = sum(
                arrived == sent and store.steps(f"p{number}")[0].result == sent
                for number, (arrived, sent) in enumerate(
                    zip(came_back, _GOOD_PAYLOADS, strict=True)
                )
            )
            bad = [_refusal(driver, f"b{n}", payload) for n, payload in enumerate(_BAD_PAYLOADS)]
            assert len(store.runs()) == before + len(_GOOD_PAYLOADS)
        return {
            "ids": f"{ids} of {len(_GOOD_IDS)} came back",
            "refused ids": _counted(bad_ids),
            "payloads": f"{payloads} of {len(_GOOD_PAYLOADS)} came back",
            "refused payloads": _counted(bad),
        }


class BearsSkew(RunLease):
    """Says how much skew it bears, as long as its heartbeat beats in time."""

    bears_skew_ms: ClassVar[int] = reference.skew_borne_ms(reference.DEFAULT_LEASE_TTL_MS)


def _counted(names: list[str]) -> str:
    return " ".join(f"{name} x{names.count(name)}" for name in sorted({*names}))


def _is_hard(connection: sqlite3.Connection) -> bool:
    (trusted,) = connection.execute("PRAGMA trusted_schema").fetchone()
    getconfig = getattr(connection, "getconfig", None)
    defensive = True if getconfig is None else getconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)  # type: ignore[attr-defined,unused-ignore]  # 3.12
    return trusted == 0 and bool(defensive)


def _refusal(driver: reference.Driver, run_id: Any, payload: object) -> str:
    try:
        driver.start(run_id, [reference.Step("echo", payload)])
    except reference.RuntimeRefusal as error:
        return type(error).__name__
    return "accepted"
