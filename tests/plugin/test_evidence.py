"""`--leasecheck-evidence` and `--leasecheck-keep`: where evidence lies, and for how long."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_leasecheck.evidence import Evidence, folder_name, make_session_folder

Run = Callable[..., pytest.RunResult]


def test_nothing_is_left_of_a_run_that_passed(consumer: pytest.Pytester, leasecheck: Run) -> None:
    leasecheck().assert_outcomes(passed=2, skipped=1)
    assert not (consumer.path / ".leasecheck").exists()


@pytest.mark.parametrize("distributed", [False, True])
def test_evidence_of_a_failure_is_private_and_complete(
    consumer: pytest.Pytester, leasecheck: Run, distributed: bool
) -> None:
    leasecheck("leasecheck/classic::finished", *["-n1"] * distributed, subject="Stale")
    top = consumer.path / ".leasecheck"
    assert (top / ".gitignore").read_text().splitlines()[-1] == "*"
    (session,) = (path for path in top.iterdir() if path.is_dir())
    (folder,) = top.rglob("leasecheck-classic--finished")
    assert {path.name for path in folder.iterdir()} == {"script.txt", "history.jsonl", "A#1.log"}
    assert (
        (folder / "script.txt")
        .read_text()
        .startswith("# scenario: finished\n# requires: stale attempt by A\nsubmit r1\n")
    )
    for path in (top, session, folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for name in ("script.txt", "history.jsonl"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_keep_keeps_what_passed(consumer: pytest.Pytester, leasecheck: Run) -> None:
    result = leasecheck("--leasecheck-keep", "--leasecheck-evidence=kept")
    result.stdout.fnmatch_lines("evidence      kept/*")
    assert len(list((consumer.path / "kept").rglob("history.jsonl"))) == 2


def test_sessions_never_share_a_folder(consumer: pytest.Pytester, leasecheck: Run) -> None:
    for _ in range(2):
        leasecheck("leasecheck/classic::finished", subject="Stale")
    assert len(list((consumer.path / ".leasecheck").rglob("history.jsonl"))) == 2


def test_ini_line_is_relative_to_rootdir(consumer: pytest.Pytester, leasecheck: Run) -> None:
    consumer.makeini("[pytest]\nleasecheck_evidence = out/evidence\n")
    leasecheck("leasecheck/classic::finished", subject="Stale")
    assert len(list((consumer.path / "out" / "evidence").rglob("history.jsonl"))) == 1


def test_folder_that_is_a_file_is_a_usage_error(consumer: pytest.Pytester, leasecheck: Run) -> None:
    (consumer.path / "taken").write_text("")
    result = leasecheck("--leasecheck-evidence=taken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("ERROR: leasecheck can't write its evidence to *taken: *")


def test_default_folder_that_cant_be_written_gives_way_with_a_notice(tmp_path: Path) -> None:
    # A file in the folder's place refuses root as well, whom permissions don't.
    (tmp_path / ".leasecheck").write_text("")
    evidence = make_session_folder(None, rootpath=tmp_path)
    try:
        assert evidence.folder.is_dir()
        assert not evidence.folder.is_relative_to(tmp_path)
        assert "rootdir can't be written" in evidence.notice
    finally:
        os.rmdir(evidence.folder)


def test_test_that_is_run_again_has_a_folder_of_its_own(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path)
    first = evidence.fresh("leasecheck/classic::finished")
    first.mkdir()
    assert evidence.fresh("leasecheck/classic::finished").name == f"{first.name}-2"


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("leasecheck/classic::finished", "leasecheck-classic--finished"),
        ("tests/test_a.py::test_x[../../etc/passwd]", "tests-test_a.py--test_x-..-..-etc-passwd"),
        ("\0\n", "test"),
    ],
)
def test_folder_names_are_harmless(nodeid: str, name: str) -> None:
    assert folder_name(nodeid) == name


def test_long_ids_stay_apart_within_the_file_systems_limit() -> None:
    one, other = (folder_name("x" * 300 + end) for end in "ab")
    assert one != other
    assert len(one.encode()) < 200
