"""What was asked for, read once from options and ini file, with readable complaints."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

import pytest

_CHOICES: Final = {
    "clock": ("auto", "virtual", "wall"),
    "workers": ("fresh", "warm"),
    "sweep": ("cheap", "full", "off"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option of ours. `subject` is as written; `evidence` None means the default."""

    subject: str | None
    evidence: Path | None
    keep: bool
    clock: Literal["auto", "virtual", "wall"]
    workers: Literal["fresh", "warm"]
    deadline_s: float
    replay: Path | None
    hooks: bool
    sweep: Literal["cheap", "full", "off"] = "cheap"
    explore: int | None = None
    soak: float | int | None = None  # seconds, or a count of runs
    report: Path | None = None


def read_settings(config: pytest.Config) -> Settings:
    """Read the settings. Raises `pytest.UsageError` for one that can't be meant."""
    if sys.platform != "linux":
        raise pytest.UsageError(
            "leasecheck runs on Linux only (it stops workers with signals that its lane must see"
            f" confirmed by the kernel); this is {sys.platform}"
        )
    evidence = _text(config, "evidence")
    replay = config.getoption("leasecheck_replay")
    report = config.getoption("leasecheck_report")
    here = config.invocation_params.dir
    # What is typed is relative to the shell's folder, what is in the ini file to that file.
    typed = config.getoption("leasecheck_evidence") is not None
    return Settings(
        subject=_text(config, "subject"),
        evidence=(here if typed else config.rootpath) / evidence if evidence else None,
        keep=bool(config.getoption("leasecheck_keep")),
        clock=cast(Literal["auto", "virtual", "wall"], _choice(config, "clock")),
        workers=cast(Literal["fresh", "warm"], _choice(config, "workers")),
        deadline_s=_deadline(config),
        replay=here / replay if replay else None,
        hooks=not config.getoption("leasecheck_no_hooks"),
        sweep=cast(Literal["cheap", "full", "off"], _choice(config, "sweep")),
        explore=config.getoption("leasecheck_explore"),
        soak=config.getoption("leasecheck_soak"),
        report=here / report if report else None,
    )


def _text(config: pytest.Config, name: str) -> str | None:
    """An option that an ini line of the same name stands in for; None when neither says."""
    given = config.getoption(f"leasecheck_{name}")
    if given is None:
        given = config.getini(f"leasecheck_{name}")
    return str(given).strip() or None


def _choice(config: pytest.Config, name: str) -> str:
    """One of the choices, also when it comes from the ini file, which checks nothing."""
    choices = _CHOICES[name]
    given = _text(config, name) or choices[0]
    if given not in choices:
        known = ", ".join(choices)
        raise pytest.UsageError(f"leasecheck_{name} is {given!r}; it is one of: {known}")
    return given


def _deadline(config: pytest.Config) -> float:
    """Seconds for one move."""
    given = config.getoption("leasecheck_deadline")
    if given is not None:
        return float(given)
    text = config.getini("leasecheck_deadline") or "10"
    from argparse import ArgumentTypeError

    from .plugin import _seconds

    try:
        return _seconds(text)
    except ArgumentTypeError as error:
        raise pytest.UsageError(f"leasecheck_deadline: {error}") from None
