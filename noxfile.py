"""Beside which neighbours the plugin is tested.

    nox                             everything, with pytest 8 and with pytest 9
    nox -s neighbours -- --quick    a few cases that touch most of it: what .ci/run does
    nox -s 'neighbours(pytest="8")' -- xdist socket

The cases are in tests/neighbours/check.py: all neighbours are installed in one environment, and
each case switches off those that it does not ask for.
"""

from __future__ import annotations

import nox

nox.options.reuse_existing_virtualenvs = True

NEIGHBOURS = (
    "pytest-asyncio",
    "pytest-cov",
    "pytest-randomly",
    "pytest-socket",
    "pytest-timeout",
    "pytest-xdist",
)


@nox.session
@nox.parametrize("pytest", ["8", "9"])
def neighbours(session: nox.Session, pytest: str) -> None:
    """A consumer's project beside each neighbour."""
    session.install("-q", ".", f"pytest=={pytest}.*", *NEIGHBOURS)
    session.run("python", "tests/neighbours/check.py", *session.posargs)
