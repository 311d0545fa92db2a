"""Workers' logs: of what is too long the end is kept, and what was dropped is said."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_leasecheck.testkit import logs


def test_a_short_log_stays_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "A#1.log"
    log.write_text("short\n")
    assert logs.trim(str(log), most=10, kept=5) == 0
    assert log.read_text() == "short\n"


def test_of_a_long_log_the_end_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "A#1.log"
    log.write_bytes(b"0123456789" * 10 + b"the end")
    assert logs.trim(str(log), most=50, kept=7) == 100
    assert log.read_text() == "[100 bytes of output were dropped here]\nthe end"


def test_its_author_goes_on_behind_the_cut(tmp_path: Path) -> None:
    """Else the file would have a hole as long as what was dropped."""
    log = tmp_path / "A#1.log"
    fd = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.write(fd, b"x" * 100)
    logs.trim(str(log), most=50, kept=3)
    os.write(fd, b" and more")
    os.close(fd)
    assert log.read_text().endswith("\nxxx and more")


def test_what_is_no_log_is_left_alone(tmp_path: Path) -> None:
    """A worker may put anything in its log's place."""
    target = tmp_path / "precious"
    target.write_bytes(b"p" * 100)
    link = tmp_path / "A#1.log"
    link.symlink_to(target)
    fifo = tmp_path / "B#1.log"
    os.mkfifo(fifo)
    assert logs.trim(str(link), most=10, kept=5) == 0
    assert logs.trim(str(fifo), most=-1, kept=5) == 0
    assert logs.trim(str(tmp_path / "missing"), most=10, kept=5) == 0
    assert target.stat().st_size == 100
    assert logs.tail(str(link)) == ""


def test_a_tail_is_text_whatever_bytes_it_has(tmp_path: Path) -> None:
    log = tmp_path / "A#1.log"
    log.write_bytes(b"abc\xff\xfe\x00def")
    assert logs.tail(str(log), size=5) == "\ufffd\x00def"
    assert logs.tail(str(tmp_path / "missing")) == ""


def test_what_grows_gives_its_beginning_back_and_loses_nothing_that_comes(tmp_path: Path) -> None:
    log = tmp_path / "A#1.log"
    log.write_bytes(b"x" * 1_000_000 + b"the end of what was there\n")
    length = log.stat().st_size
    with log.open("ab", buffering=0) as author:
        dropped = logs.thin(str(log), most=500_000, kept=10_000)
        author.write(b"the last line\n")
    assert dropped == length - 10_000
    assert log.stat().st_blocks * 512 < 100_000
    assert log.read_bytes().endswith(b"the end of what was there\nthe last line\n")
    assert logs.thin(str(log), most=500_000, kept=10_000) == 0
    logs.trim(str(log), most=500_000, kept=10_000)
    assert log.read_bytes().endswith(b"the last line\n")
    assert b"bytes of output were dropped here" in log.read_bytes()[:100]
    assert b"\0" not in log.read_bytes()


def test_without_holes_what_grows_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_libc", SimpleNamespace(fallocate=lambda *_: -1))
    log = tmp_path / "A#1.log"
    log.write_bytes(b"x" * 1_000_000 + b"the end\n")
    assert logs.thin(str(log), most=500_000, kept=10_000) == 1_000_008 - 10_000
    assert log.stat().st_size < 20_000
