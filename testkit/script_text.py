"""A script as text: parse and format, exact in both directions.

The grammar, whole; one action a line, `#` after a blank or at the line's start begins a comment::

    submit RUN    cancel RUN    approve RUN
    spawn A [as NAME] [to JOB]
    duplicate A as B
    run A    beat A    stop A    cont A    kill A    restart A
    until A POINT    hold A POINT
    advance DURATION    skew A (+|-)DURATION    expire
    lock    unlock    heal    drain [N]
    provider FAULT EFFECT
    free A [B …]

    A, B      := a letter, then letters, digits, '_' and '-'
    RUN, NAME, JOB, EFFECT
              := printable text without blanks that begins with neither '"' nor '#',
                 or any text at all as a JSON string ("two words", "a\\nb", "\\u0000")
    POINT     := a pattern as in `points`, or a JSON string ['#' ordinal] [' ' phase]
    DURATION  := digits, then 'ms', 's' or 'm'
    N         := 1, 2, …
    FAULT     := one of `script.PROVIDER_FAULTS`

The form is gofail's and isolationtester's: a small language, its grammar in one comment, and a
table test of exactly those lines. All problems of a text are told at once (as Jepsen does).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from . import script as acts
from .errors import Problem, ScriptError
from .points import PHASES, Pattern, parse_pattern

_ONE_WORKER: Final[Mapping[str, Callable[[str], acts.Action]]] = {
    "run": acts.Run,
    "beat": acts.Beat,
    "stop": acts.Stop,
    "cont": acts.Cont,
    "kill": acts.Kill,
    "restart": acts.Restart,
}
_ONE_RUN: Final[Mapping[str, Callable[[str], acts.Action]]] = {
    "submit": acts.Submit,
    "cancel": acts.Cancel,
    "approve": acts.Approve,
}
_AT_POINT: Final[Mapping[str, Callable[[str, Pattern], acts.Action]]] = {
    "until": acts.Until,
    "hold": acts.Hold,
}
_ALONE: Final[Mapping[str, Callable[[], acts.Action]]] = {
    "expire": acts.Expire,
    "lock": acts.Lock,
    "unlock": acts.Unlock,
    "heal": acts.Heal,
}
_TABLES: Final[tuple[Mapping[str, Callable[..., acts.Action]], ...]] = (
    _ONE_RUN, _ONE_WORKER, _AT_POINT, _ALONE
)  # fmt: skip
_VERB_OF: Final = {kind: verb for table in _TABLES for verb, kind in table.items()}

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_WORD: Final = re.compile(
    rf"\s*(?:(?P<comment>#.*)|(?P<word>{_QUOTED}(?:#[0-9]+)?(?=\s|\Z)|\S+))", re.DOTALL
)
_WORKER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_BARE: Final = re.compile(r'[^\s"#]\S*')
_QUOTED_POINT: Final = re.compile(
    rf"(?P<name>{_QUOTED})(?:#(?P<ordinal>[1-9][0-9]*))?(?:\s+(?P<phase>before|after))?", re.DOTALL
)
_DURATION: Final = re.compile(r"(?P<count>[0-9]{1,15})(?P<unit>ms|s|m)")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000}
#: A comment that is more likely an ordinal with a blank too many.
_STRAY_ORDINAL: Final = re.compile(r"#[0-9]+(\s+(before|after))?\s*")


def parse(text: str) -> tuple[acts.Action, ...]:
    """Read a script's text.

    Raises `ScriptError` with every problem of the text, each under its line's number.
    """
    problems: list[Problem] = []
    spawned: dict[str, int] = {}
    actions: list[acts.Action] = []
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        reader = _Line(line, number=number, spawned=spawned)
        if reader.words:
            action = reader.action()
            problems += [Problem(f"line {number}", wrong) for wrong in reader.wrong]
            if action is not None:
                actions.append(action)
    if problems:
        raise ScriptError("the script", problems)
    return tuple(actions)


@dataclass(slots=True)
class _Line:
    """One line while it is read, word by word. What is wrong is gathered in `wrong`."""

    line: str
    number: int
    spawned: dict[str, int]
    words: list[re.Match[str]] = field(default_factory=list)
    comment: str = ""
    at: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for match in _WORD.finditer(self.line):
            if match["comment"] is not None:
                self.comment = match["comment"]
                break
            self.words.append(match)

    def action(self) -> acts.Action | None:
        """The line's action; None when something is wrong with it."""
        verb = self._take() or ""
        action: acts.Action | None = None
        if verb in _ONE_RUN:
            action = _ONE_RUN[verb](self._text("a run's id"))
        elif verb in _ONE_WORKER:
            action = _ONE_WORKER[verb](self._worker())
        elif verb in _AT_POINT:
            worker = self._worker()
            point = self._point()
            action = _AT_POINT[verb](worker, point) if point is not None else None
        elif verb in _ALONE:
            action = _ALONE[verb]()
        elif verb in _OTHERS:
            action = _OTHERS[verb](self)
        else:
            self.wrong.append(f"no action is called {_shown(verb)}{_nearest(verb, VERBS)}")
            return None
        rest = [match["word"] for match in self.words[self.at :]]
        if rest and not self.wrong:
            self.wrong.append(f"{verb!r} is complete before {' '.join(rest)!r}")
        return None if self.wrong else action

    def _take(self) -> str | None:
        if self.at == len(self.words):
            return None
        self.at += 1
        return self.words[self.at - 1]["word"]

    def _skip(self, word: str) -> bool:
        """Whether the next word is this keyword; then it is passed."""
        if self.at < len(self.words) and self.words[self.at]["word"] == word:
            self.at += 1
            return True
        return False

    def _needs(self, what: str) -> None:
        said = " ".join(match["word"] for match in self.words)
        self.wrong.append(f"{said!r} lacks {what}")

    def _text(self, what: str) -> str:
        """A word as it is, or the text of a JSON string."""
        word = self._take()
        if word is None:
            self._needs(what)
            return ""
        if _BARE.fullmatch(word):
            if word.isprintable():
                return word
            self.wrong.append(f"{what} is not printable; write it as {_quoted(word)}")
            return ""
        return self._unquoted(word, what)

    def _unquoted(self, word: str, what: str) -> str:
        try:
            text = json.loads(word)
        except ValueError as error:
            self.wrong.append(f"{what} is no JSON string: {_shown(word)} ({error})")
            return ""
        assert isinstance(text, str)  # it begins with a quotation mark
        return text

    def _worker(self, *, new: bool = False) -> str:
        word = self._take()
        if word is None:
            self._needs("a worker")
            return ""
        if not _WORKER.fullmatch(word):
            self.wrong.append(
                f"{_shown(word)} is no worker's name; it is a letter, then letters, digits, _ or -"
            )
        elif new and word in self.spawned:
            self.wrong.append(
                f"worker {word!r} is there already, since line {self.spawned[word]};"
                f" 'restart {word}' makes its next incarnation"
            )
        elif new:
            self.spawned[word] = self.number
        elif word not in self.spawned:
            near = _nearest(word, self.spawned)
            self.wrong.append(f"worker {word!r} is used before it is spawned{near}")
        return word

    def _point(self) -> Pattern | None:
        if self.at == len(self.words):
            self._needs("a point, like 'txn:commit before'")
            return None
        if _STRAY_ORDINAL.fullmatch(self.comment):
            self.wrong.append(f"{self.comment!r} is a comment here; write NAME{self.comment}")
            return None
        text = self.line[self.words[self.at].start("word") : self.words[-1].end("word")]
        self.at = len(self.words)
        if not text.startswith('"'):
            try:
                return parse_pattern(text)
            except ValueError as error:
                self.wrong.append(str(error))
                return None
        match = _QUOTED_POINT.fullmatch(text)
        if match is None:
            self.wrong.append(f'{_shown(text)} is not a point; write "NAME"#2 after')
            return None
        name = self._unquoted(match["name"], "a point's name")
        if not name and not self.wrong:
            self.wrong.append("a point's name is empty")
        try:
            ordinal = int(match["ordinal"]) if match["ordinal"] else None
        except ValueError:  # Python's limit on digits
            self.wrong.append("a point's ordinal is beyond any count")
            return None
        return Pattern(name, ordinal, match["phase"] or PHASES[0])

    def _duration_ms(self, word: str) -> int:
        match = _DURATION.fullmatch(word)
        if match is None:
            self.wrong.append(f"{_shown(word)} is no duration; write 500ms, 10s or 2m")
            return 0
        return int(match["count"]) * _UNIT_MS[match["unit"]]

    def spawn(self) -> acts.Spawn:
        """`spawn A [as NAME] [to JOB]`."""
        worker = self._worker(new=True)
        name = self._text("a configured name") if self._skip("as") else None
        job = self._text("a job") if self._skip("to") else "work"
        return acts.Spawn(worker, name, job)

    def duplicate(self) -> acts.Duplicate:
        """`duplicate A as B`."""
        worker = self._worker()
        if not self._skip("as"):
            self._needs("'as' and the twin's name")
            return acts.Duplicate(worker, "")
        return acts.Duplicate(worker, self._worker(new=True))

    def advance(self) -> acts.Advance:
        """`advance 10s`."""
        word = self._take()
        if word is None:
            self._needs("a duration, like 10s")
        return acts.Advance(self._duration_ms(word) if word else 0)

    def skew(self) -> acts.Skew:
        """`skew A +31s`."""
        worker = self._worker()
        word = self._take()
        if word is None:
            self._needs("a skew, like +31s")
            return acts.Skew(worker, 0)
        if word[0] not in "+-":
            self.wrong.append(f"{_shown(word)} is no skew; write +31s (ahead) or -31s (behind)")
            return acts.Skew(worker, 0)
        skew_ms = self._duration_ms(word[1:])
        return acts.Skew(worker, -skew_ms if word[0] == "-" else skew_ms)

    def provider(self) -> acts.Provider:
        """`provider FAULT EFFECT`."""
        fault = self._take()
        if fault is None:
            self._needs(f"a fault: {', '.join(acts.PROVIDER_FAULTS)}")
            return acts.Provider("", "")
        if fault not in acts.PROVIDER_FAULTS:
            near = _nearest(fault, acts.PROVIDER_FAULTS)
            self.wrong.append(f"the provider has no fault {_shown(fault)}{near}")
        return acts.Provider(fault, self._text("an effect's name, or * for any"))

    def free(self) -> acts.Free:
        """`free A B …`."""
        workers = [self._worker()]
        while self.at < len(self.words):
            workers.append(self._worker())
        for worker in sorted({name for name in workers if workers.count(name) > 1}):
            self.wrong.append(f"worker {worker!r} can't race itself")
        return acts.Free(tuple(workers))

    def drain(self) -> acts.Drain:
        """`drain [N]`."""
        word = self._take()
        if word is None:
            return acts.Drain()
        if not re.fullmatch(r"[1-9][0-9]{0,8}", word):
            self.wrong.append(f"{_shown(word)} is no number of workers; write drain or drain 6")
            return acts.Drain()
        return acts.Drain(int(word))


