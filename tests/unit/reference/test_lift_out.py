"""The runtime can be lifted out: it imports the standard library and itself, nothing else."""

import ast
import sys
from pathlib import Path

import pytest

from pytest_leasecheck.testkit import reference

FOLDER = Path(reference.__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_module_imports_only_the_standard_library_and_its_siblings(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or node.module.split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert {name.name.split(".")[0] for name in node.names} <= sys.stdlib_module_names


def test_everything_public_is_there():
    assert sorted(reference.__all__) == sorted(set(reference.__all__))
    for name in reference.__all__:
        assert getattr(reference, name) is not None


def test_time_is_read_in_the_clock_s_module_alone():
    readers = {
        path.name
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import) and {"time", "datetime"} & {n.name for n in node.names}
    }
    assert readers == {"clock.py"}
