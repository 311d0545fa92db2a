"""Histories as files: every value survives, a cut last line is borne, all other damage is named."""

import json
import os
import stat
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_leasecheck.testkit.errors import HistoryError
from pytest_leasecheck.testkit.history import (
    KINDS,
    Acted,
    Change,
    ClockMoved,
    Commit,
    Event,
    Header,
    History,
    Key,
    Noted,
    Row,
    Value,
)
from pytest_leasecheck.testkit.history_json import dump_line, load, loads, save

HOSTILE: tuple[Value, ...] = (
    None,
    0,
    -(2**63),
    2**64,
    10**5000,
    0.1,
    -0.0,
    5e-324,
    float("inf"),
    float("-inf"),
    "",
    "a\0b\n\r\u2028\x7f",
    "\ud800",
    "\ud800\udc00",
    "😀",
    "$bytes",
    b"",
    b"\0\xff\n",
)
ROW: Row = {f"c{at}": value for at, value in enumerate(HOSTILE)}
HEADER = Header(
    subject="tests:Queue",
    script='submit "a\\u0000"\n',
    start_ns=5,
    declaration={"runs": {"terminal": ["done", 3]}, "gone": True, "ttl": 0.5, "none": None},
    schema=("CREATE TABLE jobs (id)", "CREATE INDEX i ON jobs (id)"),
    tables={"jobs": {("a", 1): ROW, (b"\0", None): {"$bytes": "x"}}, "empty": {}},
)
EVENTS: tuple[Event, ...] = (
    Acted(1, 5, "submit a"),
    Commit(2, 6, "A#1", "main", 1, 1, (Change("jobs", HOSTILE, None, ROW),)),
    Commit(3, 6, "", "", 0, 0, (Change("jobs", (1,), ROW, None),)),
    ClockMoved(7, 10**19, 10**19, "expire"),
)
HISTORY = History(HEADER, EVENTS)
HUGE = {"$int": "f" * 9999}


def whole(history: History) -> bytes:
    return (dump_line(history.header) + "".join(map(dump_line, history.events))).encode("ascii")


def exactly(row: Row) -> list[tuple[str, str, str]]:
    """Each value with its type and sign (1 and 1.0 are equal, 0.0 and -0.0 too), in order."""
    return [
        (name, type(value).__name__, hex(value) if isinstance(value, int) else repr(value))
        for name, value in row.items()
    ]


def problems_of(data: bytes) -> list[str]:
    with pytest.raises(HistoryError) as caught:
        loads(data)
    return [str(problem) for problem in caught.value.problems]


def test_every_value_survives(tmp_path: Path) -> None:
    path = tmp_path / "a history.jsonl"
    save(HISTORY, path)
    loaded = load(path)
    assert loaded == HISTORY
    assert exactly(loaded.header.tables["jobs"]["a", 1]) == exactly(ROW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_is_one_ascii_json_object_a_line() -> None:
    lines = whole(HISTORY).decode("ascii").splitlines()
    assert len(lines) == 1 + len(EVENTS)
    assert json.loads(lines[0])["leasecheck-history"] == 1
    assert [json.loads(line)["kind"] for line in lines[1:]] == [
        "acted",
        "commit",
        "commit",
        "clock-moved",
    ]


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="never overwritten"):
        save(HISTORY, path)
    assert path.read_text() == "mine"
    link = tmp_path / "link"
    os.symlink(tmp_path / "nowhere", link)
    with pytest.raises(FileExistsError, match="never overwritten"):
        save(HISTORY, link)


@pytest.mark.parametrize("kept", range(1, 1 + len(EVENTS)))
def test_a_cut_last_line_is_noted(kept: int) -> None:
    lines = whole(HISTORY).splitlines(keepends=True)
    start = b"".join(lines[:kept])
    size = len(lines[kept])
    for length in (*range(1, min(size - 1, 400)), *range(400, size - 1, 31)):
        events = loads(start + lines[kept][:length]).events
        assert events[:-1] == EVENTS[: kept - 1]
        assert isinstance(events[-1], Noted)
        assert f"line {kept + 1} was cut off" in events[-1].text
    assert loads(start + lines[kept][:-1]).events == EVENTS[:kept]  # only its end is lost
    assert loads(start).events == EVENTS[: kept - 1]


