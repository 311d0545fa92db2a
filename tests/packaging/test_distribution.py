"""What is published: the sdist, the wheel built from it, and what they do to a consumer."""

import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Published:
    """One build: the sdist unpacked, the wheel, and a folder that the wheel was installed into."""

    sdist: Path
    wheel: Path
    site: Path

    def python(self, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run Python where the installed wheel comes first and ``cwd`` is not importable."""
        env = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}
        env.pop("PYTEST_ADDOPTS", None)
        return run(sys.executable, "-P", *args, cwd=cwd, env=env)


def run(
    *command: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def published(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    out = tmp_path_factory.mktemp("dist")
    # Without --sdist or --wheel, `build` makes the wheel from the sdist, as an index would.
    built = run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(project), cwd=out
    )
    assert built.returncode == 0, built.stdout
    (archive,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    with tarfile.open(archive) as tar:
        tar.extractall(out, filter="data")
    sdist = out / archive.name.removesuffix(".tar.gz")
    site = out / "site"
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps")
    installed = run(*pip, "--target", str(site), str(wheel), cwd=out)
    assert installed.returncode == 0, installed.stdout
    return Published(sdist=sdist, wheel=wheel, site=site)


def test_wheel_puts_one_package_at_the_top(published: Published) -> None:
    with zipfile.ZipFile(published.wheel) as wheel:
        names = wheel.namelist()
    top = {name.split("/")[0] for name in names}
    assert {name.partition("-")[0] for name in top} == {"pytest_leasecheck"}, top
    assert len(names) == len(set(names)), "a file is in the wheel twice"
    for expected in ("py.typed", "plugin.py", "testkit/__init__.py", "scenarios/__init__.py"):
        assert f"pytest_leasecheck/{expected}" in names


def test_wheel_has_every_module_of_the_checkout(published: Published, project: Path) -> None:
    for folder, inside in (("testkit", "testkit/"), ("scenarios", "scenarios/")):
        for module in (project / folder).rglob("*.py"):
            name = inside + str(module.relative_to(project / folder))
            assert (published.site / "pytest_leasecheck" / name).is_file(), name


def test_installed_kit_imports_under_its_one_name(published: Published, tmp_path: Path) -> None:
    code = "import pytest_leasecheck.testkit as kit; print(kit.__file__)"
    done = published.python("-c", f"import pytest_leasecheck.scenarios; {code}", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert Path(done.stdout.strip()).is_relative_to(published.site)


@pytest.mark.parametrize("name", ["testkit", "scenarios"])
def test_checkout_refuses_a_second_name(project: Path, name: str) -> None:
    done = run(sys.executable, "-c", f"import {name}", cwd=project)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        f"ImportError: this package was imported as '{name}', and has one name only: "
        f"import 'pytest_leasecheck.{name}' instead"
    )


def test_consumers_folders_of_the_same_names_stay_theirs(
    published: Published, tmp_path: Path
) -> None:
    for name in ("testkit", "scenarios", "leasecheck"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWNER = 'the consumer of {name}'\n")
    (tmp_path / "test_mine.py").write_text(
        "import leasecheck, scenarios, testkit\n"
        "import pytest_leasecheck.scenarios, pytest_leasecheck.testkit\n"
        "def test_mine():\n"
        "    for module in (leasecheck, scenarios, testkit):\n"
        "        assert module.OWNER == 'the consumer of ' + module.__name__\n"
    )
    done = published.python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_unpacked_sdist_passes_its_unit_tests(published: Published) -> None:
    """Against the installed wheel: without the symlinks the sdist's own package is incomplete."""
    assert not (published.sdist / "pytest_leasecheck" / "testkit").exists()
    done = published.python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit", cwd=published.sdist
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
