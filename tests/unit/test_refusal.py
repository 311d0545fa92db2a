"""Which guard refused: each guard alone, redundant ones, and what is no guard, all by hand."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from pytest_leasecheck.testkit import scratch
from pytest_leasecheck.testkit.history import (
    Change,
    Commit,
    EffectDecided,
    Event,
    Header,
    History,
    Key,
    Row,
    Statement,
)
from pytest_leasecheck.testkit.refusal import guards_of, with_guards
from pytest_leasecheck.testkit.subject import (
    After,
    Beat,
    Declaration,
    EffectRows,
    Lease,
    RunTable,
    Steps,
    Writes,
)
from pytest_leasecheck.testkit.verdict import Attempt, Tenure

START_S = 1_700_000_000
JOBS = (
    "CREATE TABLE jobs (id TEXT PRIMARY KEY, owner TEXT, fence INTEGER, expires REAL,"
    " status TEXT, version INTEGER DEFAULT 1, result TEXT)"
)
STEPS = (
    "CREATE TABLE steps (job TEXT, name TEXT, status TEXT, fence INTEGER, out TEXT,"
    " PRIMARY KEY (job, name))"
)
DECLARATION = Declaration(
    "Tiny",
    RunTable(
        "jobs",
        id="id",
        status="status",
        terminal={"done"},
        lease=Lease(
            owner="owner", held={"status": {"running"}}, expires_at="expires", token="fence"
        ),
    ),
    writes=(Writes("steps", run="job"),),
)
#: A's tenure, then B's: A claims at 2 and has 30 s; B claims at 10, 31 s later.
A_ROW: Row = {
    "id": "r", "owner": "A", "fence": 1, "expires": START_S + 30.0, "status": "running",
    "version": 2, "result": None,
}  # fmt: skip
B_ROW: Row = {**A_ROW, "owner": "B", "fence": 2, "expires": START_S + 61.0, "version": 3}
B_DONE: Row = {
    **B_ROW, "owner": None, "expires": None, "status": "done", "version": 4, "result": "b",
}  # fmt: skip
FREE: Row = {
    **A_ROW, "owner": None, "fence": 0, "expires": None, "status": "queued", "version": 1,
}  # fmt: skip


@dataclass
class Made:
    """A history in the making, and the attempt that ends it."""

    history: History
    attempt: Attempt

    def guards(self, declaration: Declaration = DECLARATION) -> tuple[str, ...]:
        return guards_of(self.history, declaration, self.attempt)


def change(table: str, key: Key, old: Row | None, new: Row | None) -> Change:
    return Change(table, key, old, new)


def job(old: Row | None, new: Row | None) -> Change:
    return change("jobs", ("r",), old, new)


def made(
    *sql: str,
    now: Row | None = B_ROW,
    rows: Sequence[int | None] = (),
    asked: int = -1,
    schema: Sequence[str] = (JOBS, STEPS),
    before: Sequence[Change] = (),
    takeover: Sequence[Change] = (),
    tables: dict[str, dict[Key, Row]] | None = None,
    outcome: str = "changed nothing",
    claimed: Row = A_ROW,
) -> Made:
    """A claims, B takes over, then A runs these statements in one transaction."""
    at = START_S * 10**9
    changed = rows or (0,) * len(sql)
    events: list[Event] = [
        Commit(2, at, "A#1", "main", 1, 1, (job(FREE, claimed), *before)),
        Commit(10, at + 31 * 10**9, "B#1", "main", 1, 1, (job(claimed, now), *takeover)),
    ]
    for offset, text in enumerate(sql):
        verb, table = text.split()[0], next(w for w in text.split() if w in ("jobs", "steps", "fx"))
        events.append(
            Statement(
                20 + offset, at + 32 * 10**9, "A#1", "main", 1, 2, verb, table, text,
                changed[offset],
            )
        )  # fmt: skip
    standing: dict[str, dict[Key, Row]] = {"jobs": {("r",): FREE}, "steps": {}}
    header = Header(
        "tests:Tiny",
        "",
        start_ns=at,
        schema=tuple(schema),
        tables=standing | (tables or {}),
    )
    n = events[2:][asked].n
    attempt = Attempt(n, "r", "A#1", 1, "UPDATE jobs", outcome, sql=sql[asked])
    return Made(History(header, tuple(events)), attempt)


def finish(where: str) -> str:
    return f"UPDATE jobs SET status = 'done', result = 'a' WHERE id = 'r' AND {where}"


NOW = START_S + 32


@pytest.mark.parametrize(
    ("where", "now", "guards"),
    [
        # Each alone, while B holds the lease.
        ("owner = 'A'", B_ROW, ("owner",)),
        ("fence = 1", B_ROW, ("token",)),
        ("fence <= 1", B_ROW, ("token",)),
        ("version = 2", B_ROW, ("version",)),
        ("expires = 1700000030.0", B_ROW, ("expiry",)),
        # Two that are each enough, in one order.
        ("fence = 1 AND owner = 'A'", B_ROW, ("owner", "token")),
        (f"fence = 1 AND expires > {NOW}", B_ROW, ("token",)),  # B's lease has not passed
        # B has finished: a status check refuses too, and what it cleared.
        ("status = 'running'", B_DONE, ("status",)),
        ("status = 'running' AND fence = 1", B_DONE, ("token", "status")),
        (
            f"owner = 'A' AND fence = 1 AND expires > {NOW} AND status = 'running'",
            B_DONE,
            ("owner", "token", "expiry", "status"),
        ),
        (f"expires > {NOW}", B_DONE, ("expiry",)),
        ("expires > julianday('now')", B_DONE, ("expiry",)),
        ("expires > unixepoch('now')", B_DONE, ("expiry",)),
        # It was requeued and nobody took it: only the lapsed expiry is left to look at.
        (f"expires > {NOW}", {**A_ROW, "owner": None, "status": "queued"}, ("expiry",)),
        ("expires > strftime('%s')", {**A_ROW, "owner": None, "status": "queued"}, ("expiry",)),
        (
            "expires > CAST(strftime('%s', 'now') AS REAL)",
            {**A_ROW, "owner": None, "status": "queued"},
            ("expiry",),
        ),
        # Refused only by two together.
        ("(owner = 'A' OR fence = 1)", B_ROW, ("owner and token",)),
        # What refuses is nothing of the lease's.
        ("1 = 0", B_ROW, ()),
        ("nonsense(id)", B_ROW, ()),
        ("id = 'r'", B_ROW, ()),  # it would go through now: something else stopped it
    ],
)
def test_an_update(where: str, now: Row, guards: tuple[str, ...]) -> None:
    assert made(finish(where), now=now).guards() == guards


def test_the_time_is_the_stages_and_not_ours() -> None:
    # Lapsed by the stage's clock for one second; by ours for years, by the start's not at all.
    day = "(expires + 30) > unixepoch('now')"
    free = {**A_ROW, "owner": None, "status": "queued"}
    assert made(finish(day), now=free).guards() == ()  # 30 s of grace: it goes through
    assert made(finish("(expires + 1) > unixepoch('now')"), now=free).guards() == ("expiry",)


@pytest.mark.parametrize("unit", ["s", "ms", "ns", "julian", "iso", "text"])
def test_an_expiry_in_every_unit(unit: str) -> None:
    def stored(seconds: int) -> int | float | str:
        at = datetime.fromtimestamp(START_S + seconds, UTC)
        times: dict[str, int | float | str] = {
            "s": START_S + seconds,
            "ms": (START_S + seconds) * 1000,
            "ns": (START_S + seconds) * 10**9,
            "julian": (START_S + seconds) / 86400 + 2440587.5,
            "iso": at.isoformat(),
            "text": at.strftime("%Y-%m-%d %H:%M:%S"),
        }
        return times[unit]

    schema = (JOBS.replace("expires REAL", "expires"), STEPS)
    claimed: Row = {**A_ROW, "expires": stored(30)}
    free: Row = {**claimed, "owner": None, "status": "queued"}
    fresh = finish(f"expires > {stored(32)!r}")
    assert made(fresh, now=free, claimed=claimed, schema=schema).guards() == ("expiry",)
    bound_early = finish(f"expires > {stored(29)!r}")
    assert made(bound_early, now=free, claimed=claimed, schema=schema).guards() == ()


def test_an_insert_from_a_select() -> None:
    sql = (
        "INSERT INTO steps (job, name, out) SELECT 'r', 's', 'a' FROM jobs"
        " WHERE id = 'r' AND owner = 'A' AND fence = 1"
    )
    assert made(sql).guards() == ("owner", "token")


def test_a_delete() -> None:
    assert made("DELETE FROM jobs WHERE id = 'r' AND fence = 1").guards() == ("token",)


def test_with_and_a_comment_before_and_returning() -> None:
    text = "UPDATE /* the job */ jobs SET result = 'a' WHERE fence = 1 RETURNING id"
    assert made(text).guards() == ("token",)
    made_ = made("UPDATE jobs SET result = 'a' WHERE fence = (SELECT f FROM mine)")
    statement = made_.history.events[-1]
    assert isinstance(statement, Statement)
    with_cte = replace(statement, sql="-- mine\nWITH mine(f) AS (SELECT 1) " + statement.sql)
    history = replace(made_.history, events=(*made_.history.events[:-1], with_cte))
    assert guards_of(history, DECLARATION, made_.attempt) == ("token",)


def test_a_read_that_finds_nothing() -> None:
    sql = "SELECT id FROM jobs WHERE id = 'r' AND owner = 'A'"
    assert made(sql, outcome="gave up after reading").guards() == ("owner",)


@pytest.mark.parametrize(
    ("columns", "read"),
    [
        ("owner, fence", ("owner", "token")),
        ("fence AS f", ("token",)),
        ("*", ("owner", "token", "expiry", "version")),
        ("expires < 1700000032.0", ("expiry",)),
        ("result", ()),
        ("count(*)", ()),
        ("nonsense", ()),
    ],
)
def test_a_read_after_which_the_program_gave_up(columns: str, read: tuple[str, ...]) -> None:
    sql = f"SELECT {columns} FROM jobs WHERE id = 'r'"
    made_ = made(sql, rows=(None,), outcome="gave up after reading")
    assert made_.guards() == tuple(f"{name} (in the program)" for name in read)


def test_a_read_whose_sql_finds_nothing_was_refused_by_that() -> None:
    sql = "SELECT fence FROM jobs WHERE id = 'r' AND owner = 'A'"
    made_ = made(sql, rows=(None,), outcome="gave up after reading")
    assert made_.guards() == ("owner",)


STEP_B: Row = {"job": "r", "name": "s", "status": "done", "fence": 2, "out": "b"}
INSERT = "INSERT INTO steps (job, name, out) VALUES ('r', 's', 'a')"


@pytest.mark.parametrize("sql", [INSERT, INSERT.replace("INSERT", "INSERT OR IGNORE"),
                                 INSERT + " ON CONFLICT DO NOTHING"])  # fmt: skip
def test_a_key_that_is_taken(sql: str) -> None:
    made_ = made(sql, takeover=[change("steps", ("r", "s"), None, STEP_B)])
    assert made_.guards() == ("key",)


def test_a_key_and_a_token() -> None:
    sql = "INSERT INTO steps (job, name, out) SELECT id, 's', 'a' FROM jobs WHERE fence = 1"
    made_ = made(sql, takeover=[change("steps", ("r", "s"), None, STEP_B)])
    assert made_.guards() == ("token", "key")


def test_other_peoples_rows_are_not_in_the_way() -> None:
    others: dict[Key, Row] = {(f"o{n}", "s"): {**STEP_B, "job": f"o{n}"} for n in range(300)}
    jobs: dict[Key, Row] = {(f"o{n}",): {**FREE, "id": f"o{n}"} for n in range(300)}
    jobs["r",] = FREE
    made_ = made(finish("fence = 1"), tables={"steps": others, "jobs": jobs})
    assert made_.guards() == ("token",)


TRIGGER = (
    "CREATE TRIGGER fenced BEFORE UPDATE ON jobs WHEN OLD.fence > 1 AND NEW.result = 'a'"
    " BEGIN SELECT RAISE({how} 'stale'); END"
)


@pytest.mark.parametrize("how", ["ABORT,", "ROLLBACK,", "FAIL,"])
def test_a_trigger_that_looks_at_the_token(how: str) -> None:
    schema = (JOBS, STEPS, TRIGGER.format(how=how))
    assert made(finish("id = 'r'"), schema=schema).guards() == ("token",)


def test_a_trigger_that_ignores() -> None:
    schema = (JOBS, STEPS, TRIGGER.format(how="IGNORE").replace(" 'stale'", ""))
    assert made(finish("owner = 'A'"), schema=schema).guards() == ("owner", "token")


def test_a_trigger_of_the_subjects_does_not_mind_what_is_put_back() -> None:
    grows = (
        "CREATE TRIGGER grows BEFORE UPDATE ON jobs WHEN NEW.fence < OLD.fence"
        " BEGIN SELECT RAISE(ABORT, 'tokens grow'); END"
    )
    assert made(finish("fence = 1"), schema=(JOBS, STEPS, grows)).guards() == ("token",)


def test_a_constraint_that_is_nobodys_value() -> None:
    schema = (JOBS.replace("result TEXT", "result TEXT CHECK (result <> 'a')"), STEPS)
    assert made(finish("id = 'r'"), schema=schema).guards() == ("constraint",)


def test_a_foreign_key() -> None:
    steps = STEPS.replace("job TEXT", "job TEXT REFERENCES jobs (id)")
    now: Row = {**B_ROW, "id": "r"}
    sql = "INSERT INTO steps (job, name) VALUES ('gone', 's')"
    assert made(sql, now=now, schema=(JOBS, steps)).guards() == ("constraint",)


def test_the_row_is_gone() -> None:
    made_ = made(finish("owner = 'A' AND fence = 1"), now=None)
    assert made_.guards() == ("owner", "token", "status")
    assert made(finish("id = 'r'"), now=None).guards() == ("status",)


def test_a_step_that_is_over() -> None:
    begun: Row = {**STEP_B, "status": "started", "fence": 1, "out": None}
    declaration = replace(
        DECLARATION,
        steps=Steps("steps", "job", ("name",), "status", started={"started"}, finished={"done"}),
    )
    made_ = made(
        "UPDATE steps SET out = 'a' WHERE job = 'r' AND name = 's' AND status = 'started'",
        before=[change("steps", ("r", "s"), None, begun)],
        takeover=[change("steps", ("r", "s"), begun, STEP_B)],
    )
    assert made_.guards(declaration) == ("status",)
    made_ = made(
        "UPDATE steps SET out = 'a' WHERE job = 'r' AND fence = 1",
        before=[change("steps", ("r", "s"), None, begun)],
        takeover=[change("steps", ("r", "s"), begun, STEP_B)],
    )
    assert made_.guards(declaration) == ("fence",)  # undeclared: by the column's own name


def test_a_guard_in_another_statement_of_the_transaction() -> None:
    write = "INSERT INTO steps (job, name, out) VALUES ('r', 's', 'a')"
    guard = "UPDATE jobs SET result = 'a' WHERE id = 'r' AND fence = 1"
    both = made(write, guard, rows=(1, 0), asked=0, outcome="rolled back")
    assert both.guards() == ("token",)
    itself = made(write, guard, rows=(1, 0), asked=1, outcome="rolled back")
    assert itself.guards() == ("token",)
    read = "SELECT 1 FROM jobs WHERE id = 'r' AND owner = 'A'"
    made_ = made(write, read, rows=(1, 0), asked=0, outcome="rolled back")
    statement = made_.history.events[-1]
    assert isinstance(statement, Statement)
    history = replace(
        made_.history, events=(*made_.history.events[:-1], replace(statement, rows=None))
    )
    assert guards_of(history, DECLARATION, made_.attempt) == ("owner",)


def test_an_earlier_statement_of_the_transaction_is_replayed_first() -> None:
    first = "UPDATE jobs SET version = 70 WHERE id = 'r'"
    second = "UPDATE jobs SET result = 'a' WHERE version = 70 AND fence = 1"
    assert made(first, second, rows=(1, 0)).guards() == ("token",)


def test_what_landed_or_can_not_be_asked_has_no_guard() -> None:
    landed = made(finish("id = 'r'"), rows=(1,), outcome="landed")
    assert landed.guards() == ()
    died = made(finish("id = 'r'"), rows=(1,), outcome="died")
    assert died.guards() == ()
    nothing = made(finish("fence = 1"))
    other = replace(nothing.attempt, n=500, sql="UPDATE jobs SET id = 1")
    assert guards_of(nothing.history, DECLARATION, other) == ()
    by_text = replace(nothing.attempt, n=500)
    assert guards_of(nothing.history, DECLARATION, by_text) == ("token",)


def test_the_provider_refuses_by_token() -> None:
    decided = EffectDecided(30, 1, "A#1", 4, "refused", "token 1 is lower than 2")
    attempt = Attempt(30, "r", "A#1", 1, "effect charge", "refused by the provider")
    history = History(Header("", ""), (decided,))
    assert guards_of(history, DECLARATION, attempt) == ("token",)
    told = replace(attempt, outcome="replayed", guards=("key",))
    assert guards_of(history, DECLARATION, told) == ("key",)  # whoever saw it has said so
    failed = replace(attempt, outcome="failed")
    other = History(Header("", ""), (replace(decided, outcome="failed"),))
    assert guards_of(other, DECLARATION, failed) == ()


def test_a_lease_in_a_table_of_its_own() -> None:
    leases = "CREATE TABLE leases (run TEXT PRIMARY KEY, owner TEXT, fence INTEGER, at INTEGER)"
    lease = Lease(
        owner="owner", token="fence", expires_at=After("at", 30), table="leases", run="run"
    )
    declaration = replace(DECLARATION, runs=replace(DECLARATION.runs, lease=lease))
    mine: Row = {"run": "r", "owner": "A", "fence": 1, "at": START_S}
    theirs: Row = {"run": "r", "owner": "B", "fence": 2, "at": START_S + 31}
    sql = (
        "UPDATE jobs SET result = 'a' WHERE id = 'r' AND EXISTS (SELECT 1 FROM leases"
        f" WHERE run = 'r' AND owner = 'A' AND at + 30 > {NOW})"
    )
    for new, guards in ((theirs, ("owner",)), (None, ("owner", "expiry"))):
        made_ = made(
            sql,
            schema=(JOBS, STEPS, leases),
            before=[change("leases", ("r",), None, mine)],
            takeover=[change("leases", ("r",), mine, new)],
            tables={"leases": {}},
        )
        assert made_.guards(declaration) == guards


def test_an_expiry_that_lies_with_the_owner() -> None:
    workers = "CREATE TABLE workers (name TEXT PRIMARY KEY, beat INTEGER)"
    lease = Lease(
        owner="owner",
        held={"status": {"running"}},
        expires_at=Beat("workers", key="name", by="owner", column="beat", seconds=30),
    )
    declaration = replace(DECLARATION, runs=replace(DECLARATION.runs, lease=lease))
    beat: Row = {"name": "A", "beat": START_S}
    sql = finish(f"EXISTS (SELECT 1 FROM workers WHERE name = 'A' AND beat + 30 > {NOW})")
    for takeover in ([], [change("workers", ("A",), beat, None)]):
        made_ = made(
            sql,
            schema=(JOBS, STEPS, workers),
            tables={"workers": {("A",): beat}},
            takeover=takeover,
        )
        assert made_.guards(declaration) == ("expiry",)


def test_a_fence_in_the_effect_store() -> None:
    fx = "CREATE TABLE fx (run TEXT PRIMARY KEY, token INTEGER)"
    declaration = replace(DECLARATION, effects=EffectRows("fx", "run", token="token"))
    sql = (
        "INSERT INTO fx (run, token) VALUES ('r', 1)"
        " ON CONFLICT (run) DO UPDATE SET token = excluded.token WHERE token <= excluded.token"
    )
    made_ = made(
        sql,
        schema=(JOBS, STEPS, fx),
        tables={"fx": {}},
        before=[change("fx", ("r",), None, {"run": "r", "token": 1})],
        takeover=[change("fx", ("r",), {"run": "r", "token": 1}, {"run": "r", "token": 2})],
    )
    assert made_.guards(declaration) == ("token",)


def test_two_tenures_of_one_incarnation_are_told_apart() -> None:
    again: Row = {**A_ROW, "fence": 2, "version": 3, "expires": START_S + 61.0}
    made_ = made(finish("fence = 1"), now=again)
    events = list(made_.history.events)
    takeover = events[1]
    assert isinstance(takeover, Commit)
    events[1] = replace(takeover, who="A#1")
    history = replace(made_.history, events=tuple(events))
    tenures = (
        Tenure("r", 1, "A#1", "main", "A", 1, since=2, until=10),
        Tenure("r", 2, "A#1", "main", "A", 2, since=10),
    )
    (attempt,) = with_guards(history, DECLARATION, [made_.attempt], tenures=tenures)
    assert attempt.guards == ("token",)
    assert replace(attempt, guards=()) == made_.attempt


def test_a_hostile_history_touches_no_file(tmp_path: object) -> None:
    made_ = made(finish("fence = 1"))
    file = f"{tmp_path}/x.db"
    for sql in (
        f"ATTACH '{file}' AS jobs",
        f"VACUUM INTO '{file}'",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    ):
        statement = made_.history.events[-1]
        assert isinstance(statement, Statement)
        bad = replace(statement, sql=sql)
        history = replace(made_.history, events=(*made_.history.events[:-1], bad))
        assert guards_of(history, DECLARATION, made_.attempt) == ()
    connection = scratch.scratch(made_.history, 20)
    with pytest.raises(Exception, match="not authorized"):
        connection.execute(f"ATTACH '{file}' AS other")
    connection.close()


def test_the_scratch_copy_is_what_stood_there() -> None:
    schema = (
        "CREATE TABLE jobs (id, x, y AS (x || '!'))",
        "CREATE INDEX by_x ON jobs (x)",
        "CREATE VIRTUAL TABLE f USING nosuchmodule (x)",
        "CREATE TABLE sqlite_sequence (name, seq)",
        "CREATE TABLE strict (a INTEGER PRIMARY KEY, b BLOB) STRICT, WITHOUT ROWID",
        "CREATE TRIGGER t AFTER INSERT ON jobs BEGIN DELETE FROM jobs; END",
    )
    jobs: dict[Key, Row] = {
        (7,): {"id": "a\udcff", "x": 1, "y": "1!"},
        (9,): {"id": b"\0", "x": None, "y": None},
    }
    header = Header("", "", schema=schema, tables={"jobs": jobs, "strict": {}, "gone": {}})
    late = Change("jobs", (9,), jobs[9,], None)
    add = Change("strict", (3,), None, {"a": 3, "b": b"\xff"})
    events = (
        Commit(4, 0, "A#1", "main", 1, 1, (add,)),
        Commit(5, 0, "A#1", "main", 1, 2, (late,)),
    )
    connection = scratch.scratch(History(header, events), 5)
    found = connection.execute("SELECT rowid, CAST(id AS BLOB), x, y FROM jobs").fetchall()
    assert found == [(7, b"a\xff", 1, "1!"), (9, b"\0", None, None)]
    assert connection.execute("SELECT * FROM strict").fetchall() == [(3, b"\xff")]
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    assert names == json.loads('["jobs", "strict", "by_x", "t"]')
    connection.close()
