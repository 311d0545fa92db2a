"""The Python code blocks of README and docs are run, page by page, by pytest in a fresh process.

The blocks of one page are joined, in order, into one test module, so that a page may grow one
example. A block that can't run carries, on the line above its fence, a comment that says why:
``<!-- no-run: reason -->``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
NO_RUN = re.compile(r"<!-- no-run: (?P<reason>\S.*?) -->")
NOTHING_COLLECTED = 5


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where its first line stands, what language, and why it isn't run."""

    line: int
    language: str
    text: str
    no_run: str


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order; a fence that is never closed is an error."""
    found: list[Block] = []
    lines = page.splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        above = NO_RUN.fullmatch(lines[start - 1]) if start else None
        found.append(
            Block(
                line=start + 2,
                language=lines[start].removeprefix("```").strip(),
                text="\n".join(lines[start + 1 : number]),
                no_run=above["reason"] if above else "",
            )
        )
        start = None
    if start is not None:
        raise ValueError(f"the fence opened in line {start + 1} is never closed")
    return found


def module_of(page: str) -> str:
    """The page's runnable Python as one module with the page's own line numbers."""
    lines: list[str] = []
    for block in blocks_of(page):
        if block.language == "python" and not block.no_run:
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n" if lines else ""


def run_page(pytester: pytest.Pytester, name: str, page: str) -> pytest.RunResult:
    """Run a page's module with pytest, in a process and a folder of its own."""
    module = pytester.path / f"test_{re.sub(r'[^a-z0-9]', '_', name.lower())}.py"
    module.write_text(module_of(page))
    return pytester.runpytest_subprocess("-q")


def _id(page: Path) -> str:
    return str(page.relative_to(PROJECT))


@pytest.mark.parametrize("page", [page for page in PAGES if module_of(page.read_text())], ids=_id)
def test_page_runs(page: Path, pytester: pytest.Pytester) -> None:
    result = run_page(pytester, page.stem, page.read_text())
    assert result.ret in (0, NOTHING_COLLECTED), result.stdout.str()


PAGE = """# A page
```python
x = 1
```
<!-- no-run: it would charge a card -->
```python
charge()
```
```sh
rm -r /
```
```python
assert x == 1
```
"""


def test_blocks_keep_their_order_and_line_numbers() -> None:
    assert module_of(PAGE).splitlines() == ["", "", "x = 1", *[""] * 9, "assert x == 1"]


def test_block_without_a_reason_is_run() -> None:
    assert "charge()" in module_of(PAGE.replace("no-run: it would charge a card", "no-run"))


def test_open_fence_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 2 is never closed"):
        blocks_of("text\n```python\nx = 1\n")


def test_failing_block_fails_its_page(pytester: pytest.Pytester) -> None:
    result = run_page(pytester, "page", PAGE.replace("x == 1", "x == 2"))
    assert result.ret not in (0, NOTHING_COLLECTED)
    result.stdout.fnmatch_lines(["*test_page.py:13:*"])
