"""`python -m tests.honest.many`: random scripts on the true runtime, which must be found faultless.

Each script is a plain random choice of actions over three workers, with points of the runtime's own
map. What is found is either a fault of the runtime, of the engine or of the oracle. With `--skew`
it is measured instead by how much a worker's clock may run ahead before it takes a live lease;
with `--twice` each script is played twice, and the two histories must be identical.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pytest_leasecheck.scenarios.reference_subject import VARIANTS, ReferenceSubject
from pytest_leasecheck.testkit import reference
from pytest_leasecheck.testkit.history import Passed
from pytest_leasecheck.testkit.judge import judge
from pytest_leasecheck.testkit.lane import Lane, LaneOptions, Played
from pytest_leasecheck.testkit.sameness import difference
from pytest_leasecheck.testkit.script import parse_script
from pytest_leasecheck.testkit.verdict import Verdict

from .importing import importable

_FAULTS: Final = ("lose-response", "delay-response", "delay-request", "twice", "fail", "deliver")
_LABELS: Final = ("A", "B", "C")


class _Lenient:
    """An operator's late word is no error."""

    def cancel(self, db: Path, run_id: str) -> None:
        with suppress(reference.RunStateError):  # an end is not rewritten
            super().cancel(db, run_id)  # type: ignore[misc]  # of the subject beside it

    def approve(self, db: Path, run_id: str) -> None:
        with suppress(reference.RunStateError):
            super().approve(db, run_id)  # type: ignore[misc]


class Many(_Lenient, ReferenceSubject):
    """The reference runtime as it is."""


def subject_of(variant: str) -> type[ReferenceSubject]:
    """The reference runtime in one of the set-ups that scenarios ask for by name."""
    module, _, name = VARIANTS[variant].partition(":")
    base = getattr(importlib.import_module(module), name)
    return type(name, (_Lenient, base), {"__module__": __name__})


class Dice:
    """Makes scripts, each from a seed of its own."""

    def __init__(self, points: tuple[str, ...]) -> None:
        self._points: Final = points

    def script(self, seed: str) -> str:
        """One script: faults, then heal and drain."""
        chance = random.Random(seed)
        lines = ["submit r1", *(["submit r2"] if chance.random() < 0.2 else [])]
        state: dict[str, str] = {}
        locked = False
        for _ in range(chance.randint(4, 16)):
            line = self._line(chance, state, locked)
            if line is not None:
                locked = {"lock": True, "unlock": False}.get(line, locked)
                lines += line.split("; ")
        return "\n".join([*lines, "heal", "drain", ""])

    def _line(self, chance: random.Random, state: dict[str, str], locked: bool) -> str | None:
        label = chance.choice(_LABELS)
        now = state.get(label, "none")
        kind = chance.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))[0]
        if kind == "move":
            return self._move(chance, state, label, now)
        if kind == "signal":
            return self._signal(chance, state, label, now)
        if kind == "lock":
            return "unlock" if locked else "lock"
        if kind == "provider":
            return f"provider {chance.choice(_FAULTS)} {chance.choice(('mail', 'charge', '*'))}"
        if kind == "time":
            return chance.choice(
                ("expire", "expire", "advance 1s", "advance 5s", "advance 10s", "advance 31s")
            )
        if kind == "operator":
            return f"{chance.choice(('cancel', 'approve', 'approve'))} r1"
        return None

    def race(self, seed: str) -> str:
        """One script in which all really race: nobody is held, or stopped with the write lock."""
        chance = random.Random(seed)
        lines = ["submit r1", "submit r2", "submit r3"][: chance.randint(1, 3)]
        lines += ["spawn A", "spawn B", "spawn C"]
        for label in _LABELS:
            if chance.random() < 0.4:
                effect = chance.choice(("charge before", "charge after", "mail before"))
                lines += [f"hold {label} effect:{effect}", f"run {label}"]
                lines += [chance.choice((f"restart {label}", f"kill {label}; restart {label}"))]
        if chance.random() < 0.5:
            lines.append("expire")
        lines += ["free A B C"] * chance.randint(1, 2)
        return "\n".join([*"; ".join(lines).split("; "), "heal", "drain", ""])

    def _move(
        self, chance: random.Random, state: dict[str, str], label: str, now: str
    ) -> str | None:
        if now in ("stopped", "dead"):
            return None
        lines = []
        if now == "none":
            twin = chance.choice(_LABELS)
            alias = f" as {twin}" if twin != label and chance.random() < 0.15 else ""
            lines.append(f"spawn {label}{alias}")
            state[label] = "alive"
        if chance.random() < 0.75 and self._points:  # a runtime that refuses its file has none
            lines.append(f"hold {label} {chance.choice(self._points)}")
        return "; ".join([*lines, f"run {label}"])

    def _signal(
        self, chance: random.Random, state: dict[str, str], label: str, now: str
    ) -> str | None:
        if now == "none":
            return None
        if now == "dead":
            state[label] = "alive"
            return f"restart {label}"
        if now == "stopped":
            kind = chance.choice(("cont", "cont", "kill"))
        else:
            kind = chance.choice(("stop", "stop", "kill", "restart"))
        state[label] = {"stop": "stopped", "kill": "dead"}.get(kind, "alive")
        return f"{kind} {label}"


_WEIGHTS: Final = {
    "move": 9, "signal": 5, "time": 4, "provider": 2, "operator": 1, "lock": 1,
}  # fmt: skip


