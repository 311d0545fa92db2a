"""Who is to blame: the one whose tenure was over, not the rightful one who came after it."""

from dataclasses import replace

import pytest

from .builder import FULL, Story


def taken(declaration=FULL):
    """A lost its run to B."""
    s = Story(declaration)
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.expire()
    s.take_over("B#1")
    return s


def blamed(story, title):
    (finding,) = (one for one in story.judge(drained=False).findings if one.title == title)
    return finding.culprit, finding.victims


ORDERS = pytest.mark.parametrize("first", ["A#1", "B#1"])


@ORDERS
def test_of_two_effects_under_one_key_the_stale_one_is_to_blame(first):
    s = taken()
    for who in (first, "B#1" if first == "A#1" else "A#1"):
        token = {"A#1": 1, "B#1": 2}[who]
        row = s.add_row("effects", run_id="r1", key="k", token=token, name="charge")
        s.commit(who, row)
    assert blamed(s, "one key, two effects") == ("A#1", ("B#1",))


@ORDERS
@pytest.mark.parametrize(
    ("key", "title"),
    [("k", "one key, two effects"), ("k", "the effect ran twice"), (None, "the effect ran twice")],
)
def test_of_two_requests_the_stale_one_is_to_blame(first, key, title):
    s = taken(replace(FULL, delivery="exactly-once"))
    for who in (first, "B#1" if first == "A#1" else "A#1"):
        s.effect(who, token={"A#1": 1, "B#1": 2}[who], key=key)
    assert blamed(s, title) == ("A#1", ("B#1",))


def test_who_repeats_what_a_dead_owner_did_in_time_is_to_blame():
    s = Story(replace(FULL, delivery="exactly-once"))
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.effect("A#1", token=1)
    s.expire()
    s.take_over("B#1")
    s.effect("B#1", token=2)
    assert blamed(s, "the effect ran twice") == ("B#1", ("A#1",))


def test_who_releases_anothers_lease_has_none_by_that():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    s.release("B#1")
    s.returned("B#1")
    assert [(one.who, one.ended) for one in s.fold().tenures] == [("A#1", "stolen")]
    assert blamed(s, "a lease was released by another") == ("B#1", ("A#1",))
    assert "a call left its lease behind" not in s.titles(drained=False)
