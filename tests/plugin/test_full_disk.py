"""A really full disk, where evidence goes and where databases lie: clear outcomes, whole files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.history_json import load

SUITE = ("--leasecheck", "--leasecheck-subject=reference", "-p", "no:cacheprovider")

FILLS = """
import sqlite3
from contextlib import closing
from pathlib import Path

from pytest_leasecheck.scenarios.reference_subject import ReferenceSubject


class Fills(ReferenceSubject):
    def work(self, worker):
        full = Path("once")
        if not full.exists():
            full.touch()
            with closing(sqlite3.connect(worker.db)) as connection, connection:
                connection.execute("CREATE TABLE big (x)")
                for _ in range(100):
                    connection.execute("INSERT INTO big VALUES (zeroblob(1000000))")
        return super().work(worker)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a disk of a size; all are taken away at the end."""
    disks: list[Path] = []

    def mount(options: str) -> Path:
        disk = tmp_path / f"disk{len(disks)}"
        disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "leasecheck-test", str(disk)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            pytest.skip(f"nothing can be mounted here: {error}")
        if done.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
        disks.append(disk)
        return disk

    yield mount
    for disk in disks:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("options", ["size=8k", "size=40k", "size=64k,nr_inodes=8"])
def test_evidence_on_a_full_disk_is_whole_or_not_there_and_told(
    options: str, small_disk: Callable[[str], Path], pytester: pytest.Pytester
) -> None:
    disk = small_disk(options)
    result = pytester.runpytest_subprocess(
        *SUITE, f"--leasecheck-evidence={disk / 'evidence'}", "--leasecheck-keep",
        "leasecheck/classic",
    )  # fmt: skip
    result.stdout.fnmatch_lines("evidence      of * not all could be kept: No space left on de*")
    said = result.stdout.str()
    assert "Traceback" not in said
    assert "INTERNALERROR" not in said
    if "inodes" not in options:  # there the stages themselves want folders that can't be made
        assert set(result.parseoutcomes()) == {"passed"}
    for script in disk.rglob("script*.txt"):
        assert script.read_text().startswith("# scenario: ")
        assert script.read_text().endswith("\n")
    for history in disk.rglob("history*.jsonl"):
        assert not any("cut off" in getattr(e, "text", "") for e in load(history).events)


def test_a_full_disk_destroys_no_evidence_that_was_there(
    small_disk: Callable[[str], Path], pytester: pytest.Pytester
) -> None:
    disk = small_disk("size=100k")
    flags = (*SUITE, f"--leasecheck-evidence={disk / 'evidence'}", "--leasecheck-keep")
    pytester.runpytest_subprocess(*flags, "leasecheck/classic::eight_steps")
    before = {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}
    assert any(path.name == "history.jsonl" for path in before)
    pytester.runpytest_subprocess(*flags, "leasecheck/classic")
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("size", ["34m", "1m"])
def test_shared_memory_that_is_small_or_fills_up(size: str, pytester: pytest.Pytester) -> None:
    """In a mount namespace of its own, as in a container."""
    pytester.makepyfile(fills=FILLS)
    tests = ("leasecheck/classic::eight_steps", "leasecheck/classic::killed_before_its_effect")
    flags = ("--leasecheck", "--leasecheck-subject=fills:Fills", "-p", "no:cacheprovider", "-v")
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c",
         f'mount -t tmpfs -o size={size} none /dev/shm || exit 99; "$@"; ls -A /dev/shm', "bash",
         sys.executable, "-m", "pytest", *flags, *tests],
        cwd=pytester.path, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    if size == "34m":  # room enough to begin with
        assert "raised OperationalError: database or disk is full (fills.py:" in done.stdout
        assert "1 failed, 1 passed" in done.stdout
    else:
        assert "/dev/shm has no room: databases lie on disk" in done.stdout
        assert "2 passed" in done.stdout
    assert "INTERNALERROR" not in done.stdout
    assert done.stdout.endswith("==\n"), "something is left in /dev/shm"
