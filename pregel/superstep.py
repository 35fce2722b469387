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

from pregel.barrier import barrier, consuming
from pregel.channels.base import MISSING
from pregel.errors import GraphRecursionError, IllegalEventError, PregelError, StarvedJoinError
from pregel.plan import Due, plan, waking
from pregel.task import Task, Writes, make
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pregel.network import Network
    from pregel.node import Join
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
    #: The path to the graph; empty for the outermost.
    namespace: tuple[str, ...] = ()
    step: int = 0
    #: The task that the part is about, if it is about one.
    task: Task | None = None


class Warn(NamedTuple):
    """Command: give a `PregelWarning`."""

    message: str


class Finish(NamedTuple):
    """Command: the run is over. Tasks that still run are cancelled; `error` is raised if there is one."""

    error: Exception | None = None


ERROR_LIMIT = 2_000  # characters of an error in a part

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


# Looked up once: an enumeration's members are properties, and this one is asked for at each event.
RUNNING = Phase.RUNNING


class Superstep:
    """One run of a network. Not thread-safe: events come one at a time.

    Args:
        network: The graph.
        limit: How many supersteps of nodes may run.
        modes: What to emit, of "values", "updates", "tasks" and "debug".
        on_failure: What becomes of the siblings of a failed task.
        namespace: The path to this graph, for what it emits.
        journal: For a node of another graph: the fields whose updates are written down for that one.
    """

    __slots__ = (
        "_causes",
        "_emits",
        "_emits_updates",
        "_emits_values",
        "_errors",
        "_fading",
        "_follows",
        "_heard",
        "_held",
        "_journaled",
        "_kept",
        "_limit",
        "_namespace",
        "_network",
        "_on_failure",
        "_outstanding",
        "_phase",
        "_results",
        "_tasks",
        "escapes",
        "journal",
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
        namespace: tuple[str, ...] = (),
        journal: Collection[str] | None = None,
    ) -> None:
        self._network = network
        self._limit = limit
        self._emits_values = "values" in modes
        self._emits_updates = "updates" in modes
        #: The modes asked for that follow single tasks.
        self._follows = tuple(mode for mode in ("tasks", "debug") if mode in modes)
        self._emits = bool(self._emits_updates or self._follows)
        self._namespace = namespace
        self._journaled = None if journal is None else frozenset(journal)
        #: The updates of the journaled fields, in the order of application; those of the input left out.
        self.journal: list[tuple[str, Any]] = []
        #: The commands of the last superstep for the graph around this one.
        self.escapes: tuple[Any, ...] = ()
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
        # What output fields held before they were cleared without a write, since one of them was written last. Where
        # nodes subscribe to fields, those of the last write of an output are the result.
        self._kept: dict[str, Any] = {}
        # Who made a node due, noted where somebody follows the tasks.
        self._causes: dict[str, list[str]] = {}

    def start(self, updates: Sequence[tuple[str, Any]]) -> tuple[Command, ...]:
        """Begin the run with the updates that its input makes.

        Raises:
            IllegalEventError: The run has begun already.
        """
        if self._phase is not Phase.IDLE:
            raise IllegalEventError(f"a run that is {self._phase.value} can't be started")
        self._phase = RUNNING
        return self._run((Task(self._network.start, 0, 0, tuple(updates)),))

    def handle(self, event: Event) -> tuple[Command, ...]:
        """Take how a task ended and return what is to be done.

        Raises:
            IllegalEventError: The event can't have happened in this state.
        """
        task = event[0]
        place = task.place
        results = self._results
        if (
            self._phase is not RUNNING
            or task.step != self.step
            or place >= len(results)
            or results[place] is not None
            or place in self._errors
        ):
            raise IllegalEventError(
                f"{type(event).__name__} of task {task.id} is illegal in superstep {self.step} of a run that is "
                f"{self._phase.value}: the task is not running"
            )
        self._outstanding -= 1
        emitted = self._emitted(event) if self._emits and self.step else ()
        if type(event) is TaskFailed:
            self._errors[place] = event.error
            if self._on_failure == "cancel" or not self._outstanding:
                return (*emitted, self._failed())
            return emitted
        results[place] = event[1]  # type: ignore[assignment]
        if self._outstanding:
            return emitted
        if self._errors:
            return (*emitted, self._failed())
        return emitted + self._barrier() if emitted else self._barrier()

    def _run(self, tasks: tuple[Task, ...]) -> tuple[Command, ...]:
        self._tasks = tasks
        self._outstanding = len(tasks)
        self._results = [None] * len(tasks)
        if self._follows and self.step:
            return (*self._begun(tasks), RunTasks(tasks))
        return (make(RunTasks, (tasks,)),)

    def _barrier(self) -> tuple[Command, ...]:  # noqa: C901, PLR0912 - one hot path: each branch would cost a call
        """End a superstep in which every task ended well: change the state, and plan."""
        network = self._network
        triggers = network.triggers
        results: list[Writes] = self._results  # type: ignore[assignment]
        try:
            rule = consuming if triggers else barrier
            changed, heard, fired = rule(network, self.values, self._heard, self._fading, self._tasks, results)
        except PregelError as error:
            self._phase = Phase.FINISHED
            return (Finish(error),)
        if triggers:
            self._keep(results, changed)
        if network.clears:
            self._swap(changed)
        else:
            self.values.update(changed)
        if heard:
            self._hear(heard)
        emitted: tuple[Command, ...] = ()
        if self._emits_values and (not self.step or not (self._kept or network.visible.isdisjoint(changed))):
            emitted = (make(Emit, ("values", network.project(self.values), self._namespace, self.step, None)),)
        if self._journaled is not None and self.step:
            journaled = self._journaled
            self.journal.extend(update for writes in results for update in writes.updates if update[0] in journaled)
            self.escapes = tuple(escape for writes in results for escape in writes.escapes)
            if self.escapes:  # what follows is for the graph around this one to say
                self._phase = Phase.FINISHED
                return (*emitted, Finish())
        if triggers:
            woken = self._woken(results)
            # Alone it takes the plan's shortest way; only packets and commands stand beside it.
            results = [*results, woken] if any(writes.goto or writes.sends for writes in results) else [woken]
        tasks, self._held, settled = plan(network, self.step + 1, results, fired, self._heard, self._held)
        if settled:
            for join in settled:
                del self._heard[join]
        if not tasks:
            return emitted + self._end()
        if self.step >= self._limit:
            return (*emitted, self._exhausted(tasks))
        if self._follows:
            self._note_causes((*fired, *settled))
        self.step += 1
        return emitted + self._run(tasks) if emitted else self._run(tasks)

    def _keep(self, results: Sequence[Writes], changed: dict[str, Any]) -> None:
        """Keep what outputs hold that are about to be cleared, until one of them is written again."""
        visible = self._network.visible
        if any(name in visible for writes in results for name, _ in writes.updates):
            self._kept = {}
        else:
            for name in visible.intersection(changed):
                self._kept.setdefault(name, self.values[name])

    def _woken(self, results: Sequence[Writes]) -> Writes:
        """Return what the fields that were written ask for: to run the nodes that subscribe to them."""
        network = self._network
        names: list[str] = []
        for field in waking(network, results, self.values):
            for name in network.triggers[field]:
                names.append(name)
                if self._follows:
                    self._causes.setdefault(name, []).append(field)
        return Writes((), tuple(names))

    def _swap(self, changed: dict[str, Any]) -> None:
        """Take the new values, where some of them may be the absence of one."""
        values = self.values
        fields = self._network.fields
        for name, value in changed.items():
            if value is MISSING:
                values.pop(name, None)
                self._fading.discard(name)
            else:
                values[name] = value
                if fields[name].channel.resets:
                    self._fading.add(name)

    def _hear(self, heard: dict[Join, frozenset[str]]) -> None:
        """Take what joins have heard."""
        for join, names in heard.items():
            if names:
                self._heard[join] = names
            else:
                self._heard.pop(join, None)

    def _end(self) -> tuple[Command, ...]:
        """Finish a run in which nothing is due: well, unless a join is left waiting."""
        self._phase = Phase.FINISHED
        if self._kept:
            self.values.update(self._kept)
        if not self._heard:
            return (Finish(),)
        waiting = "; ".join(
            f"the join into {join.target!r} has heard from {', '.join(map(repr, sorted(names)))} and not from "
            f"{', '.join(map(repr, sorted(join.channel.names - names)))}"
            for join, names in self._heard.items()
        )
        message = (
            f"graph {self._network.name!r} ended in superstep {self.step} while {waiting}, so it never ran. Let the "
            'join wait only for those that run (wait="live"), route to every source, or give the paths that may be '
            "skipped an edge of their own [starved-join]"
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

    def _emitted(self, event: Event) -> tuple[Emit, ...]:
        """Return the parts that say how a task ended."""
        task = event.task
        name = task.node.name
        writes = event.writes if type(event) is TaskDone else None
        emitted: tuple[Emit, ...] = ()
        if writes is not None and self._emits_updates:
            visible = self._network.visible
            seen = shaped([pair for pair in writes.updates if pair[0] in visible])
            emitted = (make(Emit, ("updates", {name: seen}, self._namespace, self.step, task)),)
        if self._follows:
            payload: dict[str, Any] = {
                "id": task.id,
                "name": name,
                "error": shortened(event.error, ERROR_LIMIT) if isinstance(event, TaskFailed) else None,
                "result": None if writes is None else shaped(writes.updates),
                "interrupts": [],
            }
            emitted += self._followed("task_result", payload, task)
        return emitted

    def _begun(self, tasks: tuple[Task, ...]) -> list[Emit]:
        """Return the parts that say that tasks begin."""
        emitted: list[Emit] = []
        for task in tasks:
            payload: dict[str, Any] = {
                "id": task.id,
                "name": task.node.name,
                "input": task.node.view.read(self.values) if task.arg is MISSING else task.arg,
                "triggers": list(dict.fromkeys(self._causes.get(task.node.name, ()))),
            }
            emitted.extend(self._followed("task", payload, task))
        for task in tasks:
            self._causes.pop(task.node.name, None)
        return emitted

    def _followed(self, kind: str, payload: dict[str, Any], task: Task) -> tuple[Emit, ...]:
        """Return a part about a task for each of the modes that follow tasks."""
        bodies = {"tasks": payload, "debug": {"step": self.step, "type": kind, "payload": payload}}
        return tuple(Emit(mode, bodies[mode], self._namespace, self.step, task) for mode in self._follows)

    def _note_causes(self, joins: Sequence[Join]) -> None:
        """Write down who made which node due."""
        results: list[Writes] = self._results  # type: ignore[assignment]
        for task, writes in zip(self._tasks, results, strict=True):
            for name in (*writes.goto, *(send.node for send in writes.sends)):
                self._causes.setdefault(name, []).append(task.node.name)
        for join in joins:
            self._causes.setdefault(join.target, []).append(join.name)


def shaped(pairs: Sequence[tuple[str, Any]]) -> Any:
    """Return updates in the shape of streams: a mapping, a list of mappings if a field comes twice, None for none."""
    if not pairs:
        return None
    merged = dict(pairs)
    return merged if len(merged) == len(pairs) else [{name: update} for name, update in pairs]
