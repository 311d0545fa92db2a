"""The drawn swim lanes: a lane per incarnation, tenures as bars, effects going outside.

Order goes to the right, an event a step: clocks are too coarse to place events by. Each mark is a
link to its row in the table, so that it can be reached by keyboard, and without a script.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from html import escape
from typing import Final

from ..harmless import harmless
from ..history import EffectAnswered, EffectAsked, EffectDecided, Ended, History, Signalled, Spawned
from ..story import Bar, Entry, bars, lanes_of, seconds
from .item import Item

_STEP: Final = 34
_LANE: Final = 68
_TOP: Final = 54
_PAD: Final = 26
_COLOURS: Final = 6
_OUTSIDE: Final = "outside world"
#: What a mark looks like, drawn around (0, 0).
_SHAPES: Final = {
    "lease": '<circle r="7"/>',
    "write": '<rect x="-4.5" y="-4.5" width="9" height="9" rx="1.5"/>',
    "effect": '<path d="M0-8 8 0 0 8-8 0Z"/>',
    "stale": '<path d="M-6-6 6 6M6-6-6 6"/>',
    "hold": '<rect x="-5.5" y="-5.5" width="11" height="11" rx="2"/>',
    "life": '<circle r="5"/>',
    "note": '<circle r="3"/>',
    "clock": '<circle r="5"/>',
    "script": '<circle r="3"/>',
    "STOP": '<path d="M-4-7V7M4-7V7"/>',
    "CONT": '<path d="M-5-7 7 0-5 7Z"/>',
    "KILL": '<path d="M-7-7 7 7M7-7-7 7M0-9V9"/>',
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where things are: `numbers` are the shown events', in order."""

    numbers: Sequence[int]
    lanes: Sequence[str]
    outside: bool

    def x(self, n: int | None) -> float:
        """The column of an event, or of the next one that is shown."""
        at = len(self.numbers) - 1 if n is None else bisect_left(self.numbers, n)
        return _PAD + min(at, len(self.numbers) - 1) * _STEP

    def y(self, who: str) -> float:
        """The middle of a lane."""
        at = self.lanes.index(who) if who in self.lanes else len(self.lanes)
        return _TOP + at * _LANE + _LANE / 2

    @property
    def width(self) -> float:
        return 2 * _PAD + max(len(self.numbers) - 1, 1) * _STEP

    @property
    def height(self) -> float:
        return _TOP + (len(self.lanes) + self.outside) * _LANE + 8


def draw_lanes(item: Item, entries: Sequence[Entry], *, prefix: str) -> str:
    """The drawing as HTML: names of lanes beside an SVG that scrolls. `prefix` begins ids."""
    if not entries:
        return ""
    history = item.history
    stale = {entry.n for entry in entries if entry.kind == "stale" or entry.decisive}
    outcomes = list(_outcomes(history))
    place = _Place([entry.n for entry in entries], lanes_of(history, entries), bool(outcomes))
    names = [*place.lanes, *([_OUTSIDE] if place.outside else [])]
    labels = "".join(
        f'<li title="{_attribute(name)}">{escape(harmless(name, most=40))}</li>' for name in names
    )
    run_ids = list(dict.fromkeys(bar.run_id for bar in bars(history, item.verdict)))
    parts = [
        *_grounds(place, entries, names),
        *_clock(place, entries, history),
        *_lives(place, history),
        *(
            _bar(place, bar, run_ids.index(bar.run_id), prefix)
            for bar in bars(history, item.verdict)
        ),
        *_takeovers(place, bars(history, item.verdict)),
        *_effects(place, outcomes, stale),
        *(_mark(place, entry, history, prefix) for entry in entries),
    ]
    return (
        f'<div class="swim"><ol class="names" aria-hidden="true">{labels}</ol>'
        f'<div class="scroll" tabindex="0" role="group" aria-label="swim lanes, event by event">'
        f'<svg width="{place.width:.0f}" height="{place.height:.0f}" '
        f'viewBox="0 0 {place.width:.0f} {place.height:.0f}">'
        f'<defs><pattern id="{prefix}hatch" width="7" height="7" patternTransform="rotate(45)" '
        f'patternUnits="userSpaceOnUse"><rect class="hatch" width="3" height="7"/></pattern></defs>'
        f"{''.join(parts)}</svg></div></div>"
    )


def _attribute(text: str) -> str:
    return escape(harmless(text), quote=True)


def _grounds(place: _Place, entries: Sequence[Entry], names: Sequence[str]) -> Iterator[str]:
    for at, name in enumerate(names):
        kind = "ground odd" if at % 2 else "ground"
        kind += " outside" if name == _OUTSIDE else ""
        yield (
            f'<rect class="{kind}" x="0" y="{_TOP + at * _LANE}" width="{place.width:.0f}" '
            f'height="{_LANE}"/>'
        )
    for entry in entries:
        if entry.decisive:
            x = place.x(entry.n) - _STEP / 2
            yield (
                f'<rect class="culprit" x="{x:.0f}" y="{_TOP - 8}" width="{_STEP}" '
                f'height="{place.height - _TOP + 4:.0f}" rx="6"/>'
            )


def _clock(place: _Place, entries: Sequence[Entry], history: History) -> Iterator[str]:
    """Where the clock moved, and what it says from there on."""
    yield f'<text class="time" x="{_PAD}" y="20">+0.000s</text>'
    free = float(_PAD + 70)
    for entry in entries:
        if entry.kind != "clock" or entry.who:
            continue
        x = place.x(entry.n)
        yield f'<line class="jump" x1="{x:.0f}" x2="{x:.0f}" y1="28" y2="{place.height - 8:.0f}"/>'
        if x >= free:
            text = escape(seconds(entry.at_ns, history))
            yield f'<text class="time" x="{x:.0f}" y="20">{text}</text>'
            free = x + 74


