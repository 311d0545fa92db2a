"""Every honest case with its twin."""

from __future__ import annotations

from typing import Final

from .model import Honest

_LEASES: Final = "programs_leases:Leases"
_RICH: Final = "programs_tables:Rich"
_STALE: Final = ("V1", "a stale write landed")


def _taken(job: str, *, more: str = "", other: str = "") -> str:
    """A is held at work and loses its lease to B; then A goes on, and B after it."""
    return (
        f"submit a; spawn A to {job}; until A working; expire; {more} spawn B{other};"
        " until B working; run A; run B; drain"
    )


LEASES: Final = (
    Honest(
        "crosses its expiry",
        "a commit that crosses its expiry between guard and COMMIT",
        _LEASES,
        "submit a; spawn A to crosses_expiry; until A txn:commit#2 before; expire; run A; drain",
        ("lapse", "woke past expiry by A"),
        "writes again, without its guard",
        "V7", "a late write",
        notes=("lapsed in the gap",),
    ),
    Honest(
        "renewal with its time bound",
        "a renewal held with its time already bound",
        _LEASES,
        "submit a; spawn A to bound_before; until A claimed; advance 10s;"
        " until A sql:UPDATE jobs#2 before; expire; run A; drain",
        ("lapse", "renewal by A", "finish by A"),
        "takes the time when it writes, and compares it with nothing",
        "V6", "an expired lease was renewed",
        notes=("lapsed in the gap",),
    ),
    Honest(
        "owner cleared, then done",
        "`owner = NULL`, then `status = 'done'`, in one transaction",
        _LEASES,
        "submit a; spawn A to clears_then_ends; until A sql:UPDATE jobs#3 before;"
        " spawn B; hold B working; run B; run A; run B; drain",
        ("finish by A",),
        "each is a transaction of its own",
        *_STALE,
    ),
    Honest(
        "done, then owner cleared",
        "`status = 'done'`, then `owner = NULL`, in one transaction",
        _LEASES,
        "submit a; spawn A to ends_then_clears; until A sql:UPDATE jobs#3 before;"
        " spawn B; run B; run A; run B; drain",
        ("finish by A",),
        "each is a transaction of its own",
        "V5", "a lease outlived its run's end",
    ),
    Honest(
        "former owner, same process",
        "a take-over of an expired lease by its former owner, in the same process",
        _LEASES,
        "submit a; spawn A to comes_back; run A; expire; run A; drain",
        ("lapse", "take-over by A"),
        "extends its expired lease and takes no new token",
        "V6", "an expired lease was renewed",
    ),
    Honest(
        "claims and finishes at once",
        "a former owner that claims, works and finishes in one transaction",
        _LEASES,
        "submit a; spawn A to at_once; run A; expire; run A; drain",
        ("lapse", "take-over by A", "finish by A"),
        "goes on under its expired lease, and takes no new token",
        "V7", "a late write",
    ),
    Honest(
        "former owner, new process",
        "a take-over of an expired lease by its former owner's name, in another process",
        _LEASES,
        "submit a; spawn A to restarted; until A working; kill A; restart A; run A; expire; run A;"
        " drain",
        ("killed", "restarted", "take-over by A#2"),
        "takes what is in its own name, expired or not",
        "V7", "a live lease was taken", "A#2",
    ),
    Honest(
        "past holder as janitor",
        "a past holder who is also the janitor",
        _LEASES,
        "submit a; spawn A to janitor_too; run A; spawn B; until B working; run A; expire; run A;"
        " run B; drain",
        ("release by A", "reap by A", "stale attempt by B"),
        "sweeps live leases too",
        *_STALE,
    ),
    Honest(
        "reaper requeues",
        "a reaper that requeues",
        _LEASES,
        "submit a; spawn A to works_slowly; until A working; spawn J to reap; run J; expire; run J;"
        " spawn B; until B working; run A; run B; drain",
        ("reap by J", "take-over by B", "stale attempt by A"),
        "sweeps live leases too",
        "V7", "a lease was released by another", "J#1",
    ),
    Honest(
        "operator edits and cancels",
        "an operator who edits and cancels, and the late outcome after it",
        "programs_leases:LateOutcomes",
        "submit a; spawn A to was_cancelled; until A effect:send after; approve a; cancel a; run A;"
        " drain",
        ("cancel", "effect"),
        "finishes what was cancelled",
        "V3", "a finished run was changed",
    ),
    Honest(
        "reads and gives up",
        "a worker that re-reads and gives up",
        _LEASES,
        _taken("looks_again"),
        ("take-over by B", "stale attempt that gave up by A"),
        "does not look",
        *_STALE,
    ),
    Honest(
        "renews and writes at once",
        "a step renewed and written in one transaction",
        _LEASES,
        "submit a; spawn A to renews_and_writes; until A two; advance 20s; until A three; expire;"
        " run A; drain",
        ("renewal by A", "lapse"),
        "compares no expiry",
        "V6", "an expired lease was renewed",
    ),
    Honest(
        "changes nothing",
        "an update that sets what is there, after its lease was taken over",
        _LEASES,
        _taken("changes_nothing"),
        ("take-over by B", "stale write attempt by A"),
        "sets something else",
        *_STALE,
    ),
    Honest(
        "there and back",
        "A to B to A in one commit, after its lease was taken over",
        _LEASES,
        _taken("there_and_back"),
        ("take-over by B", "stale write attempt by A"),
        "does not go back",
        *_STALE,
    ),
    Honest(
        "done as done",
        "done rewritten as done, by one who had lost the job",
        _LEASES,
        "submit a; spawn A to done_as_done; until A working; expire; spawn B; run B; run A; drain",
        ("take-over by B", "stale write attempt by A"),
        "rewrites it as failed",
        "V3", "a finished run was changed",
    ),
    Honest(
        "two drivers",
        "two drivers in one process, the second of which takes over from the first",
        _LEASES,
        "submit a; spawn A to two_drivers; until A between; expire; run A; drain",
        ("take-over by A", "stale attempt by A"),
        "the first stores its result with no guard",
        *_STALE,
    ),
    Honest(
        "starved heartbeat",
        "a heartbeat that finds the database locked by another's transaction, a lease long",
        "programs_beats:Beats",
        "submit a; submit b; spawn A to is_busy; until A working; spawn B to counts;"
        " hold B counting; run B; advance 31s; run B; run A; drain",
        ("lapse", "take-over"),
        "keeps its own transaction open while it works",
        "V7", "a live owner lost its lease",
    ),
)  # fmt: skip

