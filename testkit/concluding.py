"""How a search by examples ends: with a failure, with a subject that is unsteady, or with neither.

Needs no Hypothesis: what runs the examples is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .found import Explored, Nondeterministic, RaceFound, Tally

if TYPE_CHECKING:
    from .exploring import Explorer

#: A subject that parts from itself so often is given up as unsteady.
_MOST_PARTINGS: Final = 5


def explored(
    machine: type[Explorer],
    run: Callable[[int, int], None],
    *,
    scripts: int,
    seed: int,
    flaky: type[Exception],
) -> Explored:
    """Run examples of a machine until one fails. `run` takes a seed and how many are left.

    `flaky` is what it raises where the same choices led to different states.
    """
    found, unsteady = None, ""
    for again in range(_MOST_PARTINGS):
        left = scripts - machine.tally().scripts
        if left <= 0:
            break
        try:
            run(seed + again, left)
        except RaceFound as race:
            found, unsteady = race.judged, ""
        except Nondeterministic as other:
            unsteady = str(other)
        except flaky as parted:
            # Hypothesis can't go on from states that differ; we can, with another seed.
            unsteady = f"the same choices led to different states: {parted}"
            continue
        else:
            unsteady = ""
        break
    tally = machine.tally()
    missing = "" if found is not None or unsteady else missing_in(tally)
    return Explored(tally, seed, found, unsteady, missing)


def missing_in(tally: Tally) -> str:
    """Why a search that found nothing proves nothing; empty when it does.

    No vacuous pass: a stale attempt was made in it, or a step was interrupted.
    """
    missing = sorted(tally.unseen)
    if not tally.stale_attempts and not tally.interruptions:
        scripts = "1 script" if tally.scripts == 1 else f"{tally.scripts} scripts"
        missing.append(
            f"in {scripts} no stale attempt was made, and no step was interrupted; more scripts, or"
            " longer ones, may come to it"
        )
    return f"inconclusive, so nothing is proven: {'; '.join(missing)}" if missing else ""
