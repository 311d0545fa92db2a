"""`races(MySubject)` and `Races` in a module of one's own: Hypothesis's settings and database."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

QUEUES = str(runpy.run_path(str(Path(__file__).with_name("test_sweep.py")))["QUEUES"])


@pytest.fixture
def consumer(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("CI", raising=False)  # with it Hypothesis keeps no database
    pytester.makepyfile(queues=QUEUES)
    return pytester


def test_a_right_subject_passes_under_ordinary_settings(consumer: pytest.Pytester) -> None:
    consumer.makepyfile("""
        from hypothesis import settings
        from pytest_leasecheck.testkit.explore import races
        from queues import Queue

        TestRaces = races(Queue, workers="warm")
        TestRaces.settings = settings(max_examples=6, stateful_step_count=5, deadline=None)
    """)
    result = consumer.runpytest_subprocess("--hypothesis-show-statistics")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*6 passing*", "*stale attempts: *"])


def test_a_race_is_shrunk_printed_and_remembered(consumer: pytest.Pytester) -> None:
    consumer.makepyfile("""
        from hypothesis import Phase, settings
        from pytest_leasecheck.testkit.explore import races
        from queues import Unfenced

        TestRaces = races(Unfenced, workers="warm")
        assert Phase.reuse in TestRaces.settings.phases
        assert Phase.shrink not in TestRaces.settings.phases  # the kit shrinks, in fewer plays
        TestRaces.settings = settings(TestRaces.settings, max_examples=300, stateful_step_count=5)
    """)
    result = consumer.runpytest_subprocess()  # with a seed Hypothesis keeps nothing
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*V1 a stale write landed: *", "*submit run-1*", "*drain*"])
    result.stdout.no_fnmatch_line("*state.begin()*")  # what Hypothesis chose, unshrunk
    again = consumer.runpytest_subprocess("--hypothesis-show-statistics")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines("*during reuse phase*")


def test_rules_and_findings_of_ones_own(consumer: pytest.Pytester) -> None:
    consumer.makepyfile("""
        from hypothesis import settings
        from hypothesis.stateful import rule
        from pytest_leasecheck.testkit.explore import Races
        from pytest_leasecheck.testkit.history import Acted
        from pytest_leasecheck.testkit.verdict import Finding
        from queues import Queue

        class OwnRaces(Races):
            subject = Queue
            most_workers = 1

            @rule()
            def pushed_aside(self):
                self.perform("stop A\\ncont A")

            def also(self, history, verdict):
                for event in history.events:
                    if isinstance(event, Acted) and event.text == "stop A":
                        yield Finding("own", "nobody may be stopped", "A#1 was stopped", event.n)

        TestOwn = OwnRaces.TestCase
        TestOwn.settings = settings(max_examples=20, stateful_step_count=4, deadline=None)
    """)
    result = consumer.runpytest_subprocess("--hypothesis-seed=1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("*nobody may be stopped*")
