"""In the lane: something that must not be done in the lane itself is done in a forked child."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Collection

from . import guard, processes, wire


def in_child(
    function: Callable[[], str], *, what: str, deadline_s: float, spare: Collection[int]
) -> str:
    """Run `function` in a forked child and return its text; nothing of the child is left.

    Children in `spare` are not of its making. Raises RuntimeError with its traceback, or what
    became of it, also when it takes longer than `deadline_s`.
    """
    ours, theirs = wire.pair()
    parent_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            guard.die_with_parent(parent_pid)
            line = guard.keep_only(theirs.detach())
            try:
                answer = (True, function())
            except BaseException:
                answer = (False, traceback.format_exc())
            wire.send(line, answer)
        finally:
            os._exit(0)
    theirs.close()
    wire.set_receive_timeout(ours, timeout_s=deadline_s)
    try:
        done, text = wire.receive(ours.fileno())
    except BlockingIOError:
        done, text = False, f"{what} did not come to an end within {deadline_s:g} s"
    except EOFError:
        _pid, status = os.waitpid(pid, 0)
        done, text = False, f"{what} ended its process ({processes.how_it_ended(status)})"
    ours.close()
    guard.kill_children(spare=spare)
    if not done:
        raise RuntimeError(text)
    return str(text)
