"""A history as text that reads without a manual: a lane per incarnation, time going down.

Plain text: whoever prints it may colour it. A lane's left edge shows what its worker holds; a line
that a finding rests on begins with `!`, and below the decisive one stands the finding itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .harmless import columns, fit, harmless, wrapped
from .history import Ended, History, Signalled, Spawned
from .story import Entry, bars, is_operator, lanes_of, seconds, tell
from .verdict import Verdict

#: What a lane's edge says about its worker.
_EDGES: Final = {
    "holds": "┃",
    "lapsed": "╏",
    "lost": "░",
    "lives": "│",
    "gone": " ",
}
_LEGEND: Final = {
    "holds": "holds a lease",
    "lapsed": "its lease has lapsed",
    "lost": "lost its lease",
    "lives": "lives, holds none",
}
_ASCII: Final = str.maketrans("┃╏░│─…×└", "#:x|-~x`")
_LANE_LEAST: Final = 22
_LINES_OF_A_CELL: Final = 4
_WIDTH_LEAST: Final = 40
_BESIDE_LEAST: Final = 60
_LOWEST_RANK: Final = 6
_NEVER: Final = 1 << 62
_HOOK: Final = "      └"
#: A failure's text has room for so many lines.
SHORT: Final = 25


def timeline(
    history: History,
    verdict: Verdict | None = None,
    *,
    width: int = 100,
    most_lines: int | None = None,
    ascii_only: bool = False,
) -> str:
    """The timeline as lines of at most `width` columns, without a line break at its end.

    With `most_lines`, what matters least is left out until it fits; what was left out is counted,
    and what findings rest on stays. Lanes that don't fit beside each other, or a `width` below 60,
    make it a list. `ascii_only` is for terminals that can't show anything else.
    """
    drawing = _Drawing(history, verdict, max(width, _WIDTH_LEAST))
    lines = drawing.lines()
    for rank in range(_LOWEST_RANK, -1, -1):
        if most_lines is None or len(lines) <= most_lines:
            break
        lines = drawing.lines(rank=rank, lines_of_a_cell=1)
    if most_lines is not None and len(lines) > most_lines:
        lines = _middle_cut(lines, most_lines)
    text = "\n".join(line.rstrip() for line in lines)
    return text.translate(_ASCII).encode("ascii", "replace").decode() if ascii_only else text


def short_timeline(history: History, verdict: Verdict | None = None, *, width: int = 100) -> str:
    """The timeline in at most `SHORT` lines, for a failure's text."""
    return timeline(history, verdict, width=width, most_lines=SHORT)


