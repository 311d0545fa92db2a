"""The suite as a class in a consumer's own file: ordinary ids, found by every editor.

::

    from pytest_leasecheck.conformance import LeaseConformance

    class TestMyQueue(LeaseConformance):
        subject = MyQueue

`pytest test_queue.py::TestMyQueue` then plays every scenario against `MyQueue`, with or without
`--leasecheck`. Leave one out by naming it: `test_some_scenario = None`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from .failure import Unproven
from .fixtures import in_words
from .mount import play
from .runtime import runtime_of
from .subjects import named
from .suite import own_groups
from .testkit.scenario import Scenario
from .testkit.subject import Subject


class LeaseConformance:
    """Every scenario that ships with leasecheck, a test method each. Set `subject`."""

    subject: ClassVar[type[Subject] | Subject | str]
    #: Methods about set-ups that a subject may not offer, and the variant that each is about.
    _about: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kw: Any) -> None:
        """Leave out what is about set-ups (`variants`) that the subject does not offer."""
        super().__init_subclass__(**kw)
        offered = getattr(getattr(cls, "subject", None), "variants", None)
        if offered is not None:  # one that is named by text is looked at when it is played
            for name in {name for name, about in cls._about.items() if about not in offered}:
                setattr(cls, name, None)


def _method(scenario: Scenario) -> Callable[[Any, pytest.FixtureRequest], None]:
    """The test method that plays a scenario."""

    def test(self: Any, request: pytest.FixtureRequest) -> None:
        given = getattr(self, "subject", None)
        if given is None:
            pytest.fail(f"{type(self).__name__} has no subject; set it to yours", pytrace=False)
        with in_words():
            runtime = runtime_of(request.config)
        try:
            with in_words():
                subject = named(given, folders=runtime.folders)
                play(scenario, request.node, runtime, subject=subject)
        except Unproven as unproven:
            raise pytest.fail.Exception(str(unproven), pytrace=False) from None

    test.__doc__ = scenario.story
    pytest.mark.leasecheck(test)
    return test


def _add_methods() -> None:
    for group in own_groups():
        for scenario in group.scenarios:
            name = "test_" + re.sub(r"\W+", "_", scenario.name)
            method = _method(scenario)
            method.__name__ = name
            method.__qualname__ = f"LeaseConformance.{name}"
            if name in vars(LeaseConformance):
                raise ValueError(f"two scenarios are named {scenario.name!r}")
            setattr(LeaseConformance, name, method)
            if scenario.variant:
                LeaseConformance._about[name] = scenario.variant


_add_methods()