_OTHERS: Final[Mapping[str, Callable[[_Line], acts.Action]]] = {
    "spawn": _Line.spawn,
    "duplicate": _Line.duplicate,
    "advance": _Line.advance,
    "skew": _Line.skew,
    "provider": _Line.provider,
    "free": _Line.free,
    "drain": _Line.drain,
}

#: Every action's first word.
VERBS: Final = (*_VERB_OF.values(), *_OTHERS)


@lru_cache(maxsize=1024)
def format_action(action: acts.Action) -> str:
    """The line that `parse` reads back as this action."""
    match action:
        case acts.Submit() | acts.Cancel() | acts.Approve():
            return f"{_VERB_OF[type(action)]} {_word(action.run_id)}"
        case acts.Until() | acts.Hold():
            return f"{_VERB_OF[type(action)]} {action.worker} {_point_text(action.point)}"
        case acts.Expire() | acts.Lock() | acts.Unlock() | acts.Heal():
            return _VERB_OF[type(action)]
        case acts.Spawn():
            name = f" as {_word(action.name)}" if action.name is not None else ""
            job = f" to {_word(action.job)}" if action.job != "work" else ""
            return f"spawn {action.worker}{name}{job}"
        case acts.Duplicate():
            return f"duplicate {action.worker} as {action.twin}"
        case acts.Advance():
            return f"advance {_duration_text(action.duration_ms)}"
        case acts.Skew():
            sign = "-" if action.skew_ms < 0 else "+"
            return f"skew {action.worker} {sign}{_duration_text(abs(action.skew_ms))}"
        case acts.Provider():
            return f"provider {action.fault} {_word(action.effect)}"
        case acts.Free():
            return f"free {' '.join(action.workers)}"
        case acts.Drain():
            return "drain" if action == acts.Drain() else f"drain {action.most}"
        case _:
            return f"{_VERB_OF[type(action)]} {action.worker}"


