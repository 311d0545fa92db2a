"""All mutants: each guard taken out, and each kind of fault that real projects had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from .equivalents import EQUIVALENT
from .guards_removed import GUARDS
from .kinds import KINDS
from .model import Mutant, Schedule

MUTANTS: Final[tuple[Mutant, ...]] = (*GUARDS, *KINDS)
#: What puts a mutant's fault into a process, by its name.
FAULTS: Final[Mapping[str, Callable[[], None]]] = {
    one.name: one.apply for one in (*MUTANTS, *EQUIVALENT)
}
SCHEDULES: Final[tuple[Schedule, ...]] = tuple(
    {
        schedule.name: schedule
        for schedule in (
            *(one.schedule for one in MUTANTS),
            *(schedule for one in EQUIVALENT for schedule in one.schedules),
        )
    }.values()
)
