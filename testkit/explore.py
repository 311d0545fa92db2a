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

import os
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
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
from .confirming import Judged, confirm
from .errors import TOLD_IN_WORDS
from .exploring import Explorer, smallest
from .families import RUN
from .found import Explored, Nondeterministic, RaceFound, Tally, kind_of
from .lane import Lane, LaneOptions
from .possible import steps_of
from .script import PROVIDER_FAULTS

__tracebackhide__ = TOLD_IN_WORDS

_FAULTS: Final = tuple(fault for fault in PROVIDER_FAULTS if fault != "deliver")
#: Which of those that may be chosen; taken modulo how many there are.
_PICK: Final = st.integers(0, 5)
#: A point of the map, see `_somewhere`.
_WHERE: Final = st.integers(0, 4_000)


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
        label, points = _one(self._some("held"), pick), self._shared.targets
        self.go(label, self._somewhere(where, label))
        if label in self._some("working"):
            self.sleep_one_lease(label)
            self.go(label, points[then % len(points)] if points else None)
        self.go(self._come(), None)

    @precondition(lambda self: self._some("held") and self._free_label() is not None)
    @rule(pick=_PICK, where=_WHERE, then=_WHERE, far=st.booleans())
    def crash(self, pick: int, where: int, then: int, far: bool) -> None:
        """A worker is killed at a point, its lease expires, and another one recovers."""
        label = _one(self._some("held"), pick)
        self.go(label, self._somewhere(where, label))
        if label in self._some("busy"):
            self.perform(acts.Kill(label))
        self.perform(acts.Expire())
        other = self._come()
        self.go(other, None if far else self._somewhere(then, other))

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
        if "H" not in self.states:
            self.perform(acts.Spawn("H", job="reap"))
        if "H" in self._some("movable"):
            self.perform(acts.Run("H"))

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
        if not self._locked and any("waits for the write lock" in s for s in self.states.values()):
            return
        self.perform(acts.Unlock() if self._locked else acts.Lock())
        self._locked = bool(self.actions) and isinstance(self.actions[-1], acts.Lock)

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

    @precondition(lambda self: "asks_approval" in self._claims and self._some("busy"))
    @rule()
    def approve(self) -> None:
        """The operator approves, whether he is asked or not."""
        self.perform(acts.Approve(RUN))

    # -- the end -----------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Heal, drain, judge. Raises what was found."""
        judged = self.finished()
        self._count(judged)
        if judged.faults:
            self._believe(judged)
            raise kind_of(judged)(self._smallest(judged))

    def _count(self, judged: Judged) -> None:
        tally, counts = self._shared.tally, judged.verdict.counts
        steps, wasted = steps_of(judged.history)
        tally.count(judged)
        tally.steps += steps
        tally.wasted += wasted
        if judged.faults:
            tally.first = tally.first or tally.scripts
            tally.failures[:] = [*tally.failures[:1], judged]
        else:
            event(f"stale attempts: {min(counts.stale_attempts, 3)}")
            kinds = {one.what for one in judged.verdict.attempts}
            target(float(min(len(kinds), 3)), label="kinds of stale attempts")
            target(float(min(counts.interruptions, 3)), label="interrupted steps")
        self.told_so_far(tally)

    def _smallest(self, judged: Judged) -> Judged:
        """What is reported in the end has the fewest deviations that break the same invariant."""
        if not current_build_context().is_final or type(self).also is not Explorer.also:
            return judged
        return smallest(self._shared.lane, judged)

    def _believe(self, judged: Judged) -> None:
        """Play a script that is the first of its kind to fail, or the final one, again."""
        final = current_build_context().is_final
        kinds = "; ".join(sorted(judged.kinds))
        if not self.confirms or (kinds in self._shared.believed and not final):
            return
        if parting := confirm(self._shared.lane, judged, name="explored-again"):
            raise Nondeterministic(judged, parting)
        self._shared.believed.add(kinds)


def races(subject: Any, **options: Any) -> type[unittest.TestCase]:
    """A test case that explores a subject: assign it to a name that begins with `Test`.

    `options` are attributes of `Races` (`most_workers=2`) or of `LaneOptions` (`clock="wall"`).
    Settings are Hypothesis's: `races(MySubject).settings = settings(max_examples=1_000)`, or a
    profile; `settings(case.settings, …)` keeps what is set here: that Hypothesis does not shrink
    (it plays hundreds of scripts for that, the kit fewer), nor prints its own account of a script.
    """
    name = subject if isinstance(subject, str) else getattr(subject, "__name__", type(subject))
    own = {key: value for key, value in options.items() if key in ("most_workers", "confirms")}
    rest = {key: value for key, value in options.items() if key not in own}
    rest.setdefault("folder", Path(tempfile.gettempdir()) / "leasecheck-explored")
    rest.setdefault("number", os.getpid())
    attributes = {"subject": subject, "lane_options": LaneOptions(**rest), **own}
    machine: type[Races] = type(f"Races of {name}", (Races,), attributes)
    case: Any = machine.TestCase
    kept = [one for one in case.settings.phases if one not in (Phase.shrink, Phase.explain)]
    case.settings = settings(case.settings, phases=kept, verbosity=Verbosity.quiet)
    case.tearDownClass = classmethod(lambda _cls: machine.close())  # the lane is no example's
    return case  # type: ignore[no-any-return]  # Hypothesis's own kind of TestCase


def explore(
    lane: Lane,
    *,
    scripts: int,
    seed: int,
    steps: int = 10,
    told_so_far: Callable[[Tally], None] = lambda tally: None,
) -> Explored:
    """Explore on an open lane with a seed; stops at the first failure, shrunk by our own means.

    Raises `LeasecheckError` where scripts could not be played.
    """
    attributes = {"lane": lane, "subject": lane.subject, "told_so_far": staticmethod(told_so_far)}
    machine: type[Races] = type("Explored", (Races,), attributes)
    found, unsteady = None, ""
    for again in range(_MOST_PARTINGS):
        left = scripts - machine.tally().scripts
        if left <= 0 or found is not None:
            break
        try:
            run_state_machine_as_test(
                hypothesis.seed(seed + again)(machine), settings=_settings(left, steps)
            )
        except RaceFound as race:
            found = race.judged
        except Nondeterministic as other:
            unsteady = str(other)
            break
        except Flaky as flaky:
            # Hypothesis can't go on from states that differ; we can, with another seed.
            unsteady = f"the same choices led to different states: {flaky}"
            continue
        unsteady = ""
        break
    tally = machine.tally()
    machine.close()
    return Explored(tally, seed, found, unsteady)


#: A subject that parts from itself so often is given up as unsteady.
_MOST_PARTINGS: Final = 5


def _settings(scripts: int, steps: int) -> settings:
    """No shrinking of Hypothesis's own: ours deletes actions, which costs fewer plays."""
    return settings(
        max_examples=scripts,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=tuple(HealthCheck),
        verbosity=Verbosity.quiet,
    )


def _one(labels: list[str], pick: int) -> str:
    return labels[pick % len(labels)]


__all__ = ["Explored", "Nondeterministic", "RaceFound", "Races", "explore", "races"]
