"""Shrinking a script, and writing it as Python: what is left is what matters."""

from types import SimpleNamespace
from typing import get_args

import pytest

from pytest_leasecheck.testkit import script as acts
from pytest_leasecheck.testkit.families import PointMap
from pytest_leasecheck.testkit.history import Acted, ClockMoved, Header, History, Settled
from pytest_leasecheck.testkit.points import parse_pattern
from pytest_leasecheck.testkit.possible import Standing, standings, steps_of, targets
from pytest_leasecheck.testkit.python_text import as_python
from pytest_leasecheck.testkit.script import Script, parse_script
from pytest_leasecheck.testkit.shrinking import MOST_TRIALS, shrink

LONG = """
submit run-1
spawn A
spawn B
advance 15s
beat B
until A effect:charge#1 before
lock
unlock
expire
spawn C
restart B
until C txn:commit#1 after
run A
stop B
heal
drain
"""


def has(script: Script, *lines: str) -> bool:
    """Whether these lines are in it, in this order."""
    told = iter(str(script).splitlines())
    return all(any(line.startswith(wanted) for line in told) for wanted in lines)


def test_what_does_not_matter_is_left_out_and_workers_are_named_in_order() -> None:
    shrunk = shrink(
        parse_script(LONG),
        lambda script: (
            sum(isinstance(one, acts.Spawn) for one in script.actions) >= 2
            and has(script, "until", "expire", "run")
        ),
    )
    assert str(shrunk.script).splitlines() == [
        "spawn A", "spawn B", "until A effect:charge before", "expire", "run A", "heal", "drain",
    ]  # fmt: skip
    assert 0 < shrunk.trials <= MOST_TRIALS
    assert not shrunk.ended


@pytest.mark.parametrize(
    "pair",
    [
        ("lock", "unlock"),
        ("stop A", "cont A"),
        ("spawn C", "run C"),
        ("duplicate A as D", "kill D"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("between", ["expire", "spawn B\nexpire\nrun B"])
def test_what_can_only_be_left_out_together_is(pair: tuple[str, str], between: str) -> None:
    first, last = pair
    script = parse_script(
        f"submit run-1\nspawn A\nuntil A txn:commit\n{first}\n{between}\n{last}\nheal\ndrain"
    )

    def fails(tried: Script) -> bool:
        """Neither is possible without the other."""
        lines = str(tried).splitlines()
        whole = has(tried, "submit", "spawn A", "until A", *between.splitlines())
        return whole and (first in lines) == (last in lines)

    small = shrink(script, fails).script
    assert first not in str(small).splitlines()
    assert last not in str(small).splitlines()


def test_end_that_heals_and_drains_is_kept() -> None:
    small = shrink(parse_script(LONG), lambda script: True).script
    assert str(small) == "heal\ndrain\n"


def test_script_that_needs_all_of_it_is_left_as_it_is() -> None:
    script = parse_script("submit r1\nspawn A\nrun A\nheal\ndrain\n")
    assert shrink(script, lambda tried: tried == script).script == script


def test_trials_are_bounded_and_never_repeated() -> None:
    tried: list[Script] = []

    def fails(script: Script) -> bool:
        tried.append(script)
        return len(script.actions) > 10

    assert shrink(parse_script(LONG), fails, most=9).ended
    assert len(tried) == 9
    assert len(set(tried)) == 9


def test_shrinking_ends_where_its_time_does() -> None:
    tried: list[Script] = []

    def fails(script: Script) -> bool:
        tried.append(script)
        return True

    shrunk = shrink(parse_script(LONG), fails, enough=lambda: len(tried) == 2)
    assert shrunk.ended
    assert shrunk.trials == 2
    assert shrunk.script == tried[-1]


def test_nothing_that_can_not_be_written_down_is_tried() -> None:
    def fails(script: Script) -> bool:
        assert parse_script(str(script)) == script
        return "run A" in str(script)

    small = shrink(parse_script(LONG), fails).script
    assert str(small) == "spawn A\nrun A\nheal\ndrain\n"


EVERYTHING = """
submit r1
cancel r1
approve r1
spawn A as boss to reap
spawn my-worker
duplicate A as B
run A
until A effect:charge#1 before
hold A txn:begin before
beat A
stop A
cont A
kill A
restart A
expire
advance 10s
skew A -31s
lock
unlock
provider fail charge
free A B
heal
drain
drain 3
"""


def test_python_of_every_action_does_what_its_text_does() -> None:
    script = parse_script(EVERYTHING)
    verbs = {type(one) for one in script.actions}
    assert verbs == set(get_args(acts.Action))
    done: list[acts.Action] = []
    scope: dict[str, object] = {}
    exec(compile(as_python(script), "pasted", "exec"), scope)
    scope["test_race"](recording_stage(done))  # type: ignore[operator]
    assert tuple(done) == script.actions


def recording_stage(done: list[acts.Action]) -> object:
    """A real `Stage` on a lane that only notes what it is asked to do."""
    from pytest_leasecheck.testkit.stage import Stage

    def act(action: acts.Action) -> dict[str, str]:
        done.append(action)
        return {}

    return Stage(SimpleNamespace(act=act))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "true"),
    [
        ("held at its start", {"movable", "busy", "held"}),
        (
            "held at txn:begin#3 before; waits 10 s more",
            {"movable", "busy", "timed", "held", "working"},
        ),
        ("held at txn:begin#3 before; stopped", {"stopped"}),
        ("returned", {"movable", "returned"}),
        ("returned; stopped", {"stopped"}),
        ("waits for the write lock", {"movable", "busy", "working"}),
        ("waits for the provider; waits 5 s more", {"busy", "timed", "at_provider", "working"}),
        ("idle in its event loop", {"busy", "working"}),
        ("exit 3", {"over"}),
        ("signal 9", {"over"}),
    ],
)
def test_what_is_possible_is_read_from_where_a_worker_is(state: str, true: set[str]) -> None:
    names = (
        "over", "stopped", "returned", "movable", "held", "busy", "working", "timed", "at_provider"
    )  # fmt: skip
    one = Standing("A", state)
    assert {name for name in names if getattr(one, name)} == true


def test_operators_and_lockers_are_no_workers() -> None:
    states = {"operator": "returned", "A": "returned", "locker": "held at locked before", "B": "x"}
    assert [one.label for one in standings(states)] == ["A", "B"]


def test_dangerous_points_come_first() -> None:
    points = PointMap(
        tuple(
            parse_pattern(text)
            for text in ("sql:SELECT jobs#1 before", "txn:begin#1 before", "mine#1 before",
                         "sql:UPDATE jobs#1 before", "effect:mail#1 after", "effect:mail#1 before")
        )
    )  # fmt: skip
    told = [str(one) for one in targets(points, danger="effect:* before")]
    assert told[:4] == [
        "effect:mail before", "effect:mail after", "txn:begin before", "mine before",
    ]  # fmt: skip


def test_steps_that_changed_nothing_are_counted() -> None:
    events = (
        Acted(1, 0, "expire"), ClockMoved(2, 5, 5, "expire"),
        Acted(3, 5, "run A"), Settled(4, 5, "A#1", "returned"),
        Acted(5, 5, "provider fail *"), Acted(6, 5, "heal"),
    )  # fmt: skip
    assert steps_of(History(Header("Queue", ""), events)) == (4, 1)
