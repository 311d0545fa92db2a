"""The heartbeat: by time and not by step, retried, never starved, and over with its call."""

from __future__ import annotations

from typing import Final

from pytest_leasecheck.testkit.history import History, Passed, Statement
from pytest_leasecheck.testkit.scenario import ALL_INVARIANTS, Scenario
from pytest_leasecheck.testkit.verdict import Finding, Verdict

from .looking import broken, ends, happens, says, writes_nothing


def _beats_of(history: History, worker: str) -> int:
    return sum(
        isinstance(event, Passed)
        and event.who == worker
        and event.point == "heartbeat"
        and event.phase == "before"
        for event in history.events
    )


def _never_more_than_the_ttl(history: History, verdict: Verdict) -> tuple[Finding, ...]:
    """Each renewal sets the expiry to a TTL from then: a dead owner's lease ends in time."""
    found = []
    for event in history.events:
        for change in getattr(event, "changes", ()):
            row = change.new
            if change.table != "runs" or row is None or row["lease_expires_at_ms"] is None:
                continue
            length = int(row["lease_expires_at_ms"]) - int(row["last_renewed_at_ms"])
            if length != 30_000:
                found.append(broken("a lease lasts its TTL", f"{length} ms", at=(event.n,)))
    return tuple(found)


def _one_update_a_beat(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """A renewal is one UPDATE outside any transaction, on a connection that is its own."""
    beats = [
        event for event in history.events
        if isinstance(event, Statement) and event.thread.startswith("lease-heartbeat")
    ]  # fmt: skip
    loop = {
        event.connection for event in history.events
        if isinstance(event, Statement) and event.who == "A#1" and event.thread == "main"
    }  # fmt: skip
    single = len({(one.connection, one.txn) for one in beats}) == len(beats)
    updates = all((one.verb, one.table) == ("UPDATE", "runs") for one in beats)
    if beats and single and updates and loop.isdisjoint(one.connection for one in beats):
        return ()
    text = f"the heartbeat's statements were {[(one.verb, one.table, one.txn) for one in beats]}"
    return (broken("a renewal is one UPDATE", text),)


def _beat_and_held(history: History, _verdict: Verdict) -> tuple[Finding, ...]:
    """The heartbeat did beat in an in-memory store, and on no second connection."""
    beats = _beats_of(history, "A#1")
    connections = {
        event.connection
        for event in history.events
        if isinstance(event, Statement) and event.who == "A#1"
    }
    if beats >= 4 and len(connections) <= 1:
        return ()
    text = f"{beats} beats on {len(connections)} connections"
    return (broken("an in-memory store beats on its only connection", text),)


_LONG: Final = """
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
            advance {half_ttl}
"""


def _ended_by(name: str, job: str, what: str, comes_back: object) -> Scenario:
    """One way in which a call ends: heartbeat over, lease released, the next one needs no wait."""
    return Scenario(
        name=name,
        story=(
            f"A's call {what} while the run is under way. Its heartbeat is over with it and its"
            " lease is released, so B goes on at once, without a TTL having passed."
        ),
        script=f"""
            submit r1
            spawn A to {job}
            until A {{danger}}
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("release by A", "interruption of A", "reconciliation by B", "finish by B"),
        variant="breaking",
        also=(says("A", comes_back), says("B", {"r1": "SUCCEEDED"})),
    )


SCENARIOS: Final = (
    Scenario(
        name="call_longer_than_three_leases",
        story=(
            "A is in one call for three times as long as its lease lasts. It renews by time, not"
            " by step, so B finds the run leased to the end; each renewal sets the expiry to one"
            " TTL from then, and never adds to it."
        ),
        script=f"""
            submit r1
            spawn A
            until A {{danger}}
            {_LONG}
            spawn B
            run B
            run A
            heal
            drain
        """,
        requires=("renewal by A", "refused claim by B", "finish by A"),
        needs=frozenset({"heartbeats"}),
        variant="run lease",
        also=(_never_more_than_the_ttl, _one_update_a_beat, says("B", {"r1": "leased"})),
    ),
    Scenario(
        name="busy_beat_is_retried",
        story=(
            "When A's heartbeat is due, somebody else holds the database's write lock for longer"
            " than a beat waits. The beat fails; the next one succeeds, and the run is still A's."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            lock
            advance 16s
            unlock
            advance 12s
            advance 20s
            spawn B
            run B
            run A
            heal
            drain
        """,
        requires=("lock held", "renewal by A", "refused claim by B", "finish by A"),
        variant="run lease",
        also=(says("A", {"r1": "SUCCEEDED"}),),
    ),
    Scenario(
        name="lost_by_expiry_unrenewed",
        story=(
            "The write lock is held until A's lease has expired: no renewal succeeded. Nobody has"
            " taken the run, and still A has lost it, and starts nothing more."
        ),
        script="""
            submit r1
            spawn A
            until A {danger_after}
            lock
            advance 45s
            unlock
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("lock held", "lapse: A", "woke past expiry: A", "finish by B"),
        variant="run lease",
        also=(says("A", {"r1": "LeaseLost"}),),
    ),
    Scenario(
        name="finds_another_owner",
        story=(
            "A is frozen in a call, B takes the run over. A's heartbeat is the first thing of A's"
            " to run again. It must not win the lease back, and A's loop learns from it."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            stop A
            expire
            spawn B
            until B {danger}
            advance 1s
            cont A
            beat A
            run A
            run B
            heal
            drain
        """,
        requires=("take-over by B", "stale attempt by A", "finish by B"),
        variant="run lease",
        also=(says("A", {"r1": "LeaseLost"}),),
    ),
    Scenario(
        name="delayed_beat_steals_nothing_back",
        story=(
            "A's heartbeat has woken up and is just about to write when A is frozen. B takes the"
            " run over. The beat goes on where it was: its write finds another owner."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            hold A sql:UPDATE runs#3 before
            beat A
            stop A
            expire
            spawn B
            until B {danger}
            cont A
            run A
            run B
            heal
            drain
        """,
        requires=("take-over by B", "stale write attempt by A", "finish by B"),
        variant="run lease",
    ),
    Scenario(
        name="expired_lease_is_not_revived",
        story=(
            "A's heartbeat comes after the expiry; nobody has taken the run. The lease is lost all"
            " the same, and must not be brought back to life."
        ),
        script="""
            submit r1
            spawn A
            until A {danger}
            stop A
            expire
            cont A
            beat A
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("woke past expiry: A", "finish by B"),
        variant="run lease",
        also=(says("A", {"r1": "LeaseLost"}),),
    ),
    Scenario(
        name="held_connection_starves_nobody",
        story=(
            "A consumer's own code holds the store's connection in an open transaction, with rows"
            " not read to the end, for three times a lease's length. The heartbeat has a connection"
            " of its own: B finds the run leased."
        ),
        script=f"""
            submit r1
            spawn A to work_holding
            until A holding
            {_LONG}
            spawn B
            run B
            run A
            heal
            drain
        """,
        requires=("renewal by A", "refused claim by B", "finish by A"),
        variant="holding",
        also=(says("A", {"r1": "SUCCEEDED"}),),
    ),
    Scenario(
        name="held_write_lock_starves",
        story=(
            "The limit of that: an open transaction that has *written* holds SQLite's write lock,"
            " and no connection gets past it. A's lease is lost by expiry; as long as the lock is"
            " held nobody else can take the run either, and afterwards A starts nothing."
        ),
        script="""
            submit r1
            spawn A to work_holding_the_lock
            until A holding
            advance 45s
            run A
            spawn B
            run B
            heal
            drain
        """,
        requires=("lapse: A", "woke past expiry: A", "finish by B"),
        variant="holding",
        holds=tuple(name for name in ALL_INVARIANTS if name != "V7"),
        also=(
            says("A", {"r1": "LeaseLost"}),
            happens(
                "a live owner lost its lease",
                "who holds SQLite's write lock past the TTL starves its own heartbeat",
            ),
        ),
    ),
    Scenario(
        name="in_memory_store_has_one_connection",
        story=(
            "A store in memory is its one connection: no other process can take its runs. The"
            " heartbeat beats there through a call of three leases' length, and opens no second."
        ),
        script=f"""
            spawn A to work_in_memory
            until A holding
            {_LONG}
            run A
        """,
        requires=(),
        variant="holding",
        also=(_beat_and_held, says("A", "SUCCEEDED, 1 connection"), writes_nothing("A")),
    ),
    Scenario(
        name="over_with_its_call",
        story=(
            "A's call returns. No heartbeat of it is left in the process, which lives on; nothing"
            " renews a lease that nobody holds."
        ),
        script="""
            submit r1
            spawn A
            run A
            advance {half_ttl}
            advance {half_ttl}
            heal
            drain
        """,
        requires=("finish by A",),
        variant="breaking",
        also=(says("A", "SUCCEEDED, 0 heartbeats"), ends("SUCCEEDED")),
    ),
    _ended_by("over_with_an_error", "work_and_break", "ends with an exception",
              "RuntimeError, 0 heartbeats"),
    _ended_by("over_with_a_panic", "work_and_exit", "is ended by SystemExit",
              "SystemExit, 0 heartbeats"),
    _ended_by("over_with_a_cancellation", "work_and_interrupt", "is cancelled by Ctrl-C",
              "KeyboardInterrupt, 0 heartbeats"),
)  # fmt: skip
