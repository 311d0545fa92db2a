"""However a program that uses a lane ends, nothing of the lane is left.

At that moment one worker is stopped, one is inside a transaction with the write lock, and one has
children: a plain one, a double fork in a session of its own, and one without an environment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from endings import Watch, descendants

from pytest_leasecheck.testkit.errors import LaneDied, Unsettled
from pytest_leasecheck.testkit.lane import Lane
from pytest_leasecheck.testkit.script import parse_script

HERE = Path(__file__).parent
#: The promise is a second; on a machine that does much else at once, a test must not be the judge.
SOON_S = 3.0


class User:
    """A running `lane_user.py`, and the processes of its lane."""

    def __init__(self, how: str, folder: Path) -> None:
        with (folder.parent / "errors.txt").open("w") as errors:
            self.process = self._start(how, folder, errors)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise AssertionError((folder.parent / "errors.txt").read_text())
        told = json.loads(line)
        self.guard: int = told["guard"]
        self.work = Path(told["work"])
        self.pids = descendants(self.guard)
        self.watch = Watch(self.pids)

    @staticmethod
    def _start(how: str, folder: Path, errors: IO[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(HERE / "lane_user.py"), how, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # a process group of its own, as in a terminal
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        )

    @property
    def lane(self) -> int:
        """The lane itself: the guard's first child."""
        return self.pids[1]

    def assert_gone(self, *, by: str) -> None:
        """Nobody of the lane lives, its folder is gone."""
        took_s, left = self.watch.wait()
        assert left == [], f"{by}: {left} of {self.pids} live on"
        assert not self.work.exists(), f"{by}: the databases are still there"
        print(f"{by}: {len(self.pids)} processes and the folder gone in {took_s * 1e3:.0f} ms")
        assert took_s < SOON_S

    def close(self) -> None:
        """End the program, whatever became of it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Callable[[str], User]]:
    users: list[User] = []

    def start(how: str) -> User:
        users.append(User(how, tmp_path / "logs"))
        return users[-1]

    yield start
    for one in users:
        one.close()


def test_the_situation_is_what_it_is_called(user: Callable[[str], User]) -> None:
    """Else all the others would prove nothing."""
    one = user("idle")
    states = [state for pid in one.pids if (state := _state(pid))]
    assert states.count(b"T") == 1
    # guard, lane, observer, nursery (who waits there may be on the way), workers, their children
    assert len(states) >= 2 + 1 + 1 + 4 + 3
    assert os.listdir(one.work)
    # In this order: who was about to end when it was found has no environment, and then no state.
    without_mark = [
        pid for pid in one.pids
        if b"LEASECHECK_LANE=" not in _of(pid, "environ") and _state(pid) not in (b"", b"Z", b"X")
    ]  # fmt: skip
    assert len(without_mark) == 1  # the child without an environment


def _state(pid: int) -> bytes:
    return _of(pid, "stat").rpartition(b") ")[2][:1]


def _of(pid: int, name: str) -> bytes:
    """What the kernel tells of a process; nothing when it has ended since."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("how", ["finish", "atexit", "vanish"])
def test_a_program_that_ends_by_itself_leaves_nothing(
    how: str, user: Callable[[str], User]
) -> None:
    one = user(how)
    assert one.process.stdin is not None
    one.watch.start()
    one.process.stdin.write("\n")
    one.process.stdin.flush()
    one.assert_gone(by=how)


@pytest.mark.parametrize("moment", ["idle", "busy"])
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
)
def test_a_program_that_is_ended_by_a_signal_leaves_nothing(
    number: signal.Signals, moment: str, user: Callable[[str], User]
) -> None:
    one = user(moment)
    one.watch.start()
    one.process.send_signal(number)
    one.assert_gone(by=f"{number.name} while {moment}")
    assert one.process.wait(timeout=5) != 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_process_group_leaves_nothing(
    number: signal.Signals, user: Callable[[str], User]
) -> None:
    """What a terminal does at Ctrl-C, and what CI systems do at the end of a job."""
    one = user("busy")
    one.watch.start()
    os.killpg(one.process.pid, number)
    one.assert_gone(by=f"{number.name} to the group")


def test_two_interrupts_leave_nothing(user: Callable[[str], User]) -> None:
    one = user("busy")
    one.watch.start()
    os.killpg(one.process.pid, signal.SIGINT)
    os.killpg(one.process.pid, signal.SIGINT)
    one.assert_gone(by="SIGINT twice")


@pytest.mark.parametrize("who", ["lane", "guard"])
def test_a_lane_or_guard_that_is_killed_takes_all_with_it(
    who: str, user: Callable[[str], User]
) -> None:
    one = user("busy")
    one.watch.start()
    os.kill(one.lane if who == "lane" else one.guard, signal.SIGKILL)
    one.assert_gone(by=f"SIGKILL to the {who}")


