"""What changed in a table since it was last read: the observer's reading and comparing.

Small tables are read whole. A large one, where foreign rows would make each commit cost
milliseconds, is compared inside SQLite with a copy in memory, so that only rows that differ come
out. Both see the same: every row, whatever wrote it. What they don't see: a change of 1 to 1.0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

#: A changed row on the wire: table, key, the row before (or None), the row after (or None).
WireChange = tuple[str, tuple[Any, ...], dict[str, Any] | None, dict[str, Any] | None]
Row = tuple[Any, ...]
#: From this many rows on, a copy in memory is worth its upkeep.
LARGE: Final = 400


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's columns; the positions of its key's in a row as read; its rowid's name, or ''.

    A row as read begins with its rowid where it has one: the key of a table without a primary key.
    """

    columns: tuple[str, ...] = ()
    keys: tuple[int, ...] = ()
    rowid: str = ""

    def key(self, row: Row) -> tuple[Any, ...]:
        """What identifies a row; NULLs in a primary key may repeat, so its rowid is told too."""
        key = tuple(row[position] for position in self.keys)
        return (*key, row[0]) if None in key else key

    def named(self, row: Row) -> dict[str, Any]:
        """A row by column."""
        return dict(zip(self.columns, row[len(row) - len(self.columns) :], strict=True))


def shape_of(connection: sqlite3.Connection, table: str) -> Shape:
    """A table's shape; empty while it does not exist: a worker may create it."""
    info = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    # Generated columns (hidden 2 and 3) are read like others; those of virtual tables aren't.
    columns = tuple(row[1] for row in info if row[6] != 1)
    if not columns:
        return Shape()
    taken = {name.lower() for name in columns}
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), "")
    try:
        connection.execute(f"SELECT {rowid or 'NULL'} FROM {quoted(table)} LIMIT 0")
    except sqlite3.OperationalError:  # WITHOUT ROWID
        rowid = ""
    keyed = [name for order, name in sorted((row[5], row[1]) for row in info) if order]
    offset = 1 if rowid else 0
    return Shape(columns, tuple(columns.index(name) + offset for name in keyed) or (0,), rowid)


def defaults_of(
    connection: sqlite3.Connection, table: str, columns: Collection[str]
) -> dict[str, Any]:
    """What these columns hold in a row that nobody has written them in; none of generated ones."""
    defaults: dict[str, Any] = {}
    for row in connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall():
        if row[1] in columns and row[6] == 0:
            sql = f"SELECT {row[4]}" if row[4] is not None else "SELECT NULL"
            ((defaults[row[1]],),) = connection.execute(sql)
    return defaults


