"""One environment per stranger: `python -m tests.wild.envs` builds them under `.wild/`.

A stranger is somebody else's library, pinned and unedited, that the kit is judged against.
Each has an environment of its own, so that none decides another's dependencies, or ours. An
environment holds the stranger, this repository (editable) and what running a worker needs.

The interpreter that runs this module is the one the environments are made with; its version
is part of their names, so several may stand side by side. Only the standard library is used.
"""

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".wild"

#: What a worker and a test run need besides the stranger. The repository itself is installed
#: without its dependencies, so that what it imports on a worker's way is seen here. The
#: repository's pytest settings have a `timeout`, hence the plugin.
TOOLS = ("multiprocess>=0.70.16", "dill>=0.3.8", "pytest>=8", "pytest-timeout>=2.3")

_STAMP = "leasecheck-built.json"
_COMMAND_TIMEOUT_S = 300
_OUTPUT_LINES = 12


@dataclass(frozen=True, slots=True)
class Stranger:
    """A published library at one version, and the module it is imported as."""

    name: str
    distribution: str
    version: str
    module: str

    @property
    def requirement(self) -> str:
        """The pin, as pip reads it."""
        return f"{self.distribution}=={self.version}"


STRANGERS = (
    Stranger(name="aiq", distribution="aiq-runtime", version="0.5.2", module="aiq"),
    Stranger(name="gigq", distribution="gigq", version="0.5.1", module="gigq"),
)


class EnvironmentFailed(Exception):
    """A stranger's environment could not be built.

    `stranger` is whose, `command` is what failed, `output` its last lines.
    """

    def __init__(
        self, stranger: Stranger, *, command: Sequence[str], why: str, output: str
    ) -> None:
        self.stranger = stranger
        self.command = tuple(command)
        self.output = output
        shown = "\n".join(f"    {line}" for line in output.splitlines())
        super().__init__(
            f"the environment for {stranger.requirement} was not built: {why}\n"
            f"  command: {' '.join(command)}\n"
            f"  its last lines:\n{shown or '    (it printed nothing)'}"
        )


class UnknownStranger(LookupError):
    """No stranger of that name; `name` is what was asked for."""

    def __init__(self, name: str) -> None:
        self.name = name
        known = ", ".join(stranger.name for stranger in STRANGERS)
        super().__init__(f"no stranger is called {name!r}; there are: {known}")


def stranger(name: str) -> Stranger:
    """The stranger called `name`. Raises `UnknownStranger`."""
    for candidate in STRANGERS:
        if candidate.name == name:
            return candidate
    raise UnknownStranger(name)


def folder_of(who: Stranger, *, cache: Path = CACHE) -> Path:
    """Where the environment of `who` for this interpreter stands, or will stand."""
    major, minor = sys.version_info[:2]
    return cache / f"{who.name}-py{major}.{minor}"


def python_of(who: Stranger, *, cache: Path = CACHE) -> Path | None:
    """The interpreter of an environment that is built and up to date, else None."""
    folder = folder_of(who, cache=cache)
    return folder / "bin" / "python" if _stamp_in(folder) == _recipe(who) else None


def build(who: Stranger, *, cache: Path = CACHE, rebuild: bool = False) -> tuple[Path, bool]:
    """Build the environment of `who` unless it is up to date.

    Returns its interpreter, and whether anything was built. Safe to call from several
    processes at once: one builds, the others wait for it. Raises `EnvironmentFailed`.
    """
    _make_cache(cache)
    with _sole_builder(who, cache=cache):
        ready = python_of(who, cache=cache)
        if ready is not None and not rebuild:
            return ready, False
        folder = folder_of(who, cache=cache)
        shutil.rmtree(folder, ignore_errors=True)
        python = folder / "bin" / "python"
        _command(who, [sys.executable, "-m", "venv", str(folder)], why="no virtual environment")
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        _command(who, [*pip, who.requirement, *TOOLS], why="pip could not install it")
        _command(
            who,
            [*pip, "--no-deps", "--editable", str(REPOSITORY)],
            why="pip could not install this repository beside it",
        )
        _check_import(who, python)
        # Last, so that an interrupted build is not taken for a finished one.
        (folder / _STAMP).write_text(json.dumps(_recipe(who), indent=2) + "\n")
        return python, True


def _recipe(who: Stranger) -> dict[str, object]:
    """All that decides what an environment holds; it is rebuilt when this changes."""
    settings = (REPOSITORY / "pyproject.toml").read_bytes()
    return {
        "requirements": [who.requirement, *TOOLS],
        "python": ".".join(map(str, sys.version_info[:3])),
        "repository": str(REPOSITORY),
        # An editable install freezes the entry points it found here.
        "pyproject_sha256": hashlib.sha256(settings).hexdigest(),
    }


def _stamp_in(folder: Path) -> object:
    try:
        return json.loads((folder / _STAMP).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _make_cache(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    (cache / ".gitignore").write_text("*\n")


@contextmanager
def _sole_builder(who: Stranger, *, cache: Path) -> Iterator[None]:
    lock_name = f"{folder_of(who, cache=cache).name}.lock"
    with (cache / lock_name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_import(who: Stranger, python: Path) -> None:
    """The pinned version, and not another, is what a worker will import."""
    check = (
        f"import importlib.metadata as m, {who.module}, pytest_leasecheck; "
        f"found = m.version({who.distribution!r}); "
        f"assert found == {who.version!r}, 'found ' + found"
    )
    _command(who, [str(python), "-c", check], why="it was installed but cannot be imported")


def _command(who: Stranger, command: Sequence[str], *, why: str) -> None:
    # An inherited PYTHONPATH would let the environment import what it does not hold.
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command,
            env=surroundings,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as expired:
        why = f"{why} within {_COMMAND_TIMEOUT_S} s"
        # On a timeout the output is bytes, whatever `text` says.
        so_far = expired.output.decode(errors="replace") if expired.output else ""
        raise EnvironmentFailed(who, command=command, why=why, output=_tail(so_far)) from None
    if done.returncode != 0:
        why = f"{why} (exit code {done.returncode})"
        raise EnvironmentFailed(who, command=command, why=why, output=_tail(done.stdout))


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-_OUTPUT_LINES:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the environments named, or all; 0 when all stand, 1 when one does not."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.wild.envs",
        description="Build the environments of the libraries in tests/wild.",
    )
    parser.add_argument("names", nargs="*", help="which strangers; all when none is named")
    parser.add_argument("--rebuild", action="store_true", help="build even what is up to date")
    options = parser.parse_args(arguments)
    try:
        wanted = [stranger(name) for name in options.names] or list(STRANGERS)
    except UnknownStranger as unknown:
        parser.error(str(unknown))
    failures = 0
    for who in wanted:
        try:
            python, built = build(who, rebuild=options.rebuild)
        except EnvironmentFailed as failed:
            failures += 1
            print(failed, file=sys.stderr)
        else:
            print(f"{who.requirement}: {'built' if built else 'up to date'}: {python}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
