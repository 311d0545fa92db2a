"""Text from a history, made fit to be shown: one line, no control character, not too long.

Run ids, owners and payloads may hold anything: escape sequences, line breaks, marks that turn the
writing direction, lone surrogates, ten megabytes. What is shown of them is printable and short;
what was cut off is counted. The history keeps all of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1b": "\\e"}


def harmless(value: object, *, most: int = 200) -> str:
    """A value as one printable line of at most about `most` characters.

    Texts are shown without quotes, bytes as `x'6162'`, as SQLite writes them.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _cut(f"x'{bytes(value[:most]).hex()}'", len(value) - most, "bytes")
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 2_000:
        return f"a number of {value.bit_length()} bits"
    text = value if isinstance(value, str) else _plain(value)
    if len(text) <= most and text.isprintable():
        return text
    left = len(text) - most
    shown = "".join(char if char.isprintable() else _written_out(char) for char in text[:most])
    return _cut(shown, left, "characters")


def _plain(value: object) -> str:
    return "NULL" if value is None else str(value)


def _cut(text: str, left: int, of: str) -> str:
    return f"{text}… ({left:,} {of} more)" if left > 0 else text


def _written_out(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def columns(text: str) -> int:
    """How many columns of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(char) for char in text)


def _columns_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, width: int) -> str:
    """The text in exactly `width` columns: filled up with spaces, or cut with an ellipsis."""
    if columns(text) > width:
        start = next(_pieces(text, max(width - 1, 0)), "")
        text = (start if columns(start) < width else "") + "…"
    return text + " " * (width - columns(text))


def wrapped(text: str, width: int, *, most: int = 6) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces where there are any.

    Of more than `most` lines the rest is left out, which the last one shows.
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and columns(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines += _pieces(word, width)
        if len(lines) > most:
            last = fit(lines[most - 1], width - 1).rstrip().removesuffix("…")
            return [*lines[: most - 1], last + "…"]
    return lines or [""]


def _pieces(text: str, width: int) -> Iterator[str]:
    piece, taken = "", 0
    for char in text:
        size = _columns_of(char)
        if taken + size > width and piece:
            yield piece
            piece, taken = "", 0
        piece, taken = piece + char, taken + size
    if piece:
        yield piece
