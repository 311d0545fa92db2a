"""The tutorial, followed: its queue loses the race, its mended one does not."""

import re
from pathlib import Path

import pytest

from .test_docs import Block, blocks_of


@pytest.fixture
def page(project: Path) -> list[Block]:
    return blocks_of((project / "docs" / "tutorial" / "first-subject.md").read_text())


def runs_of(page: list[Block]) -> list[tuple[str, str]]:
    """Each command with the output that is shown below it."""
    shown = [block for block in page if block.language in ("sh", "text")]
    assert [block.language for block in shown] == ["sh", "text"] * (len(shown) // 2)
    return [(one.text, two.text) for one, two in zip(shown[::2], shown[1::2], strict=True)]


def assert_shown(output: list[str], shown: str) -> None:
    """Every line that is shown came out, in this order. `…` stands for what is left out."""
    rest = iter(output)
    for line in shown.splitlines():
        if line.strip() in ("", "…"):
            continue
        start = _plain(line).removesuffix("…").strip()
        assert any(_plain(found).startswith(start) for found in rest), line


def _plain(line: str) -> str:
    """Without the frame of a heading, whose width is the terminal's."""
    return re.sub(r"^[=_]{3,} | [=_]{3,}$", "", line).strip()


def test_tutorial_comes_out_as_it_is_shown(
    pytester: pytest.Pytester, page: list[Block], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")  # xdist's workers have another, and a timeline is as wide
    code = "\n\n".join(block.text for block in page if block.language == "python")
    pytester.makepyfile(tinyqueue=code)
    lost, mended = runs_of(page)
    for (command, shown), code in ((lost, 1), (mended, 0)):
        program, *args = command.split()
        assert program == "pytest"
        result = pytester.runpytest_subprocess(*args)
        assert result.ret == code, result.stdout.str()
        assert_shown(result.outlines, shown)
        # What is noted is in a failure's text already; it is not captured output besides.
        assert "Captured leasecheck" not in result.stdout.str()


def test_line_that_did_not_come_out_is_missed() -> None:
    assert_shown(["=== 1 failed in 2 s ====", "b"], "…\n=== 1 failed in …\nb")
    with pytest.raises(AssertionError, match="a"):
        assert_shown(["b", "a"], "b\na\na")