def test_a_killed_lane_is_told_in_words_and_the_next_one_works(
    lane_of: Callable[..., Lane],
) -> None:
    first = lane_of("subjects_hostile:Small")
    guard = first._process.pid
    os.kill(descendants(guard)[1], signal.SIGKILL)
    with pytest.raises(LaneDied, match=r"the lane process died \(signal 9\)") as told:
        first.play(parse_script("submit r1"), name="x")
    assert told.value.how == "signal 9"
    assert not first.alive
    with pytest.raises(LaneDied, match="it was closed"):
        first.play(parse_script("submit r1"), name="x")
    played = lane_of("subjects_hostile:Small").play(parse_script("submit r1"), name="y")
    assert played.error is None


@pytest.mark.parametrize("who", ["lane", "observer"])
def test_a_stopped_lane_is_told_in_words_killed_and_replaced(
    who: str, lane_of: Callable[..., Lane]
) -> None:
    first = lane_of("subjects_hostile:Small", deadline_s=0.5, silence_s=0.5)
    _guard, lane, observer, *_ahead = everyone = descendants(first._process.pid)
    stopped = lane if who == "lane" else observer
    os.kill(stopped, signal.SIGSTOP)
    watch = Watch(everyone)
    with pytest.raises(LaneDied, match=r"gave no sign of life for 1 s \(") as told:
        first.play(parse_script("submit r1"), name="x")
    took_s, left = watch.wait(most_s=5)
    assert left == []
    assert took_s < 5
    if who == "lane":
        assert "T (stopped)" in str(told.value)
    assert not Path(first.facts.work).exists()
    assert not first.alive
    played = lane_of("subjects_hostile:Small").play(parse_script("submit r1"), name="y")
    assert played.error is None


def test_a_stopped_guard_keeps_nobody_waiting(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of("subjects_hostile:Small")
    everyone = descendants(lane._process.pid)
    os.kill(everyone[0], signal.SIGSTOP)
    assert lane.play(parse_script("submit r1"), name="x").error is None
    watch = Watch(everyone)
    lane.close()
    took_s, left = watch.wait(most_s=4)
    assert left == []
    assert took_s < 4  # not the patience that it has with a guard


def test_a_lane_at_work_may_take_its_time(lane_of: Callable[..., Lane]) -> None:
    """What takes longer than its silence may, with signs of life, is waited for."""
    lane = lane_of("subjects_hostile:Hostile", deadline_s=1.5, silence_s=-1.3)
    played = lane.play(parse_script("spawn A to spin\nrun A"), name="x")
    assert isinstance(played.error, Unsettled)


def test_a_lane_outlives_the_thread_that_started_it(lane_of: Callable[..., Lane]) -> None:
    """The kernel tells a child when the *thread* that forked it ends."""
    started: list[Lane] = []
    thread = threading.Thread(target=lambda: started.append(lane_of("subjects_hostile:Small")))
    thread.start()
    thread.join()
    assert started[0].play(parse_script("submit r1"), name="x").error is None


def test_a_forked_child_of_the_user_does_not_close_its_lane(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of("subjects_hostile:Small")
    pid = os.fork()
    if pid == 0:
        try:
            lane.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert lane.play(parse_script("submit r1"), name="x").error is None


def test_an_interrupted_question_does_not_answer_the_next_one(
    lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = lane_of("subjects_hostile:Small")

    def interrupt() -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(lane._connection, "recv_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        lane.play(parse_script("submit r1"), name="x")
    with pytest.raises(LaneDied, match="it was closed"):
        lane.play(parse_script("submit r1"), name="x")


def test_a_second_lane_in_one_process_warns_of_nothing(
    lane_of: Callable[..., Lane], recwarn: pytest.WarningsRecorder
) -> None:
    """Closing a lane once killed multiprocess's resource tracker too, which is then missed."""
    for number in range(2):
        lane = lane_of("subjects_hostile:Small")
        lane.play(parse_script("submit r1"), name=f"x{number}")
        lane.close()
    assert [str(warning.message) for warning in recwarn] == []


def test_what_workers_left_is_gone_with_their_script(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of("subjects_hostile:Hostile", forks_ahead=False)
    before = set(descendants(lane._process.pid))
    played = lane.play(
        parse_script("spawn A to leave_children\nuntil A has children before"), name="x"
    )
    assert played.error is None
    assert set(descendants(lane._process.pid)) == before
    assert any("left behind" in getattr(event, "text", "") for event in played.history)
