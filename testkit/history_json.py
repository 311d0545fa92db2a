r"""A history as a file: JSON Lines, ASCII, the header first, then one event a line.

What JSON can't say is an object with one key that begins with `$`::

    {"$bytes": base64}   {"$float": "inf" | "-inf" | "nan"}   {"$int": hexadecimal}
    {"$text": base64 of UTF-8 with lone surrogates kept}
    {"$map": [[key, value], …]}    a mapping with keys that aren't plain text

Everything is read against the types of `history`'s dataclasses; nothing is ever unpickled. A
process may die while it writes, so a last line without its end is no damage: it is left out, and
a `Noted` event says so. Everything else that is wrong is told at once, line by line.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from .declaration_json import read_as, shown
from .errors import HistoryError, Problem
from .files import read_file, write_new
from .history import KINDS, Change, Event, Header, History, Noted

#: The version that is written, and the only one that is read.
VERSION: Final = 1
_VERSION_KEY: Final = "leasecheck-history"
_KIND_OF: Final = {kind: name for name, kind in KINDS.items()}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
#: Beyond this, decimal digits are slow, and at some length refused by Python.
_BIG: Final = 1 << 128


def save(history: History, path: Path) -> None:
    """Write a history to a new file that only its owner may read.

    Raises `FileExistsError` when there is something at `path`: a history is evidence, and is
    never overwritten; OSError when there is no room, and then nothing is left of it.
    """
    text = dump_line(history.header) + "".join(map(dump_line, history.events))
    write_new(Path(path), text, encoding="ascii")


def dump_line(item: Header | Event) -> str:
    """The header's or an event's line, its end of line included."""
    first: dict[str, object] = (
        {_VERSION_KEY: VERSION} if isinstance(item, Header) else {"kind": _KIND_OF[type(item)]}
    )
    data = first | {entry.name: _encode(getattr(item, entry.name)) for entry in fields(item)}
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def load(path: Path) -> History:
    """Read a history. Raises `HistoryError` that names every damaged line, and `OSError`."""
    return loads(read_file(Path(path)), name=str(path))


def loads(data: bytes, *, name: str = "the history") -> History:
    """Read a history from the bytes of its file; `name` is what an error calls it."""
    *lines, rest = data.split(b"\n")
    problems: list[Problem] = []
    header = _read_header(lines[0] if lines else rest, problems)
    if problems:
        raise HistoryError(name, problems)
    events: list[Event] = []
    for number, line in enumerate(lines[1:], start=2):
        event = _read_event(line, number, events, problems)
        events += [event] if event is not None else []
    if rest and lines:
        last: list[Problem] = []
        event = _read_event(rest, len(lines) + 1, events, last)
        if event is not None:
            events.append(event)
        elif _is_cut(rest):
            n, at_ns = (events[-1].n, events[-1].at_ns) if events else (0, header.start_ns)
            text = f"line {len(lines) + 1} was cut off while it was written; what it said is lost"
            events.append(Noted(n + 1, at_ns, who="", text=text))
        else:
            problems += last
    if problems:
        raise HistoryError(name, problems)
    return History(header, tuple(events))


def _read_header(line: bytes, problems: list[Problem]) -> Header:
    data = _read_object(line, 1, problems)
    version = data.pop(_VERSION_KEY, None) if data is not None else None
    if data is not None and version is None:
        problems.append(Problem("line 1", f"is no history's header: {_VERSION_KEY!r} is missing"))
    elif data is not None and (version != VERSION or isinstance(version, bool)):
        text = f"is the header of version {shown(version)}; this kit reads version {VERSION}"
        problems.append(Problem("line 1", text))
    header = None if problems else read_as(Header, data, "line 1", problems)
    return header if isinstance(header, Header) else Header("", "")


def _read_event(
    line: bytes, number: int, before: list[Event], problems: list[Problem]
) -> Event | None:
    where = f"line {number}"
    data = _read_object(line, number, problems)
    if data is None:
        return None
    kind = data.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        problems.append(Problem(where, f"no event is of the kind {shown(kind)}"))
        return None
    event = read_as(KINDS[kind], data, where, problems)
    if not isinstance(event, Event):
        return None
    if before and event.n <= before[-1].n:
        text = f"is out of order: event {shown(event.n)} comes after event {shown(before[-1].n)}"
        problems.append(Problem(where, text))
        return None
    return event


def _read_object(line: bytes, number: int, problems: list[Problem]) -> dict[str, Any] | None:
    try:
        data = json.loads(
            line.decode("ascii"), object_pairs_hook=_decode, parse_constant=_no_constant
        )
    except (ValueError, TypeError, RecursionError) as error:
        text = str(error).removesuffix(": line 1 column 1 (char 0)")
        problems.append(Problem(f"line {number}", f"can't be read: {text}" if line else "is empty"))
        return None
    if not isinstance(data, dict):
        problems.append(Problem(f"line {number}", f"is no object but {shown(data)}"))
        return None
    return data


def _is_cut(line: bytes) -> bool:
    """Whether this may be the beginning of a line of ours: an object that isn't closed."""
    if not line.startswith(b"{"):
        return False
    try:
        json.loads(line.decode("ascii"))
    except (UnicodeDecodeError, RecursionError):
        return False
    except json.JSONDecodeError as error:
        # Cut JSON fails at its end, or at the string, number or word that it ends within.
        tail = line[error.pos :]
        return len(tail) == 0 or error.msg.startswith("Unterminated string") or b'"' not in tail
    return False


def _encode(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = str.__str__(value)
        if _SURROGATE.search(text):
            return {"$text": _base64(text.encode("utf-8", "surrogatepass"))}
        return text
    if isinstance(value, int):
        return int(value) if -_BIG < value < _BIG else {"$int": f"{int(value):x}"}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": _base64(bytes(value))}
    if isinstance(value, Change):
        return {entry.name: _encode(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        if all(_is_plain_key(key) for key in value):
            return {key: _encode(item) for key, item in value.items()}
        return {"$map": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if isinstance(value, (tuple, list)):
        return [_encode(item) for item in value]
    raise TypeError(f"a history can't hold {shown(value)}")


def _is_plain_key(key: object) -> bool:
    return type(key) is str and not key.startswith("$") and not _SURROGATE.search(key)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(pairs: list[tuple[str, Any]]) -> object:
    """An object of the file as what it stands for. Raises ValueError."""
    if len(pairs) == 1 and pairs[0][0].startswith("$"):
        return _decode_tagged(*pairs[0])
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("an object has one key twice")
    return data


def _decode_tagged(tag: str, value: Any) -> object:
    if tag == "$map" and isinstance(value, list):
        mapping = {}
        for pair in value:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ValueError(f"{tag} has something that is no pair")
            mapping[tuple(pair[0]) if isinstance(pair[0], list) else pair[0]] = pair[1]
        if len(mapping) < len(value):
            raise ValueError(f"{tag} has one key twice")
        return mapping
    if isinstance(value, str):
        try:
            if tag == "$bytes":
                return base64.b64decode(value, validate=True)
            if tag == "$text":
                return base64.b64decode(value, validate=True).decode("utf-8", "surrogatepass")
        except binascii.Error as error:
            raise ValueError(f"{tag} is no base64: {error}") from error
        if tag == "$int" and re.fullmatch("-?[0-9a-f]+", value):
            return int(value, 16)
        if tag == "$float" and value in ("inf", "-inf", "nan"):
            return float(value)
    raise ValueError(f"{tag} with {shown(value)} stands for nothing")


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
