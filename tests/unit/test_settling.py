"""When a move is waited for no longer: its worker is at rest, or the deadline has passed."""

from types import SimpleNamespace

import pytest

from pytest_leasecheck.testkit import processes
from pytest_leasecheck.testkit.livestage import LiveStage


class Stage(SimpleNamespace):
    """All of a stage that `settle` asks for; its deadline has always passed."""

    _deadline_s = -1.0
    page = SimpleNamespace(turnstile=None)
    rests_when_looked_at = False

    def serve(self, timeout_ms: float) -> bool:
        return False  # no message comes

    def _look_from_outside(self, worker: SimpleNamespace, *, lasting: bool) -> None:
        worker.settled = self.rests_when_looked_at

    def _look(self, *movers: SimpleNamespace) -> None:
        pass


def mover() -> SimpleNamespace:
    return SimpleNamespace(settled=False, stopped=False, rests={})


@pytest.fixture
def blamed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Who was called unsettled."""
    told: list[object] = []

    def unsettled(busy: list[object], *, deadline_s: float) -> Exception:
        told.extend(busy)
        return TimeoutError(f"after {deadline_s} s")

    monkeypatch.setattr(processes, "unsettled", unsettled)
    return told


def test_one_that_does_not_come_to_rest_is_unsettled(blamed: list[object]) -> None:
    worker = mover()
    with pytest.raises(TimeoutError):
        LiveStage.settle(Stage(), worker)  # type: ignore[arg-type]
    assert blamed == [worker]


def test_one_that_is_seen_at_rest_after_the_deadline_is_at_rest(blamed: list[object]) -> None:
    LiveStage.settle(Stage(rests_when_looked_at=True), mover())  # type: ignore[arg-type]
    assert blamed == []
