"""Races nobody thought of: Hypothesis mixes a script's actions, guided by what is possible.

::

    from pytest_leasecheck.testkit.explore import races

    TestRaces = races(MySubject)             # settings and profiles are Hypothesis's own

An example begins like a plain run (one run, one worker) and ends like one (heal, drain, judge);
each step between is one deviation from it, performed on real processes. So what Hypothesis leaves
after shrinking is the fewest deviations that still fail. Rules are enabled by where the workers
are. `target()` seeks stale attempts and interrupted steps.

A class of one's own adds rules and invariants::

    class MyRaces(Races):
        subject = MySubject

        @rule()
        def operator_retries(self):
            self.perform("approve run-1")

    TestMyRaces = MyRaces.TestCase
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable
from typing import Any, Final

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, event, settings, target
from hypothesis import strategies as st
from hypothesis.control import current_build_context
from hypothesis.errors import Flaky
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from . import script as acts
from .concluding import explored
from .exploring import Explorer, attributes_of
from .families import RUN
from .found import FOUND_IN_WORDS, Enough, Explored, Nondeterministic, RaceFound, Tally
from .lane import Lane
from .script import PROVIDER_FAULTS

__tracebackhide__ = FOUND_IN_WORDS

_FAULTS: Final = tuple(fault for fault in PROVIDER_FAULTS if fault != "deliver")
#: Which of those that may be chosen; taken modulo how many there are.
_PICK: Final = st.integers(0, 5)
#: A point of the map, see `_somewhere`.
_WHERE: Final = st.integers(0, 4_000)
#: Steps of an example, unless a profile says how many.
STEPS: Final = 10
#: Hypothesis's own shrinking takes minutes in which nothing is said; the kit does it by itself.
_NOT_OURS: Final = (Phase.shrink, Phase.explain)


class _TestCase:
    """`TestCase` of a machine's class."""

    def __get__(self, machine: object, owner: type[Races]) -> type[unittest.TestCase]:
        return _case_of(owner)


@functools.cache
def _case_of(machine: type[Races]) -> type[unittest.TestCase]:
    """A test case that runs a machine under its settings, and ends the lane."""

    def run_test(self: Any) -> None:
        machine.share().tally = Tally()
        _run(machine, _ours(self.settings))
        machine.conclude()

    run_test.is_hypothesis_test = True  # type: ignore[attr-defined]  # what it marks its own with
    run_test._hypothesis_state_machine_class = machine  # type: ignore[attr-defined]  # likewise
    name = f"{machine.__name__}.TestCase"
    usual = settings(deadline=None, suppress_health_check=list(HealthCheck))
    if usual.stateful_step_count == settings.get_profile("default").stateful_step_count:
        usual = settings(usual, stateful_step_count=STEPS)  # a step is no small thing here
    attributes = {
        "settings": _ours(usual),
        "races": machine,
        "runTest": run_test,
        "tearDownClass": classmethod(lambda _cls: machine.close()),  # the lane is no example's
        "__module__": machine.__module__,
    }
    return type(name, (unittest.TestCase,), attributes)


def _run(machine: type[Races], how: settings) -> None:
    """Run examples until the first one fails. Raises what was found."""
    machine.share().one_is_enough = True
    try:
        run_state_machine_as_test(machine, settings=how)
    except Enough as enough:
        raise enough.found from None


def _ours(given: settings) -> settings:
    """The same settings without what the kit does: it shrinks, and tells a script by itself."""
    told = Verbosity.quiet if given.verbosity is Verbosity.normal else given.verbosity
    kept = [one for one in given.phases if one not in _NOT_OURS]
    return settings(given, phases=kept, verbosity=told, report_multiple_bugs=False)


