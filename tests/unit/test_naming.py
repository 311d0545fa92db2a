"""Which runs a statement names: filed clues find what looking at every run finds."""

from __future__ import annotations

import random

from pytest_leasecheck.testkit.authors import names_row, names_run
from pytest_leasecheck.testkit.history import Statement
from pytest_leasecheck.testkit.naming import Naming, RowsOfRuns

RUNS = ("run-1", "run-17", "17", "1", "Run-1", "a/b", "a'b", "--", "ß", "x y")
ROWS: RowsOfRuns = {
    ("jobs", "run-1"): {(1,): {"id": 1, "name": "run-1"}, (17,): {"id": 17, "name": "run-1"}},
    ("jobs", "17"): {("17", 2): {"job": "17", "step": 2}},
    ("jobs", "--"): {("--",): {"name": "--"}, (None,): {"name": None}},
    ("jobs", "x y"): {("X Y",): {"name": "X Y"}},
    ("locks", "a/b"): {(5,): {"id": 5}},
}
PIECES = (
    "id = 1", "id=17", "id IN (1, 17)", "name = 'run-1'", "name == 'x y'", "NAME IS 'X Y'",
    "job = '17' AND step = 2", "run = 'a''b'", "p = 'a' AND q = 'b'", "name = '--'", "id = 5",
    "name = 'ß'", "run = 'Run-1'", "status = 'run'", "id = 170", "run='run-17'",
)  # fmt: skip


def statement(n: int, table: str, sql: str) -> Statement:
    return Statement(n, 0, "A#1", "main", 1, 1, "UPDATE", table, sql, 1)


def test_filed_clues_find_what_looking_at_every_run_finds() -> None:
    chance = random.Random(4)
    naming = Naming(RUNS, ROWS)
    found = 0
    for n in range(600):
        table = chance.choice(["jobs", "JOBS", "locks", "other"])
        text = " AND ".join(chance.sample(PIECES, chance.randrange(4)))
        asked = statement(n, table, f"UPDATE {table} SET note = 3 WHERE {text}")
        expected = {
            run
            for run in RUNS
            if names_run(asked, run)
            or any(
                names_row(asked.sql, key, row)
                for key, row in ROWS.get((table.lower(), run), {}).items()
            )
        }
        assert naming.named_by(asked) == naming.named_by(asked) == expected, asked.sql
        found += len(expected)
    assert found > 600
