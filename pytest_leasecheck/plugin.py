"""The pytest plugin's face: options and light hooks.

Without one of its flags this module imports pytest and nothing more; all else is imported inside
the functions that need it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .fixtures import CheckedStage
    from .testkit.scenario import Scenario
    from .testkit.verdict import Verdict

#: Flags that print something about a subject and run no test.
_PRINTS = ("leasecheck_doctor", "leasecheck_points", "leasecheck_explain")

_MARK = (
    "leasecheck(subject=None, judge=True, requires=(), holds=...): this test's subject, and how its"
    " `stage` is judged at the end; also the mark of every item of the suite."
)


def _seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _soak(text: str) -> float | int:
    """`30s`, `5m`: seconds; `1000`: runs."""
    from .soaking import amount

    return amount(text)


def _count(text: str) -> int:
    """A number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options; none does anything unless it is given."""
    group = parser.getgroup("leasecheck", "failure injection for run leases")
    _add_suite(group)
    _add_searches(group)
    _add_outputs(group)
    parser.addini("leasecheck_subject", "the Subject to test: pkg.mod:Name or reference")
    parser.addini("leasecheck_evidence", "where leasecheck's evidence is kept")
    parser.addini("leasecheck_clock", "auto, virtual or wall")
    parser.addini("leasecheck_workers", "fresh or warm")
    parser.addini("leasecheck_sweep", "cheap, full or off")
    parser.addini("leasecheck_deadline", "real seconds that one move of a worker may take")


def _add_suite(group: pytest.OptionGroup) -> None:
    """What is played against whom, and on what."""
    group.addoption(
        "--leasecheck",
        action="store_true",
        help="play the leasecheck suite against your runtime: real workers are frozen, killed and"
        " replaced at exact points, and what was committed is judged",
    )
    group.addoption(
        "--leasecheck-subject",
        metavar="pkg.mod:Name|reference",
        help="the Subject that describes your runtime; 'reference' is the one that ships with"
        " leasecheck (ini: leasecheck_subject)",
    )
    group.addoption(
        "--leasecheck-evidence",
        metavar="DIR",
        help="where histories, scripts and worker logs are kept; .leasecheck below rootdir when"
        " not given (ini: leasecheck_evidence)",
    )
    group.addoption(
        "--leasecheck-keep",
        action="store_true",
        help="keep the evidence of tests that pass, too",
    )
    group.addoption(
        "--leasecheck-clock",
        choices=("auto", "virtual", "wall"),
        help="the clock that workers see; auto: virtual where the subject takes one, else wall"
        " (ini: leasecheck_clock)",
    )
    group.addoption(
        "--leasecheck-workers",
        choices=("fresh", "warm"),
        help="fresh: a new process for each worker (default); warm: re-used where nothing happened"
        " to it, faster (ini: leasecheck_workers)",
    )
    group.addoption(
        "--leasecheck-deadline",
        type=_seconds,
        metavar="SECONDS",
        help="real time that one move of a worker may take before the test fails; 10 when not"
        " given (ini: leasecheck_deadline)",
    )
    group.addoption(
        "--leasecheck-no-hooks",
        action="store_true",
        help="behave as if SQLite's symbols were hidden: no points at statements, changes told move"
        " by move, SQLite's own time and its lock waits real",
    )


def _add_searches(group: pytest.OptionGroup) -> None:
    """What is played beside the scenarios, or instead of them."""
    group.addoption(
        "--leasecheck-sweep",
        choices=("cheap", "full", "off"),
        help="how much of every point times every fault is played; cheap (default): workers killed"
        " and outlived around transactions and effects (ini: leasecheck_sweep)",
    )
    group.addoption(
        "--leasecheck-explore",
        type=_count,
        metavar="N",
        help="let Hypothesis mix N scripts from everything that can happen to a worker; draws a"
        " seed of its own and prints it, unless --hypothesis-seed is given",
    )
    group.addoption(
        "--leasecheck-soak",
        type=_soak,
        metavar="30s|N",
        help="let many workers race for many runs for so long, or for N runs at once, while random"
        " ones are stopped, continued and killed; then heal, drain and judge",
    )
    group.addoption(
        "--leasecheck-replay",
        metavar="FILE",
        help="play one saved script, or the script of a saved history, and nothing else",
    )


def _add_outputs(group: pytest.OptionGroup) -> None:
    """What is drawn, or printed instead of running tests."""
    group.addoption(
        "--leasecheck-report",
        metavar="FILE.html",
        help="draw every script that was played, with what was proved, as one self-contained page",
    )
    group.addoption(
        "--leasecheck-points",
        action="store_true",
        help="print the points that one undisturbed worker of your runtime passes, and exit",
    )
    group.addoption(
        "--leasecheck-explain",
        action="store_true",
        help="print how one undisturbed run was understood, commit by commit, and exit",
    )
    group.addoption(
        "--leasecheck-doctor",
        action="store_true",
        help="print what this environment can do: interpreter, SQLite, shared memory, what the"
        " subject's import does, which guarantees hold; and exit",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let conftests implement our hooks, whether or not the suite runs."""
    from . import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Print what a flag asks for instead of running tests."""
    if not any(config.getoption(flag) for flag in _PRINTS):
        return None
    from .printing import print_asked

    return print_asked(config)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark; with a flag, everything else."""
    config.addinivalue_line("markers", _MARK)
    asked = config.getoption("leasecheck") or config.getoption("leasecheck_replay")
    if asked and not config.getoption("help"):
        from .mount import mount_suite

        mount_suite(config)
    elif config.getoption("leasecheck_report"):
        from .runtime import runtime_of

        _ = runtime_of(config).evidence
    elif config.getoption("dist", "no") != "no":
        config.pluginmanager.register(_Listener(config), "leasecheck-listener")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Watch tests that explore, where a module that was collected has any."""
    if f"{__package__}.testkit.explore" in sys.modules:
        from .races import RacesWatch

        session.config.pluginmanager.register(RacesWatch(), "leasecheck-races")


class _Listener:
    """In pytest-xdist's controller: hand-written tests of ours run elsewhere, without a flag."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._heard = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Load the rest once a test turns out to be one of ours."""
        if self._heard or not report.user_properties:
            return
        if any(str(pair[0]).startswith("leasecheck.") for pair in report.user_properties):
            from .runtime import runtime_of

            self._heard = True
            runtime_of(self._config).pytest_runtest_logreport(report)


@pytest.fixture
def leasecheck_subject(request: pytest.FixtureRequest) -> Any:
    """The subject of this test's `stage`: its mark's, its class's, else the configured one.

    Override it to say so once for a folder, a file or a class.
    """
    from .fixtures import subject_of

    return subject_of(request)


@pytest.fixture
def leasecheck_scenario(
    request: pytest.FixtureRequest, leasecheck_subject: Any
) -> Callable[[str | Scenario], Verdict]:
    """Plays a scenario in a hand-written test: `leasecheck_scenario("classic::eight_steps")`.

    By the id that the suite has it under, or a `Scenario` of the test's own. Fails the test unless
    it is proven, skips it where the subject doesn't claim what the scenario is about.
    """
    from .fixtures import scenario_player

    return scenario_player(request, leasecheck_subject)


@pytest.fixture
def stage(request: pytest.FixtureRequest, leasecheck_subject: Any) -> Iterator[CheckedStage]:
    """A stage of the test's own: a database, a clock, a provider and real workers.

    When the test ends the stage is healed and drained, and what was committed is judged; see
    the mark `leasecheck`.
    """
    from .fixtures import open_stage

    with open_stage(request, leasecheck_subject) as opened:
        yield opened
