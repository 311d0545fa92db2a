"""What an import pulls in, seen in a fresh interpreter (import-linter reads; this runs)."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_leasecheck

# multiprocess pickles with dill, and has a C module of its own.
OF_THE_KIT = ("pytest_leasecheck", "multiprocess", "_multiprocess", "dill")

ABSENT = """
import json, sys

def pytest_unconfigure(config):
    with open("modules.json", "w") as out:
        json.dump(sorted(sys.modules), out)
"""

ALL_OF_THE_KIT = """
import pkgutil, pytest_leasecheck.testkit as kit
for module in pkgutil.walk_packages(kit.__path__, kit.__name__ + "."):
    if not module.name.startswith("pytest_leasecheck.testkit.explore"):
        __import__(module.name)
"""


def modules_after(code: str, cwd: Path) -> set[str]:
    """The modules that ``code`` adds to those of a bare interpreter."""
    program = (
        f"import sys; before = set(sys.modules)\n{code}\n"
        "added = sorted(set(sys.modules) - before)\n"
        "import json; print(json.dumps(added))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def strangers(modules: set[str], *allowed: str) -> set[str]:
    """Top-level names that are neither the standard library's nor allowed."""
    tops = {name.split(".")[0] for name in modules}
    return tops - sys.stdlib_module_names - set(allowed)


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "pytest_leasecheck"}


def test_package_itself_imports_nothing(project: Path) -> None:
    assert modules_after("import pytest_leasecheck", project) == {"pytest_leasecheck"}


def test_plugin_imports_pytest_alone(project: Path) -> None:
    before = modules_after("import pytest", project)
    added = modules_after("import pytest; import pytest_leasecheck.plugin", project) - before
    assert strangers(added, "pytest_leasecheck", "pytest", "_pytest", "pluggy") == set()
    assert ours(added) <= {
        "pytest_leasecheck",
        "pytest_leasecheck.plugin",
        "pytest_leasecheck.hookspecs",
    }
    assert not added & {"sqlite3", "multiprocessing", "ctypes", "asyncio", "socket"}


def test_run_without_the_flag_imports_the_plugin_alone(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(ABSENT)
    pytester.makepyfile("def test_theirs(): pass")
    seen: list[set[str]] = []
    for extra in (["-p", "no:leasecheck"], []):
        pytester.runpytest_subprocess(*extra).assert_outcomes(passed=1)
        seen.append(set(json.loads((pytester.path / "modules.json").read_text())))
    without, present = seen
    assert "pytest_leasecheck.plugin" in present, "the entry point is not installed"
    assert present - without <= {
        "pytest_leasecheck",
        "pytest_leasecheck.plugin",
        "pytest_leasecheck.hookspecs",
    }


def test_kit_imports_the_standard_library_and_multiprocess(project: Path) -> None:
    added = modules_after(ALL_OF_THE_KIT, project)
    assert strangers(added, *OF_THE_KIT) == set()


def test_scenarios_need_no_pytest(project: Path) -> None:
    added = modules_after(ALL_OF_THE_KIT.replace("testkit", "scenarios"), project)
    assert strangers(added, *OF_THE_KIT) == set()


@pytest.mark.skipif("PYTHONPATH" in os.environ, reason="the path decides which copy is imported")
def test_project_and_installation_are_one_version(project: Path) -> None:
    assert importlib.metadata.version("pytest-leasecheck") == pytest_leasecheck.__version__
