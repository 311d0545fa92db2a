"""What to say of an id that there is none of: the few that are nearest, and how to see all."""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final

#: So many are told in any case.
_FEW: Final = 4
_NEAREST: Final = 3


def no_such(wanted: str, known: Collection[str], *, like: str, what: str, where: str) -> str:
    """There is no such id. `like` is what the known ones, which are `what`, are compared with.

    `where`: the argument for which pytest lists them all.
    """
    names = sorted(known)
    if len(names) <= _FEW:
        return f"there is no {wanted}; there are: {', '.join(names) or 'none'}"
    return (
        f"there is no {wanted} among {len(names)} {what}; the nearest are:"
        f" {', '.join(nearest(like, names))}; `pytest --leasecheck {where} --collect-only -q` lists"
        " them all"
    )


def nearest(wanted: str, known: Collection[str]) -> list[str]:
    """The most alike first. What both begin with tells nothing of ids of one group."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(_own(wanted))

    def likeness(name: str) -> float:
        matcher.set_seq1(_own(name))
        return matcher.ratio()

    return nlargest(_NEAREST, known, key=likeness)


def _own(name: str) -> str:
    return name.partition("::")[2] or name