class Table:
    """One declared table, as last read."""

    def __init__(
        self,
        connection: sqlite3.Connection | None,
        name: str,
        *,
        mirrored: bool,
        known: tuple[Shape, list[Row]] | None = None,
    ) -> None:
        self._name: Final = name
        self._mirror: Final = quoted("seen " + name)
        self._may_mirror = mirrored
        self._mirrored = False
        #: Rows as they were told last, where a migration has changed their columns since.
        self._before_migration: dict[tuple[Any, ...], dict[str, Any]] = {}
        if connection is None:
            assert known is not None
            self._shape, self._rows = known
        else:
            self._shape = shape_of(connection, name)
            self._rows = self._read(connection)
        self._count = len(self._rows)
        if connection is not None:
            self._choose(connection)

    @property
    def known(self) -> tuple[Shape, list[Row]] | None:
        """What a table in a copy of this file begins with; None where its rows aren't here."""
        return None if self._mirrored else (self._shape, self._rows)

    @property
    def grows(self) -> bool:
        """Whether a copy in memory will soon be worth its upkeep."""
        return self._may_mirror and not self._mirrored and 2 * self._count >= LARGE

    def keyed(self, connection: sqlite3.Connection) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """All rows by key."""
        shape = self._shape
        return [(shape.key(row), shape.named(row)) for row in self._known(connection)]

    def changes(self, connection: sqlite3.Connection, *, reshaped: bool) -> list[WireChange]:
        """What differs from the last reading. `reshaped`: the schema is another one."""
        shape = shape_of(connection, self._name) if reshaped else self._shape
        return self._told(self._changes(connection, shape))

    def _told(self, changes: list[WireChange]) -> list[WireChange]:
        """The row before is told as it was told last, though a migration gave it columns since."""
        if not self._before_migration:
            return changes
        return [
            (table, key, self._before_migration.pop(key, old), new)
            for table, key, old, new in changes
        ]

    def _changes(self, connection: sqlite3.Connection, shape: Shape) -> list[WireChange]:
        if self._mirrored and shape == self._shape:
            return self._differing(connection)
        before, rows = self._known(connection), self._read(connection, shape)
        if rows == before and shape == self._shape:
            return []
        old_shape, self._shape, self._rows, self._count = self._shape, shape, rows, len(rows)
        changed = compared(self._name, (old_shape, before), (shape, rows))
        if shape.columns != old_shape.columns:
            changed = self._without_mere_columns(connection, changed, old_shape, shape)
        self._choose(connection)
        return changed

    def _without_mere_columns(
        self,
        connection: sqlite3.Connection,
        changes: list[WireChange],
        before: Shape,
        after: Shape,
    ) -> list[WireChange]:
        """A migration writes no row just by giving it a column, or taking one.

        A column that comes with another value than its default was written, in the same commit.
        """
        both = set(before.columns) & set(after.columns)
        added = defaults_of(connection, self._name, set(after.columns) - both)
        kept = []
        for table, key, old, new in changes:
            if (
                old is None
                or new is None
                or any(old[name] != new[name] for name in both)
                or any(new[name] != value for name, value in added.items())
            ):
                kept.append((table, key, old, new))
            else:
                self._before_migration.setdefault(key, old)
        return kept

    def _read(self, connection: sqlite3.Connection, shape: Shape | None = None) -> list[Row]:
        shape = shape or self._shape
        if not shape.columns:
            return []
        what = f"{shape.rowid}, * FROM {quoted(self._name)} ORDER BY 1"
        if not shape.rowid:
            what = f"* FROM {quoted(self._name)}"
        return select(connection, "SELECT " + what)

    def _known(self, connection: sqlite3.Connection) -> list[Row]:
        if not self._mirrored:
            return self._rows
        return select(connection, f"SELECT * FROM seen.{self._mirror} ORDER BY 1")

    # -- the copy in memory ----------------------------------------------------------------------

    def _choose(self, connection: sqlite3.Connection) -> None:
        """Keep rows here, or in a copy that SQLite can compare."""
        if self._mirrored:
            connection.execute(f"DROP TABLE seen.{self._mirror}")
            self._mirrored = False
        large = self._shape.rowid and self._count >= LARGE
        if self._may_mirror and large and attach_mirrors(connection):
            columns = ", ".join(f"c{index}" for index in range(len(self._shape.columns)))
            mirror = f"seen.{self._mirror}"
            connection.execute(f"CREATE TABLE {mirror} (r INTEGER PRIMARY KEY, {columns})")
            self._mirrored = True
            if self._store(connection, self._rows):
                self._rows = []

    def leave_mirror(self, connection: sqlite3.Connection) -> None:
        """From now on rows are kept here: they will be read by another connection."""
        if self._mirrored:
            self._give_up_mirror(connection, self._known(connection))
        self._may_mirror = False

    def _give_up_mirror(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        connection.execute(f"DROP TABLE seen.{self._mirror}")
        self._mirrored = self._may_mirror = False
        self._rows, self._count = rows, len(rows)

    def _store(self, connection: sqlite3.Connection, rows: list[Row]) -> bool:
        """Put rows into the copy. Text that is none can't be bound: then there is no copy."""
        marks = ", ".join("?" * (len(self._shape.columns) + 1))
        try:
            connection.executemany(f"REPLACE INTO seen.{self._mirror} VALUES ({marks})", rows)
        except UnicodeEncodeError:
            self._give_up_mirror(connection, self._read(connection))
        return self._mirrored

    def _differing(self, connection: sqlite3.Connection) -> list[WireChange]:
        table, mirror, rowid = quoted(self._name), f"seen.{self._mirror}", self._shape.rowid
        differ = " OR ".join(
            f"(t.{quoted(name)} COLLATE BINARY) IS NOT s.c{index}"
            for index, name in enumerate(self._shape.columns)
        )
        new = select(
            connection,
            f"SELECT t.{rowid}, t.* FROM main.{table} AS t LEFT JOIN {mirror} AS s"
            f" ON s.r = t.{rowid} WHERE s.r IS NULL OR {differ}",
        )
        places = [row[0] for row in new]
        old = self._mirrored_rows(connection, places)
        ((count,),) = connection.execute(f"SELECT count(*) FROM main.{table}")
        if self._count + len(new) - len(old) != count:
            gone = connection.execute(
                f"SELECT r FROM {mirror} AS s WHERE NOT EXISTS"
                f" (SELECT 1 FROM main.{table} AS t WHERE t.{rowid} = s.r)"
            )
            lost = [place for (place,) in gone]
            old += self._mirrored_rows(connection, lost)
            connection.executemany(f"DELETE FROM {mirror} WHERE r = ?", [(one,) for one in lost])
        if self._store(connection, new):
            self._count = count
        return compared(self._name, (self._shape, old), (self._shape, new))

    def _mirrored_rows(self, connection: sqlite3.Connection, places: list[int]) -> list[Row]:
        sql = f"SELECT * FROM seen.{self._mirror} WHERE r = ?"
        return [row for place in places for row in select(connection, sql, (place,))]


def attach_mirrors(connection: sqlite3.Connection) -> bool:
    """Let a connection have a place in memory, called `seen`, for copies of large tables.

    False within a transaction, where SQLite attaches nothing, and there is none yet.
    """
    if any(row[1] == "seen" for row in connection.execute("PRAGMA database_list").fetchall()):
        return True
    if connection.in_transaction:
        return False
    connection.execute("ATTACH ':memory:' AS seen")
    return True


def compared(
    table: str, before: tuple[Shape, list[Row]], after: tuple[Shape, list[Row]]
) -> list[WireChange]:
    """Net changes by key."""
    (old_shape, old_rows), (shape, rows) = before, after
    old = {old_shape.key(row): row for row in old_rows}
    new = {shape.key(row): row for row in rows}
    changes: list[WireChange] = []
    for key, row in old.items():
        other = new.get(key)
        if other is None:
            changes.append((table, key, old_shape.named(row), None))
        elif other != row or shape != old_shape:
            named_old, named_new = old_shape.named(row), shape.named(other)
            if named_old != named_new:
                changes.append((table, key, named_old, named_new))
    changes += [(table, key, None, shape.named(row)) for key, row in new.items() if key not in old]
    return changes


def select(connection: sqlite3.Connection, sql: str, values: tuple[Any, ...] = ()) -> list[Row]:
    """All rows. Text that is none is rare, and read by a slower way."""
    try:
        return connection.execute(sql, values).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    connection.text_factory = _text
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.text_factory = str


def _text(stored: bytes) -> str:
    """SQLite stores whatever bytes a program calls text; none may make the observer fail."""
    return stored.decode("utf-8", "surrogateescape")


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
