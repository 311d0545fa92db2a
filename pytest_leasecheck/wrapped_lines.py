"""Lines of the summary, wrapped to the terminal: a word in front, the rest in a column of its own.

What somebody may search for (an id, a path, a finding's title) is `glued`, and never broken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pytest

#: Where the text begins.
INDENT: Final = 14
#: Stands for a space at which no line may end.
_GLUE: Final = "\N{NO-BREAK SPACE}"
_WORD: Final = re.compile("[^ ]+ *| +")


def glued(text: str) -> str:
    """A text that stays on one line."""
    return text.replace(" ", _GLUE)


def unglued(text: str) -> str:
    """The text as it is read."""
    return text.replace(_GLUE, " ")


def wrapped(text: str, *, width: int, indent: int = INDENT) -> list[str]:
    """The text's lines, at most `width` columns with `indent` before each; a long word is left."""
    room = max(width - indent, 1)
    lines = [""]
    for word in _WORD.findall(text):
        if lines[-1] and len(lines[-1]) + len(word.rstrip(" ")) > room:
            lines.append("")
        lines[-1] += word
    return [unglued(line.rstrip(" ")) for line in lines]


def write_wrapped(
    terminal: pytest.TerminalReporter,
    word: str,
    text: str,
    *,
    word_markup: Mapping[str, bool] | None = None,
    markup: Mapping[str, bool] | None = None,
) -> None:
    """Write a word and its text, wrapped to the terminal's width (80 where that isn't known)."""
    width = terminal.config.get_terminal_writer().fullwidth
    terminal.write(f"{word:<{INDENT}}", **(word_markup or {}))
    lines = wrapped(text, width=width)
    terminal.write(f"\n{' ' * INDENT}".join(lines) + "\n", **(markup or {}))
