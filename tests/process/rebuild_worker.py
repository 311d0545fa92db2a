"""A worker of a fleet that is rebuilt: `rebuild_worker.py DATABASE NAME AHEAD_MS ACT`.

It says on its output where it is, a line each, and goes on when it gets a line. ACT is `start`,
`resume`, or `fail` (start, and end the call with an error). Its effect goes to a provider outside,
a folder with a ledger, whose fence is the highest token that it has seen.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from pytest_leasecheck.testkit.reference import (
    Call,
    Driver,
    Found,
    NotFound,
    RuntimeRefusal,
    Step,
    Store,
    Tool,
    WallClock,
)


class Ahead(WallClock):
    """The wall clock, later by so much: nobody waits a lease out for real."""

    def __init__(self, ms: int) -> None:
        self._ms = ms

    def now_ms(self) -> int:
        return super().now_ms() + self._ms

    def wait(self, event: threading.Event, timeout_ms: int) -> bool:
        return event.wait(timeout_ms / 1000)


class Provider:
    """A ledger of `token key` lines: all that the world outside knows."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger

    def lines(self) -> list[tuple[int, str]]:
        text = self.ledger.read_text() if self.ledger.exists() else ""
        return [(int(token), key) for token, key in (line.split() for line in text.splitlines())]

    def request(self, call: Call) -> str:
        highest = max((token for token, _key in self.lines()), default=0)
        if call.token < highest:
            return f"refused: {call.token} is lower than {highest}"
        with self.ledger.open("a") as ledger:
            ledger.write(f"{call.token} {call.idempotency_key}\n")
        return "accepted"

    def lookup(self, key: str) -> Found | NotFound:
        return Found("accepted") if key in {known for _token, known in self.lines()} else NotFound()


def say(text: str) -> None:
    print(text, flush=True)


def main(database: str, name: str, ahead_ms: str, act: str) -> None:
    """One call of a driver."""
    provider = Provider(Path(database).parent / "ledger.txt")

    def pay(call: Call) -> str:
        say(f"in call with token {call.token}")
        sys.stdin.readline()
        if act == "fail":
            raise ConnectionError("the network is down")
        answer = provider.request(call)
        say(answer)
        return answer

    with Store(database, clock=Ahead(int(ahead_ms))) as store:
        driver = Driver(store, tools=[Tool("pay", pay, lookup=provider.lookup)], name=name)
        try:
            run = driver.resume("r1") if act == "resume" else driver.start("r1", [Step("pay")])
            say(str(run.status))
        except (RuntimeRefusal, ConnectionError) as error:
            say(type(error).__name__)


if __name__ == "__main__":
    main(*sys.argv[1:])
