"""One session of ours inside pytest's: settings, subject, lanes, evidence, and what was proved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from . import subjects
from .evidence import Evidence, make_session_folder
from .lanes import Lanes
from .options import Settings, read_settings
from .pages import PARTS, SUMMARY_VARIABLE, Pages, check_target
from .playing import Player
from .subjects import Named
from .tally import EXPLORED, Record, from_properties

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from .testkit.subject import Subject

_KEY: Final = pytest.StashKey["Runtime"]()
_SENT: Final = "leasecheck_folder"


def runtime_of(config: pytest.Config) -> Runtime:
    """The session's runtime; made, and registered as a plugin, on first use.

    Raises `pytest.UsageError` for settings that can't be meant.
    """
    runtime = config.stash.get(_KEY, None)
    if runtime is None:
        settings = read_settings(config)
        if settings.report is not None:
            check_target(settings.report)
        runtime = Runtime(config, settings)
        config.stash[_KEY] = runtime
        config.pluginmanager.register(runtime, "leasecheck-runtime")
    return runtime


def on_the_wall(subject: Subject, *, clock: str) -> list[str]:
    """Why a run will be slow, and how it need not be; nothing where time is virtual."""
    if clock == "virtual" or (clock == "auto" and subject.clock != "wall"):
        return []
    waits = (
        "leasecheck: on the wall clock each lease that expires is really waited for"
        f" (lease_ttl_ms is {subject.lease_ttl_ms:,}), so this is slow."
    )
    if subject.clock != "wall":
        return [f"{waits} The subject takes a virtual one; the option leasecheck_clock says wall"]
    return [
        f"{waits} Where your runtime reads time, datetime or SQLite's 'now', declare",
        'leasecheck: clock = "patched" in the subject; where it takes a clock, clock = "given" and'
        " hand it worker.clock: then a lease expires at once",
    ]


@dataclass(eq=False)
class Runtime:
    """The plugin object that is registered once anything of ours is wanted."""

    config: pytest.Config
    settings: Settings
    #: What each test proved, by node id; in pytest-xdist's controller, of all workers.
    records: dict[str, Record] = field(default_factory=dict)
    #: What each exploration did, by node id.
    explored: dict[str, str] = field(default_factory=dict)
    #: What there is to say about the page and the job's summary.
    drawn: Sequence[tuple[str, str]] = ()

    @cached_property
    def subject(self) -> Named:
        """The configured subject. Raises `pytest.UsageError` when there is none."""
        return subjects.configured(self.settings.subject, folders=self.folders)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where a subject's module is looked for when no path leads to it."""
        return (self.config.rootpath, self.config.invocation_params.dir)

    @cached_property
    def evidence(self) -> Evidence:
        """This session's folder; a worker of pytest-xdist has its own inside the controller's."""
        sent = getattr(self.config, "workerinput", {})
        if _SENT not in sent:
            return make_session_folder(self.settings.evidence, rootpath=self.config.rootpath)
        folder = Path(sent[_SENT]) / str(sent["workerid"])
        folder.mkdir(mode=0o700, exist_ok=True)
        return Evidence(folder)

    @cached_property
    def lanes(self) -> Lanes:
        """The lanes; none is started yet."""
        return Lanes(self.settings, folder=self.evidence.folder)

    @cached_property
    def player(self) -> Player:
        """What plays and judges."""
        return Player(self.lanes, self.evidence, config=self.config, keep=self.settings.keep)

    @cached_property
    def pages(self) -> Pages:
        """What leaves parts for the page and the job's summary, and draws them."""
        # A worker of pytest-xdist whose controller doesn't know of us leaves parts to nobody.
        heard = _SENT in getattr(self.config, "workerinput", {_SENT: ""})
        return Pages(
            self.evidence.folder / PARTS,
            page=self.settings.report if heard else None,
            summary=os.environ.get(SUMMARY_VARIABLE, "") if heard else "",
            base=self.config.invocation_params.dir,
        )

    def pytest_report_header(self) -> list[str]:
        """What is being tested, before anything is."""
        told = self.__dict__
        subject = told["subject"].label if "subject" in told else "given by each test"
        settings = self.settings
        lines = [f"leasecheck: {subject}; clock {settings.clock}, workers {settings.workers}"]
        if "subject" in told:
            lines += on_the_wall(told["subject"].subject, clock=settings.clock)
        if "evidence" in told and self.evidence.notice:
            lines.append(f"leasecheck: {self.evidence.notice}")
        return lines

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker of pytest-xdist where evidence goes."""
        node.workerinput[_SENT] = str(self.evidence.folder)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a test proved; its properties are complete when it is torn down."""
        if report.when == "teardown":
            record = from_properties(report.user_properties)
            if record is not None:
                self.records[report.nodeid] = record
            for name, value in report.user_properties:
                if name == EXPLORED:
                    self.explored[report.nodeid] = str(value)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was proved."""
        from .reporting import write_summary

        base = self.config.invocation_params.dir
        write_summary(terminalreporter, self.records, drawn=self.drawn, base=base)
        if self.explored:
            from .exploration import told
            from .wrapped_lines import write_wrapped

            write_wrapped(terminalreporter, "explored", told(list(self.explored.values())))

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """End what runs before anybody draws where it was interrupted, and fixtures are left."""
        self._close()

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Draw what tests left, and close the lanes once everything was torn down."""
        try:
            if not hasattr(self.config, "workerinput"):
                self.drawn = self.pages.draw(self.evidence.folder)
            return (yield)
        finally:
            self._close()

    def pytest_unconfigure(self) -> None:
        """Close what an interrupted session left open, and remove what is empty."""
        self._close()
        if "evidence" in self.__dict__:
            self.evidence.tidy()

    def _close(self) -> None:
        if "lanes" in self.__dict__:
            self.lanes.close()
