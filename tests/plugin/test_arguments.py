"""Which of the command line's paths are ours."""

from pathlib import Path

import pytest

from pytest_leasecheck.mount import split_arguments


@pytest.mark.parametrize(
    ("args", "ours", "theirs"),
    [
        (["leasecheck"], ["leasecheck"], []),
        (["./leasecheck/classic/"], ["leasecheck/classic"], []),
        (["leasecheck/classic::a[b::c/d]"], ["leasecheck/classic::a[b::c/d]"], []),
        (["leasechecks"], [], ["leasechecks"]),
        (["leasecheck.py"], [], ["leasecheck.py"]),
        (["tests/leasecheck"], [], ["tests/leasecheck"]),
        (["tests", "leasecheck/x"], ["leasecheck/x"], ["tests"]),
    ],
)
def test_what_names_no_file_of_theirs_is_ours(
    tmp_path: Path, args: list[str], ours: list[str], theirs: list[str]
) -> None:
    split = split_arguments(args, here=tmp_path)
    assert (list(split.ours), list(split.theirs)) == (ours, theirs)


def test_their_file_is_theirs_and_their_folder_is_both(tmp_path: Path) -> None:
    (tmp_path / "leasecheck").mkdir()
    (tmp_path / "leasecheck" / "test_a.py").write_text("")
    args = ["leasecheck/test_a.py::test_b", "leasecheck/classic"]
    split = split_arguments(args, here=tmp_path)
    assert split.ours == ("leasecheck/classic",)
    assert split.theirs == ("leasecheck/test_a.py::test_b",)
    both = split_arguments(["leasecheck"], here=tmp_path)
    assert (both.ours, both.theirs) == (("leasecheck",), ("leasecheck",))
