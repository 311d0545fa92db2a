"""Times in every form that a subject may store, and what a row says of its run."""

import pytest

from pytest_leasecheck.testkit.errors import SubjectError
from pytest_leasecheck.testkit.rows import Expiry, Reader, as_token, read_time, stored_expiries
from pytest_leasecheck.testkit.subject import After, Beat, Declaration, Lease, RunTable, Writes

NS = 1_700_000_000 * 10**9
SECOND = 10**9


@pytest.mark.parametrize(
    ("stored", "unit", "at_ns", "grain_ns"),
    [
        (1_700_000_000, None, NS, SECOND),
        (1_700_000_000.25, None, NS + SECOND // 4, 10**6),
        (1_700_000_000_000, None, NS, 10**6),
        (1_700_000_000_000_000, None, NS, 10**3),
        (1_700_000_000_000_000_000, None, NS, 1),
        (1_000, "ms", SECOND, 10**6),
        ("1700000000", None, NS, SECOND),
        ("1700000000.5", None, NS + SECOND // 2, 10**6),
        (b"1700000000", None, NS, SECOND),
        ("2023-11-14T22:13:20Z", None, NS, SECOND),
        ("2023-11-14 22:13:20", None, NS, SECOND),
        ("2023-11-14 22:13:20.125", None, NS + SECOND // 8, 10**6),
        ("2023-11-14T22:13:20.000001+00:00", None, NS + 1_000, 10**3),
        ("2023-11-14T23:13:20+01:00", None, NS, SECOND),
        ("2023-11-14 22:13", None, NS - 20 * SECOND, 60 * SECOND),
    ],
)
def test_each_way_to_store_a_time_is_the_same_instant(stored, unit, at_ns, grain_ns):
    assert read_time(stored, unit) == Expiry(at_ns, grain_ns)


def test_a_julian_day_is_right_to_its_clocks_tick():
    expiry = read_time(2460263.4259259258)
    assert abs(expiry.at_ns - NS) < 10**6
    assert expiry.grain_ns == 10**6
    assert read_time(2460263.4259259258, "julian") == expiry


@pytest.mark.parametrize("stored", [None, "", b""])
def test_no_time_is_none(stored):
    assert read_time(stored) is None


def test_an_expiry_is_neither_live_nor_lapsed_at_its_very_edge():
    expiry = read_time(1_700_000_000_000)
    assert expiry.live(NS - 10**6)
    assert not expiry.live(NS)
    assert not expiry.lapsed(NS)
    assert expiry.lapsed(NS + 10**6)


def test_what_is_no_time_names_the_column_and_says_what_to_do():
    declaration = Declaration(
        "Q", RunTable("jobs", id="id", lease=Lease("who", expires_at="until"))
    )
    with pytest.raises(SubjectError, match=r"jobs\.until: 'soon' can't be read .* say its unit"):
        Reader(declaration).expiry({"until": "soon"}, {})
    with pytest.raises(SubjectError, match=r"no such column; there are id, who"):
        Reader(declaration).expiry({"id": 1, "who": "A"}, {})


def test_expiry_after_a_column_by_a_number_or_by_another_column():
    def expires(form, **row):
        table = RunTable("jobs", id="id", lease=Lease("who", expires_at=form))
        return Reader(Declaration("Q", table)).expiry(row, {}).at_ns

    assert expires(After("at", 30), at=1_700_000_000) == NS + 30 * SECOND
    assert expires(After("at", "len"), at=1_700_000_000, len=5) == NS + 5 * SECOND


def test_a_lease_whose_end_is_null_never_ends():
    def expiry(form, row, beats=()):
        table = RunTable("jobs", id="id", lease=Lease("who", expires_at=form))
        return Reader(Declaration("Q", table)).expiry(row, dict(beats))

    assert expiry("at", {"at": None}) is None
    assert expiry("at", {"at": ""}) is None
    assert expiry(After("at", 30), {"at": None}) is None
    assert expiry(After("at", "len"), {"at": 1_700_000_000, "len": None}) is None
    beat = Beat("procs", key="name", by="who", column="seen", seconds=60)
    assert expiry(beat, {"who": "A"}, {"A": {"name": "A", "seen": None}}) is None


def test_expiry_lies_with_the_owners_heartbeat_and_is_past_without_one():
    lease = Lease("who", expires_at=Beat("procs", key="name", by="who", column="seen", seconds=60))
    declaration = Declaration("Q", RunTable("jobs", id="id", lease=lease))
    row = {"id": 1, "who": "A"}
    beats = {"A": {"name": "A", "seen": 1_700_000_000}}
    assert Reader(declaration).expiry(row, beats).at_ns == NS + 60 * SECOND
    assert Reader(declaration).expiry(row, {}).lapsed(NS)
    tables = {"jobs": {(1,): row}, "procs": {("A",): beats["A"]}}
    assert stored_expiries(declaration, tables) == (Expiry(NS + 60 * SECOND, SECOND),)


def test_held_is_by_status_where_declared_and_by_owner_alone_otherwise():
    def held(lease, **row):
        reader = Reader(Declaration("Q", RunTable("jobs", id="id", status="status", lease=lease)))
        return reader.view([row], [], known=True, beats={}).held

    running = Lease("who", held={"status": {"running"}})
    assert held(running, status="running", who="A")
    assert not held(running, status="done", who="A")
    assert not held(running, status="running", who=None)
    assert held(Lease("who"), who="A")
    assert not held(Lease("who"), who="")
    assert held(Lease(held={"status": {"running"}}), status="running")


def run_of_payload(row):
    return row["payload"].partition(":")[2] or None


def test_the_run_of_a_row_by_columns_and_by_a_function():
    declaration = Declaration(
        "Q",
        RunTable("jobs", id=("queue", "id"), lease=Lease("who")),
        writes=(Writes("log", run=f"{__name__}:run_of_payload"), Writes("results", run="job")),
    )
    run_of = Reader(declaration).run_of
    assert run_of["jobs"]({"queue": "mail", "id": 7}) == "mail/7"
    assert run_of["log"]({"payload": "job:7"}) == "7"
    assert run_of["log"]({"payload": "nothing"}) is None
    assert run_of["results"]({"job": 7}) == "7"


def test_a_function_for_the_run_that_fails_is_an_error_that_shows_the_row():
    broken = Declaration(
        "Q", RunTable("jobs", id="id", lease=Lease("who")),
        writes=(Writes("log", run=f"{__name__}:run_of_payload"),),
    )  # fmt: skip
    with pytest.raises(SubjectError, match=r"KeyError.*\{'other': 1\}"):
        Reader(broken).run_of["log"]({"other": 1})
    missing = Declaration(
        "Q",
        RunTable("jobs", id="id", lease=Lease("who")),
        writes=(Writes("log", run="no.such:fn"),),
    )
    with pytest.raises(SubjectError, match=r"no\.such:fn"):
        Reader(missing)


@pytest.mark.parametrize(
    ("stored", "token"),
    [(7, 7), ("7", 7), (7.0, 7), ("-7", -7), (None, None), ("a7", None), ("", None), (True, None)],
)
def test_a_token_is_a_number_however_it_is_stored(stored, token):
    assert as_token(stored) == token