def without(index: int, change: Callable[[dict[str, Any]], object]) -> bytes:
    lines = whole(HISTORY).splitlines()
    data = json.loads(lines[index])
    change(data)
    lines[index] = json.dumps(data).encode()
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "line 1: is empty"),
        (b"\n", "line 1: is empty"),
        (b"hello\n", "line 1: can't be read: Expecting value"),
        (b"\x80\x04]\n", "line 1: can't be read: 'ascii' codec"),
        (b"[]\n", "line 1: is no object"),
        (b"{}\n", "line 1: is no history's header"),
        (b'{"leasecheck-history":1', "line 1: can't be read"),
        (b'{"leasecheck-history":2}\n', "line 1: is the header of version 2; this kit reads"),
        (without(0, lambda d: d.update({"leasecheck-history": HUGE})), "of version a huge int;"),
        (without(4, lambda d: d.update(n={"$int": "-" + "f" * 9999})), "event a huge int comes"),
        (whole(HISTORY) + json.dumps(HUGE).encode() + b"\n", "is no object but a huge int"),
        (b'{"leasecheck-history":true}\n', "line 1: is the header of version True"),
        (b'{"leasecheck-history":1,"subject":""}\n', "line 1.script: is missing"),
        (without(0, lambda d: d.update(colour=1)), "line 1.colour: a Header has no such field"),
        (without(0, lambda d: d.update(schema="x")), "line 1.schema: 'x' is not a list"),
        (
            without(0, lambda d: d.update(tables={"jobs": 3})),
            "line 1.tables.jobs: 3 is not a mapping",
        ),
        (without(1, lambda d: d.update(kind="acting")), "no event is of the kind 'acting'"),
        (without(1, lambda d: d.pop("kind")), "line 2: no event is of the kind None"),
        (without(1, lambda d: d.update(text=3)), "line 2.text: 3 is not of type str"),
        (without(1, lambda d: d.pop("text")), "line 2.text: is missing"),
        (without(2, lambda d: d.update(n=1)), "line 3: is out of order: event 1 comes after"),
        (
            without(2, lambda d: d["changes"][0].update(table=None)),
            "line 3.changes[0].table: None is not of type str",
        ),
        (
            without(2, lambda d: d["changes"][0]["new"].update(c0=[1])),
            "line 3.changes[0].new.c0: [1] is not",
        ),
        (without(1, lambda d: d.update(text={"$bytes": "%"})), "line 2: can't be read: $bytes is"),
        (without(1, lambda d: d.update(text={"$bytes": 1})), "$bytes with 1 stands for nothing"),
        (without(1, lambda d: d.update(text={"$int": "x"})), "$int with 'x' stands for nothing"),
        (without(1, lambda d: d.update(text={"$what": 1})), "$what with 1 stands for nothing"),
        (without(1, lambda d: d.update(text={"$map": [1]})), "$map has something that is no pair"),
        (whole(HISTORY) + b"\n", "line 6: is empty"),
        (whole(HISTORY) + b"[" * 100_000 + b"\n", "line 6: can't be read"),
        (whole(HISTORY) + b"nonsense", "line 6: can't be read"),
        (whole(HISTORY) + b'{"kind":NaN}\n', "line 6: can't be read: NaN is no JSON"),
        (whole(HISTORY) + b'{"kind":1,"kind":1}\n', "line 6: can't be read: an object has one key"),
        (whole(HISTORY) + b'{"kind" 1,"n":3}', "line 6: can't be read"),
        (whole(HISTORY) + b'{"kind":1}', "line 6: no event is of the kind 1"),
    ],
)
def test_damage_is_named_with_its_line(data: bytes, text: str) -> None:
    found = problems_of(data)
    assert len(found) == 1
    assert text in found[0]


def test_all_damage_is_told_at_once() -> None:
    lines = whole(HISTORY).splitlines()
    lines[1], lines[3] = b"oops", b'{"kind":"acted"}'
    assert [problem.split(":")[0] for problem in problems_of(b"\n".join(lines) + b"\n")] == [
        "line 2",
        "line 4.n",
        "line 4.at_ns",
        "line 4.text",
    ]


TEXT = st.text(st.characters(), max_size=6) | st.sampled_from(
    ["\ud800", "\ud800\udc00", "$x", "\0"]
)
VALUES: st.SearchStrategy[Value] = (
    st.none() | st.integers() | st.floats(allow_nan=False) | TEXT | st.binary(max_size=6)
)
ROWS = st.dictionaries(TEXT, VALUES, max_size=3)
KEYS = st.lists(VALUES, max_size=2).map(tuple)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
CHANGES = st.builds(Change, TEXT, KEYS, st.none() | ROWS, st.none() | ROWS)
BY_HINT: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(),
    str: TEXT,
    bool: st.booleans(),
    str | None: st.none() | TEXT,
    int | None: st.none() | st.integers(),
    tuple[Change, ...]: st.lists(CHANGES, max_size=2).map(tuple),
}


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    hints = get_type_hints(kind)
    parts = {field.name: BY_HINT[hints[field.name]] for field in fields(kind)}
    return st.builds(kind, **parts)


EVENT_LISTS = st.lists(st.one_of(*map(events_of, KINDS.values())), max_size=5)
HEADERS = st.builds(
    Header,
    TEXT,
    TEXT,
    kit=TEXT,
    start_ns=st.integers(),
    declaration=st.dictionaries(TEXT, JSON_VALUES, max_size=3),
    schema=st.lists(TEXT, max_size=2).map(tuple),
    tables=st.dictionaries(TEXT, st.dictionaries(KEYS, ROWS, max_size=2), max_size=2),
)


@given(header=HEADERS, events=EVENT_LISTS)
def test_any_history_survives(header: Header, events: list[Event]) -> None:
    ordered = sorted({event.n: event for event in events}.values(), key=lambda event: event.n)
    history = History(header, tuple(ordered))
    loaded = loads(whole(history))
    assert loaded == history
    assert repr(loaded) == repr(history)


@given(
    at=st.integers(0, len(whole(HISTORY)) - 1),
    size=st.integers(0, 20),
    junk=st.binary(max_size=4) | st.sampled_from([b"\n", b'"', b"{", b"}", b"\\ud800", b"9"]),
)
def test_any_damage_is_a_history_error_or_another_history(at: int, size: int, junk: bytes) -> None:
    data = whole(HISTORY)
    damaged = data[:at] + junk + data[at + size :]
    try:
        history = loads(damaged)
    except HistoryError as error:
        found = [problem.where for problem in error.problems]
    else:
        assert loads(whole(history)) == history
        return
    assert all(where.startswith("line ") for where in found)


def test_keys_are_hashable_and_in_order() -> None:
    keys: list[Key] = list(loads(whole(HISTORY)).header.tables["jobs"])
    assert keys == [("a", 1), (b"\0", None)]
