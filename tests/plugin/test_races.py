"""`races(MySubject)` and `Races` in a module of one's own: Hypothesis's settings and database."""

from __future__ import annotations

import re
import runpy
import signal
import subprocess
import sys
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

        TestRaces = races(Queue, workers="warm", may_be_harmless=True)
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
        TestRaces.races.told_so_far = staticmethod(lambda so_far: print("so far:", so_far.scripts))
    """)
    result = consumer.runpytest_subprocess("-s")  # with a seed Hypothesis keeps nothing
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*V1 a stale write landed: *", "*submit run-1*", "*drain*"])
    result.stdout.no_fnmatch_line("*state.begin()*")  # what Hypothesis chose, unshrunk
    result.stdout.fnmatch_lines("so far: 2")
    again = consumer.runpytest_subprocess("-s")
    again.assert_outcomes(failed=1)
    again.stdout.no_fnmatch_line("so far: 2")  # what failed is tried first


OWN = """
from hypothesis import settings
from hypothesis.stateful import invariant, rule
from pytest_leasecheck.testkit.explore import Races
from pytest_leasecheck.testkit.history import Acted
from pytest_leasecheck.testkit.verdict import Finding
from queues import Queue, Unfenced

class OwnRaces(Races):
    subject = Queue
    made = 0

    def __init__(self):
        super().__init__()
        type(self).made += 1

    @rule()
    def pushed_aside(self):
        self.perform("stop A\\ncont A")
{body}

TestOwn = OwnRaces.TestCase
TestOwn.settings = settings(max_examples=300, stateful_step_count={steps}, deadline=None)

def teardown_module():
    print(OwnRaces.made, "examples were made")
"""


def own(consumer: pytest.Pytester, body: str, *, steps: int = 6) -> str:
    consumer.makepyfile(OWN.format(body=body, steps=steps))
    result = consumer.runpytest_subprocess("--hypothesis-seed=1", "-s")
    result.assert_outcomes(failed=1)
    made = next(line for line in result.outlines if line.endswith("examples were made"))
    # Hypothesis's own shrinking makes a thousand, and many more where a target was sought.
    assert int(made.removesuffix(" examples were made").rpartition("F")[2]) < 500, made
    return result.stdout.str()


def printed(said: str, heading: str, following: str) -> list[str]:
    """The lines under one of a failure's headings."""
    block = said.partition(f"    {heading}\n")[2].partition(f"    {following}\n")[0]
    return [line.removeprefix("        ") for line in block.splitlines() if line.strip()]


def script_in(said: str) -> list[str]:
    """The script as it is printed."""
    return printed(said, "script", "as Python")


def test_a_race_of_ones_own_machine_is_shrunk_by_the_kit(consumer: pytest.Pytester) -> None:
    said = own(consumer, """
    subject = Unfenced

    def also(self, history, verdict):
        return ()
    """)  # fmt: skip
    assert "V1 a stale write landed: " in said
    assert len(script_in(said)) < 9
    assert "def test_race(stage):" in printed(said, "as Python", "timeline")
    assert len(script_in(said)) > 4
    assert "state.begin()" not in said


def test_findings_of_ones_own_are_judged_along(consumer: pytest.Pytester) -> None:
    said = own(consumer, """
    def also(self, history, verdict):
        for event in history.events:
            if isinstance(event, Acted) and event.text == "stop A":
                yield Finding("own", "nobody may be stopped", "A#1 was stopped", "run-1", "A#1")
    """)  # fmt: skip
    assert "own nobody may be stopped: A#1 was stopped" in said
    assert "nondeterministic" not in said
    assert script_in(said) == ["spawn A", "stop A", "heal", "drain"]
    assert 'OwnRaces.replay("""' in said
    assert "--leasecheck-replay=" not in said  # which would not judge what is own
    assert_pasted_fails(consumer, said, "nobody may be stopped")


def test_invariants_of_ones_own_are_judged_along(consumer: pytest.Pytester) -> None:
    said = own(consumer, """
    @invariant()
    def alone(self):
        assert "B" not in self.states, "there is a B"
    """)  # fmt: skip
    assert "own alone raised AssertionError: there is a B" in said
    assert script_in(said) == ["spawn B", "heal", "drain"]
    assert_pasted_fails(consumer, said, "there is a B")


def test_a_mistake_in_ones_own_findings_is_told_with_its_place(consumer: pytest.Pytester) -> None:
    said = own(consumer, """
    def also(self, history, verdict):
        return [Finding("own", "too few words")]
    """)  # fmt: skip
    assert "own also raised TypeError: " in said
    assert ", line 21)" in said


@pytest.mark.parametrize("first", ["pass", "self.perform('submit run-1')"], ids=["", "refused"])
def test_what_only_a_rule_can_bring_about_is_told_at_once_and_not_shrunk(
    consumer: pytest.Pytester, first: str
) -> None:
    """An action that is refused leaves its trace in what happened, and is no part of the script."""
    said = own(consumer, f"""
    @rule()
    def refuses(self):
        {first}
        assert "B" not in self.states, "a rule saw B"
    """)  # fmt: skip
    assert "own refuses raised AssertionError: a rule saw B" in said
    assert "not shrunk: the script alone does not bring it about again" in said
    assert "nondeterministic" not in said


