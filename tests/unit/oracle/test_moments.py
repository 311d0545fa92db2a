"""What must have happened for a script to count, and that it is not said to have when it didn't."""

import pytest

from pytest_leasecheck.testkit.moments import MOMENTS, parse_moment

from .builder import TTL, Story


def started():
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    return s


def taken_over():
    s = started()
    s.start_step("A#1")
    s.expire()
    s.take_over("B#1")
    return s


def missing(s, *moments):
    return s.judge(requires=moments, drained=False).missing


def stale(s, **fields):
    s.effect("A#1", token=1, outcome="refused", **fields)


CASES = {
    "stale attempt by A": stale,
    "stale attempt": stale,
    "stale effect attempt by A": stale,
    "stale effect attempt: A": stale,
    "stale attempt refused by token": stale,
    "stale attempt refused by token by A": stale,
    "effect refused by A": stale,
    "stale write attempt by A": lambda s: s.tries("A#1", "UPDATE runs SET x=1 WHERE id='r1'"),
    "stale attempt that gave up": lambda s: s.tries(
        "A#1", "SELECT 1 FROM runs WHERE id='r1'", rows=None
    ),
    "steal by A": lambda s: s.take_over("A#1", token=3),
    "reap by A": lambda s: (s.expire(), s.release("A#1")),
    "renewal by B": lambda s: (s.advance(1), s.renew("B#1")),
    "release by B": lambda s: s.release("B#1"),
    "finish by B": lambda s: s.finish("B#1"),
    "late outcome by B": lambda s: (s.expire(), s.start_step("B#1")),
    "cancel of B": lambda s: s.operator(s.set("runs", "r1", status="cancelled", owner=None)),
    "lapse of B": lambda s: s.expire(),
    "woke past expiry: B": lambda s: (s.expire(), s.reads("B#1")),
    "killed: B": lambda s: s.kill("B#1"),
    "stopped: B": lambda s: s.signal("B#1", "SIGSTOP"),
    "continued: B": lambda s: s.signal("B#1", "SIGCONT"),
    "restarted: B": lambda s: (s.kill("B#1"), s.spawn("B#2")),
    "two alive under one name": lambda s: s.spawn("C#1", name="A"),
    "effect by B": lambda s: s.effect("B#1", token=2),
    "effect replayed": lambda s: s.effect("B#1", outcome="replayed"),
    "effect failed": lambda s: s.effect("B#1", outcome="failed"),
    "response lost": lambda s: s.answer("B#1", s.ask("B#1"), "lost"),
    "request delivered twice": lambda s: s.decide("B#1", s.effect("B#1", key="k"), "replayed"),
    "look-up by B": lambda s: s.look_up("B#1", "k"),
    "lock held": lambda s: s.act("lock"),
    "claim by C": lambda s: (s.spawn("C#1"), s.expire(), s.take_over("C#1", token=3)),
    "refused claim by C": lambda s: (
        s.spawn("C#1"),
        s.tries("C#1", "SELECT id FROM runs WHERE owner IS NULL", rows=None),
    ),
}


@pytest.mark.parametrize("moment", CASES)
def test_a_moment_is_there_when_it_happened_and_missing_when_it_did_not(moment):
    s = taken_over()
    assert missing(s, moment) == (moment,)
    CASES[moment](s)
    assert missing(s, moment) == ()


def test_moments_of_a_take_over():
    s = taken_over()
    assert (
        missing(s, "take-over by B", "interruption of A", "reconciliation by B", "claim by A") == ()
    )
    assert missing(s, "take-over by A", "interruption of B") == (
        "take-over by A", "interruption of B"
    )  # fmt: skip
    assert missing(started(), "take-over", "interruption") == ("take-over", "interruption")


def test_every_moment_is_shown_to_come_about():
    shown = {parse_moment(text)[0] for text in CASES} | {
        "take-over", "interruption", "reconciliation"
    }  # fmt: skip
    guards = {name for name in MOMENTS if name.startswith("stale attempt refused by")}
    assert set(MOMENTS) - shown <= guards


def test_whose_moment_it_is_by_label_and_by_incarnation():
    s = taken_over()
    s.kill("A#1")
    s.spawn("A#2")
    s.expire()
    s.claim("A#2", token=3)
    assert missing(s, "take-over by A", "take-over by A#2") == ()
    assert missing(s, "take-over by A#1") == ("take-over by A#1",)


def test_no_refused_claim_where_the_lease_had_lapsed_or_the_worker_got_it():
    look = "SELECT id FROM runs WHERE owner IS NULL"
    s = started()
    s.expire()
    s.tries("B#1", look, rows=None)
    assert missing(s, "refused claim by B") == ("refused claim by B",)
    s = started()
    s.release("A#1")
    s.claim("B#1", token=2)
    s.tries("B#1", look, rows=None)
    assert missing(s, "refused claim by B") == ("refused claim by B",)


def test_a_restarted_worker_is_refused_until_its_old_lease_is_over():
    look = "SELECT id FROM runs WHERE owner IS NULL"
    s = started()
    s.kill("A#1")
    s.spawn("A#2")
    s.tries("A#2", look, rows=None)
    s.expire()
    s.claim("A#2", token=2)
    assert missing(s, "refused claim by A", "take-over by A", "killed: A") == ()


def test_a_renewal_in_time_is_no_lapse():
    s = started()
    for _ in range(5):
        s.advance(TTL / 3)
        s.renew("A#1")
    assert missing(s, "lapse", "woke past expiry") == ("lapse", "woke past expiry")


def test_a_moment_that_there_is_none_of_is_an_error_that_lists_them():
    s = started()
    with pytest.raises(ValueError, match=r"'takeover by B' is no moment .* take-over, steal"):
        missing(s, "takeover by B")
