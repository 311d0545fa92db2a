"""`python -m pytest_leasecheck judge|show|report`: saved histories, judged with no subject."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_leasecheck.__main__ import main
from pytest_leasecheck.testkit.declaration_json import declaration_to_json
from pytest_leasecheck.testkit.history import History
from pytest_leasecheck.testkit.history_json import save
from pytest_leasecheck.testkit.subject import Writes

from .builder import FULL, Story


def saved(path: Path, *, stale: bool) -> Path:
    s = Story()
    s.spawn("A#1", "B#1")
    s.submit()
    s.claim("A#1")
    if stale:
        s.expire()
        s.take_over("B#1")
        s.finish("A#1")
    else:
        s.finish("A#1")
    history = s.history()
    script = "submit r1\nspawn A\nrun A\n"
    header = replace(history.header, declaration=declaration_to_json(FULL), script=script)
    path.parent.mkdir(exist_ok=True)
    save(History(header, history.events), path)
    return path


def test_fault_is_told_and_exits_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = saved(tmp_path / "good" / "history.jsonl", stale=False)
    bad = saved(tmp_path / "bad" / "history.jsonl", stale=True)
    assert main(["judge", str(good)]) == 0
    assert f"{good}: pass; " in capsys.readouterr().out
    assert main(["judge", str(good), str(bad)]) == 1
    out = capsys.readouterr().out
    assert f"{bad}: fail; " in out
    assert "  V1 a stale write landed: A#1" in out


def test_history_that_says_what_it_requires_is_judged_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path / "history.jsonl", stale=False)
    text = file.read_text()
    assert '"requires":null' in text
    file.write_text(text.replace('"requires":null', '"requires":["stale attempt"]'))
    assert main(["judge", str(file)]) == 0
    assert f"{file}: inconclusive; " in (told := capsys.readouterr().out)
    assert "  not shown: stale attempt\n" in told
    file.write_text(text.replace('"requires":null', '"requires":["a miracle"]'))
    assert main(["judge", str(file)]) == 2
    assert "what it requires: " in capsys.readouterr().err
    file.write_text(text.replace(',"requires":null', ""))  # of an earlier version
    assert main(["judge", str(file)]) == 0
    assert f"{file}: pass; " in capsys.readouterr().out


def test_file_that_is_no_history_exits_with_two_and_hides_no_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = saved(tmp_path / "bad" / "history.jsonl", stale=True)
    (tmp_path / "nonsense").write_text("hello\n")
    assert main(["judge", str(tmp_path / "nonsense")]) == 2
    assert main(["judge", str(tmp_path / "missing")]) == 2
    assert main(["judge", str(tmp_path / "nonsense"), str(bad)]) == 1
    assert "can't be read" in capsys.readouterr().err
    assert main(["show", str(tmp_path / "missing")]) == 2


def test_the_folder_of_evidence_stands_for_the_history_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(tmp_path / "bad.d" / "history.jsonl", stale=True).parent
    assert main(["judge", str(folder)]) == 1
    assert f"{folder}: fail; " in capsys.readouterr().out
    assert main(["show", str(folder)]) == 0
    page = tmp_path / "page.html"
    assert main(["report", str(folder), "-o", str(page)]) == 0
    assert "bad.d</a>" in page.read_text()
    (tmp_path / "empty").mkdir()
    assert main(["show", str(tmp_path / "empty")]) == 2
    missing = tmp_path / "empty" / "history.jsonl"
    assert capsys.readouterr().err == f"{missing}: No such file or directory\n"


def test_timeline_is_drawn_with_its_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = saved(tmp_path / "bad" / "history.jsonl", stale=True)
    assert main(["show", str(bad), "--width", "80"]) == 0
    out = capsys.readouterr().out
    assert "V1 a stale write landed" in out
    assert max(map(len, out.splitlines()[:-1])) <= 80  # the legend is a line of its own


def test_page_has_each_history_under_its_name(tmp_path: Path) -> None:
    files = [
        str(saved(tmp_path / name / "history.jsonl", stale=name == "bad"))
        for name in ("good", "bad")
    ]
    page = tmp_path / "page.html"
    assert main(["report", *files, "-o", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "good" in text
    assert "a stale write landed" in text


@pytest.mark.parametrize("arguments", [[], ["judge"], ["report", "x"], ["draw", "x"]])
def test_wrong_use_is_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


# -- files from strangers ------------------------------------------------------------------------


def called_by_a_history(row: dict[str, object]) -> str:
    raise AssertionError("a file had this function called")


def naming_a_function(path: Path) -> Path:
    file = saved(path, stale=False)
    written = Writes("log", run=f"{__name__}:called_by_a_history")
    header, *events = file.read_text().splitlines(keepends=True)
    declaration = declaration_to_json(replace(FULL, writes=(written,)))
    told = json.loads(header) | {"declaration": declaration}
    file.write_text(json.dumps(told) + "\n" + "".join(events))
    return file


@pytest.mark.parametrize("command", ["judge", "show", "report"])
def test_no_file_has_code_imported_and_called_unasked(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = naming_a_function(tmp_path / "a" / "history.jsonl")
    page = tmp_path / "page.html"
    more = ["-o", str(page)] if command == "report" else []
    assert main([command, str(file), *more]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "called_by_a_history, which would be imported and called; say --import" in told
    assert not page.exists()
    main([command, str(file), *more, "--import"])
    assert "say --import" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["binary", "empty", "pipe", "device", "folder", "long", "deep"])
@pytest.mark.parametrize("command", ["judge", "show", "report"])
def test_what_is_no_history_is_told_in_one_line(
    kind: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("pytest_leasecheck.testkit.files.read_file.__kwdefaults__",
                        {"most": 1_000_000})  # fmt: skip
    file = tmp_path / "history.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file = Path("/dev/zero")
        case "folder":
            file.mkdir()
        case _:
            content = {"binary": bytes(range(256)) * 40, "empty": b"", "long": b"x" * 1_000_001,
                       "deep": b"[" * 200_000}  # fmt: skip
            file.write_bytes(content[kind])
    more = ["-o", str(tmp_path / "page.html")] if command == "report" else []
    assert main([command, str(file), *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


def test_a_page_is_not_written_over_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path / "a" / "history.jsonl", stale=False)
    before = file.read_bytes()
    assert main(["report", str(file), "-o", str(file)]) == 2
    assert "is no page; it is not replaced" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert [one.name for one in file.parent.iterdir()] == ["history.jsonl"]
