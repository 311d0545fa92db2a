"""A worker's line to the lane: when it may say that all its threads are at rest."""

import threading
from collections.abc import Iterator

import pytest

from pytest_leasecheck.testkit import wire
from pytest_leasecheck.testkit.channel import Channel, Wait


@pytest.fixture
def lane() -> Iterator[tuple[Channel, int]]:
    """A channel of this process, and the descriptor at which its lane would sit."""
    ours, theirs = wire.pair()
    yield Channel(theirs), ours.fileno()
    theirs.close()
    ours.close()


class Watched(dict[int, Wait]):
    """What the threads wait for; tells what could be said at the moment when one goes on."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.told: list[tuple[bool, int]] = []

    def pop(self, ident: int, default: Wait | None = None) -> Wait | None:  # type: ignore[override]
        settled, _unseen, waits = self.channel.settlement()
        self.told += [(settled, got) for thread, _, _, _, got in waits if thread == ident]
        return super().pop(ident, default)


def test_an_answered_thread_never_seems_at_rest_with_its_answer(lane: tuple[Channel, int]) -> None:
    channel, fd = lane
    watched = channel.waits = Watched(channel)

    def answer() -> None:
        assert wire.receive(fd)[0] == "hold"
        wire.send(fd, ("go", None))

    other = threading.Thread(target=answer)
    other.start()
    assert channel.ask("hold", ("start", 1, "before"), wait="held") == "go"
    other.join()
    # At that moment the lane has given one answer: a rest that has got none is an old one.
    assert [got for _settled, got in watched.told] == [0]
    assert list(channel.answers.values()) == [1]
    assert channel.waits == {}
