"""The page and Mermaid as text: escaped, self-contained, complete. A browser is another test."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.report import Item, html_page, job_summary, leases_chart, sequence
from pytest_leasecheck.testkit.report.details import script_safe
from pytest_leasecheck.testkit.report.mermaid import label

from .oracle.builder import Story
from .test_evidence import classic

HOSTILE = "</script><script>alert(1)</script>\"'`;#&<img src=x>\n\x1b[2J"


def item(told: Story, /, name: str = "eight_steps", **fields: str) -> Item:
    history = told.history(declaration=declaration_to_json(told.declaration), kit="1.0")
    return Item(name, history, judge(history), **fields)


class Elements(HTMLParser):
    """Every element with its attributes, and what each script holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        self.scripts += [""] if self._in_script else []

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def page() -> str:
    return html_page([item(classic()), item(classic(refuses=False), "no_fence", story="A story.")])


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    elements = Elements(page).found
    assert not [tag for tag, _ in elements if tag in ("link", "img", "iframe", "object", "base")]
    links = [attrs[name] for _, attrs in elements for name in ("src", "href") if name in attrs]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert not re.search(r"url\((?!#)|@import|https?://", page)


def test_the_policy_allows_its_own_style_and_script_alone(page: str) -> None:
    elements = Elements(page)
    (policy,) = (attrs["content"] for tag, attrs in elements.found if "http-equiv" in attrs)
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    assert policy is not None
    for text in (style, elements.scripts[-1]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not [attrs for _, attrs in elements.found if "style" in attrs]
    assert not [attrs for _, attrs in elements.found if any(key[:2] == "on" for key in attrs)]


def test_every_link_leads_to_something_and_no_id_is_there_twice(page: str) -> None:
    elements = Elements(page).found
    ids = [attrs["id"] for _, attrs in elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {f"#{name}" for name in ids}
    assert {attrs["href"] for _, attrs in elements if "href" in attrs} <= targets


def test_each_mark_has_a_row_and_details(page: str) -> None:
    elements = Elements(page)
    marks = [attrs["data-n"] for tag, attrs in elements.found if tag == "a" and "data-n" in attrs]
    rows = [attrs["data-n"] for tag, attrs in elements.found if tag == "tr" and "data-n" in attrs]
    details = [name for text in elements.scripts[:2] for name in json.loads(text)]
    assert len(marks) > 20
    assert marks == rows == details


def test_the_index_tells_outcome_and_finding_of_each_script(page: str) -> None:
    index = page[page.index('id="scripts"') : page.index("<article")]
    assert index.count("✓ pass") == 1
    assert index.count("✗ fail") == 1
    assert "a stale effect was accepted: " in index
    assert "1 stale attempt, none landed; 1 interruption, 1 reconciliation" in index
    assert "1 of 2" in page
    assert "✗ broken" in page


def test_what_landed_where_nothing_is_claimed_to_fence_is_told_and_is_no_alarm() -> None:
    played = item(classic(refuses=False))
    assert played.verdict is not None
    noted = [replace(finding, severity="note") for finding in played.verdict.findings]
    verdict = replace(played.verdict, findings=tuple(noted), outcome="pass")
    page = html_page([replace(played, verdict=verdict)])
    told = "1 landed where no fence is claimed"
    assert f"1 stale attempt, {told}; 1 interruption, 1 reconciliation" in page
    assert f"stale attempts came to nothing; {told}" in page
    assert "alarm" not in page[page.index('aria-label="in numbers"') : page.index("Run-lease")]
    broken = html_page([played])
    assert '<div class="tile alarm"><b>0 of 1</b>stale attempts came to nothing</div>' in broken


def test_a_tenure_is_a_bar_that_lapses_and_is_taken(page: str) -> None:
    (first, second) = page.split("<article")[1:]
    for part in (first, second):
        assert part.count('class="bar"') >= 2
        assert part.count('<rect class="lapsed"') == 1
        assert part.count('class="take"') == 1
    assert 'class="outcome refused"' in first
    assert 'class="outcome accepted wrong"' in second
    assert 'class="culprit"' in second
    assert 'class="culprit"' not in first


def test_hostile_text_is_text_everywhere() -> None:
    s = Story()
    s.submit(HOSTILE)
    s.spawn(HOSTILE + "#1", name=HOSTILE)
    s.claim(HOSTILE + "#1", HOSTILE, owner=HOSTILE)
    s.effect(HOSTILE + "#1", HOSTILE, run_id=HOSTILE, token=None, key=HOSTILE)
    hostile = item(s, HOSTILE, story=HOSTILE, error=HOSTILE, replay=HOSTILE)
    text = html_page([hostile], title=HOSTILE)
    elements = Elements(text)
    assert len(elements.scripts) == 2
    assert "img" not in {tag for tag, _ in elements.found}
    assert "\x1b" not in text
    json.loads(elements.scripts[0])
    for drawn in (sequence(hostile.history, hostile.verdict), job_summary([hostile])):
        assert "<img" not in drawn
        assert "<script" not in drawn
        assert "\x1b" not in drawn
        assert "`;" not in drawn


def test_a_script_that_was_not_played_to_its_end_failed() -> None:
    text = html_page([item(classic(), error="worker 'A' never reached 'x'")])
    assert "Not played to its end" in text
    assert "0 of 1" in text


def test_no_script_and_an_unjudged_one_make_a_page() -> None:
    assert "No script was played" in html_page([])
    history = classic().history()
    assert "it was not judged" in html_page([Item("x", history)])


def test_a_long_history_shows_what_matters() -> None:
    s = classic(refuses=False)
    for at in range(4_000):
        s.act(f"free W{at}")
    text = html_page([item(s)])
    assert len(text) < 2_000_000
    assert "TAKES OVER r1" in text


def test_json_cannot_end_its_script_element() -> None:
    assert json.loads(script_safe(json.dumps("</script><!--&"))) == "</script><!--&"
    assert "<" not in script_safe(json.dumps("</script><!--"))


def test_a_sequence_has_who_did_what_to_what() -> None:
    one = item(classic(refuses=False))
    lines = sequence(one.history, one.verdict).splitlines()
    assert lines[0] == "sequenceDiagram"
    assert "    participant w0 as A#35;1" in lines
    assert any(line.startswith("    w0->>db: ACQUIRES r1") for line in lines)
    assert any(line.startswith("    w1->>outside: asks for effect charge") for line in lines)
    assert any(line.startswith("    outside-->>w1: effect charge accepted") for line in lines)
    assert any("✗ V1 a stale effect was accepted" in line for line in lines)
    assert len(sequence(one.history, one.verdict, most=5).splitlines()) <= 12


def test_a_chart_of_leases_marks_the_lost_one() -> None:
    one = item(classic())
    assert one.verdict is not None
    text = leases_chart(one.history, one.verdict)
    first, second = (line for line in text.splitlines() if " token " in line)
    assert ":crit, " in first
    assert ":done, " in second


def test_a_summary_draws_what_did_not_pass() -> None:
    text = job_summary([item(classic()), item(classic(refuses=False), "no_fence")])
    assert "1 of 2 scripts passed" in text
    assert text.count("```mermaid") == 2
    assert "<summary>no&#95;fence</summary>" in text


def test_a_label_keeps_words_and_writes_signs_as_entities() -> None:
    assert label("r1; A#1:\n<b>") == "r1#59; A#35;1#58;#92;n#60;b#62;"
