"""Files that are named by people: read with care, written whole, and no device replaced."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.files import read_file, replace_file, write_new


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    """A page that goes to /dev/null must leave one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, "a page")
    reader.join()
    assert heard == [b"a page"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_is_followed_and_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    replace_file(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"


def test_a_page_with_a_lone_surrogate_is_written(tmp_path: Path) -> None:
    replace_file(tmp_path / "page", "id \ud800")
    assert (tmp_path / "page").read_text() == "id \\ud800"


def test_a_folder_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        read_file(tmp_path)


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "evidence"
    write_new(file, "first")
    with pytest.raises(FileExistsError, match="never overwritten"):
        write_new(file, "second")
    assert file.read_text() == "first"
    assert file.stat().st_mode & 0o777 == 0o600
