"""A lane: how a subject gets into it, what it says of itself, its files, its start and its end."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from endings import Watch, descendants
from subjects_hostile import Hostile, Small
from subjects_plain import Plain

from pytest_leasecheck.testkit.errors import (
    LeasecheckError,
    StageError,
    SubjectError,
    SubjectFailed,
    SubjectRaised,
)
from pytest_leasecheck.testkit.history import Commit, Returned, Spawned
from pytest_leasecheck.testkit.lane import Lane, Played
from pytest_leasecheck.testkit.script import parse_script
from pytest_leasecheck.testkit.subject import Lease, RunTable, Subject
from pytest_leasecheck.testkit.worker import Worker
from pytest_leasecheck.testkit.workplace import make_work_folder

HERE = Path(__file__).parent
PLAIN = parse_script("submit r1\nspawn A\nrun A")


def value(played: Played, who: str = "A#1") -> str:
    """What a worker's job returned."""
    assert played.error is None, played.error
    [returned] = [e for e in played.history if isinstance(e, Returned) and e.who == who]
    assert returned.error == ""
    return returned.value


# -- how a subject gets there ---------------------------------------------------------------------


@pytest.mark.parametrize("subject", ["subjects_hostile:Small", Small, Small()])
def test_a_subject_travels_by_name_class_or_instance(
    subject: object, lane_of: Callable[..., Lane]
) -> None:
    assert value(lane_of(subject).play(PLAIN, name="x")) == "'done'"


def test_a_subject_with_a_state_of_its_own_keeps_it(lane_of: Callable[..., Lane]) -> None:
    subject = Hostile()
    subject.lease_ttl_ms = 1234
    played = lane_of(subject).play(PLAIN, name="x")
    [claim] = [e for e in played.history if isinstance(e, Commit)][1:2]
    assert claim.changes[0].new is not None
    assert claim.changes[0].new["expires_at"] == pytest.approx(1893456000 + 1.234)


def test_a_subject_defined_inside_a_test(lane_of: Callable[..., Lane]) -> None:
    told = "by its closure"

    class Inner(Small):
        def work(self, worker: Worker) -> str:
            return super().work(worker) + " " + told

    assert value(lane_of(Inner).play(PLAIN, name="x")) == "'done by its closure'"