_POLLS: Final = "programs_polls:Polls"
_LOCKS: Final = "programs_polls:Locks"
POLLS: Final = (
    Honest(
        "poll buries",
        "a worker that lost its job, and whose next poll gives up what has expired too often",
        _POLLS,
        "submit a; spawn A to buries; until A working; expire; spawn B; until B working; kill B;"
        " expire; run A; drain",
        ("take-over by B", "stale attempt by A", "reap by A"),
        "gives up what is live, too",
        *_STALE,
        other="submit a; spawn A to buries; until A working; expire; spawn B; until B working;"
        " run A; run B; drain",
    ),
    Honest(
        "poll reads, then buries",
        "a worker that lost its job, and whose next poll reads what has expired and gives it up by"
        " name, in one transaction",
        _POLLS,
        "submit a; spawn A to reads_then_buries; until A working; expire; spawn B; until B working;"
        " kill B; expire; run A; drain",
        ("take-over by B", "stale attempt by A", "reap by A"),
        "reads before its transaction has begun",
        *_STALE,
    ),
    Honest(
        "poll ages",
        "a worker that lost its job, and whose next poll marks what waits",
        _POLLS,
        "submit a; spawn A to ages; until A working; expire; spawn J to reap; run J; run A; drain",
        ("reap by J", "stale attempt by A"),
        "marks the job that it takes for its own",
        *_STALE,
    ),
    Honest(
        "poll clears away",
        "a worker that lost its job, and whose next poll deletes what others have finished",
        _POLLS,
        "submit a; spawn A to clears; until A working; expire; spawn B; run B; run A; drain",
        ("take-over by B", "finish by B", "stale attempt by A"),
        "deletes the job that it takes for its own",
        *_STALE,
    ),
    Honest(
        "remembers its answer",
        "a former owner that claims again, and stores what it was answered before",
        _POLLS,
        "submit a; spawn A to remembers; until A working; expire; run A; drain",
        ("lapse", "take-over by A", "finish by A"),
        "asks anew, and stores the old answer",
        *_STALE,
    ),
    Honest(
        "dispatcher",
        "a dispatcher that claims jobs in the name of others, who only find what is theirs",
        _POLLS,
        "submit a; spawn P to assigns; run P; spawn A to is_given; until A working; expire;"
        " spawn Q to assigns; run Q; spawn B to is_given; run A; run B; drain",
        ("take-over by Q", "stale attempt by A", "finish by B"),
        "finishes what was given to another meanwhile",
        *_STALE,
    ),
    Honest(
        "hands over",
        "a holder that gives its live lease to another by name",
        _POLLS,
        "submit a; spawn A to hands_over; until A given; spawn B to is_given; until B working;"
        " run A; run B; drain",
        ("stale attempt by A", "finish by B"),
        "writes when it has given it",
        *_STALE,
    ),
    Honest(
        "unlocks by the time",
        "a lock that is given back by ending its time; its row and name stay",
        _LOCKS,
        "submit a; spawn A to unlocks; run A; drain",
        ("finish by A",),
        "leaves its lock",
        "V5", "a lease outlived its run's end",
    ),
    Honest(
        "locks then looks",
        "a lock on a job that is done, taken to see that, and given back",
        _LOCKS,
        "submit a; spawn A to locks_then_looks; until A found; spawn B; run B; run A; drain",
        ("finish by B",),
        "does not look, and does it again",
        "V5", "a lease outlived its run's end",
    ),
    Honest(
        "claimed by moving",
        "a job whose row moves from one table into another at its claim, and back",
        "programs_polls:Moving",
        "submit a; spawn A; until A working; expire; spawn B; until B working; run A; run B; drain",
        ("take-over by B", "stale attempt by A", "finish by B"),
        "stores its result with no guard",
        *_STALE,
    ),
    Honest(
        "nothing but a time",
        "a lease that is nothing but its time, renewed by moving it",
        "programs_polls:Timed",
        "submit a; spawn A; until A working; expire; spawn B; until B working; run A; run B; drain",
        ("renewal by B", "take-over by B", "stale attempt by A"),
        "compares no time",
        *_STALE,
    ),
    Honest(
        "wakes who waits",
        "a worker that lost its job, ends another, and wakes the first, which waits for that",
        "programs_polls:Waking",
        "submit a; spawn A to wakes; until A working; expire; spawn B to waits; run B; run A;"
        " drain",
        ("take-over by B", "stale attempt by A"),
        "wakes it in any case, as if it had it",
        *_STALE,
    ),
    Honest(
        "relays for others",
        "a worker that lost its job, and whose next poll sends what others have stored",
        "programs_polls:Relaying",
        "submit a; spawn A; until A working; expire; spawn B; until B ended; run A; run B; drain",
        ("take-over by B", "stale attempt by A"),
        "stores its own word as well",
        *_STALE,
    ),
)  # fmt: skip

