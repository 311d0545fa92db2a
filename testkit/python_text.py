"""A script as Python: the calls of the `stage` fixture, for a test to paste."""

from __future__ import annotations

from . import script as acts
from .script import Action, Script


def as_python(script: Script, *, name: str = "test_race") -> str:
    """A test function that does the same on the `stage` fixture."""
    lines = [f"def {name}(stage):"]
    known: dict[str, str] = {}
    for action in script.actions:
        lines.append("    " + _call(action, known))
    return "\n".join(lines) + "\n"


def as_replay(script: Script, *, by: str, name: str = "test_race") -> str:
    """A test function that has a class of one's own play and judge it."""
    text = [f"        {line}" for line in str(script).splitlines()]
    return "\n".join([f"def {name}():", f'    {by}.replay("""', *text, '    """)', ""])


def _call(action: Action, known: dict[str, str]) -> str:
    """One action's line; `known` maps workers to the names of their handles."""
    match action:
        case acts.Submit(run_id) | acts.Cancel(run_id) | acts.Approve(run_id):
            return f"stage.{type(action).__name__.lower()}({run_id!r})"
        case acts.Spawn(worker, owner, job):
            known[worker] = worker.lower().replace("-", "_")
            extra = f", name={owner!r}" if owner is not None else ""
            extra += f", job={job!r}" if job != "work" else ""
            return f"{known[worker]} = stage.spawn({worker!r}{extra})"
        case acts.Duplicate(worker, twin):
            known[twin] = twin.lower().replace("-", "_")
            return f"{known[twin]} = stage.duplicate({worker!r}, {twin!r})"
        case acts.Until(worker, point):
            return f"{known[worker]}.run_until({str(point)!r})"
        case acts.Hold(worker, point):
            return f"{known[worker]}.hold({str(point)!r})"
        case acts.Skew(worker, skew_ms):
            return f"{known[worker]}.skew({skew_ms})"
        case acts.Advance(duration_ms):
            return f"stage.advance({duration_ms})"
        case acts.Provider(fault, effect):
            return f"stage.provider({fault!r}, {effect!r})"
        case acts.Free(workers):
            return f"stage.free({', '.join(map(repr, workers))})"
        case acts.Drain(most):
            return f"stage.drain({most if most != acts.Drain().most else ''})"
        case (
            acts.Run(worker) | acts.Beat(worker) | acts.Stop(worker) | acts.Cont(worker)
            | acts.Kill(worker) | acts.Restart(worker)
        ):  # fmt: skip
            return f"{known[worker]}.{type(action).__name__.lower()}()"
        case _:
            return f"stage.{type(action).__name__.lower()}()"