class Races(Explorer, RuleBasedStateMachine):
    """The state machine over a script's actions. Subclasses name a `subject`."""

    @initialize()
    def begin(self) -> None:
        """A plain run begins; a stage on which none can is no example."""
        for action in (acts.Submit(RUN), acts.Spawn("A")):
            self.must(action)

    # -- moves ---------------------------------------------------------------------------------

    @precondition(lambda self: self._some("movable") and self._shared.targets)
    @rule(pick=_PICK, where=st.integers(0, 40))
    def go_to(self, pick: int, where: int) -> None:
        """A worker goes to the next point of a kind."""
        points = self._shared.targets
        self.perform(acts.Until(_one(self._some("movable"), pick), points[where % len(points)]))

    @precondition(lambda self: self._some("movable"))
    @rule(pick=_PICK, where=_WHERE)
    def go_far(self, pick: int, where: int) -> None:
        """A worker goes to one point of the map."""
        label = _one(self._some("movable"), pick)
        self.go(label, self._somewhere(where, label))

    @precondition(lambda self: self._some("held") and self._free_label() is not None)
    @rule(pick=_PICK, where=_WHERE, far=st.booleans(), twin=st.booleans())
    def overtake(self, pick: int, where: int, far: bool, twin: bool) -> None:
        """A worker is held at a point until another one holds its run, or is in the same danger."""
        label, shared = _one(self._some("held"), pick), self._shared
        self.go_and_expire(label, where)
        other = self._come(twin_of=label if twin else "")
        self.go(other, shared.danger if far else shared.points.holding)

    @precondition(lambda self: self._some("held") and self._free_label() is not None)
    @rule(pick=_PICK, where=_WHERE)
    def outlast(self, pick: int, where: int) -> None:
        """A worker is held at a point until another one has come and gone."""
        self.go_and_expire(_one(self._some("held"), pick), where)
        self.go(self._come(), None)

    @precondition(lambda self: self._some("held") and self._free_label() is not None)
    @rule(pick=_PICK, where=_WHERE, then=st.integers(0, 40))
    def meet_at_expiry(self, pick: int, where: int, then: int) -> None:
        """A worker sleeps exactly one lease and goes on, and another one comes at that instant."""
        self.sleep_until_expiry(_one(self._some("held"), pick), where, then)
        self.go(self._come(), None)

    @precondition(lambda self: self._some("held") and self._free_label() is not None)
    @rule(pick=_PICK, where=_WHERE, then=_WHERE, far=st.booleans())
    def crash(self, pick: int, where: int, then: int, far: bool) -> None:
        """A worker is killed at a point, its lease expires, and another one recovers."""
        self.die_and_expire(_one(self._some("held"), pick), where)
        other = self._come()
        self.go(other, None if far else self._somewhere(then, other))

    @precondition(lambda self: self._some("held") and self._has_room_for_two())
    @rule(pick=_PICK, where=_WHERE, then=_WHERE, last=_WHERE)
    def relieve(self, pick: int, where: int, then: int, last: int) -> None:
        """A worker is killed, and who recovers is held until a third one is at it instead."""
        self.die_and_expire(_one(self._some("held"), pick), where)
        self.go_and_expire(self._come(), then)
        third = self._come()
        self.go(third, self._somewhere(last, third))

    @precondition(lambda self: self._some("held") and self._free_label() is not None)
    @rule(pick=_PICK, where=_WHERE, locked=st.booleans())
    def outwait(self, pick: int, where: int, locked: bool) -> None:
        """A worker is in a call for two leases, its beats going; then another one comes."""
        self.wait_in_a_call(_one(self._some("held"), pick), where, locked=locked)
        self.go(self._come(), None)

    @precondition(lambda self: self._some("movable") and len(self._some("working")) > 1)
    @rule(pick=_PICK)
    def run_on(self, pick: int) -> None:
        """A worker goes as far as it comes."""
        self.perform(acts.Run(_one(self._some("movable"), pick)))

    @precondition(lambda self: self._some("timed"))
    @rule(pick=_PICK)
    def beat(self, pick: int) -> None:
        """A heartbeat is due."""
        self.perform(acts.Beat(_one(self._some("timed"), pick)))

    # -- workers come and go ---------------------------------------------------------------------

    @precondition(lambda self: self._free_label() is not None)
    @rule(where=st.integers(0, 40), far=st.booleans())
    def rival(self, where: int, far: bool) -> None:
        """Another worker comes, and works."""
        points = self._shared.targets
        self.go(self._come(), None if far or not points else points[where % len(points)])

    @precondition(lambda self: self._free_label() is not None)
    @rule(pick=_PICK)
    def double(self, pick: int) -> None:
        """A second process under a configured name that is taken."""
        self._come(twin_of=_one([one.label for one in self._all()], pick))

    @precondition(lambda self: self._some("working"))
    @rule(pick=_PICK)
    def kill(self, pick: int) -> None:
        """A worker is killed."""
        self.perform(acts.Kill(_one(self._some("working"), pick)))

    @precondition(lambda self: self._some("working") or self._some("over"))
    @rule(pick=_PICK)
    def restart(self, pick: int) -> None:
        """A worker lives again under its name."""
        self.perform(acts.Restart(_one(self._some("working") + self._some("over"), pick)))

    @precondition(lambda self: self._some("working"))
    @rule(pick=_PICK)
    def stop(self, pick: int) -> None:
        """A worker is stopped."""
        self.perform(acts.Stop(_one(self._some("working"), pick)))

    @precondition(lambda self: self._some("stopped"))
    @rule(pick=_PICK)
    def wake(self, pick: int) -> None:
        """A stopped worker is continued, and goes on."""
        label = _one(self._some("stopped"), pick)
        self.perform(acts.Cont(label))
        if label in self._some("movable"):
            self.perform(acts.Run(label))

    @precondition(lambda self: "reaps" in self._claims)
    @rule()
    def reap(self) -> None:
        """The janitor comes by."""
        self.have_reaped()

    # -- time, provider, database, operator ------------------------------------------------------

    @precondition(lambda self: self._some("working") and not self._expired_last)
    @rule()
    def expire(self) -> None:
        """Every lease expires."""
        self.perform(acts.Expire())

    @precondition(lambda self: self._some("working"))
    @rule(share=st.sampled_from((2, 1, 3)))
    def advance(self, share: int) -> None:
        """Time passes, half a lease at a time; timers fire."""
        self.perform(acts.Advance(share * self._shared.lane.declaration.lease_ttl_ms // 2))

    @precondition(lambda self: self._bears_skew_ms and self._some("working"))
    @rule(pick=_PICK, behind=st.booleans())
    def skew(self, pick: int, behind: bool) -> None:
        """A worker's clock is off by as much as the subject bears."""
        off = -self._bears_skew_ms if behind else self._bears_skew_ms
        self.perform(acts.Skew(_one(self._some("working"), pick), off))

    @precondition(lambda self: self._effects)
    @rule(fault=st.sampled_from(_FAULTS))
    def spoil(self, fault: str) -> None:
        """The provider's next answer goes wrong."""
        self.perform(acts.Provider(fault, "*"))

    @precondition(lambda self: self._some("at_provider"))
    @rule()
    def deliver(self) -> None:
        """What the network held back arrives."""
        self.perform(acts.Provider("deliver", "*"))

    @precondition(lambda self: self._locked or self._some("working"))
    @rule()
    def lock_or_unlock(self) -> None:
        """Somebody else takes the write lock, or lets it go."""
        self.turn_the_lock()

    @precondition(
        lambda self: "cancels" in self._claims and not self._cancelled and self._some("working")
    )
    @rule()
    def cancel(self) -> None:
        """The operator cancels the run."""
        self._cancelled = True
        self.perform(acts.Cancel(RUN))

    @precondition(lambda self: not self._submitted_again and self._some("returned"))
    @rule()
    def submit_again(self) -> None:
        """A run is submitted under an id that has been used; most refuse it."""
        self._submitted_again = True
        self.perform(acts.Submit(RUN))

    @precondition(lambda self: not self._submitted_another and self._some("busy"))
    @rule()
    def submit_another(self) -> None:
        """There is a second run."""
        self._submitted_another = True
        self.perform(acts.Submit(f"{RUN}-too"))

    @precondition(
        lambda self: (
            "asks_approval" in self._claims
            and self._approvals < len(self._all())
            and self._some("busy")
        )
    )
    @rule()
    def approve(self) -> None:
        """The operator approves, whether he is asked or not; as often as somebody has come."""
        self._approvals += 1
        self.perform(acts.Approve(RUN))

    # -- the end -----------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Heal, drain, judge. Raises what was found."""
        judged = self.ended(inspect.currentframe())
        if judged is None:
            return
        if judged.faults and self._shared.one_is_enough:
            raise Enough(self.found(judged, final=True)) from None
        if judged.faults:
            raise self.found(judged, final=current_build_context().is_final) from None
        counts = judged.verdict.counts
        event(f"stale attempts: {min(counts.stale_attempts, 3)}")
        kinds = {one.what for one in judged.verdict.attempts}
        target(float(min(len(kinds), 3)), label="kinds of stale attempts")
        target(float(min(counts.interruptions, 3)), label="interrupted steps")

    #: Hypothesis's, without its shrinking: it plays hundreds of scripts for it, the kit fewer.
    TestCase = _TestCase()  # type: ignore[assignment]  # its own kind has no name


def races(subject: Any, **options: Any) -> type[unittest.TestCase]:
    """A test case that explores a subject: assign it to a name that begins with `Test`.

    `options` are attributes of `Races` (`most_workers=2`; `may_be_harmless=True`: it passes, too,
    when no dangerous moment came about) or of `LaneOptions` (`clock="wall"`).
    Settings are Hypothesis's: `races(MySubject).settings = settings(max_examples=1_000)`, or a
    profile. Its own shrinking is left out, whatever they say: it plays hundreds of scripts, which
    takes minutes, and the kit some dozens.
    """
    name = subject if isinstance(subject, str) else getattr(subject, "__name__", type(subject))
    attributes = {"subject": subject, **attributes_of(options)}
    machine: type[Races] = type(f"Races of {name}", (Races,), attributes)
    return machine.TestCase


def explore(
    lane: Lane,
    *,
    scripts: int,
    seed: int,
    steps: int = STEPS,
    told_so_far: Callable[[Tally], None] = lambda tally: None,
) -> Explored:
    """Explore on an open lane with a seed; stops at the first failure, shrunk by our own means.

    Raises `LeasecheckError` where scripts could not be played.
    """
    attributes = {"lane": lane, "subject": lane.subject, "told_so_far": staticmethod(told_so_far)}
    machine: type[Races] = type("Explored", (Races,), attributes)

    plain = settings(
        stateful_step_count=steps, deadline=None, database=None, derandomize=False,
        phases=(Phase.generate, Phase.target), suppress_health_check=tuple(HealthCheck),
    )  # fmt: skip

    def run(seed: int, left: int) -> None:
        _run(hypothesis.seed(seed)(machine), _ours(settings(plain, max_examples=left)))

    try:
        return explored(machine, run, scripts=scripts, seed=seed, flaky=Flaky)
    finally:
        machine.close()


def _one(labels: list[str], pick: int) -> str:
    return labels[pick % len(labels)]


__all__ = ["Explored", "Nondeterministic", "RaceFound", "Races", "explore", "races"]
