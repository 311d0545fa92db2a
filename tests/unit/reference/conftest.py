"""A clock that moves when told, and a world of drivers on one file, for the runtime's tests."""

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_leasecheck.testkit.reference import Driver, EffectStore, Step, Store, Tool

START_MS = 1_000_000
PATIENCE_S = 10


class FakeClock:
    """Time as a number. `advance` fires the waits that fall due, one after the other."""

    def __init__(self) -> None:
        self._now_ms = START_MS
        self._changed = threading.Condition()
        self._waiting: dict[int, int] = {}
        self.readings = 0

    def now_ms(self) -> int:
        self.readings += 1
        return self._now_ms

    def wait(self, event: threading.Event, timeout_ms: int) -> bool:
        me = threading.get_ident()
        with self._changed:
            deadline = self._now_ms + timeout_ms
            self._waiting[me] = deadline
            self._changed.notify_all()
            while not event.is_set() and self._now_ms < deadline:
                # The event is set without a word to this condition, so look again soon.
                self._changed.wait(0.001)
            del self._waiting[me]
            return event.is_set()

    def set(self, now_ms: int) -> None:
        """Move time and let nobody notice."""
        self._now_ms = now_ms

    def pass_ms(self, ms: int) -> None:
        self._now_ms += ms

    def advance(self, ms: int, *, waiters: int = 1) -> None:
        """Move time; each waiter that falls due acts, and waits again or ends, in turn."""
        with self._changed:
            self._until(lambda: len(self._waiting) >= waiters)
            target = self._now_ms + ms
            while due := [at for at in self._waiting.values() if at <= target]:
                self._now_ms = min(due)
                woken = [who for who, at in self._waiting.items() if at <= self._now_ms]
                self._changed.notify_all()
                self._until(lambda woken=woken: all(self._settled(who) for who in woken))
            self._now_ms = target

    def _settled(self, who: int) -> bool:
        alive = any(thread.ident == who for thread in threading.enumerate())
        return not alive or self._waiting.get(who, -1) > self._now_ms

    def _until(self, condition: Callable[[], bool]) -> None:
        for _ in range(PATIENCE_S * 1000):
            if condition():
                return
            self._changed.wait(0.001)
        raise AssertionError(f"nobody settled; waiting: {self._waiting}, now {self._now_ms}")


class World:
    """One database file, one clock, and the drivers on them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self._stores: list[Store] = []
        self._suffixes = itertools.count(1)
        self.store = self.open()
        self.effects = EffectStore(self.store)

    def open(self, **options: Any) -> Store:
        options.setdefault("busy_timeout_ms", 50)
        store = Store(self.path, clock=self.clock, **options)
        self._stores.append(store)
        return store

    def driver(self, *tools: Tool, name: str = "", **options: Any) -> Driver:
        """A driver as another process would have: a store, and a suffix, of its own."""
        options.setdefault("suffix", lambda: f"{next(self._suffixes):012x}")
        store = options.pop("store", None) or self.open()
        return Driver(store, tools=tools or self.tools(), name=name, **options)

    def tools(self) -> tuple[Tool, ...]:
        return (self.tool("charge"), self.tool("mail"))

    def tool(self, name: str, during: Callable[..., object] = lambda call: None, **options: Any):
        """A tool that does something, and then applies a fenced effect on the world's store."""

        def run(call):
            during(call)
            return self.effects.apply(call, result=f"{name} by {call.owner}")

        options.setdefault("lookup", self.effects.lookup)
        return Tool(name, run, **options)

    def kinds(self, run_id: str) -> list[str]:
        return [event.kind for event in self.store.events(run_id)]

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        with self.store.db() as connection:
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
            return {
                name: connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
                for (name,) in tables
            }

    def crash(self, driver: Driver, run_id: str, *steps: str) -> None:
        """Leave a run as a dead process does: leased, the first step in flight."""
        plan = [Step(name) for name in steps or ("charge",)]
        claim = driver._insert(run_id, plan, None)
        tenure_of(driver, claim).start_step(driver.store.steps(run_id)[0], limit=None)

    def close(self) -> None:
        for store in self._stores:
            store.close()


def tenure_of(driver: Driver, claim: Any) -> Any:
    from pytest_leasecheck.testkit.reference.tenure import Tenure

    return Tenure(driver.store, claim, driver.settings.clock, driver.settings.now)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "runs.db")
    yield made
    made.close()


@pytest.fixture
def clock(world: World) -> FakeClock:
    return world.clock


@pytest.fixture
def tenure() -> Callable[..., Any]:
    return tenure_of