def assert_pasted_fails(consumer: pytest.Pytester, said: str, what: str) -> None:
    """The printed Python, pasted beside the class, fails by the same finding."""
    python = "\n".join(printed(said, "as Python", "timeline"))
    module = next(consumer.path.glob("test_*.py")).stem
    (consumer.path / "test_pasted.py").write_text(f"from {module} import OwnRaces\n\n{python}")
    result = consumer.runpytest_subprocess("test_pasted.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(f"*{what}*")


SEARCH = """
from hypothesis import settings
from pytest_leasecheck.testkit.explore import races
from queues import Queue, Unfenced

TestRaces = races({what})
TestRaces.settings = settings(TestRaces.settings, max_examples={examples})
"""


@pytest.mark.parametrize("how", [(), ("-n", "1"), ("--leasecheck", "--leasecheck-sweep=off")])
def test_a_search_adds_its_tally_to_the_summary(
    consumer: pytest.Pytester, how: tuple[str, ...]
) -> None:
    consumer.makepyfile(SEARCH.format(what='Queue, workers="warm"', examples=25))
    if "--leasecheck" in how:
        how = (*how, "--leasecheck-subject=queues:Queue", ".")
    args = ("--hypothesis-seed=3", "--junitxml=j.xml", *how)
    result = consumer.runpytest_subprocess(*args)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "subject       queues:Queue",
            "held          a stale token never writes * 25 scripts, * stale attempts, none landed",
            "  refused by  *changed nothing (*",
            "explored      25 scripts, * steps, * % wasted*",
        ]
    )
    junit = (consumer.path / "j.xml").read_text()
    assert 'name="leasecheck.explored" value="25 ' in junit
    assert 'name="leasecheck.refused by"' in junit


def test_a_failure_is_kept_and_plays_besides_are_told_apart(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(SEARCH.format(what='Unfenced, workers="warm"', examples=60))
    result = consumer.runpytest_subprocess("--hypothesis-seed=3")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("BROKEN        a stale token never writes * V1 in *")
    told = re.search(r"^explored +(\d+) scripts, .*; besides, 2 plays to believe a failure and"
                     r" (\d+) to shrink it", result.stdout.str(), re.MULTILINE)  # fmt: skip
    assert told is not None
    assert int(told[1]) <= 60
    assert int(told[2]) > 2
    command = next(line for line in result.outlines if line.startswith("pytest --leasecheck "))
    replayed = consumer.runpytest_subprocess(*command.split()[1:])
    replayed.assert_outcomes(failed=1)


def test_a_search_without_danger_is_inconclusive_unless_it_may_be(
    consumer: pytest.Pytester,
) -> None:
    alone = "Queue, workers='warm', most_workers=1"
    consumer.makepyfile(SEARCH.format(what=alone, examples=2))
    result = consumer.runpytest_subprocess("--hypothesis-seed=3")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*inconclusive, so nothing is proven: in 2 scripts no stale attempt was made, and no *",
            "inconclusive  1 test proved nothing: *",
            "explored      2 scripts, *; never came about: a stale attempt, an interrupted step*",
        ]
    )
    consumer.makepyfile(SEARCH.format(what=f"{alone}, may_be_harmless=True", examples=2))
    result = consumer.runpytest_subprocess("--hypothesis-seed=3")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines("*; never came about: a stale attempt, an interrupted step*")


def test_ctrl_c_in_the_middle_tells_what_was_found_so_far(consumer: pytest.Pytester) -> None:
    consumer.makepyfile(SEARCH.format(what="Queue, workers='warm'", examples=100_000))
    command = [sys.executable, "-m", "pytest"]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with consumer.popen(command, **pipe) as process:
        assert process.stdout is not None
        said = ""
        while "explored " not in said:  # it says something every two seconds
            line = process.stdout.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert re.search(r"leasecheck: interrupted after \d+ scripts: no fault so far", rest), rest
    assert process.returncode == pytest.ExitCode.INTERRUPTED


def test_ctrl_c_while_a_failure_is_shrunk_tells_its_script(consumer: pytest.Pytester) -> None:
    body = """
    subject = Unfenced
    failed = 0

    def also(self, history, verdict):
        type(self).failed += any(one.severity == "fault" for one in verdict.findings)
        if self.failed > 5:
            raise KeyboardInterrupt  # as one that comes while the script is being shrunk
        return ()
    """
    consumer.makepyfile(OWN.format(body=body, steps=6))
    result = consumer.runpytest_subprocess("--hypothesis-seed=1")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "leasecheck: interrupted after * scripts: *V1 a stale write landed*",
            "leasecheck: its script, not shrunk yet:",
            "    submit run-1",
            "    drain",
        ]
    )
