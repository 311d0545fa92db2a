"""An id that there is none of is answered by the few that are like it."""

from pytest_leasecheck.near import nearest, no_such

SWEEP = [
    f"leasecheck/sweep::{fault}[{point}]"
    for fault in ("kill", "stop", "restart")
    for point in ("effect:charge before", "txn:begin#1 before", "txn:commit#2 before")
]


def test_nearest_is_by_what_tells_ids_apart() -> None:
    assert nearest("leasecheck/sweep::kil[txn:commit#2 before]", SWEEP)[0] == SWEEP[2]
    assert all("::stop[" in one for one in nearest("leasecheck/sweep::stop[nonsense]", SWEEP))


def test_many_are_counted_and_not_listed() -> None:
    wanted = "leasecheck/sweep::kill[nonsense]"
    told = no_such(wanted, SWEEP, like=wanted, what="items", where="leasecheck/sweep")
    assert told.startswith(f"there is no {wanted} among 9 items; the nearest are: ")
    assert told.count("leasecheck/sweep::") == 4
    assert told.endswith("`pytest --leasecheck leasecheck/sweep --collect-only -q` lists them all")


def test_few_are_listed() -> None:
    told = no_such("c", ["b", "a"], like="c", what="groups", where="leasecheck")
    assert told == "there is no c; there are: a, b"
    assert no_such("c", [], like="c", what="", where="") == "there is no c; there are: none"
