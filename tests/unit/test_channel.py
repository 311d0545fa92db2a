"""A worker's line to the lane: when it may say that all its threads are at rest."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

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


class Meanwhile(Wait):
    """A wait at which somebody looks while another thread goes on."""

    __slots__ = ("happens",)

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__("thread")
        self.happens = happens

    @property
    def at_rest(self) -> bool:
        self.happens()
        return True


def test_an_answer_that_comes_during_the_look_is_not_told_with_the_wait_before_it(
    lane: tuple[Channel, int],
) -> None:
    channel, _fd = lane
    ended = -1  # no thread has this number any more: it was answered, went on and ended

    def goes_on() -> None:
        channel.waits.pop(ended)
        channel.answers[ended] = 1

    channel.waits[ended] = Wait("provider")
    channel.waits[threading.get_ident()] = Meanwhile(goes_on)
    _settled, _unseen, waits = channel.settlement()
    assert [(kind, got) for ident, _, kind, _, got in waits if ident == ended] == [("provider", 0)]


def test_a_thread_that_ends_does_not_make_up_for_one_that_nobody_sees_yet(
    lane: tuple[Channel, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, _fd = lane
    counts = [len(sys._current_frames()) + 2 + 1, len(sys._current_frames()) + 2]
    monkeypatch.setattr(os, "stat", lambda _path: SimpleNamespace(st_nlink=counts.pop(0)))
    assert channel.settlement()[1] == 1
