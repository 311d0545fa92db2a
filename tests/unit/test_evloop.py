"""An event loop's sleep as a wait that the lane knows of."""

import os
import select
from collections.abc import Iterator

import pytest

from pytest_leasecheck.testkit.evloop import _LoopWait


@pytest.fixture
def wait() -> Iterator[_LoopWait]:
    with select.epoll() as epoll:
        alarm = os.eventfd(0, os.EFD_NONBLOCK)
        epoll.register(alarm, select.EPOLLIN)
        yield _LoopWait(epoll.fileno(), alarm)
        os.close(alarm)


def test_a_loop_rests_until_something_is_ready_for_it(wait: _LoopWait) -> None:
    assert wait.at_rest
    os.eventfd_write(wait._alarm, 1)
    assert not wait.at_rest


def test_a_loop_that_wakes_while_it_is_looked_at_does_not_rest(wait: _LoopWait) -> None:
    class Slow:
        """By the time of the poll the loop has woken and taken what was ready."""

        def poll(self, _timeout: int) -> list[tuple[int, int]]:
            wait.released = True
            return []

    wait._poll = Slow()  # type: ignore[assignment]
    assert not wait.at_rest
