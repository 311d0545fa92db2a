"""Scripts as text: the grammar's table, every kind of mistake, and exact round trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_leasecheck.testkit import script as acts
from pytest_leasecheck.testkit.errors import ScriptError
from pytest_leasecheck.testkit.points import Pattern, parse_pattern
from pytest_leasecheck.testkit.script import Action, Script, parse_script
from pytest_leasecheck.testkit.script_text import VERBS, format_action, parse

# The grammar's own lines: what is written, what it means, and how it is written back if otherwise.
TABLE: list[tuple[str, Action, str | None]] = [
    ("submit run-1", acts.Submit("run-1"), None),
    ("submit r#1", acts.Submit("r#1"), None),
    ("submit 7", acts.Submit("7"), None),
    ('submit "two words"', acts.Submit("two words"), None),
    (r'submit "a\nb\u0000\"\\"', acts.Submit('a\nb\0"\\'), None),
    ('submit ""', acts.Submit(""), None),
    ('submit "#x"', acts.Submit("#x"), None),
    ('submit "plain"', acts.Submit("plain"), "submit plain"),
    ("cancel run-1", acts.Cancel("run-1"), None),
    ("approve run-1", acts.Approve("run-1"), None),
    ("spawn A", acts.Spawn("A"), None),
    ("spawn A as same", acts.Spawn("A", "same"), None),
    ("spawn A as to to as", acts.Spawn("A", "to", "as"), None),
    ("spawn A to reap", acts.Spawn("A", None, "reap"), None),
    ("spawn A as same to reap", acts.Spawn("A", "same", "reap"), None),
    ('spawn A as "the one" to work', acts.Spawn("A", "the one"), 'spawn A as "the one"'),
    ("duplicate W as B", acts.Duplicate("W", "B"), None),
    ("run W", acts.Run("W"), None),
    ("  run\tW  # now", acts.Run("W"), "run W"),
    ("beat W", acts.Beat("W"), None),
    ("stop W", acts.Stop("W"), None),
    ("cont W", acts.Cont("W"), None),
    ("kill W", acts.Kill("W"), None),
    ("restart W", acts.Restart("W"), None),
    ("until W effect:charge before", acts.Until("W", Pattern("effect:charge")), None),
    ("until W effect:*", acts.Until("W", Pattern("effect:*")), "until W effect:* before"),
    ("until W txn:commit#3 after", acts.Until("W", Pattern("txn:commit", 3, "after")), None),
    (
        "until W sql:update jobs  # here",
        acts.Until("W", Pattern("sql:UPDATE jobs")),
        "until W sql:UPDATE jobs before",
    ),
    (
        'until W sql:UPDATE "my jobs" after',
        acts.Until("W", Pattern('sql:UPDATE "my jobs"', None, "after")),
        None,
    ),
    (
        'until W "a  # point"#2 after',
        acts.Until("W", Pattern("a  # point", 2, "after")),
        None,
    ),
    ("until W the phase before before", acts.Until("W", Pattern("the phase before")), None),
    ("hold W heartbeat before", acts.Hold("W", Pattern("heartbeat")), None),
    ("advance 10s", acts.Advance(10_000), None),
    ("advance 500ms", acts.Advance(500), None),
    ("advance 2m", acts.Advance(120_000), None),
    ("advance 90s", acts.Advance(90_000), None),
    ("advance 0ms", acts.Advance(0), None),
    ("skew W +31s", acts.Skew("W", 31_000), None),
    ("skew W -250ms", acts.Skew("W", -250), None),
    ("expire", acts.Expire(), None),
    ("lock", acts.Lock(), None),
    ("unlock", acts.Unlock(), None),
    ("heal", acts.Heal(), None),
    ("drain", acts.Drain(), None),
    ("drain 6", acts.Drain(6), "drain"),
    ("drain 12", acts.Drain(12), None),
    ("provider lose-response charge", acts.Provider("lose-response", "charge"), None),
    ("provider deliver *", acts.Provider("deliver", "*"), None),
    ('provider twice "two words"', acts.Provider("twice", "two words"), None),
    ("free W", acts.Free(("W",)), None),
    ("free W V", acts.Free(("W", "V")), None),
]
ALIVE = "spawn W\nspawn V\n"


@pytest.mark.parametrize(("line", "action", "written"), TABLE, ids=[row[0] for row in TABLE])
def test_the_grammar(line: str, action: Action, written: str | None) -> None:
    assert parse(ALIVE + line)[2:] == (action,)
    assert format_action(action) == (line if written is None else written)


def test_the_table_has_every_action() -> None:
    assert {line.split()[0] for line, _, _ in TABLE} == set(VERBS)
    kinds = {type(action) for _, action, _ in TABLE}
    assert kinds == set(Action.__args__)


def test_comments_blank_lines_and_line_ends() -> None:
    text = "# a story\r\n\r\nspawn A  # the first\rrun A\n   \n#run B\n"
    assert parse(text) == (acts.Spawn("A"), acts.Run("A"))
    assert parse("") == ()


MISTAKES = [
    ("stpo W", "no action is called 'stpo'; did you mean 'stop'?"),
    ("frobnicate", "no action is called 'frobnicate'"),
    ("submit", "'submit' lacks a run's id"),
    ("submit a b", "'submit' is complete before 'b'"),
    ('submit "a', "a run's id is no JSON string"),
    ('submit "a"b', "a run's id is no JSON string"),
    ("submit a\0b", r'a run\'s id is not printable; write it as "a\u0000b"'.replace("\\'", "'")),
    ("run", "'run' lacks a worker"),
    ("run X", "worker 'X' is used before it is spawned"),
    ("run w", "worker 'w' is used before it is spawned"),
    ("run W#1", "'W#1' is no worker's name"),
    ("spawn 1st", "'1st' is no worker's name"),
    ("spawn W", "worker 'W' is there already, since line 1"),
    ("spawn A as", "'spawn A as' lacks a configured name"),
    ("spawn A to", "'spawn A to' lacks a job"),
    ("spawn A under x", "'spawn' is complete before 'under x'"),
    ("duplicate W", "'duplicate W' lacks 'as' and the twin's name"),
    ("duplicate W as V", "worker 'V' is there already, since line 2"),
    ("until W", "'until W' lacks a point"),
    ("until W txn:rollback", "there are txn:begin and txn:commit"),
    ("until W sql:UPDATE", "needs a verb and a table"),
    ("until W effect: before", "needs a name after the colon"),
    ("until W txn:commit #3 after", "'#3 after' is a comment here; write NAME#3 after"),
    ('until W "a" b', "is not a point"),
    ('until W ""', "a point's name is empty"),
    ("advance", "'advance' lacks a duration"),
    ("advance 10", "'10' is no duration; write 500ms, 10s or 2m"),
    ("advance -1s", "'-1s' is no duration"),
    ("advance 1.5s", "'1.5s' is no duration"),
    ("skew W", "'skew W' lacks a skew"),
    ("skew W 31s", "'31s' is no skew; write +31s (ahead) or -31s (behind)"),
    ("expire W", "'expire' is complete before 'W'"),
    ("provider", "'provider' lacks a fault: lose-response"),
    ("provider lose-respons x", "no fault 'lose-respons'; did you mean 'lose-response'?"),
    ("provider fail", "'provider fail' lacks an effect's name"),
    ("free", "'free' lacks a worker"),
    ("free W W", "worker 'W' can't race itself"),
    ("drain 0", "'0' is no number of workers"),
    ("drain all", "'all' is no number of workers"),
]


@pytest.mark.parametrize(("line", "text"), MISTAKES, ids=[repr(row[0]) for row in MISTAKES])
def test_a_mistake_is_told_with_its_line(line: str, text: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(ALIVE + "# a comment\n" + line)
    (problem,) = caught.value.problems
    assert problem.where == "line 4"
    assert text in problem.what


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ScriptError) as caught:
        parse("spawn A\nrnu A\nfree A B C\n\nadvance soon\nrun A\n")
    found = [(problem.where, problem.what.split(" is ")[0]) for problem in caught.value.problems]
    assert found == [
        ("line 2", "no action"),
        ("line 3", "worker 'B'"),
        ("line 3", "worker 'C'"),
        ("line 5", "'soon'"),
    ]


def test_a_worker_whose_own_line_is_wrong_is_not_missed_later() -> None:
    with pytest.raises(ScriptError) as caught:
        parse("spawn A twice\nrun A\n")
    assert [problem.where for problem in caught.value.problems] == ["line 1"]


# Anything that Python calls text: blanks, quotes, NUL, lone surrogates, astral characters.
ANY_TEXT = st.text(st.characters()) | st.text(st.sampled_from(' "#\\\n\r\0a\ud800\udc00\u2028😀'))
WORKERS = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,3}", fullmatch=True)
POINTS = st.builds(
    Pattern,
    ANY_TEXT.filter(bool) | st.sampled_from(["sql:update jobs", "txn:x", "a after", "x  y", '"']),
    st.none() | st.integers(1, 10**9),
    st.sampled_from(["before", "after"]),
)
DURATIONS = st.integers(0, 10**12)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    *(st.builds(kind, ANY_TEXT) for kind in (acts.Submit, acts.Cancel, acts.Approve)),
    st.builds(acts.Spawn, WORKERS, st.none() | ANY_TEXT, ANY_TEXT | st.just("work")),
    st.builds(acts.Duplicate, st.just("W"), WORKERS),
    *(
        st.builds(kind, st.just("W"))
        for kind in (acts.Run, acts.Beat, acts.Stop, acts.Cont, acts.Kill, acts.Restart)
    ),
    *(st.builds(kind, st.just("W"), POINTS) for kind in (acts.Until, acts.Hold)),
    *(st.builds(kind) for kind in (acts.Expire, acts.Lock, acts.Unlock, acts.Heal)),
    st.builds(acts.Advance, DURATIONS),
    st.builds(acts.Skew, st.just("W"), st.integers(-(10**12), 10**12)),
    st.builds(acts.Provider, st.sampled_from(acts.PROVIDER_FAULTS), ANY_TEXT),
    st.builds(acts.Free, st.just(("W", "V")) | st.just(("V",))),
    st.builds(acts.Drain, st.integers(1, 10**8)),
)


@given(action=ACTIONS)
def test_text_and_action_are_the_same_thing(action: Action) -> None:
    if getattr(action, "twin", None) in ("W", "V"):
        return
    if isinstance(action, acts.Spawn) and action.worker in ("W", "V"):
        return
    script = Script((acts.Spawn("W"), acts.Spawn("V"), action))
    assert parse_script(str(script)) == script


LINES = st.lists(
    st.lists(
        st.sampled_from([*VERBS, "A", "B", "as", "to", '"', "#", "10s", "+1s", "txn:commit#2"])
        | ANY_TEXT,
        max_size=5,
    ).map(" ".join),
    max_size=5,
).map("\n".join)


@given(text=LINES | ANY_TEXT)
def test_any_text_is_a_script_or_a_script_error(text: str) -> None:
    try:
        script = parse_script(text)
    except ScriptError as error:
        wheres = [problem.where for problem in error.problems]
    else:
        assert parse_script(str(script)) == script
        return
    assert wheres
    assert all(where.startswith("line ") for where in wheres)


def test_a_points_phase_is_no_part_of_its_name() -> None:
    assert parse_pattern("effect:charge after") == Pattern("effect:charge", None, "after")
    assert parse_pattern("effect:charge").matches("effect:charge", ordinal=4, phase="before")


@pytest.mark.parametrize("run_id", ["\ud800\udc00", "\ud83d\ud83d\ude00\ude00", "\U000e0001\udc00"])
def test_lone_halves_side_by_side_stay_two(run_id: str) -> None:
    script = Script((acts.Submit(run_id), acts.Submit("\U00010000")))
    assert parse_script(str(script)) == script
