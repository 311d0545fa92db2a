"""What the summary says of what was proved: held, broken, not shown, not claimed."""

from collections.abc import Callable, Mapping

import pytest

from pytest_leasecheck.reporting import summary
from pytest_leasecheck.tally import Record, from_properties, to_properties
from pytest_leasecheck.testkit.verdict import Counts

ALL = Counts(scripts=2, runs=3, stale_attempts=4, interruptions=1, reconciliations=1)


def record(**changes: object) -> Record:
    told: dict[str, object] = {"subject": "mine:Queue", "outcome": "pass", "counts": ALL}
    return Record(**{**told, "refused": 4, **changes})  # type: ignore[arg-type]  # a test's short cut


def words(records: Mapping[str, Record]) -> list[str]:
    return [line.word for line in summary(records)]


def test_all_three_held_with_what_that_rests_on() -> None:
    lines = list(summary({"a": record(), "b": record()}))
    assert [line.word for line in lines] == ["held", "held", "held"]
    assert [line.text.split("  ")[-1].strip() for line in lines] == [
        "4 scripts, 8 stale attempts, none landed",
        "2 interruptions, 2 reconciliations",
        "6 runs checked",
    ]


def test_assertion_without_its_moment_is_not_shown() -> None:
    quiet = record(counts=Counts(scripts=1, runs=1), refused=0)
    assert words({"a": quiet}) == ["not shown", "not shown", "held"]


def test_nothing_played_shows_nothing() -> None:
    skipped = record(
        outcome="not claimed", counts=Counts(), not_claimed={"x": "not claimed: reaps"}
    )
    lines = list(summary({"a": skipped}))
    assert [line.word for line in lines] == ["not shown"] * 3 + ["not claimed"]
    assert lines[-1].text == "reaps (x)"


def test_set_ups_that_a_subject_lacks_are_one_line() -> None:
    lacks = {"a": "not claimed: the subject has no variant 'x'",
             "b": "not claimed: the subject has no variant 'y'"}  # fmt: skip
    skipped = [
        record(outcome="not claimed", counts=Counts(), not_claimed={name: why})
        for name, why in (*lacks.items(), ("c", "not claimed: reaps"))
    ]
    lines = list(summary({str(at): one for at, one in enumerate(skipped)}))
    assert [line.text for line in lines if line.word == "not claimed"] == [
        "2 scenarios about set-ups of a runtime (`variants`) that this subject does not offer",
        "reaps (c)",
    ]


def test_broken_invariant_names_its_tests() -> None:
    lines = list(summary({"t::a": record(), "t::b": record(outcome="fail", broken=("V3",))}))
    assert lines[0].word == "BROKEN"
    assert lines[0].text.endswith("none landed; V3 in t::b")
    # What was not broken is not held either: a failed script was not seen to its end.
    assert [line.word for line in lines[1:]] == ["not broken", "not broken"]


def test_invariant_without_a_headline_has_its_own_line() -> None:
    lines = list(summary({"t::a": record(outcome="fail", broken=("V7",))}))
    assert (lines[3].word, lines[3].text) == ("BROKEN", "V7 in t::a")


def test_inconclusive_holds_nothing() -> None:
    assert words({"a": record(outcome="inconclusive")}) == ["not broken"] * 3 + ["inconclusive"]


def test_unclaimed_headline_is_not_held() -> None:
    unclaimed = record(not_claimed={"V4": "it does not reconcile"})
    assert words({"a": unclaimed}) == ["held", "not claimed", "held", "not claimed"]


def test_refusals_are_told_by_what_refused() -> None:
    by = {"token or owner": 1, "status": 3}
    lines = list(summary({"a": record(refused_by=by), "b": record(refused_by={"status": 1})}))
    assert (lines[1].word, lines[1].text) == ("  refused by", "status (4), token or owner (1)")


def test_what_landed_where_nothing_fences_is_noted_not_hidden() -> None:
    noted = record(refused=3, notes=("a stale effect was accepted",))
    lines = list(summary({"t::a": noted}))
    assert lines[0].text.endswith("1 landed where no fence is claimed (noted below)")
    assert (lines[3].word, lines[3].text) == ("noted", "a stale effect was accepted: t::a")


@pytest.mark.parametrize(
    "sent",
    [
        record(),
        record(refused_by={"token or a=b": 3, "gave up after reading": 1}),
        record(outcome="fail", broken=("V1", "V3"), evidence="/x y/z", notes=("a b", "c")),
        record(outcome="not claimed", not_claimed={"V8": "no counter, no bound", "V9": "no key"}),
    ],
)
def test_record_survives_the_way_through_a_report(sent: Record) -> None:
    assert from_properties(to_properties(sent)) == sent
    # Through JSON, pairs are lists; through a junit file, values are text.
    assert from_properties([[name, str(value)] for name, value in to_properties(sent)]) == sent


def test_report_of_another_test_is_none_of_ours() -> None:
    assert from_properties([("theirs", 1), ("leasecheck", 2)]) is None


@pytest.mark.parametrize("columns", ["", "70", "200"])
def test_lines_keep_to_the_terminal_and_ids_stay_whole(
    consumer: pytest.Pytester,
    leasecheck: Callable[..., pytest.RunResult],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = leasecheck("leasecheck", subject="Inconclusive")
    heads = [n for n, line in enumerate(result.outlines) if line.startswith("=====")]
    begin = next(n for n in heads if result.outlines[n].strip("= ") == "leasecheck")
    end = next(n for n in heads if n > begin)
    told = result.outlines[begin + 1 : end]
    assert max(map(len, told)) <= int(columns or 80)
    assert any("leasecheck/classic::still_held" in line for line in told)
    if columns == "200":
        assert not any(line.startswith(" " * 14) for line in told)
    else:
        assert any(line.startswith(" " * 14) for line in told)
