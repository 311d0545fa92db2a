"""The timeline as text: lanes side by side, marks, the short form, hostile text."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_leasecheck.testkit import history as h
from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.harmless import columns, fit, harmless, wrapped
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.story import bars, tell
from pytest_leasecheck.testkit.timeline import SHORT, short_timeline, timeline
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .oracle.builder import Story
from .test_evidence import classic

NASTY = [
    "\x1b[31mred\x1b]0;title\x07",
    "two\nlines\r\n",
    "\u202eback\u2066",
    "\ud800",
    "日本" * 90,
    "e\u0301" * 300,
    "x" * 10_000_000,
    "\0",
    "",
]


def judged(story: Story) -> tuple[h.History, Verdict]:
    history = story.history(declaration=declaration_to_json(story.declaration))
    return history, judge(history)


def row(text: str, words: str) -> str:
    (found,) = (line for line in text.splitlines() if words in line)
    return found


def test_each_incarnation_has_a_column_and_time_goes_down() -> None:
    text = timeline(*judged(classic()))
    head, *lines = text.splitlines()
    at = {who: head.index(who) for who in ("A#1", "B#1")}
    assert row(text, "ACQUIRES r1 under token 1").index("ACQUIRES") == at["A#1"] + 2
    taken = row(text, "TAKES OVER r1 from A#1 under token 2")
    assert taken.index("TAKES OVER") == at["B#1"] + 2
    assert "+31.000s" in taken
    numbers = [int(line[1:6]) for line in lines if line[1:6].strip().isdigit()]
    assert numbers == sorted(numbers)
    assert len(numbers) > 10


def test_a_lanes_edge_says_what_its_worker_holds() -> None:
    text = timeline(*judged(classic()))
    at = text.index("A#1")
    edges = {words: row(text, words)[at] for words in ("starts, to work", "SIGSTOP", "SIGCONT")
             if text.count(words) == 1}  # fmt: skip
    assert edges["SIGSTOP"] == "┃"
    assert edges["SIGCONT"] == "░"
    assert row(text, "TAKES OVER")[at] == "░"
    asleep = [line for line in text.splitlines() if "starts, to work" in line][-1]
    assert asleep[at] == "╏"


def test_a_stale_attempt_is_marked_with_what_came_of_it() -> None:
    text = timeline(*judged(classic()), width=120)
    assert "STALE, refused by the provider: asks for" in text
    assert "effect charge refused" in text


def test_the_culprits_line_is_marked_and_the_finding_stands_below_it() -> None:
    history, verdict = judged(classic(refuses=False))
    lines = timeline(history, verdict).splitlines()
    decisive = verdict.findings[0].at[-1]
    (at,) = (at for at, line in enumerate(lines) if line[1:6].strip() == str(decisive))
    assert lines[at].startswith("!")
    assert lines[at + 1].lstrip().startswith("└ V1 a stale effect was accepted: ")


def test_an_event_that_only_a_finding_needs_is_shown_with_it() -> None:
    s = Story()
    s.spawn("A#1")
    s.reads("A#1")
    n = s.n
    history, verdict = judged(s)
    assert "reads its clock" not in timeline(history, verdict)
    found = Finding("V6", "a late write", "it was late", "r1", "A#1", at=(n,))
    text = timeline(history, replace(verdict, findings=(found,)))
    assert row(text, "reads its clock").startswith("!")


def test_an_action_that_led_to_nothing_is_shown_and_one_that_speaks_for_itself_is_not() -> None:
    s = Story()
    s.act("stop A")
    s.signal("A#1", "STOP")
    s.act("run B")
    s.act("heal")
    text = timeline(*judged(s))
    assert "stop A" not in text
    assert "── run B ─" in text
    assert "── heal ─" in text


def test_the_action_that_let_a_finding_come_about_stays_when_there_is_little_room() -> None:
    s = Story()
    s.spawn("A#1")
    for _ in range(SHORT):
        s.act("lock")
    s.act("heal")
    s.reads("A#1")
    late = s.n
    s.act("drain")
    history, verdict = judged(s)
    found = Finding("V6", "a late write", "it was late", "r1", "A#1", at=(late,))
    text = short_timeline(history, replace(verdict, findings=(found,)))
    assert "── heal ─" in text
    assert "drain" not in text
    assert "── lock" not in text


@pytest.mark.parametrize("width", [40, 59, 60, 80, 100, 200])
@pytest.mark.parametrize("draw", [timeline, short_timeline])
@pytest.mark.parametrize("refuses", [True, False])
def test_no_line_is_wider_than_asked(width: int, draw: Callable[..., str], refuses: bool) -> None:
    for line in draw(*judged(classic(refuses=refuses)), width=width).splitlines():
        if "holds a lease" not in line:
            assert columns(line) <= width, line


def test_narrow_and_crowded_ones_become_lists() -> None:
    narrow = timeline(*judged(classic()), width=50)
    assert narrow.splitlines()[0].endswith("who")
    crowd = Story()
    crowd.spawn(*[f"W{at}#1" for at in range(12)])
    assert timeline(*judged(crowd)).splitlines()[0].endswith("who")


def test_a_column_is_used_again_once_its_worker_is_over() -> None:
    s = Story()
    for at in range(9):
        s.spawn(f"drain{at}#1")
        s.returned(f"drain{at}#1")
        s.add(h.Ended, f"drain{at}#1", "returned")
    text = timeline(*judged(s))
    assert not text.splitlines()[0].endswith("who")
    assert "drain8#1 starts" in text


def test_the_short_form_fits_and_keeps_what_matters() -> None:
    s = classic(refuses=False)
    for at in range(300):
        s.spawn(f"W{at}#1")
        s.returned(f"W{at}#1")
    text = short_timeline(*judged(s))
    assert len(text.splitlines()) <= SHORT
    assert "V1 a stale effect was accepted" in text
    assert "left out" in text


def test_what_was_left_out_is_counted() -> None:
    history, verdict = judged(classic())
    total = len(tell(history, verdict))
    text = timeline(history, verdict, most_lines=12)
    shown = sum(line[1:6].strip().isdigit() for line in text.splitlines())
    hidden = int(row(text, "left out").split()[1])
    assert shown + hidden == total


def test_a_history_without_verdict_and_an_empty_one_are_drawn() -> None:
    history, _verdict = judged(classic())
    assert "commits: runs r1 status=running" in timeline(history, width=150)
    assert timeline(h.History(h.Header("", ""), ())).split() == ["n", "time", "who"]


def test_ascii_only_is_ascii() -> None:
    text = timeline(*judged(classic(refuses=False)), ascii_only=True)
    assert text.isascii()
    assert "?" not in text


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
@pytest.mark.parametrize("width", [50, 100])
def test_hostile_text_is_shown_harmlessly(nasty: str, width: int) -> None:
    s = Story()
    s.submit(nasty)
    s.spawn("A#1", name=nasty)
    s.claim("A#1", nasty, owner=nasty)
    s.effect("A#1", nasty, run_id=nasty, token=1, key=nasty, outcome="refused")
    s.look_up("A#1", nasty, nasty)
    s.add(h.Noted, nasty, nasty)
    s.add(h.Blind, nasty, nasty)
    s.returned("A#1", error=nasty)
    text = timeline(*judged(s), width=width)
    assert len(text) < 30_000
    for line in text.splitlines():
        assert line.isprintable()
        assert columns(line) <= width or "holds a lease" in line
    assert text.count("\n") < 80


def test_a_bar_has_lapsed_until_it_is_renewed() -> None:
    s = Story()
    s.submit()
    s.spawn("A#1")
    s.claim("A#1")
    s.expire()
    (bar,) = bars(*judged(s))
    assert (bar.lapsed, bar.until, bar.lost) == (s.n, None, False)
    s.commit("A#1", s.set("runs", "r1", expires=s.now + 30))
    (bar,) = bars(*judged(s))
    assert bar.lapsed is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        (None, "NULL"),
        (b"\0a", "x'0061'"),
        ("a\nb", "a\\nb"),
        ("\x1b[0m", "\\e[0m"),
        ("\ud800", "\\ud800"),
        ("\u202e", "\\u202e"),
        (3.5, "3.5"),
        ("x" * 300, "x" * 200 + "… (100 characters more)"),
    ],
)
def test_harmless(value: object, shown: str) -> None:
    assert harmless(value) == shown


def test_a_number_too_long_to_write_is_told_by_its_size() -> None:
    assert harmless(10**100_000).startswith("a number of 3")


@pytest.mark.parametrize("text", ["", "a", "one two three", "日本語テキスト", "x" * 99])
@pytest.mark.parametrize("width", [2, 5, 12])
def test_fit_and_wrapped_keep_to_their_width(text: str, width: int) -> None:
    assert columns(fit(text, width)) == width
    lines = wrapped(text, width, most=3)
    assert 1 <= len(lines) <= 3
    assert all(columns(line) <= width for line in lines)
    if columns(text) <= width:
        assert lines == [text]