def test_a_subject_of_a_module_that_only_its_path_finds(
    lane_of: Callable[..., Lane], tmp_path: Path
) -> None:
    """As pytest imports test modules that are on no path."""
    import importlib.util

    file = tmp_path / "test_of_a_consumer.py"
    file.write_text(
        "from subjects_hostile import Small\n\n\nclass Mine(Small):\n    greeting = 'mine'\n\n"
        "    def work(self, worker):\n        return self.greeting\n"
    )
    spec = importlib.util.spec_from_file_location("tests_of_theirs.test_of_a_consumer", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        lane = lane_of(module.Mine)
    finally:
        del sys.modules[spec.name]
    assert value(lane.play(PLAIN, name="x")) == "'mine'"


def test_a_subject_of_main(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        from pathlib import Path
        from subjects_hostile import Small
        from pytest_leasecheck.testkit.history import Returned
        from pytest_leasecheck.testkit.lane import Lane, LaneOptions
        from pytest_leasecheck.testkit.script import parse_script

        WORD = "main's"

        class Mine(Small):
            def work(self, worker):
                return WORD

        with Lane(Mine, options=LaneOptions(folder=Path("logs"))) as lane:
            played = lane.play(parse_script("spawn A\\nrun A"), name="x")
            print(*[e.value for e in played.history if isinstance(e, Returned)])
        """)
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == '"main\'s"\n'


# -- subjects that are none -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("nonsense", "write it as 'package.module:Name'"),
        ("no_such_module:Name", "no module named 'no_such_module'"),
        ("subjects_hostile:Nobody", "module 'subjects_hostile' has no 'Nobody'"),
        ("subjects_hostile:leave_children", "is function, not a pytest_leasecheck.Subject"),
        ("broken_subject:Name", "importing it raised ZeroDivisionError: division by zero"),
        ("missing_import:Name", "no module named 'something_else'"),
        (object(), "is object, not a pytest_leasecheck.Subject"),
        ("needs_arguments:Needy", "could not be made: TypeError"),
    ],
)
def test_what_is_no_subject_is_told_in_one_error(
    subject: object, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_subject.py").write_text("1 / 0\n")
    (tmp_path / "missing_import.py").write_text("import something_else\n")
    (tmp_path / "needs_arguments.py").write_text(
        "from subjects_hostile import Small\n\n\nclass Needy(Small):\n"
        "    def __init__(self, more):\n        pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SubjectError) as told:
        Lane(subject, options=None)  # type: ignore[arg-type]  # it doesn't get that far
    assert text in str(told.value)


@pytest.mark.parametrize(
    ("does", "text"),
    [
        ("raise", "RuntimeError: not in a lane"),
        ("exit", "importing subjects_importing:Imported ended its process (exit 7)"),
        ("hang", "importing subjects_importing:Imported did not come to an end within 1 s"),
        ("segfault", "importing subjects_importing:Imported ended its process (signal 11)"),
    ],
)
def test_a_lane_that_cannot_start_says_why_and_leaves_nothing(
    does: str, text: str, lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("IMPORT_DOES", does)
    with pytest.raises((SubjectRaised, SubjectFailed)) as told:
        lane_of("subjects_importing:Imported", places=(str(tmp_path),), start_deadline_s=1.0)
    assert text in str(told.value)
    assert list(tmp_path.glob("leasecheck-*")) == []


# -- what an import does --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("", "clean"),
        ("sqlite", "opens SQLite (:memory:)"),
        ("thread", "starts threads (poller)"),
        ("sqlite thread", "opens SQLite (:memory:); starts threads (poller)"),
    ],
)
def test_a_lane_stays_clean_of_what_an_import_does(
    does: str, said: str, lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORT_DOES", does)
    sys.modules.pop("subjects_importing", None)
    lane = lane_of("subjects_importing:Imported")
    imported = sys.modules.pop("subjects_importing")
    if "sqlite" in does:  # in this process it is imported, too
        imported.held.close()
    assert lane.facts.imports == said
    lane_pid = descendants(lane._process.pid)[1]
    assert len(os.listdir(f"/proc/{lane_pid}/task")) == 1
    assert value(lane.play(PLAIN, name="x")) == "'done'"


def test_so_it_does_of_what_the_import_of_a_dotted_name_does(lane_of: Callable[..., Lane]) -> None:
    """Else its workers were forked from a process with SQLite open, and had none of its threads."""
    lane = lane_of("subjects_importing:Elsewhere")
    assert lane.facts.imports == "opens SQLite (:memory:); starts threads (beats)"
    for pid in descendants(lane._process.pid)[1:]:
        with contextlib.suppress(FileNotFoundError):  # it was about to end when it was found
            assert len(os.listdir(f"/proc/{pid}/task")) == 1
    assert value(lane.play(PLAIN, name="x")) == "'True, done'"


def test_what_an_import_forks_is_not_left(
    lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORT_DOES", "fork")
    lane = lane_of("subjects_importing:Imported")
    guard = lane._process.pid
    lane.close()
    assert not Path(f"/proc/{guard}").exists()
    assert not [pid for pid in descendants(os.getpid())[1:] if _is_marked(pid, lane._mark)]


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:  # it was about to end when it was found
        return False


# -- files and sockets ----------------------------------------------------------------------------


def test_files_are_the_owners_alone_and_no_socket_listens(
    lane_of: Callable[..., Lane], tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        lane = lane_of("subjects_hostile:Small")
        stage = lane.open_stage(name="some/stage")
    finally:
        os.umask(before)
    stage.submit("r1")
    stage.spawn("A").run_until("inside before")
    found = [*Path(lane.facts.work).rglob("*"), *(tmp_path / "logs").rglob("*")]
    assert {"stage.db", "stage.db-wal", "A#1.log"} <= {path.name for path in found}
    modes = {oct(path.stat().st_mode & 0o777) for path in found if path.is_file()}
    assert modes == {"0o600"}
    folders = [Path(lane.facts.work), tmp_path / "logs", *(p for p in found if p.is_dir())]
    assert {oct(path.stat().st_mode & 0o777) for path in folders} == {"0o700"}
    assert _listening(descendants(lane._process.pid)) == []


def _listening(pids: list[int]) -> list[str]:
    """Lines of the kernel's tables for sockets of these processes that listen or have a name."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):  # it was about to end when it was found
            for link in Path(f"/proc/{pid}/fd").iterdir():
                target = os.readlink(link)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    assert inodes, "the kit has no socket at all?"
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6", "unix"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            inode = fields[6] if table == "unix" else fields[9]
            named = table != "unix" or len(fields) > 7 or fields[3] == "00010000"
            if inode in inodes and named:
                found.append(line)
    return found


def test_a_relative_folder_stays_where_it_was(
    lane_of: Callable[..., Lane], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lane = lane_of("subjects_hostile:Small", folder=Path("here"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    played = lane.play(PLAIN, name="x")
    assert played.logs["A#1"] == tmp_path / "here" / "x" / "A#1.log"
    assert played.logs["A#1"].exists()


# -- where databases lie --------------------------------------------------------------------------


def test_databases_lie_in_shared_memory_when_there_is_room(tmp_path: Path) -> None:
    folder = Path(make_work_folder((str(tmp_path),), room_needed=1))
    assert folder.parent == tmp_path
    assert oct(folder.stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("why", ["missing", "full", "a file"])
def test_without_room_databases_lie_on_disk(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, memory = tmp_path / "disk", tmp_path / "memory"
    disk.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    if why == "full":
        memory.mkdir()
    elif why == "a file":
        memory.write_text("")
    room_needed = 2**62 if why == "full" else 1
    assert Path(make_work_folder((str(memory),), room_needed=room_needed)).parent == disk


def test_a_lane_says_that_its_databases_lie_on_disk(
    lane_of: Callable[..., Lane], tmp_path: Path
) -> None:
    lane = lane_of("subjects_hostile:Small", places=(str(tmp_path),))
    assert Path(lane.facts.work).parent == tmp_path
    assert any("/dev/shm" in fallen for fallen in lane.facts.fallen)
    assert value(lane.play(PLAIN, name="x")) == "'done'"


def test_a_place_that_fills_up_fails_the_script_in_words(
    lane_of: Callable[..., Lane], tmp_path: Path
) -> None:
    lane = lane_of("subjects_hostile:Small", places=(str(tmp_path),))
    work = Path(lane.facts.work)
    work.rename(tmp_path / "away")  # what root may do in spite of modes
    played = lane.play(PLAIN, name="x")
    assert type(played.error) is StageError
    assert "the stage of 'x' could not be set up: [Errno 2]" in str(played.error)
    with pytest.raises(StageError, match="could not be set up"):
        lane.open_stage(name="x")
    (tmp_path / "away").rename(work)
    assert value(lane.play(PLAIN, name="x")) == "'done'"


# -- warm workers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("job", ["change_surroundings", "patch_time"])
def test_a_warm_worker_starts_from_the_same_surroundings(
    job: str, lane_of: Callable[..., Lane]
) -> None:
    lane = lane_of("subjects_hostile:Hostile", workers="warm")
    describe = parse_script("spawn A to describe\nrun A")
    before = lane.play(describe, name="before")
    changed = lane.play(parse_script(f"spawn A to {job}\nrun A"), name="changed")
    after = lane.play(describe, name="after")
    pids = {e.pid for p in (before, changed, after) for e in p.history if isinstance(e, Spawned)}
    assert len(pids) == 1, "they were not the same process"
    assert value(after) == value(before)


@pytest.mark.parametrize("job", ["leave_children", "endless_threads", "crash"])
def test_a_worker_that_something_happened_to_does_not_stay_warm(
    job: str, lane_of: Callable[..., Lane]
) -> None:
    lane = lane_of("subjects_hostile:Hostile", workers="warm", forks_ahead=False)
    at_rest = set(descendants(lane._process.pid))
    lane.play(parse_script(f"spawn A to {job}\nrun A"), name="x")
    assert set(descendants(lane._process.pid)) == at_rest


def test_a_warm_worker_that_died_between_scripts_is_replaced(lane_of: Callable[..., Lane]) -> None:
    lane = lane_of("subjects_hostile:Small", workers="warm")
    played = lane.play(parse_script("spawn A\nrun A"), name="x")
    [spawned] = [event for event in played.history if isinstance(event, Spawned)]
    watch = Watch([spawned.pid])
    os.kill(spawned.pid, 9)
    watch.wait()
    assert value(lane.play(parse_script("spawn A\nrun A"), name="y")) == "'nothing to do'"


# -- the subject's own preparations ---------------------------------------------------------------


def deep() -> None:
    raise OSError(28, "No space left on device", "some.db")


class Unprepared(Small):
    def prepare(self, db: Path) -> None:
        deep()


class Exits(Small):
    def prepare(self, db: Path) -> None:
        sys.exit("not on this machine")


class Vanishes(Small):
    def prepare(self, db: Path) -> None:
        os.kill(os.getpid(), 9)


class Scribbles(Small):
    def prepare(self, db: Path) -> None:
        db.write_text("no database" * 1000)


class Speechless(Small):
    def prepare(self, db: Path) -> None:
        class Odd(Exception):
            def __str__(self) -> str:
                raise ValueError("not even a text")

        raise Odd


class Stays(Small):
    def __getstate__(self) -> object:
        deep()
        return {}


class Arrives(Small):
    def __getstate__(self) -> object:
        return {"something": 1}

    def __setstate__(self, state: object) -> None:
        deep()


class Fixed(Small):
    calls = ("sqlite3:Connection.execute",)


class ClaimsTooMuch(Small):
    claims = ("no_such_module:claim", "subjects_hostile:nothing")
    heartbeats = ("subjects_hostile",)


@pytest.mark.parametrize(
    ("subject", "kind", "told"),
    [
        (Unprepared, SubjectRaised, ("the subject's prepare() raised OSError: [Errno 28] No space",
                                     "in deep)", "called from", "in prepare")),
        (Exits, SubjectRaised, ("the subject's prepare() raised SystemExit: not on this machine",)),
        (Vanishes, SubjectFailed, ("the subject's prepare() ended its process (signal 9)",)),
        (Scribbles, SubjectFailed, ("prepare() left no SQLite database", "not a database")),
        (Speechless, SubjectRaised, ("raised Odd: (its text can't be had",)),
        (Stays(), SubjectRaised, ("sending the subject", "raised OSError", "in __getstate__")),
        (Arrives(), SubjectRaised, ("again in another process raised OSError", "in __setstate__")),
        (ClaimsTooMuch, SubjectError, ("'no_such_module:claim' can't be had: ModuleNotFound",
                                       "'subjects_hostile:nothing' can't be had: AttributeError",
                                       "'subjects_hostile' can't be had")),
        (Fixed, SubjectError, ("'sqlite3:Connection.execute' can't be made a point: TypeError",)),
    ],
)  # fmt: skip
def test_what_the_subjects_code_raises_is_told_with_its_own_lines_alone(
    subject: object, kind: type[Exception], told: tuple[str, ...], lane_of: Callable[..., Lane],
    tmp_path: Path,
) -> None:  # fmt: skip
    with pytest.raises(LeasecheckError) as caught:
        lane_of(subject, places=(str(tmp_path),))
    text = str(caught.value)
    assert type(caught.value) is kind, text
    for part in told:
        assert part in text
    for ours in ("Traceback", "lane_process.py", "child.py", "preparing.py", "subject_source.py"):
        assert ours not in text
    assert list(tmp_path.glob("leasecheck-*")) == []


def test_a_submit_that_fails_names_the_subjects_error(lane_of: Callable[..., Lane]) -> None:
    class Unsubmitted(Small):
        def submit(self, db: Path, run_id: str) -> None:
            raise ValueError(f"no room for {run_id}")

    played = lane_of(Unsubmitted).play(PLAIN, name="x")
    assert isinstance(played.error, StageError)
    said = str(played.error)
    assert "the subject's submit() raised ValueError: no room for r1 (" in said
    assert "in submit)" in said
    log = Path(played.error.log).read_text()
    assert "in submit" in log
    assert "in _run_job" not in log


def test_a_submit_that_ends_its_process_is_told(lane_of: Callable[..., Lane]) -> None:
    class Vanishing(Small):
        def submit(self, db: Path, run_id: str) -> None:
            os._exit(3)

    played = lane_of(Vanishing).play(PLAIN, name="x")
    assert "the subject's submit() ended (exit 3)" in str(played.error)


def test_a_job_that_raises_before_its_point_is_told_with_its_line(
    lane_of: Callable[..., Lane],
) -> None:
    class Fails(Small):
        def work(self, worker: Worker) -> str:
            deep()
            return ""

    played = lane_of(Fails).play(parse_script("spawn A\nuntil A inside before"), name="x")
    assert "it raised OSError: [Errno 28] No space left on device: 'some.db' (" in str(played.error)
    assert "in deep) after passing: nothing" in str(played.error)


def test_a_result_that_cannot_be_shown_is_its_jobs_error(lane_of: Callable[..., Lane]) -> None:
    class Odd:
        def __repr__(self) -> str:
            raise ValueError("no repr")

    class Returns(Small):
        def work(self, worker: Worker) -> Odd:  # type: ignore[override]  # the point of the test
            return Odd()

    played = lane_of(Returns).play(parse_script("spawn A\nrun A"), name="x")
    assert [e.error for e in played.history if isinstance(e, Returned)] == ["ValueError: no repr"]


@pytest.mark.parametrize(
    ("expires", "unit", "told"),
    [
        ("Tue, 01 Jan 2030 00:00:30 GMT", None, "can't be read as a time"),
        (1_900_000_000_000, "s", "have another unit than declared, or stand for never"),
    ],
)
def test_an_expiry_that_is_no_time_is_told_and_the_lane_lives(
    lane_of: Callable[..., Lane], expires: object, unit: Any, told: str
) -> None:
    class Odd(Plain):
        runs = RunTable(
            "jobs", id="id", status="status", terminal={"done"},
            lease=Lease(owner="owner", expires_at="note", unit=unit),
        )  # fmt: skip

        def work(self, worker: Worker) -> None:
            with sqlite3.connect(worker.db) as connection:
                connection.execute("UPDATE jobs SET owner = 'A', note = ?", (expires,))

    lane = lane_of(Odd)
    played = lane.play(parse_script("spawn A\nrun A\nexpire"), name="x")
    assert isinstance(played.error, StageError)
    assert told in str(played.error)
    assert lane.play(parse_script("spawn A\nrun A"), name="y").error is None


def test_a_base_class_is_no_subject_yet() -> None:
    with pytest.raises(SubjectError, match="declares no runs"):
        Lane(Subject, options=None)  # type: ignore[arg-type]  # it doesn't get that far


def test_a_worker_that_could_not_be_made_ready_says_why_in_its_log(
    lane_of: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REPLACED_ONCE", str(tmp_path / "once"))
    played = lane_of("subjects_importing:Replaced").play(PLAIN, name="x")
    assert isinstance(played.error, StageError)
    assert "FileExistsError" in played.logs["operator#1"].read_text()
