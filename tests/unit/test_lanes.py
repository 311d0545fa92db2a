"""The session's lanes: a subject that hung once is not waited for two hundred times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_leasecheck.lanes import Lanes
from pytest_leasecheck.testkit.errors import SubjectFailed
from pytest_leasecheck.testkit.subject import Subject


class One(Subject):
    pass


class Other(Subject):
    pass


@pytest.mark.parametrize(("hung", "asked"), [(True, 1), (False, 3)])
def test_a_subject_that_hangs_is_asked_once(
    hung: bool, asked: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[Subject] = []

    def start(subject: Subject, **_: Any) -> None:
        started.append(subject)
        raise SubjectFailed("prepare() did not come to an end", hung=hung)

    monkeypatch.setattr("pytest_leasecheck.engine.start_lane", start)
    lanes: Any = Lanes(None, folder=tmp_path)  # type: ignore[arg-type]  # nothing reads them here
    for number in range(3):
        with pytest.raises(SubjectFailed, match="did not come to an end") as told:
            lanes.lane_for(One())
        assert ("not asked again" in str(told.value)) == (hung and number > 0)
    assert len(started) == asked
    with pytest.raises(SubjectFailed):
        lanes.lane_for(Other())
    assert len(started) == asked + 1
