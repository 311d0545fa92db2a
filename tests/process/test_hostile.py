"""Whatever a worker does to itself, its channel or its database: a clear outcome, and no harm.

All of it on one lane; after each hostile script a well-behaved one is played on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from endings import descendants

from pytest_leasecheck.testkit.errors import NeverReached, StageError, Unsettled
from pytest_leasecheck.testkit.history import Blind, Commit, Ended, Event, Passed, Returned, Settled
from pytest_leasecheck.testkit.lane import Lane, LaneOptions, Played
from pytest_leasecheck.testkit.script import parse_script

#: Real time for one move. A hostile worker costs its test this much.
DEADLINE_S = 1.0

GOOD = parse_script("submit good\nspawn G\nuntil G inside before\nrun G")


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    folder = tmp_path_factory.mktemp("logs")
    # Who is there is counted: nobody waits to become a worker.
    options = LaneOptions(folder=folder, deadline_s=DEADLINE_S, forks_ahead=False)
    with Lane("subjects_hostile:Hostile", options=options) as lane:
        yield lane


@pytest.fixture
def play(lane: Lane, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Played]]:
    """Play a script; afterwards a good one must come out well, and nobody must be left."""
    at_rest = set(descendants(lane._process.pid))
    guard = lane._process.pid

    def start(script: str) -> Played:
        return lane.play(parse_script(script), name=request.node.name)

    yield start
    assert lane._process.pid == guard, "the lane was replaced"
    assert lane.alive
    assert set(descendants(guard)) == at_rest
    work = lane.facts.work
    assert os.listdir(work) == []
    good = lane.play(GOOD, name=f"{request.node.name}-good")
    assert good.error is None
    assert of(good, Returned, "G#1")[0].value == "'done'"
    assert [change.new["status"] for commit in of(good, Commit) for change in commit.changes
            if change.new is not None] == ["queued", "running", "done"]  # fmt: skip
    assert not of(good, Blind)


def of(played: Played, kind: type[Event], who: str = "") -> list:
    """The events of one kind, of one incarnation when it is named."""
    return [
        event for event in played.history if type(event) is kind and who in ("", event.who)
    ]  # fmt: skip


def log(played: Played, who: str = "A#1") -> str:
    return played.logs[who].read_text("utf-8", "replace")


# -- it ends badly -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "how", "said"),
    [
        ("leave", "exit 3", ""),
        ("segfault", "signal 11", "Segmentation fault"),
        ("close_channel", "signal 9", ""),
        ("write_half_a_message", "exit 5", ""),
        ("die_with_heirs", "exit 4", ""),
        ("promise_a_line", "exit 6", ""),
    ],
)
def test_a_process_that_ends_is_over(
    job: str, how: str, said: str, play: Callable[[str], Played]
) -> None:
    played = play(f"spawn A to {job}\nrun A")
    assert played.error is None
    assert [event.how for event in of(played, Ended, "A#1")] == [how]
    assert of(played, Settled, "A#1")[-1].state == how
    assert said in log(played)


@pytest.mark.parametrize(
    ("job", "error"),
    [("system_exit", "SystemExit: enough"), ("crash", "RuntimeError: a bug of its own")],
)
def test_an_exception_is_what_its_job_returned(
    job: str, error: str, play: Callable[[str], Played]
) -> None:
    played = play(f"spawn A to {job}\nrun A")
    assert of(played, Returned, "A#1")[0].error == error
    assert error in log(played)


def test_a_point_that_is_not_reached_is_told_with_what_was_passed(
    play: Callable[[str], Played],
) -> None:
    played = play("spawn A to never_there\nuntil A inside before")
    assert isinstance(played.error, NeverReached)
    assert str(played.error).startswith(
        "worker 'A#1' never reached 'inside before'; it returned after passing: nothing."
    )
    assert Path(played.error.log) == played.logs["A#1"]


# -- it never comes to rest ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "seen"),
    [
        ("spin", "in spin"),
        ("spinning_thread", "in spin"),
        ("spin_unmoved", "It does not write its stacks"),
    ],
)
def test_what_never_rests_is_unsettled_with_stacks(
    job: str, seen: str, play: Callable[[str], Played]
) -> None:
    started = time.monotonic()
    played = play(f"spawn A to {job}\nrun A")
    took_s = time.monotonic() - started
    assert isinstance(played.error, Unsettled)
    assert played.error.worker == "A#1"
    assert seen in played.error.stacks
    assert took_s < DEADLINE_S + 4


def test_what_commits_without_end_is_unsettled_too(play: Callable[[str], Played]) -> None:
    """Each message is a sign of life; five deadlines of them are enough, which is what it takes."""
    played = play("spawn A to commit_for_ever\nrun A")
    assert isinstance(played.error, Unsettled)
    assert "in commit_for_ever" in played.error.stacks
    assert of(played, Commit, "A#1")


def test_a_stage_goes_on_without_the_unsettled_one(lane: Lane) -> None:
    stage = lane.open_stage(name="unsettled")
    worker = stage.spawn("A", job="spin")
    with pytest.raises(Unsettled):
        worker.run()
    stage.submit("r1")
    stage.spawn("B").run()
    assert stage.state("A") == "signal 9"
    assert stage.state("B") == "returned"
    stage.close()


def test_a_worker_that_waits_for_itself_is_at_rest(play: Callable[[str], Played]) -> None:
    played = play("spawn A to deadlock\nrun A")
    assert played.error is None
    assert of(played, Settled, "A#1")[-1].state == "waits for its own threads"


def test_threads_that_never_end_do_not_hold_up_the_script(play: Callable[[str], Played]) -> None:
    played = play("spawn A to endless_threads\nrun A")
    assert played.error is None
    assert of(played, Settled, "A#1")[-1].state == "returned"


# -- its surroundings ----------------------------------------------------------------------------


def test_of_endless_output_the_end_is_kept(lane_of: Callable[..., Lane]) -> None:
    """A hundred megabytes take as long as the machine has other things to do."""
    lane = lane_of("subjects_hostile:Hostile", deadline_s=60.0)
    played = lane.play(parse_script("spawn A to shout\nrun A"), name="shout")
    assert played.error is None
    assert log(played).endswith("the last line\n")
    assert "bytes of output were dropped here" in log(played)
    assert played.logs["A#1"].stat().st_size < 8 * 2**20


def test_output_without_end_is_cut_while_it_grows(play: Callable[[str], Played]) -> None:
    played = play("spawn A to shout_for_ever\nrun A")
    assert isinstance(played.error, Unsettled)
    assert "bytes of output were dropped here" in log(played)
    assert played.logs["A#1"].stat().st_size < 8 * 2**20


@pytest.mark.parametrize("job", ["change_surroundings", "patch_time"])
def test_a_changed_process_is_its_own_affair(job: str, play: Callable[[str], Played]) -> None:
    played = play(f"submit r1\nspawn A to {job}\nrun A")
    assert played.error is None
    assert of(played, Returned, "A#1")[0].value == "'done'"


def test_a_worker_without_output_goes_on(play: Callable[[str], Played]) -> None:
    played = play("spawn A to close_output\nrun A")
    assert of(played, Returned, "A#1")[0].error == "RuntimeError: nobody hears this"


def test_a_child_that_comes_back_into_the_kit_ends_there(play: Callable[[str], Played]) -> None:
    played = play("spawn A to fork_and_come_back\nrun A\nrun A")
    assert played.error is None
    assert len(of(played, Returned, "A#1")) == 2


def test_children_are_gone_with_their_script(play: Callable[[str], Played]) -> None:
    assert play("spawn A to leave_children\nrun A").error is None


# -- the channel ---------------------------------------------------------------------------------


@pytest.mark.parametrize("job", ["write_garbage", "write_wrong_message", "write_half_and_wait"])
def test_what_is_no_message_is_the_end_of_who_wrote_it(
    job: str, play: Callable[[str], Played]
) -> None:
    played = play(f"spawn A to {job}\nrun A")
    assert played.error is None
    assert [event.how for event in of(played, Ended, "A#1")] == ["signal 9"]
    if job != "write_half_and_wait":
        assert "wrote into the kit's channel" in of(played, Blind, "A#1")[0].why


# -- the database --------------------------------------------------------------------------------


def test_a_full_disk_is_the_workers_error(play: Callable[[str], Played]) -> None:
    played = play("spawn A to fill_disk\nrun A")
    assert played.error is None
    assert "Error: " in of(played, Returned, "A#1")[0].error


def test_what_a_worker_leaves_beside_its_database_is_removed(
    play: Callable[[str], Played],
) -> None:
    assert play("spawn A to litter\nrun A").error is None


def test_a_link_in_its_folders_place_costs_nobody_a_file(
    lane_of: Callable[..., Lane], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "kept").write_text("by somebody")
    monkeypatch.setenv("PRECIOUS", str(precious))
    lane = lane_of("subjects_hostile:Hostile")
    lane.play(parse_script("spawn A to put_a_link_in_its_place\nrun A"), name="x")
    assert (precious / "kept").read_text() == "by somebody"
    assert os.listdir(lane.facts.work) == []
    assert lane.play(GOOD, name="good").error is None


def test_a_deleted_database_is_never_called_clean(play: Callable[[str], Played]) -> None:
    played = play("submit r1\nspawn A to delete_database\nrun A\nspawn B\nrun B")
    assert "deleted or replaced" in of(played, Blind)[0].why
    assert "no such table" in of(played, Returned, "B#1")[0].error


def test_a_damaged_database_is_the_next_readers_error(play: Callable[[str], Played]) -> None:
    """No commit told anyone; who has pages in memory, as the observer has, sees nothing of it."""
    played = play("submit r1\nspawn A to scribble\nrun A\nspawn B\nrun B")
    assert "file is not a database" in of(played, Returned, "B#1")[0].error


@pytest.mark.parametrize("job", ["take_trace_callback", "take_trace_midway"])
def test_a_replaced_trace_callback_is_noticed(job: str, play: Callable[[str], Played]) -> None:
    played = play(f"spawn A to {job}\nrun A\nspawn B\nrun B")
    assert played.error is None
    assert of(played, Returned, "A#1")[0].error == ""
    assert "trace" in of(played, Blind, "A#1")[0].why
    changed = {
        change.key[0]: commit.who for commit in of(played, Commit) for change in commit.changes
    }
    assert any(key.startswith("unseen") for key in changed)
    assert set(changed.values()) == {"A#1"}


def test_what_a_child_commits_is_out_of_sight_and_said(play: Callable[[str], Played]) -> None:
    played = play("spawn A to write_in_child\nrun A")
    assert played.error is None
    assert "a child of its own" in of(played, Blind, "A#1")[0].why


def test_a_child_has_no_part_in_the_script(play: Callable[[str], Played]) -> None:
    played = play("spawn A to effect_in_child\nrun A")
    assert played.error is None
    assert "refused: a child of a worker's own making has no part in a script" in log(played)


def test_time_goes_on_in_a_child(play: Callable[[str], Played]) -> None:
    played = play("spawn A to sleep_in_child\nrun A")
    assert of(played, Returned, "A#1")[0].value == "'the child woke up'"


# -- points in odd places ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "point", "value"),
    [
        ("point_in_thread", "in thread", "'joined'"),
        ("point_in_coroutine", "in coroutine", "'3 ticks'"),
    ],
)
def test_a_point_holds_in_threads_and_coroutines(
    job: str, point: str, value: str, play: Callable[[str], Played]
) -> None:
    played = play(f"spawn A to {job}\nuntil A {point} before\nrun A")
    assert played.error is None
    assert [event.held for event in of(played, Passed, "A#1") if event.point == point] == [True]
    assert of(played, Returned, "A#1")[0].value == value


def test_a_name_that_is_no_text_is_the_subjects_own_error(play: Callable[[str], Played]) -> None:
    played = play("spawn A to name_oddly\nrun A")
    assert of(played, Returned, "A#1")[0].value == (
        "\"the name of a point is text, not bytes: b'no text';"
        " the name of an effect is text, not bytes: b'no text'\""
    )


def test_errors_name_their_worker(play: Callable[[str], Played]) -> None:
    played = play("spawn A to no_such_job\nrun A")
    assert "no_such_job" in of(played, Returned, "A#1")[0].error


def test_a_script_that_cannot_go_on_says_why(play: Callable[[str], Played]) -> None:
    played = play("spawn A to leave\nrun A\nrun A")
    assert type(played.error) is StageError
    assert "is over (exit 3); 'restart A' gives it a new life" in str(played.error)