def _middle_cut(lines: Sequence[str], most: int) -> list[str]:
    """The head, what findings rest on as long as there is room, and the end."""
    head, tail = lines[:2], lines[2:]
    room = most - len(head) - 1
    marked = [at for at, line in enumerate(tail) if line.startswith(("!", _HOOK))]
    kept = set(marked[-(room // 2) :])
    for at in range(len(tail) - 1, -1, -1):
        if len(kept) >= room:
            break
        kept.add(at)
    hidden = f"       … {len(tail) - len(kept)} lines left out"
    return [*head, hidden, *(tail[at] for at in sorted(kept))]


class _Drawing:
    """One history's lanes, and how to draw entries on them."""

    def __init__(self, history: History, verdict: Verdict | None, width: int) -> None:
        self._history: Final = history
        self._width: Final = width
        self._entries: Final = tell(history, verdict)
        self._bars: Final = bars(history, verdict)
        self._lives: Final = _lives(history)
        self._lanes: Final = lanes_of(history, self._entries)
        times = [columns(seconds(entry.at_ns, history)) for entry in self._entries]
        self._time: Final = max(times, default=7)
        self._left: Final = 6 + 1 + self._time + 2
        self._columns: Final = self._lay_out()
        count = max(self._columns.values(), default=0) + 1
        self._lane: Final = (width - self._left) // count

    def _lay_out(self) -> dict[str, int]:
        """Which column each lane is in: one is used again once its worker is over.

        Empty when they don't fit beside each other.
        """
        room = (self._width - self._left) // _LANE_LEAST
        ends: list[int] = []
        placed: dict[str, int] = {}
        for who in self._lanes:
            born, over = self._lives.get(who, (0, _NEVER))
            free = [at for at, end in enumerate(ends) if end < born]
            if len(ends) >= room and free:
                at = free[0]
            else:
                at = len(ends)
                ends.append(0)
            ends[at] = over
            placed[who] = at
        return placed if len(ends) <= room and self._width >= _BESIDE_LEAST else {}

    def lines(
        self, *, rank: int = _LOWEST_RANK, lines_of_a_cell: int = _LINES_OF_A_CELL
    ) -> list[str]:
        """The drawing, of entries up to `rank`."""
        lines = list(self._head())
        for entry in self._entries:
            if entry.rank <= rank:
                lines += self._entry(entry, lines_of_a_cell)
        hidden = sum(entry.rank > rank for entry in self._entries)
        lines += [f"       … {hidden} lines that matter less are left out"] if hidden else []
        if self._bars:
            states = "   ".join(f"{_EDGES[state]} {words}" for state, words in _LEGEND.items())
            lines.append(f"       {states}")
        return lines

    def _head(self) -> Iterator[str]:
        left = f"{'n':>6} {'time':>{self._time}}  "
        if not self._columns:
            yield f"{left}who"
            return
        names: dict[int, list[str]] = {}
        for who, at in self._columns.items():
            names.setdefault(at, []).append(harmless(who, most=40))
        yield left + "".join(fit(" then ".join(name), self._lane) for name in names.values())

    def _entry(self, entry: Entry, most: int) -> Iterator[str]:
        mark = "!" if entry.findings else " "
        left = f"{mark}{entry.n:>5} {seconds(entry.at_ns, self._history):>{self._time}}  "
        drawn = self._beside if entry.who in self._columns else self._across
        for number, text in enumerate(drawn(entry, most)):
            yield (left if number == 0 else " " * len(left)) + text
        for finding in entry.decisive:
            said = harmless(f"{finding.invariant} {finding.title}: {finding.text}", most=600)
            room = self._width - len(_HOOK) - 1
            for number, line in enumerate(wrapped(said, room, most=max(most, 3))):
                yield f"{_HOOK if number == 0 else ' ' * len(_HOOK)} {line}"

    def _across(self, entry: Entry, most: int) -> Iterator[str]:
        room = self._width - self._left
        name = entry.who.partition("#")[0] if is_operator(entry.who) else entry.who
        who = f"{harmless(name, most=40)}: " if name else ""
        if not self._columns and entry.who:
            who = f"{fit(harmless(name, most=12), 8)} {self._edge(entry.who, entry.n)} "
            for number, text in enumerate(wrapped(entry.text, room - columns(who), most=most)):
                yield (who if number == 0 else " " * columns(who)) + text
            return
        for text in wrapped(who + entry.text, room - 6, most=most):
            yield fit(f"── {text} " + "─" * room, room + 1).removesuffix("…")[:room]

    def _beside(self, entry: Entry, most: int) -> Iterator[str]:
        mine = self._columns[entry.who]
        text = entry.text
        if sum(at == mine for at in self._columns.values()) > 1 and entry.kind == "life":
            text = f"{harmless(entry.who, most=40)} {text}"
        for line in wrapped(text, self._lane - 3, most=most):
            yield "".join(
                fit(f"{self._edge(who, entry.n)} {line if at == mine else ''}", self._lane)
                for at, who in sorted(self._in_columns(entry).items())
            )

    def _in_columns(self, entry: Entry) -> dict[int, str]:
        """Whose lane each column is at an entry: the last one born by then."""
        shown: dict[int, str] = {}
        for who, at in self._columns.items():
            if at not in shown or self._lives.get(who, (0, _NEVER))[0] <= entry.n:
                shown[at] = who
        shown[self._columns[entry.who]] = entry.who
        return shown

    def _edge(self, who: str, n: int) -> str:
        born, over = self._lives.get(who, (0, _NEVER))
        if not born <= n <= over:
            return _EDGES["gone"]
        state = "lives"
        for bar in self._bars:
            if bar.who != who or n < bar.since:
                continue
            if bar.until is None or n < bar.until or (n == bar.until and not bar.lost):
                state = "lapsed" if bar.lapsed is not None and bar.lapsed <= n else "holds"
            else:
                state = "lost" if bar.lost else "lives"
        return _EDGES[state]


def _lives(history: History) -> dict[str, tuple[int, int]]:
    """From which event to which each incarnation lived."""
    lives: dict[str, tuple[int, int]] = {}
    for event in history:
        if isinstance(event, Spawned):
            lives[event.who] = (event.n, _NEVER)
        elif isinstance(event, Ended) or (
            isinstance(event, Signalled) and event.signal.endswith("KILL")
        ):
            born, over = lives.get(event.who, (0, _NEVER))
            lives[event.who] = (born, min(over, event.n))
    return lives
