"""The verdict does not depend on how a script was played: on the process, the clock, the eyes."""

import pytest

from .agreeing import SCENARIOS, TINY, Brisk, BriskLeases, Player

#: Ways to play, each compared with fresh workers, virtual time and a look after every commit.
WAYS = {
    "warm": {"workers": "warm"},
    "wall": {"clock": "wall"},
    "without hooks": {"hooks": False},
    "without hooks on the wall": {"hooks": False, "clock": "wall"},
}
#: Without hooks a commit has no points, and a statement is not seen.
BLIND = {"without hooks", "without hooks on the wall"}
#: What ends with `run A` and `run B`, and has the same verdict when both go at once.
RACED = [one for one in SCENARIOS if "run A\n            run B\n" in one.script]
TAKEN = [one for one in TINY if "run A; run B" in one.text]


@pytest.fixture(scope="module", params=["plain", *WAYS])
def way(request):
    return request.param


@pytest.fixture(scope="module")
def players(way, tmp_path_factory):
    logs = tmp_path_factory.mktemp("logs")
    options = WAYS.get(way, {})
    made = [Player(subject, logs, **options) for subject in (Brisk, BriskLeases)]
    yield made
    for player in made:
        player.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_reference_passes_either_way(players, way, scenario):
    said = players[0].scenario(scenario)
    assert said.error == ""
    assert said.faults == frozenset()
    if way not in BLIND:
        assert said.missing == ()


@pytest.mark.parametrize("case", TINY, ids=lambda one: one.name.replace(" ", "_"))
def test_honest_program_passes_either_way(players, way, case):
    said = players[1].case(case, guilty=False)
    assert said.error == ""
    assert said.faults == frozenset()
    if way not in BLIND:
        assert said.missing == ()


@pytest.mark.parametrize("case", TINY, ids=lambda one: one.name.replace(" ", "_"))
def test_twin_is_caught_either_way(players, way, case):
    said = players[1].case(case, guilty=True)
    assert said.error == ""
    assert said.outcome == "fail"
    assert case.culprit in {culprit for _invariant, _title, culprit in said.faults}
    if way not in BLIND:  # where a claim and its end are seen at once, another fault is told
        assert (case.invariant, case.title, case.culprit) in said.faults


@pytest.fixture(scope="module")
def racers(tmp_path_factory):
    logs = tmp_path_factory.mktemp("racing")
    made = [Player(Brisk, logs), Player(BriskLeases, logs)]
    yield made
    for player in made:
        player.close()


@pytest.mark.parametrize("scenario", RACED, ids=lambda one: one.name)
def test_reference_passes_when_its_workers_race(racers, scenario):
    for _ in range(3):
        said = racers[0].scenario(scenario, free=True)
        assert said.error == ""
        assert said.outcome == "pass"


@pytest.mark.parametrize("case", TAKEN, ids=lambda one: one.name.replace(" ", "_"))
@pytest.mark.parametrize("guilty", [False, True], ids=["honest", "twin"])
def test_tiny_queue_gets_the_same_verdict_when_its_workers_race(racers, case, guilty):
    for _ in range(3):
        said = racers[1].case(case, guilty=guilty, free=True)
        assert said.error == ""
        assert bool(said.faults) == guilty
        if guilty:
            assert (case.invariant, case.title, case.culprit) in said.faults
            assert {culprit for _invariant, _title, culprit in said.faults} == {case.culprit}
