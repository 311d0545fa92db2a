"""However pytest ends, nothing of a lane is left: the plugin, the real engine, real signals.

The moment is the same as in `test_nothing_left`: one worker stopped, one inside a transaction, one
with children; and, for most, one that spins, so that pytest is waiting for its lane.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from endings import Watch, descendants
from lane_user import SITUATION

HERE = Path(__file__).parent
SOON_S = 3.0

TEST = """
import json, os, signal
import pytest
from pytest_leasecheck.testkit import lane as lanes
from pytest_leasecheck.testkit.script import Run
from subjects_hostile import Hostile, Small

def tell():
    [lane] = lanes._open_lanes
    with open({fifo!r}, "w") as fifo:
        fifo.write(json.dumps([lane._process.pid, lane.facts.work, os.getpid()]) + chr(10))

@pytest.fixture
def situation(stage):
    stage.do({situation!r})
    return stage

@pytest.mark.leasecheck(subject=Hostile, judge=False)
def test_situation(situation):
    stage = situation
    tell()
    {then}

def test_after():
    pass

@pytest.mark.leasecheck(subject=Hostile, judge=False)
def test_next_stage(stage):
    stage.submit("r1")
    stage.spawn("A").run()
    assert stage.state("A") == "returned"
"""
BUSY = 'stage.do(Run("X"))'


class Session:
    """A pytest under way, stopped at the moment, and what descends from its lane."""

    def __init__(self, folder: Path, *arguments: str, then: str) -> None:
        fifo = folder / "told"
        os.mkfifo(fifo)
        (folder / "test_it.py").write_text(
            TEST.format(fifo=str(fifo), situation=SITUATION, then=then)
        )
        (folder / "pytest.ini").write_text("[pytest]\n")
        self._output = folder / "output.txt"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
        environment.pop("PYTEST_ADDOPTS", None)
        fd = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            told = self._read(fd)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(fd)
        self.guard, work, self.owner = told
        self.work = Path(work)
        self.pids = descendants(self.guard)
        self.watch = Watch(self.pids)
        self.watch.start()

    def _read(self, fd: int) -> list:
        ends = os.pidfd_open(self.process.pid)
        try:
            ready, _, _ = select.select([fd, ends], [], [], 60)
            if fd not in ready:
                raise AssertionError(self.output)
            return json.loads(os.read(fd, 4096))
        finally:
            os.close(ends)

    @property
    def output(self) -> str:
        return self._output.read_text()

    def assert_gone(self, *, by: str, within_s: float = SOON_S) -> str:
        """Nobody lives, the databases are gone; returns what pytest said."""
        took_s, left = self.watch.wait(most_s=20)
        assert left == [], f"{by}: {left} of {self.pids} live on\n{self.output}"
        assert not self.work.exists()
        print(f"{by}: {len(self.pids)} processes and the folder gone in {took_s * 1e3:.0f} ms")
        assert took_s < within_s
        self.process.wait(timeout=60)  # xdist gives its own workers ten seconds to end
        return self.output

    def close(self) -> None:
        """End it, whatever became of it."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    sessions: list[Session] = []

    def start(*arguments: str, then: str = BUSY) -> Session:
        sessions.append(Session(tmp_path, *arguments, then=then))
        return sessions[-1]

    yield start
    for one in sessions:
        one.close()


def test_a_pass_and_a_failure_leave_nothing(session: Callable[..., Session]) -> None:
    one = session("-x", then="assert False, 'on purpose'")
    one.process.wait(timeout=60)
    one.watch.start()  # nothing is left when it is over
    said = one.assert_gone(by="-x")
    assert "1 failed" in said
    assert "on purpose" in said


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_pytest_timeout_leaves_nothing(method: str, session: Callable[..., Session]) -> None:
    """Its time is counted from the moment on, and is in the numbers."""
    options = ("-o", "timeout_func_only=true", "--timeout=1", f"--timeout-method={method}")
    said = session(*options).assert_gone(by=f"--timeout-method={method} (1 s)")
    assert "Timeout" in said
    if method == "signal":  # the other one ends pytest itself
        assert "1 failed, 2 passed" in said


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_nothing(times: int, session: Callable[..., Session]) -> None:
    one = session()
    for _ in range(times):
        os.killpg(one.process.pid, signal.SIGINT)
    said = one.assert_gone(by=f"Ctrl-C {times}x")
    if times == 1:
        assert "KeyboardInterrupt" in said


def test_ctrl_c_while_no_lane_is_asked_leaves_nothing(session: Callable[..., Session]) -> None:
    """No question is interrupted then; pytest draws where it was first, which takes a second."""
    one = session(then="os.read(os.pipe()[0], 1)")
    os.killpg(one.process.pid, signal.SIGINT)
    said = one.assert_gone(by="Ctrl-C in a test's own code", within_s=1.0)
    assert "KeyboardInterrupt" in said
    assert "Error" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_signal_leaves_nothing(number: signal.Signals, session: Callable[..., Session]) -> None:
    one = session()
    one.process.send_signal(number)
    one.assert_gone(by=number.name)


@pytest.mark.parametrize(
    ("whom", "number"),
    [
        ("worker", signal.SIGKILL),
        ("controller", signal.SIGKILL),
        ("controller", signal.SIGTERM),
        ("group", signal.SIGINT),
    ],
)
def test_xdist_leaves_nothing(
    whom: str, number: signal.Signals, session: Callable[..., Session]
) -> None:
    one = session("-n1", "--max-worker-restart=0")
    if whom == "group":
        os.killpg(one.process.pid, number)
    else:
        os.kill(one.owner if whom == "worker" else one.process.pid, number)
    one.assert_gone(by=f"xdist: {number.name} to the {whom}")


def test_a_killed_lane_fails_its_test_in_words_and_the_next_one_gets_a_new_lane(
    session: Callable[..., Session],
) -> None:
    one = session()
    os.kill(one.pids[1], signal.SIGKILL)
    said = one.assert_gone(by="SIGKILL to the lane")
    assert "the lane process died (signal 9); its workers were killed with it" in said
    assert "1 failed, 2 passed" in said
