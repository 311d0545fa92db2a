"""A stage, from a test: the same actions as a script's, one call each.

::

    def test_charges_once(stage):
        stage.submit("r1")
        a = stage.spawn("A")
        a.run_until("effect:charge before")
        a.stop()
        stage.expire()
        stage.spawn("B").run()
        a.cont()
        a.run()

What was done is a script (`stage.script`), and replays as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from . import script as acts
from .errors import TOLD_IN_WORDS, StageError
from .history import History
from .points import parse_pattern
from .script import Action, Script, parse_script

__tracebackhide__ = TOLD_IN_WORDS

if TYPE_CHECKING:
    from .lane import Lane


class Stage:
    """One script's world, open for actions until `close`. Made by `Lane.open_stage`."""

    def __init__(self, lane: Lane) -> None:
        self._lane: Final = lane
        self._actions: list[Action] = []
        self._states: Mapping[str, str] = {}
        self._open = True

    def do(self, what: Action | str) -> None:
        """Perform an action, or the actions of a script's text.

        Raises `StageError` when one can't be done, `NeverReached` when a worker didn't come to
        its point, `ScriptError` for a text that is none.
        """
        actions = parse_script(what).actions if isinstance(what, str) else (what,)
        for action in actions:
            self._actions.append(action)
            try:
                self._states = self._lane.act(action)
            except StageError as error:
                self._states = error.states or self._states
                raise

    def submit(self, run_id: str) -> None:
        """Enqueue one run."""
        self.do(acts.Submit(run_id))

    def cancel(self, run_id: str) -> None:
        """The operator cancels a run."""
        self.do(acts.Cancel(run_id))

    def approve(self, run_id: str) -> None:
        """The operator lets a waiting run go on."""
        self.do(acts.Approve(run_id))

    def spawn(self, worker: str, *, name: str | None = None, job: str = "work") -> WorkerHandle:
        """A new worker, held at its start. `name` is its configured owner name."""
        self.do(acts.Spawn(worker, name, job))
        return WorkerHandle(self, worker)

    def duplicate(self, worker: str, twin: str) -> WorkerHandle:
        """A second live process under the same configured name."""
        self.do(acts.Duplicate(worker, twin))
        return WorkerHandle(self, twin)

    def expire(self) -> None:
        """The clock is set just past every stored expiry; no timer fires."""
        self.do(acts.Expire())

    def advance(self, duration_ms: int) -> None:
        """Time passes; timers fire in the order of their deadlines."""
        self.do(acts.Advance(duration_ms))

    def lock(self) -> None:
        """Somebody else holds the database's write lock."""
        self.do(acts.Lock())

    def unlock(self) -> None:
        """And lets it go."""
        self.do(acts.Unlock())

    def provider(self, fault: str, effect: str = "*") -> None:
        """A fault for the next request of an effect, or `deliver`; see `script.Provider`."""
        self.do(acts.Provider(fault, effect))

    def free(self, *workers: str) -> None:
        """Let workers really race, until each has come to rest."""
        self.do(acts.Free(workers))

    def heal(self) -> None:
        """CONT everyone, clear the provider's faults, let the lock go, let everyone finish."""
        self.do(acts.Heal())

    def drain(self, most: int = 6) -> None:
        """New workers, a TTL at a time, until nothing is left to do."""
        self.do(acts.Drain(most))

    def state(self, worker: str) -> str:
        """Where a worker is, in words: `held at …`, `returned`, `signal 9`."""
        return self._states.get(worker, "not on this stage")

    @property
    def states(self) -> Mapping[str, str]:
        """Where each worker is, by its label, in the order in which they came."""
        return self._states

    @property
    def script(self) -> Script:
        """What was done so far; it replays as it stands."""
        return Script(tuple(self._actions))

    def history(self) -> History:
        """Everything that has happened so far."""
        return self._lane.look(script=str(self.script))

    def close(self) -> History | None:
        """End the stage: nobody of it lives. Returns the whole history, once."""
        if not self._open:
            return None
        self._open = False
        return self._lane.finish_stage(script=str(self.script)).history


class WorkerHandle:
    """One worker label on a stage; after a restart it means the new incarnation."""

    def __init__(self, stage: Stage, worker: str) -> None:
        self._stage: Final = stage
        #: The worker's label in the script.
        self.worker: Final = worker

    def run_until(self, point: str) -> None:
        """Let it go until it is held at `point`. Raises `NeverReached`."""
        self._stage.do(acts.Until(self.worker, parse_pattern(point)))

    def run(self) -> None:
        """Let it go until it returned, exited, or waits for what it can't get by itself."""
        self._stage.do(acts.Run(self.worker))

    def hold(self, point: str) -> None:
        """From now on, whichever thread of it comes to `point` is held there."""
        self._stage.do(acts.Hold(self.worker, parse_pattern(point)))

    def beat(self) -> None:
        """Only its next timer fires (its heartbeat); what is held stays held."""
        self._stage.do(acts.Beat(self.worker))

    def stop(self) -> None:
        """SIGSTOP, confirmed by the kernel."""
        self._stage.do(acts.Stop(self.worker))

    def cont(self) -> None:
        """SIGCONT, confirmed; it stays where it is held."""
        self._stage.do(acts.Cont(self.worker))

    def kill(self) -> None:
        """SIGKILL, reaped."""
        self._stage.do(acts.Kill(self.worker))

    def restart(self) -> None:
        """A new incarnation under the same configured name; killed first if it lives."""
        self._stage.do(acts.Restart(self.worker))

    def skew(self, skew_ms: int) -> None:
        """Let its clock run that much ahead, or behind when negative."""
        self._stage.do(acts.Skew(self.worker, skew_ms))

    @property
    def state(self) -> str:
        """Where it is, in words."""
        return self._stage.state(self.worker)
