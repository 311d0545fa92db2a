"""Disasters of the project's own, with subjects from everywhere."""

import importlib

import pytest
import queues

from pytest_leasecheck.testkit.subject import Subject


def old_worker_wakes(stage):
    """B takes over; A, which slept, goes on."""
    stage.submit("r1")
    a = stage.spawn("A")
    a.run_until("effect:charge before")
    a.stop()
    stage.expire()
    b = stage.spawn("B")
    b.run_until("effect:charge before")
    a.cont()
    a.run()
    assert a.state == "returned"
    b.run()


class Local(queues.Queue):
    """A subject in the test module itself."""


@pytest.mark.leasecheck(requires="stale attempt by A", holds="V1")
def test_configured_subject(stage):
    old_worker_wakes(stage)


@pytest.mark.leasecheck(subject=Local, requires="stale attempt by A", holds="V1")
def test_subject_in_the_test_module(stage):
    old_worker_wakes(stage)


class TestInside:
    @pytest.fixture
    def leasecheck_subject(self):
        statement = queues.Queue.last

        class Inside(queues.Queue):
            last = statement

        return Inside()

    @pytest.mark.leasecheck(requires="stale attempt by A", holds="V1")
    def test_subject_inside_a_function(self, stage):
        old_worker_wakes(stage)


@pytest.mark.leasecheck(subject=queues.Unfenced, requires="stale attempt by A", holds="V1")
def test_unfenced_is_caught(stage):
    """Errs when it is judged: whoever runs this project counts on it."""
    old_worker_wakes(stage)


@pytest.mark.parametrize("name", ["testkit", "scenarios", "leasecheck"])
def test_own_folders_are_ours(name):
    assert f"the consumer of {name}" == importlib.import_module(name).OWNER
    assert Subject.__module__ == "pytest_leasecheck.testkit.subject"
