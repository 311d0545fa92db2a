"""An owner that the script keeps from beating is excused; one that could have beaten is not."""

from dataclasses import replace

import pytest

from .builder import FULL, TTL, Story

LOST = ["a live owner lost its lease"]
BEATING = replace(FULL, capabilities=FULL.capabilities | {"heartbeats"})


def working():
    """A is at work on its run, and C lives."""
    s = Story(BEATING)
    s.spawn("A#1", "C#1")
    s.submit()
    s.claim("A#1")
    return s


def lost(s, *, meanwhile=None):
    """Forty seconds pass, ten by ten; after the first ten something may happen."""
    for ten in range(4):
        s.act("advance 10s")
        s.advance(10)
        if ten == 0 and meanwhile is not None:
            meanwhile(s)
    return s.titles(drained=False)


def begins(s, who, *, thread="main"):
    s.passed(who, "txn:begin", thread=thread)
    s.passed(who, "txn:begin", "after", thread=thread)


def writes(s, who, *, rows=1, thread="main"):
    s.passed(who, "sql:UPDATE runs", thread=thread)
    s.tries(who, "UPDATE runs SET result = 'x'", rows=rows, thread=thread)
    s.passed(who, "sql:UPDATE runs", "after", thread=thread)


def beats_in_vain(s):
    s.passed("A#1", "sql:UPDATE runs", thread="beat")
    s.tries("A#1", "UPDATE runs SET expires = 1", rows=0, thread="beat")
    s.passed("A#1", "sql:UPDATE runs", "after", thread="beat")


@pytest.mark.parametrize(
    ("point", "phase", "held"),
    [
        ("sql:SELECT effects", "after", True),
        ("effect:charge", "before", True),
        ("effect:charge", "before", False),  # it waits for the provider
        ("call:their.commit", "before", True),
    ],
)
def test_another_that_rests_anywhere_in_a_transaction_that_wrote_has_the_lock(point, phase, held):
    s = working()
    begins(s, "C#1")
    writes(s, "C#1")
    s.passed("C#1", point, phase, held=held)
    assert lost(s) == []


@pytest.mark.parametrize("end", ["commit", "rollback", "kill", None])
def test_a_transaction_that_is_over_hinders_nobody(end):
    def ends(s):
        if end == "commit":
            s.passed("C#1", "txn:commit")
            s.passed("C#1", "txn:commit", "after")
        elif end == "rollback":
            s.tries("C#1", "UPDATE runs SET result = 'x'", rows=1, rolls_back=True)
        elif end == "kill":
            s.kill("C#1")

    s = working()
    begins(s, "C#1")
    writes(s, "C#1")
    assert lost(s, meanwhile=ends) == (LOST if end else [])


def test_a_transaction_that_only_may_have_the_lock_hinders_who_tried():
    def story(*tries, rows=None):
        s = working()
        begins(s, "C#1")
        if rows is not None:
            writes(s, "C#1", rows=rows)
        for each in tries:
            each(s)
        return lost(s)

    assert story() == LOST
    assert story(rows=0) == LOST  # it failed, perhaps
    assert story(beats_in_vain) == []
    assert story(beats_in_vain, rows=0) == []
    assert story(beats_in_vain, lambda s: s.commit("A#1", s.set("runs", "r1", result="y"))) == LOST


def test_a_beat_that_waits_for_the_lock_of_somebody_unseen():
    s = working()
    s.passed("A#1", "sql:UPDATE runs", thread="beat")
    assert lost(s) == []


def test_a_beat_that_waits_for_its_own_worker_is_the_fault():
    def story(*, rival):
        s = working()
        if rival:
            begins(s, "C#1")
        begins(s, "A#1")
        s.passed("A#1", "effect:charge", held=True)
        s.passed("A#1", "sql:UPDATE runs", thread="beat")
        return lost(s)

    assert story(rival=False) == LOST
    assert story(rival=True) == []


def test_a_read_of_its_own_that_lies_open_hinders_nobody():
    s = working()
    s.passed("A#1", "sql:SELECT runs")
    assert lost(s) == LOST


@pytest.mark.parametrize("point", ["sql:SELECT runs", "txn:begin", "heartbeat"])
def test_one_held_where_nobody_rests_by_itself_is_hindered(point):
    s = working()
    s.passed("A#1", point, held=True)
    assert lost(s) == []


def test_one_that_went_on_from_there_to_its_call_is_not():
    s = working()
    s.passed("A#1", "sql:SELECT runs", held=True)
    s.passed("A#1", "effect:charge", held=True)
    assert lost(s) == LOST


def test_a_beat_held_at_a_point_of_its_own_is_hindered():
    def story(*, inside=False, renews=False, thread="beat"):
        s = working()
        if inside:
            s.passed("A#1", "heartbeat", thread=thread)
        if renews:
            s.advance(1)
            s.renew("A#1", thread=thread)
        s.passed("A#1", "half way", held=True, thread=thread)
        return lost(s)

    assert story(inside=True) == []
    assert story(renews=True) == []  # a thread that did nothing else before
    assert story() == LOST  # a tool's, for all that is known
    assert story(renews=True, thread="main") == LOST  # it renews between its steps


def test_a_beat_that_was_let_go_in_time_could_have_beaten():
    def lets_go(s):
        s.passed("A#1", "heartbeat", "after", thread="beat")

    def story(meanwhile):
        s = working()
        s.passed("A#1", "heartbeat", held=True, thread="beat")
        return lost(s, meanwhile=meanwhile)

    assert story(None) == []
    assert story(lets_go) == LOST


def test_a_claim_that_was_held_up_counts_from_the_time_that_it_bound():
    def story(*, held_s, looks_again=True, between=None):
        s = working()
        s.finish("A#1")
        s.submit("r2")
        bound = s.reads("A#1")
        s.advance(held_s)
        if between is not None:
            between(s)
        if looks_again:
            s.reads("A#1")  # for an event's time, say
        row = s.leased("A#1", 1, expires=bound + TTL)
        s.commit("A#1", s.set("runs", "r2", **row))
        return lost(s)

    assert story(held_s=21) == []
    assert story(held_s=21, looks_again=False) == []
    assert story(held_s=1) == LOST
    # an expiry that was reckoned from a look before another commit is its own fault
    own = lambda s: s.commit("A#1", s.set("runs", "r1", result="y"))  # noqa: E731
    assert story(held_s=21, between=own) == LOST
