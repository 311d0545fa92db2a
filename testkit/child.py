"""In the lane: something that must not be done in the lane itself is done in a forked child."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Collection
from typing import Final

from . import guard, measured, processes, wire
from .blame import from_wire, to_wire
from .errors import LeasecheckError, SubjectFailed

_ALONE: Final = "; do the same outside of the kit, and see why"


def in_child(
    function: Callable[[], str], *, what: str, deadline_s: float, spare: Collection[int] = ()
) -> str:
    """Run `function` in a forked child and return its text; nothing of the child is left.

    Children in `spare` are not of its making. What it raises of the kit's own errors is raised
    here; `SubjectFailed` when it ends its process, or takes longer than `deadline_s`;
    RuntimeError, with a traceback, for a fault of the kit.
    """
    ours, theirs = wire.pair()
    parent_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            guard.die_with_parent(parent_pid)
            line = guard.keep_only(theirs.detach())
            try:
                answer: tuple[str, object] = ("done", function())
            except LeasecheckError as error:
                answer = ("refused", to_wire(error))
            except BaseException:
                answer = ("broken", traceback.format_exc())
            measured.save()  # the answer is the end of it: what is still there then is killed
            wire.send(line, answer)
        finally:
            os._exit(0)
    theirs.close()
    wire.set_receive_timeout(ours, timeout_s=deadline_s)
    try:
        how, told = wire.receive(ours.fileno())
    except BlockingIOError:
        text = f"{what} did not come to an end within {deadline_s:g} s{_ALONE}"
        how, told = "refused", to_wire(SubjectFailed(text, hung=True))
    except EOFError:
        _pid, status = os.waitpid(pid, 0)
        text = f"{what} ended its process ({processes.how_it_ended(status)}){_ALONE}"
        how, told = "refused", to_wire(SubjectFailed(text))
    ours.close()
    guard.kill_children(spare=spare)
    if how == "refused":
        raise from_wire(told)
    if how != "done":
        raise RuntimeError(told)
    return str(told)
