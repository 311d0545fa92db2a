"""The page in a real browser: headless Chromium, driven through its pipe, with real histories."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_leasecheck.scenarios import classic
from pytest_leasecheck.scenarios.reference_subject import ReferenceSubject
from pytest_leasecheck.testkit import history as h
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions
from pytest_leasecheck.testkit.report import Item, html_page
from pytest_leasecheck.testkit.verdict import Counts, Finding, Verdict

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>\x1b[2J\n"

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
    # A browser's start alone takes seconds on a busy machine.
    pytest.mark.timeout(180),
]


#: Chromium reads descriptor 3 and writes descriptor 4.
BECOME = """
import fcntl, os, sys
spare = [fcntl.fcntl(int(one), fcntl.F_DUPFD_CLOEXEC, 5) for one in sys.argv[1:3]]
os.dup2(spare[0], 3)
os.dup2(spare[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """Chromium over its debugging pipe: messages end with a zero byte, no socket is needed."""

    def __init__(self, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        arguments = [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}",
            "about:blank",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", BECOME, str(theirs_in), str(theirs_out), *arguments],
            pass_fds=(theirs_in, theirs_out),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []

    def begin(self) -> None:
        """A page of its own, told to report what goes wrong on it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._in, 1 << 20)
            assert data, "the browser is gone"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        received: dict[str, Any] = json.loads(message)
        return received

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, page: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def value(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def complaints(self) -> list[str]:
        """Errors of the console, refused by the policy, or thrown."""
        return [
            json.dumps(event["params"])
            for event in self.events
            if event["method"] == "Runtime.exceptionThrown"
            or (
                event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error"
            )
        ]

    def close(self) -> None:
        os.close(self._out)
        os.close(self._in)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    try:
        browser.begin()
        yield browser
    finally:
        browser.close()


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    options = LaneOptions(folder=tmp_path_factory.mktemp("logs"))
    found = []
    with Lane(ReferenceSubject, options=options) as lane:
        for scenario in classic.SCENARIOS[:2]:
            played = lane.play(scenario.script_for(lane.subject), name=scenario.name)
            assert played.error is None
            verdict = judge(played.history, requires=scenario.requires)
            found.append(Item(scenario.name, played.history, verdict, story=scenario.story))
    return found


@pytest.fixture
def page(browser: Browser, items: list[Item], tmp_path: Path) -> Browser:
    file = tmp_path / "report.html"
    file.write_text(html_page(items), encoding="utf-8")
    browser.open(file)
    return browser


def test_the_page_needs_nothing_else_and_complains_of_nothing(page: Browser) -> None:
    asked = [
        event["params"]["request"]["url"]
        for event in page.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert len(asked) == 1
    assert asked[0].startswith("file:")
    assert page.complaints() == []
    assert page.value("getComputedStyle(document.querySelector('.badge')).borderRadius") == "99px"


def test_a_mark_chosen_by_keyboard_shows_its_event(page: Browser) -> None:
    page.value("document.querySelector('.mark').focus()")
    first = page.value("document.activeElement.dataset.n")
    page.press("ArrowRight")
    second = page.value("document.activeElement.dataset.n")
    assert int(second) > int(first)
    detail = page.value("document.querySelector('.detail').textContent")
    assert detail.startswith(f"event{second} · ")
    page.press("Enter")
    assert page.value("document.activeElement.tagName") == "TR"
    assert page.value("document.activeElement.dataset.n") == second
    page.press("ArrowDown")
    assert int(page.value("document.activeElement.dataset.n")) > int(second)


def test_a_click_on_a_row_marks_it_in_the_drawing(page: Browser) -> None:
    n = page.value(
        "(() => { const row = document.querySelector('tr[data-kind=stale]'); row.click();"
        " return row.dataset.n; })()"
    )
    assert page.value("document.querySelector('.mark.chosen').dataset.n") == n
    assert "token 1" in page.value("document.querySelector('.detail').textContent")


def test_a_filter_hides_rows_and_marks_of_its_kind(page: Browser) -> None:
    shown = (
        "[...document.querySelector('[data-script]').querySelectorAll('[data-kind=write]')]"
        ".filter(item => item.getBoundingClientRect().height > 0).length"
    )
    assert page.value(shown) > 4
    page.value("document.querySelector('.filters input[value=write]').click()")
    assert page.value(shown) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_it_fits_and_can_be_read(page: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    page.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=900, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    try:
        assert page.value("document.documentElement.scrollWidth") <= width
        contrasts = page.value(CONTRASTS)
        assert len(contrasts) > 20
        assert [found for found in contrasts if found[1] < 4.5] == []
        kept = os.environ.get("LEASECHECK_SCREENSHOTS")
        if kept:  # for whoever wants to look
            shot = page.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            Path(kept, f"{scheme}-{width}.png").write_bytes(base64.b64decode(shot))
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_hostile_text_stays_text(browser: Browser, tmp_path: Path) -> None:
    events: tuple[h.Event, ...] = (
        h.Spawned(1, 0, who=HOSTILE, pid=1, name=HOSTILE, job=HOSTILE),
        h.EffectAsked(
            2, 0, who=HOSTILE, thread=HOSTILE, request=1, name=HOSTILE, run_id=HOSTILE,
            token=1, key=HOSTILE, receipt=HOSTILE, store="provider",
        ),
        h.EffectDecided(3, 0, who=HOSTILE, request=1, outcome=HOSTILE, why=HOSTILE),
        h.Returned(4, 0, who=HOSTILE, thread="", value=HOSTILE * 50_000, error=""),
    )  # fmt: skip
    history = h.History(h.Header(HOSTILE, HOSTILE * 100, kit=HOSTILE), events)
    verdict = judge_nothing(Finding("V1", HOSTILE, HOSTILE, HOSTILE, HOSTILE, at=(2, 3)))
    file = tmp_path / "hostile.html"
    item = Item(HOSTILE, history, verdict, story=HOSTILE, error=HOSTILE, replay=HOSTILE)
    file.write_text(html_page([item], title=HOSTILE), encoding="utf-8")
    assert file.stat().st_size < 200_000
    browser.open(file)
    assert browser.complaints() == []
    assert browser.value("document.querySelectorAll('img, iframe, object').length") == 0
    assert browser.value("document.querySelectorAll('script').length") == 2
    assert "</script>" in browser.value("document.title")
    assert "<img src=x" in browser.value("document.querySelector('.detail').textContent")


def judge_nothing(*findings: Finding) -> Verdict:
    return Verdict("fail", findings, (HOSTILE,), {}, (), (), (), (), Counts())


#: Each piece of text that is shown, with its contrast to the ground it stands on.
CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (rgb) => {
    const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const texts = "h1,h2,p,th,td,li,b,small,.badge,dt,dd,label,a,summary";
  for (const item of document.querySelectorAll(texts)) {
    if (item.closest("svg, .skip") || !item.getBoundingClientRect().height) continue;
    let ground = item;
    const clear = (at) => rgba(getComputedStyle(at).backgroundColor)[3] < 255;
    while (ground && clear(ground)) ground = ground.parentElement;
    if (!ground) continue;
    const over = light(rgba(getComputedStyle(item).color).slice(0, 3));
    const under = light(rgba(getComputedStyle(ground).backgroundColor).slice(0, 3));
    const ratio = (Math.max(over, under) + 0.05) / (Math.min(over, under) + 0.05);
    found.push([item.textContent.trim().slice(0, 40), Math.round(ratio * 100) / 100]);
  }
  return found;
})()"""