def _lives(place: _Place, history: History) -> Iterator[str]:
    """A line for as long as an incarnation lived, dotted while it was stopped."""
    begun: dict[str, tuple[int, str]] = {}
    for event in history:
        if isinstance(event, Spawned):
            begun[event.who] = (event.n, "alive")
        elif isinstance(event, (Signalled, Ended)) and event.who in begun:
            since, state = begun.pop(event.who)
            yield _line(place, event.who, since, event.n, state)
            signal = event.signal.removeprefix("SIG") if isinstance(event, Signalled) else "END"
            if signal in ("STOP", "CONT"):
                begun[event.who] = (event.n, "asleep" if signal == "STOP" else "alive")
    for who, (since, state) in begun.items():
        yield _line(place, who, since, None, state)


def _line(place: _Place, who: str, since: int, until: int | None, state: str) -> str:
    if who not in place.lanes:
        return ""
    y = place.y(who)
    return (
        f'<line class="{state}" x1="{place.x(since):.0f}" x2="{place.x(until):.0f}" '
        f'y1="{y:.0f}" y2="{y:.0f}"/>'
    )


def _bar(place: _Place, bar: Bar, run: int, prefix: str) -> str:
    """A tenure; hatched from where its lease had lapsed."""
    if bar.who not in place.lanes:
        return ""
    left, right = place.x(bar.since), place.x(bar.until)
    right += _STEP / 2 if bar.until is None else 0
    y, width = place.y(bar.who) - 13, max(right - left, 8)
    token = f" · token {bar.token}" if bar.token is not None else ""
    label = f"{harmless(bar.run_id, most=24)}{token}"
    end = "in force" if bar.until is None else bar.ended
    title = f"{bar.who} held {bar.run_id} (tenure {bar.number}{token}): {end}"
    parts = [
        f'<g class="tenure run{run % _COLOURS}{" lost" if bar.lost else ""}">',
        f"<title>{escape(harmless(title))}</title>",
        f'<rect class="bar" x="{left:.0f}" y="{y:.0f}" width="{width:.0f}" height="26" rx="8"/>',
    ]
    if bar.lapsed is not None:
        from_x = max(place.x(bar.lapsed), left)
        parts.append(
            f'<rect class="lapsed" fill="url(#{prefix}hatch)" x="{from_x:.0f}" y="{y:.0f}" '
            f'width="{max(right - from_x, 4):.0f}" height="26" rx="8"/>'
        )
    if width > 7 * len(label):
        parts.append(f'<text x="{left + 12:.0f}" y="{y - 6:.0f}">{escape(label)}</text>')
    return "".join([*parts, "</g>"])


def _takeovers(place: _Place, all_bars: Sequence[Bar]) -> Iterator[str]:
    """An arrow from a tenure that was taken to the one that took it."""
    for before in all_bars:
        for after in all_bars:
            taken = (after.run_id, after.since) == (before.run_id, before.until)
            if taken and before.who != after.who:
                x = place.x(after.since)
                first, last = place.y(before.who), place.y(after.who)
                tip = last - 15 if last > first else last + 15
                yield (
                    f'<path class="take" d="M{x:.0f} {first:.0f}V{tip:.0f}"/>'
                    f'<path class="tip" d="M{x - 5:.0f} {tip - (6 if last > first else -6):.0f}'
                    f'H{x + 5:.0f}L{x:.0f} {tip:.0f}Z"/>'
                )


def _outcomes(history: History) -> Iterator[tuple[int, str, bool]]:
    """Each effect that reached the boundary: event, who asked, whether it was carried out."""
    own: dict[tuple[str, int], bool] = {}
    for event in history:
        if isinstance(event, EffectAsked):
            own[event.who, event.request] = event.store == "own"
        elif isinstance(event, EffectDecided):
            yield event.n, event.who, event.outcome == "accepted"
        elif isinstance(event, EffectAnswered) and own.get((event.who, event.request)):
            yield event.n, event.who, event.how == "returned"


def _effects(
    place: _Place, outcomes: Sequence[tuple[int, str, bool]], stale: Set[int]
) -> Iterator[str]:
    """A line from the asking lane to the boundary; crossed where it was not carried out."""
    for n, who, accepted in outcomes:
        x, y = place.x(n), place.y(_OUTSIDE)
        kind = ("accepted wrong" if n in stale else "accepted") if accepted else "refused"
        shape = _SHAPES["effect"] if accepted else _SHAPES["stale"]
        yield (
            f'<g class="outcome {kind}"><line x1="{x:.0f}" x2="{x:.0f}" y1="{place.y(who):.0f}" '
            f'y2="{y - 10:.0f}"/><g transform="translate({x:.0f} {y:.0f})">{shape}</g></g>'
        )


def _mark(place: _Place, entry: Entry, history: History, prefix: str) -> str:
    y = place.y(entry.who) if entry.who in place.lanes else 38
    shape = entry.text.split(" ")[0].removeprefix("SIG") if entry.kind == "signal" else entry.kind
    title = f"{entry.n}, {seconds(entry.at_ns, history)}, {entry.who}: {entry.text}"
    found = " found" if entry.findings else ""
    return (
        f'<a class="mark k-{entry.kind}{found}" href="#{prefix}e{entry.n}" data-n="{entry.n}" '
        f'data-kind="{entry.kind}" aria-label="{_attribute(title)}" '
        f'transform="translate({place.x(entry.n):.0f} {y:.0f})"><title>{_attribute(title)}</title>'
        f'<circle class="hit" r="15"/>{_SHAPES.get(shape, _SHAPES["note"])}</a>'
    )
