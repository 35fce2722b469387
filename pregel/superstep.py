"""A run as a state machine: events in, commands out, no I/O.

Theory of operation. The machine is in one of three phases:

    idle     -- start --> running    the input is the write of superstep 0, whose one task is the virtual start node
    running  -- TaskDone, TaskFailed of every task --> running | finished
    finished -- nothing is legal any more

When the last task of a superstep has ended, the barrier computes what changes; only then the changes are swapped in
and the next tasks are planned. A failed task lets the step run to its end but no barrier follows, so the state stays
at the last one. An answer ends with
`RunTasks` or `Finish`, or holds parts of a stream only because other tasks still run.

The machine emits what it was asked to emit and nothing else; a driver decides nothing, it performs commands in order.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.barrier import barrier
from pregel.channels.base import MISSING
from pregel.errors import GraphRecursionError, IllegalEventError, PregelError, StarvedJoinError
from pregel.plan import Due, plan
from pregel.task import Task

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pregel.barrier import Changes
    from pregel.network import Network
    from pregel.node import Join
    from pregel.task import Writes
    from pregel.types import OnFailure

__all__ = ["Command", "Emit", "Event", "Finish", "RunTasks", "Superstep", "TaskDone", "TaskFailed", "Warn", "concluded"]


class TaskDone(NamedTuple):
    """Event: a task ended well."""

    task: Task
    writes: Writes


class TaskFailed(NamedTuple):
    """Event: a task raised."""

    task: Task
    error: Exception


class RunTasks(NamedTuple):
    """Command: run these tasks, and tell how each of them ended."""

    tasks: tuple[Task, ...]


class Emit(NamedTuple):
    """Command: hand a part to whoever reads the stream."""

    mode: str
    payload: Any


class Warn(NamedTuple):
    """Command: give a `PregelWarning`."""

    message: str


class Finish(NamedTuple):
    """Command: the run is over. Tasks that still run are cancelled; `error` is raised if there is one."""

    error: Exception | None = None


Event = TaskDone | TaskFailed
Command = RunTasks | Emit | Warn | Finish


def concluded(commands: Sequence[Command]) -> bool:
    """Return whether an answer ends the superstep; else it holds stream parts only."""
    return bool(commands) and type(commands[-1]) is not Emit


class Phase(Enum):
    """Where a run stands."""

    IDLE = "idle"
    RUNNING = "running"
    FINISHED = "finished"


class Superstep:
    """One run of a network. Not thread-safe: events come one at a time.

    Args:
        network: The graph.
        limit: How many supersteps of nodes may run.
        modes: What to emit, of "values" and "updates".
        on_failure: What becomes of the siblings of a failed task.
    """

    __slots__ = (
        "_errors",
        "_fading",
        "_heard",
        "_held",
        "_limit",
        "_network",
        "_on_failure",
        "_outstanding",
        "_phase",
        "_resets",
        "_results",
        "_tasks",
        "_updates",
        "_values_mode",
        "step",
        "values",
    )

    def __init__(
        self,
        network: Network,
        *,
        limit: int,
        modes: Collection[str] = (),
        on_failure: OnFailure = "finish",
    ) -> None:
        self._network = network
        self._limit = limit
        self._updates = "updates" in modes
        self._values_mode = "values" in modes
        self._on_failure = on_failure
        self._phase = Phase.IDLE
        #: The fields that hold a value; readers copy, only a barrier changes it.
        self.values: dict[str, Any] = network.initial_values()
        #: The number of the superstep that runs; 0 is the input.
        self.step = 0
        # What joins have heard; joins that have heard nothing are absent.
        self._heard: dict[Join, frozenset[str]] = {}
        # Fields that hold a value which the next barrier clears unless it is written again.
        self._fading: set[str] = {name for name in self.values if network.fields[name].channel.resets}
        self._held = Due()
        self._tasks: tuple[Task, ...] = ()
        self._results: list[Writes | None] = []
        self._errors: dict[int, Exception] = {}
        self._outstanding = 0

    def start(self, updates: Sequence[tuple[str, Any]]) -> tuple[Command, ...]:
        """Begin the run with the updates that its input makes.

        Raises:
            IllegalEventError: The run has begun already.
        """
        if self._phase is not Phase.IDLE:
            raise IllegalEventError(f"a run that is {self._phase.value} can't be started")
        self._phase = Phase.RUNNING
        return (self._run((Task(self._network.start, 0, 0, tuple(updates)),)),)

    def handle(self, event: Event) -> tuple[Command, ...]:
        """Take how a task ended and return what is to be done.

        Raises:
            IllegalEventError: The event can't have happened in this state.
        """
        task = event.task
        place = task.place
        if (
            self._phase is not Phase.RUNNING
            or task.step != self.step
            or place >= len(self._results)
            or self._results[place] is not None
            or place in self._errors
        ):
            raise IllegalEventError(
                f"{type(event).__name__} of task {task.id} is illegal in superstep {self.step} of a run that is "
                f"{self._phase.value}: the task is not running"
            )
        self._outstanding -= 1
        if type(event) is TaskFailed:
            self._errors[place] = event.error
            if self._on_failure == "cancel" or not self._outstanding:
                return (self._failed(),)
            return ()
        writes: Writes = event[1]  # type: ignore[assignment]
        self._results[place] = writes
        emitted: tuple[Command, ...] = ()
        if self._updates and self.step:
            emitted = (Emit("updates", {task.node.name: self._seen(writes)}),)
        if self._outstanding:
            return emitted
        return (*emitted, self._failed()) if self._errors else emitted + self._barrier()

    def _run(self, tasks: tuple[Task, ...]) -> RunTasks:
        self._tasks = tasks
        self._outstanding = len(tasks)
        self._results = [None] * len(tasks)
        return RunTasks(tasks)

    def _barrier(self) -> tuple[Command, ...]:
        """End a superstep in which every task ended well: change the state, and plan."""
        network, results = self._network, self._results
        try:
            changes = barrier(network, self.values, self._heard, self._fading, self._tasks, results)  # type: ignore[arg-type]
        except PregelError as error:
            self._phase = Phase.FINISHED
            return (Finish(error),)
        self._swap(changes)
        emitted: tuple[Command, ...] = ()
        if self._values_mode and (not self.step or not network.visible.isdisjoint(changes.values)):
            emitted = (Emit("values", network.project(self.values)),)
        tasks, self._held, settled = plan(network, self.step + 1, results, changes.fired, self._heard, self._held)  # type: ignore[arg-type]
        for join in settled:
            del self._heard[join]
        if not tasks:
            return emitted + self._end()
        if self.step >= self._limit:
            return (*emitted, self._exhausted(tasks))
        self.step += 1
        return (*emitted, self._run(tasks))

    def _swap(self, changes: Changes) -> None:
        values = self.values
        fields = self._network.fields
        for name, value in changes.values.items():
            if value is MISSING:
                values.pop(name, None)
                self._fading.discard(name)
            else:
                values[name] = value
                if fields[name].channel.resets:
                    self._fading.add(name)
        for join, names in changes.heard.items():
            if names:
                self._heard[join] = names
            else:
                self._heard.pop(join, None)

    def _end(self) -> tuple[Command, ...]:
        """Finish a run in which nothing is due: well, unless a join is left waiting."""
        self._phase = Phase.FINISHED
        if not self._heard:
            return (Finish(),)
        waiting = "; ".join(
            f"the join into {join.target!r} has heard from {', '.join(map(repr, sorted(names)))} and not from "
            f"{', '.join(map(repr, sorted(join.channel.names - names)))}"
            for join, names in self._heard.items()
        )
        message = (
            f"graph {self._network.name!r} ended in superstep {self.step} while {waiting}, so it never ran. Route to "
            "every source of the join, or give the paths that may be skipped an edge of their own [starved-join]"
        )
        if "starved-join" in self._network.allowed:
            return (Warn(message), Finish())
        return (Finish(StarvedJoinError(message, dict(self.values))),)

    def _exhausted(self, tasks: Sequence[Task]) -> Finish:
        self._phase = Phase.FINISHED
        due = ", ".join(dict.fromkeys(repr(task.node.name) for task in tasks))
        return Finish(
            GraphRecursionError(
                f"graph {self._network.name!r} has run {self._limit} supersteps, its recursion_limit, and {due} would "
                "run next. Give the loop a way to END, or raise config={'recursion_limit': ...}; "
                "the error's `state` is where the run stood",
                dict(self.values),
            )
        )

    def _failed(self) -> Finish:
        """Finish a run in which tasks failed: one error is raised as it is, several as a group in task order."""
        self._phase = Phase.FINISHED
        errors = [self._errors[place] for place in sorted(self._errors)]
        if len(errors) == 1:
            return Finish(errors[0])
        return Finish(
            ExceptionGroup(
                f"{len(errors)} tasks of superstep {self.step} of graph {self._network.name!r} failed", errors
            )
        )

    def _seen(self, writes: Writes) -> Any:
        """Return a task's visible updates in the shape of the `updates` stream."""
        visible = self._network.visible
        pairs = [(name, update) for name, update in writes.updates if name in visible]
        if not pairs:
            return None
        merged = dict(pairs)
        return merged if len(merged) == len(pairs) else [{name: update} for name, update in pairs]
