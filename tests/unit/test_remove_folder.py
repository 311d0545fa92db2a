"""What a lane removes is what it made: a link that a worker put in its place leads nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_leasecheck.testkit.guard import remove_folder


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "a").write_text("kept")
    (folder / "b").write_text("kept")
    return folder


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path, precious: Path) -> None:
    place = tmp_path / "place"
    place.symlink_to(precious)
    mode = precious.stat().st_mode
    remove_folder(str(place))
    assert not place.is_symlink()
    assert sorted(os.listdir(precious)) == ["a", "b"]
    assert precious.stat().st_mode == mode


def test_links_inside_a_folder_go_alone(tmp_path: Path, precious: Path) -> None:
    place = tmp_path / "place"
    (place / "deeper").mkdir(parents=True)
    (place / "link").symlink_to(precious)
    (place / "deeper" / "link").symlink_to(precious)
    remove_folder(str(place))
    assert not place.exists()
    assert sorted(os.listdir(precious)) == ["a", "b"]


def test_a_file_in_its_place_goes(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text("no folder")
    remove_folder(str(place))
    assert not place.exists()
    remove_folder(str(place))