def points_of(lane: Lane) -> tuple[str, ...]:
    """The runtime's map: every point of a plain run and of a recovery, with each phase."""
    found: dict[str, None] = {}
    for text in (
        "submit r1\nspawn A\nrun A\n",
        "submit r1\nspawn A\nuntil A effect:mail after\nkill A\nexpire\nspawn B\nrun B\n",
    ):
        played = lane.play(parse_script(text), name="map")
        for event in played.history.events:
            if isinstance(event, Passed) and event.point != "start":
                found[f"{event.point}#{event.ordinal} {event.phase}"] = None
                found[f"{event.point} {event.phase}"] = None
    return tuple(found)


def verdict_of(played: Played) -> Verdict:
    """The verdict on what was played; liveness only where it came to its end."""
    return judge(played.history, drained=played.error is None)


def play_many(lane: Lane, *, scripts: int, seed: int) -> Iterator[tuple[str, Played, Verdict]]:
    """Play and judge that many scripts."""
    dice = Dice(points_of(lane))
    for number in range(scripts):
        text = (dice.race if number % 20 == 19 else dice.script)(f"{seed}/{number}")
        played = lane.play(parse_script(text), name="many")
        yield text, played, verdict_of(played)


def borne_ms(lane: Lane) -> int:
    """By how many ms another's clock may run ahead before it takes a lease that is held live."""
    low, high = 0, lane.subject.lease_ttl_ms + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _is_taken(lane, middle):
            high = middle
        else:
            low = middle
    return low


def _is_taken(lane: Lane, skew_ms: int) -> bool:
    """Whether a rival that looks every twentieth of a TTL gets the run from its live owner."""
    step = lane.subject.lease_ttl_ms // 20
    lines = ["submit r1", "spawn A", "until A effect:mail before"]
    lines += ["spawn B", f"skew B +{skew_ms}ms"]
    for _ in range(25):
        lines += [f"advance {step - 1}ms", "run B", "advance 1ms", "run B"]
    verdict = judge(lane.play(parse_script("\n".join(lines)), name="skew").history, drained=False)
    return any(one.who == "B#1" for one in verdict.tenures)


def main(arguments: list[str] | None = None) -> int:
    """Play, print progress and findings; 1 when there was a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.honest.many", description=__doc__)
    parser.add_argument("--scripts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--workers", choices=("warm", "fresh"), default="warm")
    parser.add_argument("--variant", choices=sorted(VARIANTS), help="in another set-up")
    parser.add_argument("--skew", action="store_true", help="measure the skew that is borne")
    parser.add_argument("--twice", action="store_true", help="compare two plays of each script")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    with tempfile.TemporaryDirectory() as folder, importable():
        # Those who run it twice at once give it two seeds.
        lane_options = LaneOptions(
            folder=Path(folder), workers=options.workers, number=options.seed
        )
        played = subject_of(options.variant) if options.variant else f"{__package__}.many:Many"
        with Lane(played, options=lane_options) as lane:
            if options.skew:
                bound = reference.skew_borne_ms(lane.subject.lease_ttl_ms)
                print(f"measured {borne_ms(lane)} ms, stated {bound} ms")
                return 0
            report = _twice if options.twice else _report
            return report(lane, scripts=options.scripts, seed=seed)


def _twice(lane: Lane, *, scripts: int, seed: int) -> int:
    """Play each script twice; 1 when the histories of one differ in anything but process ids."""
    print(f"{scripts} scripts twice, seed {seed}", flush=True)
    differing = 0
    dice = Dice(points_of(lane))
    for number in range(scripts):
        text = dice.script(f"{seed}/{number}")
        first, second = (lane.play(parse_script(text), name="many").history for _ in range(2))
        found = difference(first, second)
        if found is not None:
            differing += 1
            print(f"--- script {seed}/{number}\n{text}  {found}", flush=True)
        if (number + 1) % 100 == 0 or number + 1 == scripts:
            print(f"{number + 1} scripts, {differing} played differently", flush=True)
    return int(differing > 0)


def _report(lane: Lane, *, scripts: int, seed: int) -> int:
    print(f"{scripts} scripts, seed {seed}", flush=True)
    faulty = 0
    seen: Counter[str] = Counter()
    began = time.perf_counter()
    for number, (text, played, verdict) in enumerate(
        play_many(lane, scripts=scripts, seed=seed), start=1
    ):
        seen.update(_tallied(played, verdict))
        faults = [one for one in verdict.findings if one.severity == "fault"]
        unsettled = played.error is not None and "Unsettled" in type(played.error).__name__
        if faults or unsettled or verdict.missing:
            faulty += 1
            print(f"--- script {seed}/{number - 1}\n{text}", end="")
            for finding in faults:
                print(f"  {finding.invariant} {finding.title}: {finding.text}")
            error = str(played.error or "").partition("\n")[0]
            print(f"  {verdict.missing or ''} {error}", flush=True)
        if number % 100 == 0 or number == scripts:
            rate = f"{number / (time.perf_counter() - began):.1f}/s"
            print(f"{number} scripts, {faulty} with a finding, {rate}; {dict(seen)}", flush=True)
    return int(faulty > 0)


def _tallied(played: Played, verdict: Verdict) -> dict[str, Any]:
    """What happened, so that a clean report is not an empty one."""
    counts = verdict.counts
    return {
        "stale attempts": counts.stale_attempts,
        "interruptions": counts.interruptions,
        "reconciliations": counts.reconciliations,
        "effects": counts.effects,
        "notes": len(verdict.findings),
        "errors": int(played.error is not None),
    }


if __name__ == "__main__":
    sys.exit(main())