STEPS: Final = (
    Honest(
        "idempotent provider",
        "requests at least once, and a provider that carries out each key once",
        "programs_steps:Idempotent",
        "submit a; spawn A; until A effect:send after; kill A; expire; spawn B; run B; drain",
        ("killed", "take-over by B", "effect replayed by B"),
        "asks without a key",
        "V4", "the effect ran twice", "B#1",
    ),
    Honest(
        "recovery killed, decided again",
        "a retry whose recovery is killed, before and after its decision",
        "programs_steps:Stepped",
        "submit a; spawn A; until A effect:send after; kill A; expire; spawn B; until B recovering;"
        " kill B; expire; spawn C; until C effect:send before; kill C; expire; drain",
        ("interruption", "reconciliation by C", "killed"),
        "records its decision twice",
        "V4", "an interruption was reconciled twice", "C#1",
    ),
    Honest(
        "finished jobs are deleted",
        "a job's row deleted at its end, its results inserted before",
        "programs_steps:Deleting",
        "submit a; spawn A; until A working; expire; spawn B; run B; run A; drain",
        ("take-over by B", "finish by B", "stale write attempt by A"),
        "inserts its result with no guard",
        *_STALE,
    ),
)  # fmt: skip


def _table(
    name: str, about: str, job: str, twin: str, *, subject: str = _RICH, once: bool = False
) -> Honest:
    """The job of both workers, or with `once` of the first: one loses its lease, one doesn't."""
    requires = ("take-over by B", "stale attempt by A")
    text = _taken(job, other="" if once else f" to {job}")
    return Honest(name, about, subject, text, requires, twin, *_STALE)


_UNGUARDED: Final = "writes with no guard"
TABLES: Final = (
    _table("BLOBs", "results that are bytes", "blobs", _UNGUARDED),
    _table("STRICT and WITHOUT ROWID", "tables of both kinds", "strict_and_packed", _UNGUARDED),
    Honest(
        "triggers",
        "a trigger of their own that logs, in a declared table, what a janitor requeues",
        _RICH,
        _taken("triggers", more="spawn J to reap; run J;"),
        ("reap by J", "take-over by B", "stale attempt by A"),
        _UNGUARDED,
        *_STALE,
    ),
    _table("full text", "an FTS5 table, declared as one of results", "full_text", _UNGUARDED),
    _table("foreign keys", "rows that are deleted with their job", "foreign_keys", _UNGUARDED),
    _table("savepoints", "a write that is rolled back to a savepoint", "savepoints", "keeps it"),
    _table(
        "ATTACH", "a table of a declared name in another file", "attached",
        "writes into the declared one",
    ),
    _table(
        "migration inside a worker", "a past holder migrates the tables of a job that others have",
        "migrates", "requeues what runs, on the way", once=True,
    ),
    _table(
        "VACUUM", "a past holder vacuums, which numbers rows anew", "vacuums", "deletes some first",
        once=True,
    ),
    _table(
        "read-only connection", "a write by a connection that can only read", "reads_only",
        "opens it for writing",
    ),
    _table(
        "temp_store", "a temporary table that hides a declared one", "temporary",
        "writes into the declared one",
    ),
    _table("autocommit", "every statement a transaction of its own", "by_itself", _UNGUARDED),
    _table(
        "DELETE journal, autocommit", "the same with a rollback journal", "by_itself", _UNGUARDED,
        subject="programs_tables:RollbackJournal",
    ),
    _table(
        "DELETE journal, savepoints", "savepoints with a rollback journal", "savepoints",
        "keeps it", subject="programs_tables:RollbackJournal",
    ),
    _table(
        "5,000 others", "five thousand rows of other people's jobs", "among_many",
        "writes into all that is not theirs", subject="programs_tables:Crowd",
    ),
)  # fmt: skip

CASES: Final = (*LEASES, *POLLS, *STEPS, *TABLES)