def _word(text: str) -> str:
    return text if _BARE.fullmatch(text) and text.isprintable() else _quoted(text)


def _quoted(text: str) -> str:
    """A JSON string on one line, in which only what can't be read is escaped."""
    out: list[str] = []
    for char in text:
        # Two lone halves side by side would be read as one character if both were escapes.
        joins = "\udc00" <= char <= "\udfff" and out and "\\ud800" <= out[-1] <= "\\udbff"
        plain = joins or (char.isprintable() and char not in '"\\')
        out.append(char if plain else json.dumps(char)[1:-1])
    return f'"{"".join(out)}"'


def _point_text(point: Pattern) -> str:
    """As people write it, where that is read back as the same; else with its name quoted."""
    plain = str(point)
    line = _Line(f"until A {plain}", number=0, spawned={"A": 0})
    if "\n" not in plain and "\r" not in plain and line.action() == acts.Until("A", point):
        return plain
    ordinal = f"#{point.ordinal}" if point.ordinal is not None else ""
    return f"{_quoted(point.name)}{ordinal} {point.phase}"


def _duration_text(duration_ms: int) -> str:
    for unit in ("m", "s"):
        if duration_ms and duration_ms % _UNIT_MS[unit] == 0:
            return f"{duration_ms // _UNIT_MS[unit]}{unit}"
    return f"{duration_ms}ms"


def _nearest(word: str, known: Collection[str]) -> str:
    near = get_close_matches(word, [str(name) for name in known], n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
