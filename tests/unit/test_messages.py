"""What a worker may say to its lane, and what is no message."""

from __future__ import annotations

import marshal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_leasecheck.testkit.messages import checked, effect_names

WAITS = [(1, "main", "held", 0, 3)]
GOOD = [
    ("hold", 1, [("passed", "main", "start", 1, "before", True)], (True, 0, WAITS), ("p", 1, "b")),
    ("returned", 1, [], (False, 1, []), ("main", "'done'", "", "")),
    ("wait", 1, [("clock-read", "main", 10)], (True, 0, WAITS), 1000),
    ("effect", 1, [], None, ("main", "charge", "r1", 1, "k", "rcpt", False)),
    ("effect", 1, [], None, ("main", "charge", None, None, None, "rcpt", True)),
    ("lookup", 1, [], None, ("main", "k", "rcpt")),
    ("line", 1, [], None, "helper"),
    ("rest", 1, [("blind", "why")], None, None),
    ("turn", 1, [("statement", "main", 1, 1, "SELECT", "jobs", "SELECT", None)], None, 1),
    ("no-commit", 1, [("statement", "main", 1, 1, "UPDATE", "jobs", "UPDATE", 2)], None, 1),
]
BAD = [
    None,
    7,
    (),
    ("hold", 1, [], None),
    ("shout", 1, [], None, None),
    ("hold", "main", [], None, ("p", 1, "b")),
    ("hold", 1, (), None, ("p", 1, "b")),
    ("hold", 1, [], None, ("p", "1", "b")),
    ("hold", 1, [()], None, ("p", 1, "b")),
    ("hold", 1, [("passed", "main")], None, ("p", 1, "b")),
    ("hold", 1, [("commit", "main", 1, 1)], None, ("p", 1, "b")),
    ("hold", 1, [], (1, 0, []), ("p", 1, "b")),
    ("hold", 1, [], (True, 0, [(1, "main")]), ("p", 1, "b")),
    ("effect", 1, [], None, ("main", "charge", 1.5, 1, "k", "rcpt", False)),
    ("effect", 1, [], None, 7),
    ("rest", 1, [], None, 7),
]


@pytest.mark.parametrize("message", GOOD, ids=repr)
def test_a_message_is_let_through_as_it_is(message: Any) -> None:
    assert checked(message) is message
    assert checked(marshal.loads(marshal.dumps(message))) == message


@pytest.mark.parametrize("message", BAD, ids=repr)
def test_what_is_no_message_is_refused(message: Any) -> None:
    with pytest.raises((ValueError, TypeError, IndexError)):
        checked(message)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["hold", "passed"]),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.lists(inner).map(tuple),
)


@given(st.tuples(PLAIN, PLAIN, PLAIN, PLAIN, PLAIN) | PLAIN)
def test_whatever_it_is_it_is_refused_or_of_a_known_kind(message: Any) -> None:
    try:
        kind, thread, rows, _settlement, _payload = checked(message)
    except (ValueError, TypeError, IndexError, KeyError):
        return
    assert type(kind) is str
    assert type(thread) is int
    assert all(type(row[0]) is str for row in rows)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (("r1", 7, "k"), ("r1", 7, "k")),
        ((12, "7", 5), ("12", 7, "5")),
        ((("a", 1), 7.0, None), ("a/1", 7, None)),
        ((None, None, None), (None, None, None)),
    ],
)
def test_an_effect_is_named_as_its_rows_are_read(given: Any, sent: Any) -> None:
    assert effect_names(*given) == sent
    assert checked(("effect", 1, [], None, ("main", "charge", *sent, "rcpt", False)))


@pytest.mark.parametrize("token", ["a7", 7.5, b"7", True])
def test_a_token_without_an_order_is_refused_where_it_is_given(token: object) -> None:
    with pytest.raises(TypeError, match="no whole number"):
        effect_names("r1", token, None)
