"""What a statement is, from its text: its verb and the table it is about. Pure.

Not a parser: SQLite has read the text already and found it good. Comments, quoting, schema names,
`WITH` and `INSERT OR …` don't matter; of several tables the written one counts, else the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_QUOTED: Final = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\[[^\]]*\]"
_COMMENT: Final = re.compile(rf"({_QUOTED})|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NAME: Final = rf"\s*(?:(?:\w+|{_QUOTED})\s*\.\s*)?(\w+|{_QUOTED})"
_OR: Final = r"(?:\s+OR\s+\w+)?"
_TABLE: Final = {
    "INSERT": re.compile(rf"INSERT{_OR}\s+INTO\b{_NAME}", re.IGNORECASE),
    "REPLACE": re.compile(rf"REPLACE\s+INTO\b{_NAME}", re.IGNORECASE),
    "UPDATE": re.compile(rf"UPDATE{_OR}(?=\W){_NAME}", re.IGNORECASE),
    "DELETE": re.compile(rf"DELETE\s+FROM\b{_NAME}", re.IGNORECASE),
    "SELECT": re.compile(rf"\bFROM\b(?!\s*\(){_NAME}", re.IGNORECASE),
}
#: Full-text and other virtual tables keep their shadow tables by statements of their own, written
#: in a way that people don't write: `'main'.'docs_data'`.
_SHADOW: Final = re.compile(r"(?:INTO|FROM|UPDATE)\s+'[^']*'\.'[^']*'", re.IGNORECASE)
_TOKEN: Final = re.compile(rf"{_QUOTED}|[()]|\w+", re.IGNORECASE)
_AFTER_WITH: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "VALUES"})
#: Statements that write without being about a table's rows.
_DEFINES: Final = frozenset({"CREATE", "ALTER", "DROP", "REINDEX", "ANALYZE"})


_EXCLUSIVE: Final = re.compile(
    rf"PRAGMA\s+(?:(?:\w+|{_QUOTED})\s*\.\s*)?[\"'`\[]?locking_mode[\"'`\]]?\s*[=(]"
    r"\s*[\"'`\[]?exclusive\b.*",
    re.IGNORECASE | re.DOTALL,
)
_ATTACH: Final = re.compile(rf"ATTACH\b.*\bAS{_NAME}\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement's verb in capitals, and its table, empty when it is about none."""

    verb: str
    table: str

    @property
    def point(self) -> str:
        """Its point's name, empty for what has none (BEGIN, PRAGMA, …)."""
        return f"sql:{self.verb} {self.table}" if self.table else ""

    @property
    def begins(self) -> bool:
        """Whether it begins a transaction, of its own when it must, unless it only reads."""
        return bool(self.table) or self.verb in _DEFINES


@lru_cache(maxsize=4096)
def read_sql(text: str) -> Sql:
    """Find verb and table of a statement."""
    text = _COMMENT.sub(lambda found: found[1] or " ", text).strip(" \t\r\n;")
    words = _TOKEN.match(text)
    verb = words[0].upper() if words else ""
    if verb == "WITH":
        start = _end_of_with(text)
        text = text[start:]
        verb = re.match(r"\w+", text)[0].upper()  # type: ignore[index]  # it begins with a word
    finder = _TABLE.get(verb)
    if finder is None or _SHADOW.search(text):
        return Sql(verb, "")
    match = finder.search(text)
    return Sql(verb, _unquoted(match[1]) if match else "")


@lru_cache(maxsize=4096)
def read_sql_bytes(text: bytes) -> Sql:
    """The same, from the bytes that SQLite has, whatever they are."""
    return read_sql(text.decode("utf-8", "surrogateescape"))


def attached_as(text: str) -> str:
    """The schema name that an ATTACH gives, empty for any other statement."""
    if "ATTACH" not in text.upper():
        return ""
    match = _ATTACH.fullmatch(_COMMENT.sub(lambda found: found[1] or " ", text).strip(" \t\r\n;"))
    return _unquoted(match[1]) if match else ""


def keeps_to_itself(text: str) -> bool:
    """Whether a statement lets its connection keep the locks that it has taken."""
    if "LOCKING_MODE" not in text.upper():
        return False
    text = _COMMENT.sub(lambda found: found[1] or " ", text).strip(" \t\r\n;")
    return bool(_EXCLUSIVE.fullmatch(text))


def _end_of_with(text: str) -> int:
    """Where the statement proper begins after its common table expressions."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        elif depth == 0 and token[0].upper() in _AFTER_WITH:
            return token.start()
    return 0


def _unquoted(name: str) -> str:
    quote = name[0]
    if quote in "\"'`":
        return name[1:-1].replace(quote * 2, quote)
    return name[1:-1] if quote == "[" else name
