"""Hooks of ours: more scenarios, more invariants, a look at each history."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., pytest.RunResult]


def add(consumer: pytest.Pytester, text: str) -> None:
    with (consumer.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\nfrom pytest_leasecheck.testkit.scenario import Scenario\n"
            "from pytest_leasecheck.testkit.verdict import Finding\n" + text
        )


SCENARIO = """
def pytest_leasecheck_scenarios(config):
    return [Scenario(name="mine", story="Ours.", script="submit r1\\ndrain\\n", requires=())]
"""


def test_scenarios_are_mounted_under_their_plugins_name(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    add(consumer, SCENARIO)
    leasecheck("leasecheck/conftest::mine").assert_outcomes(passed=1)
    leasecheck("-n", "1").assert_outcomes(passed=3, skipped=1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SCENARIO.replace("return [", "return [3, "), "*'conftest' returned a int, not a Scen*"),
        (SCENARIO.replace("return [", "return 2 * ["), "*conftest has two scenarios named 'mine'"),
        (SCENARIO.replace("drain", "fly"), "*script of leasecheck/conftest::mine * line 2*"),
        (SCENARIO.replace("=()", "=('luck',)"), "what leasecheck/conftest::mine requires: *luck*"),
    ],
)
def test_wrong_scenarios_are_usage_errors(
    consumer: pytest.Pytester, leasecheck: Run, text: str, line: str
) -> None:
    add(consumer, text)
    result = leasecheck()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(f"ERROR: {line}")


def test_invariant_of_ones_own_fails_a_test(consumer: pytest.Pytester, leasecheck: Run) -> None:
    add(
        consumer,
        "def no_b(history, verdict):\n"
        "    return [Finding('MINE1', 'B was here', 'B#1 should not be', 'r1', 'B#1')]\n"
        "def pytest_leasecheck_invariants(config): return [no_b]\n",
    )
    result = leasecheck("leasecheck/classic::finished")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "MINE1 B was here: B#1 should not be",
            "MINE1 is none of V1 to V11: a check that comes with the scenario, or yours *",
            "BROKEN        MINE1 in leasecheck/*; MINE1 is none of V1 to V11: a check that *",
        ]
    )


def test_invariant_that_raises_fails_and_hides_no_finding(
    consumer: pytest.Pytester, leasecheck: Run
) -> None:
    add(
        consumer,
        "def shaky(history, verdict): return [][1]\n"
        "def pytest_leasecheck_invariants(config): return [shaky]\n",
    )
    result = leasecheck("leasecheck/classic::finished")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("the invariant shaky raised IndexError: *")
    result = leasecheck("leasecheck/classic::finished", subject="Stale")
    result.stdout.fnmatch_lines(["V1 a stale write landed: *", "*the invariant shaky raised *"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def pytest_leasecheck_scenarios(config): raise OSError('no list today')",
         "ERROR: pytest_leasecheck_scenarios() of 'conftest' raised OSError: no list today"
         " (conftest.py:* in pytest_leasecheck_scenarios)"),
        ("def pytest_leasecheck_scenarios(config): return 'mine'",
         "ERROR: pytest_leasecheck_scenarios() of 'conftest' returned a str, not a list"),
    ],
)  # fmt: skip
def test_a_scenarios_hook_that_fails_is_a_usage_error(
    consumer: pytest.Pytester, leasecheck: Run, text: str, told: str
) -> None:
    add(consumer, text)
    result = leasecheck()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(told)
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def pytest_leasecheck_invariants(config): raise OSError('none today')",
         "pytest_leasecheck_invariants() of 'conftest' raised OSError: none today (conftest.py:*"),
        ("def pytest_leasecheck_invariants(config): return 7",
         "pytest_leasecheck_invariants() of 'conftest' returned a int, not a list"),
        ("def pytest_leasecheck_invariants(config): return [7]",
         "the invariant 7 raised TypeError: 'int' object is not callable"),
        ("def odd(history, verdict): return ['bad']\n"
         "def pytest_leasecheck_invariants(config): return [odd]",
         "the invariant odd returned a str, not a Finding"),
        ("def odd(history, verdict): raise SystemExit(3)\n"
         "def pytest_leasecheck_invariants(config): return [odd]",
         "the invariant odd raised SystemExit: 3 (conftest.py:* in odd)"),
        ("def pytest_leasecheck_history(history, verdict, item): raise OSError('disk')",
         "pytest_leasecheck_history() of 'conftest' raised OSError: disk (conftest.py:*"),
    ],
)  # fmt: skip
def test_a_hook_that_fails_is_told_in_words_and_hides_no_finding(
    consumer: pytest.Pytester, leasecheck: Run, text: str, told: str
) -> None:
    add(consumer, text)
    result = leasecheck("leasecheck/classic::finished")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(told)
    result = leasecheck("leasecheck/classic::finished", subject="Stale")
    result.stdout.fnmatch_lines(["V1 a stale write landed: *", f"*{told}"])
    assert "Traceback" not in result.stdout.str()
    assert "_callers" not in result.stdout.str()


def test_history_hook_sees_each_history(consumer: pytest.Pytester, leasecheck: Run) -> None:
    add(
        consumer,
        "def pytest_leasecheck_history(history, verdict, item):\n"
        "    print('SEEN', item.name, len(history.events), verdict.outcome)\n",
    )
    result = leasecheck("-s", "leasecheck/classic")
    result.stdout.fnmatch_lines(["*SEEN finished 13 pass*", "*SEEN still_held 14 pass*"])


def test_hooks_of_the_page_do_what_it_says(
    pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    page = (project / "docs" / "howto" / "use-in-your-own-tests.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page.partition("## Hooks")[2], flags=re.DOTALL)
    assert len(blocks) == 3
    conftest = "\n".join(blocks)
    reference = ("--leasecheck", "--leasecheck-subject=reference", "leasecheck/conftest")
    pytester.makeconftest(conftest)
    result = pytester.runpytest_subprocess(*reference, "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines("*leasecheck/conftest::double_deploy PASSED*")
    (line,) = (pytester.path / "leasecheck-trend.jsonl").read_text().splitlines()
    assert json.loads(line)["outcome"] == "pass"
    pytester.makeconftest(conftest.replace("and not event.key", "and event.key"))
    result = pytester.runpytest_subprocess(*reference)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("HOUSE1 a mail without a key: *")
