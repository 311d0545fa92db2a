"""Summary lines keep to the width; what may be searched for stays in one piece."""

import pytest

from pytest_leasecheck.wrapped_lines import glued, wrapped

IDS = [
    "leasecheck/sweep::kill[effect:charge#1-before]",
    "tests/test_mine.py::test_x[a b]",
    "leasecheck/classic::finished",
]
TEXT = "V1 in " + ", ".join(map(glued, IDS)) + " and 12 more; V1 is about stale writes"


@pytest.mark.parametrize("width", [1, 40, 60, 80, 100, 300])
def test_nothing_is_lost_and_no_id_is_broken(width: int) -> None:
    lines = wrapped(TEXT, width=width)
    assert " ".join(lines) == TEXT.replace("\N{NO-BREAK SPACE}", " ")
    assert all(any(one in line for line in lines) for one in IDS)
    longest = max(map(len, IDS)) + 1
    assert all(len(line) <= max(width - 14, longest) for line in lines)


def test_what_fits_is_one_line() -> None:
    assert wrapped("a  b", width=18) == ["a  b"]
    assert wrapped("a b", width=16) == ["a", "b"]
    assert wrapped("", width=80) == [""]
