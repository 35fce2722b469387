"""A run as a state machine: events in, commands out, no I/O.

Theory of operation. The machine is in one of three phases:

    idle     -- start --> running    the input is the write of a superstep, whose one task is the virtual start node
    idle     -- resume --> running   a superstep that was open when an earlier run ended goes on
    running  -- TaskDone, TaskFailed, TaskPaused of every task --> running | finished
    finished -- nothing is legal any more

When the last task of a superstep has ended, the barrier computes what changes; only then the changes are swapped in
and the next tasks are planned. A failed or paused task lets the step run to its end but no barrier follows, so the
state stays at the last one. An answer ends with `RunTasks` or `Finish`, or it only keeps and emits, because other tasks
still run.

Where runs are stored, the machine says what to store and when: `CommitTask` for a task that ends while its superstep
can't be committed yet, `CommitBarrier` for one that can, always before the command that goes on. `Standing` is what
must be stored beside the values, so that a run that begins where another one ended derives nothing again.

The machine emits what it was asked to emit and nothing else; a driver decides nothing, it performs commands in order.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from pregel.barrier import barrier, consuming
from pregel.channels.base import MISSING, Overwrite
from pregel.commands import (
    CommitBarrier,
    CommitTask,
    DropTasks,
    Finish,
    RunTasks,
    Standing,
    TaskDone,
    TaskPaused,
    Warn,
)
from pregel.errors import GraphRecursionError, IllegalEventError, InvalidUpdateError, PregelError, StarvedJoinError
from pregel.plan import Due, plan, tasks_of, waking
from pregel.reporter import Emit, Reporter
from pregel.task import Task, Writes, make
from pregel.types import Breakpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pregel.commands import Command, Event, Outcome, Reasons
    from pregel.network import Network
    from pregel.node import Join
    from pregel.reporter import Speech
    from pregel.types import OnFailure

__all__ = ["Superstep"]

NOTHING: frozenset[str] = frozenset()


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
        modes: What to emit, of "values", "updates", "tasks", "checkpoints" and "debug".
        on_failure: What becomes of the siblings of a failed task.
        namespace: The path to this graph, for what it emits.
        journal: For a node of another graph: the fields whose updates are written down for that one.
        breakpoints: The nodes before which, and those after which the run stops.
        drains: Says whether the run is to stop at the next barrier, wherever that is; asked when something is due.
        config_of: Where the run is stored: gives the config that names the checkpoint of a superstep.
        speech: Where somebody reads messages: how they are told.
    """

    __slots__ = (
        "_before",
        "_breaks",
        "_drains",
        "_edits",
        "_emits",
        "_errors",
        "_fading",
        "_failure",
        "_heard",
        "_held",
        "_journaled",
        "_kept",
        "_last",
        "_limit",
        "_misfits",
        "_network",
        "_on_failure",
        "_outstanding",
        "_paused",
        "_phase",
        "_results",
        "_rows",
        "_stays",
        "_stops",
        "_stored",
        "_tasks",
        "_tells",
        "dropped",
        "escapes",
        "inside",
        "journal",
        "pauses",
        "standing",
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
        breakpoints: tuple[frozenset[str], frozenset[str]] | None = None,
        drains: Callable[[], bool] | None = None,
        config_of: Callable[[int], Mapping[str, Any]] | None = None,
        speech: Speech | None = None,
    ) -> None:
        self._network = network
        self._limit = limit
        self._tells = Reporter(network, modes, namespace, config_of, speech)
        self._emits = self._tells.ends
        #: Whether commits are asked for.
        self._stored = config_of is not None
        self._breaks = breakpoints
        self._drains = drains
        self._stops = breakpoints is not None or drains is not None
        self._journaled = None if journal is None else frozenset(journal)
        #: The updates of the journaled fields, in the order of application; those of the input left out.
        self.journal: list[tuple[str, Any]] = []
        #: The commands of the last superstep for the graph around this one.
        self.escapes: tuple[Any, ...] = ()
        #: Where the run stood when it was committed last.
        self.standing = Standing()
        #: Why the run is paused, once it is.
        self.pauses: Reasons = ()
        #: Whether a task of another graph waits for this run, and with it where it is paused.
        self.inside = not self._stored
        # The answers that do not fit, of a run inside a task, by place: the run around it ends with them.
        self._misfits: dict[int, Exception] = {}
        self._on_failure = on_failure
        self._phase = Phase.IDLE
        #: The fields that hold a value; readers copy, only a barrier changes it.
        self.values: dict[str, Any] = network.initial_values()
        #: The number of the superstep that runs, and of the last one that may.
        self.step = 0
        self._last = limit
        # The superstep that was committed last.
        self._before: int | None = None
        # What joins have heard; joins that have heard nothing are absent.
        self._heard: dict[Join, frozenset[str]] = {}
        # Fields that hold a value which the next barrier clears unless it is written again.
        self._fading: set[str] = {name for name in self.values if network.fields[name].channel.resets}
        self._held = Due()
        self._tasks: tuple[Task, ...] = ()
        self._results: list[Writes | None] = []
        self._errors: dict[int, Exception] = {}
        # What the run failed with, if it did.
        self._failure: Exception | None = None
        self._paused: dict[int, Reasons] = {}
        # The places of tasks of which a row is stored.
        self._rows: set[int] = set()
        # Whether this is a superstep that edits the state from outside, and the tasks that stay due after it.
        self._edits = False
        self._stays: tuple[Task, ...] | None = None
        #: The names of due nodes that the input leaves behind, for the first commit.
        self.dropped: tuple[str, ...] = ()
        self._outstanding = 0
        # What output fields held before they were cleared without a write, since one of them was written last. Where
        # nodes subscribe to fields, those of the last write of an output are the result.
        self._kept: dict[str, Any] = {}

    @property
    def last_step(self) -> int:
        """The number of the last superstep that may run."""
        return self._last

    @property
    def is_running(self) -> bool:
        """Whether it waits for tasks to end."""
        return self._phase is RUNNING

    @property
    def ended_well(self) -> bool:
        """Whether the run is over, and neither failed nor waits."""
        return self._phase is Phase.FINISHED and not self._failure and not self._paused and not self.pauses

    @property
    def misfit(self) -> Exception | None:
        """What is wrong with an answer that a paused run inside a task was given, the first in task order."""
        return self._misfits[min(self._misfits)] if self._misfits else None

    def successor(self) -> Superstep:
        """Return a machine of the same run that has not begun."""
        return Superstep(self._network, limit=self._limit, journal=self._journaled, config_of=self._tells.config_of)

    def load(self, values: dict[str, Any], step: int, standing: Standing | None = None) -> None:
        """Put the run where another one ended: after a superstep, with these values.

        Args:
            values: The fields that hold a value.
            step: The superstep that was committed last.
            standing: What was due then; None where a new input makes it void.

        Raises:
            IllegalEventError: The run has begun already.
        """
        self._begin(Phase.IDLE)
        self.values = values
        self._fading = {name for name in values if self._network.fields[name].channel.resets}
        self._before = step
        self.step = step + 1
        self._last = step + self._limit
        if standing is not None:
            self._tasks = standing.tasks
            self._held = standing.held
            self._heard = dict(standing.heard)
            self._kept = dict(standing.kept)

    def start(self, updates: Sequence[tuple[str, Any]], *, edits: bool = False) -> tuple[Command, ...]:
        """Begin with the updates that an input makes. What was due before is void.

        Args:
            updates: (field, update) in order.
            edits: Whether the run ends at the barrier of the input.

        Raises:
            IllegalEventError: The run has begun already.
        """
        self._begin(RUNNING)
        self._edits = edits
        self._last = self.step + self._limit
        return self._run((Task(self._network.start, self.step, 0, tuple(updates)),))

    def resume(self, outcomes: Mapping[int, Outcome]) -> tuple[Command, ...]:
        """Begin with the tasks that are due.

        Args:
            outcomes: By place, how tasks ended that are not to be run again: what they asked for, or why they are
                paused. An error stands for a row of a task that is run again.

        Raises:
            IllegalEventError: The run has begun already.
        """
        self._begin(RUNNING)
        self._rows = set(outcomes)
        emitted: tuple[Command, ...] = (self._tells.state(self.values, self.step - 1),) if self._tells.values else ()
        if not self._tasks:
            return emitted + self._end()
        rest = self._open(self._tasks, outcomes)
        if rest and self._drains is not None and self._drains():  # nothing is begun, and nothing that is stored is lost
            drain = Breakpoint("drain", tuple(dict.fromkeys(task.node.name for task in rest)))
            self.pauses = (drain, *self._open_questions())
            return emitted + self._pause()
        if rest:
            return (*emitted, *self._begun(rest), make(RunTasks, (rest,)))
        return emitted + (self._pause() if self._paused else self._barrier())

    def edit(self, tasks: tuple[Task, ...], *, keeps: bool) -> tuple[Command, ...]:
        """Begin with tasks that edit the state from outside; the run ends at their barrier.

        Args:
            tasks: They take the place of what is due.
            keeps: Whether what is due stays due, with what is stored of it; else the tasks say what follows.

        Raises:
            IllegalEventError: The run has begun already.
        """
        self._begin(RUNNING)
        self._edits = True
        if keeps:
            self._stays = tuple(task._replace(step=self.step + 1, key=task.id) for task in self._tasks)
        else:
            self.dropped = tuple(dict.fromkeys((*(task.node.name for task in self._tasks), *self._held.names())))
            self._held = Due()
        self._open(tasks, {})
        return (RunTasks(tasks),)

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
            or place in self._paused
        ):
            raise IllegalEventError(
                f"{type(event).__name__} of task {task.id} is illegal in superstep {self.step} of a run that is "
                f"{self._phase.value}: the task is not running"
            )
        self._outstanding -= 1
        emitted: tuple[Command, ...] = ()
        if self._emits and task.node is not self._network.start:
            emitted = self._tells.ended(task, event[1], self.step, self.values)
        if type(event) is TaskDone:
            results[place] = event.writes
            if not self._outstanding and not self._errors and not self._paused:
                return self._barrier(emitted)
        elif type(event) is TaskPaused and self._edits:
            self._errors[place] = InvalidUpdateError(
                f"graph {self._network.name!r} was to be updated as node {task.node.name!r}, a conditional edge of "
                "which asks something, and an update from outside can't wait for an answer: say by another as_node "
                "what follows"
            )
        elif type(event) is TaskPaused:
            self._paused[place] = event.reasons
            if event.error is not None:
                (self._misfits if self.inside else self._errors)[place] = event.error
        else:
            self._errors[place] = event.error  # type: ignore[union-attr, assignment]
        kept: tuple[Command, ...] = ()
        if self._stored and task.node is not self._network.start and not self._edits:
            kept = (self._commit_task(task, event[1]),)
        if self._errors and (self._on_failure == "cancel" or not self._outstanding):
            return (*kept, *emitted, self._failed())
        return (*kept, *emitted) if self._outstanding else (*kept, *emitted, *self._pause())

    def _begin(self, phase: Phase) -> None:
        if self._phase is not Phase.IDLE:
            raise IllegalEventError(f"a run that is {self._phase.value} can't be started")
        self._phase = phase

    def _run(self, tasks: tuple[Task, ...]) -> tuple[Command, ...]:
        self._tasks = tasks
        self._outstanding = len(tasks)
        self._results = [None] * len(tasks)
        if self._tells.follows and tasks[0].node is not self._network.start:
            return (*self._begun(tasks), RunTasks(tasks))
        return (make(RunTasks, (tasks,)),)

    def _begun(self, tasks: Sequence[Task]) -> Sequence[Emit]:
        return self._tells.begun(tasks, self.values, self.step) if self._tells.follows else ()

    def _open(self, tasks: tuple[Task, ...], outcomes: Mapping[int, Outcome]) -> tuple[Task, ...]:
        """Open a superstep of which some tasks have ended; return the others."""
        self._tasks = tasks
        self._results = [None] * len(tasks)
        for place, outcome in outcomes.items():
            if isinstance(outcome, Writes):
                self._results[place] = outcome
            elif isinstance(outcome, tuple):
                self._paused[place] = outcome  # type: ignore[assignment]  # mypy takes it for writes
        rest = tuple(task for task in tasks if self._results[task.place] is None and task.place not in self._paused)
        self._outstanding = len(rest)
        return rest

    def _commit_task(self, task: Task, outcome: Outcome) -> CommitTask:
        replaces = task.place in self._rows
        self._rows.add(task.place)
        return CommitTask(task, outcome, replaces)

    def _barrier(  # noqa: C901, PLR0911, PLR0912, PLR0915 - one hot path: each branch would cost a call
        self, last: tuple[Command, ...] = ()
    ) -> tuple[Command, ...]:
        """End a superstep in which every task ended well: change the state, and plan.

        Args:
            last: What is told of the task that ended last, once the superstep is stored.
        """
        network = self._network
        triggers = network.triggers
        step = self.step
        results: list[Writes] = self._results  # type: ignore[assignment]
        is_input = self._tasks[0].node is network.start
        try:
            rule = consuming if triggers else barrier
            # What a due task reads stays as it is while the state is only edited.
            fading = self._fading if self._stays is None else ()
            changed, heard, fired = rule(network, self.values, self._heard, fading, self._tasks, results)
        except PregelError as error:
            return last + self._torn(error)
        before = {name: self.values.get(name, MISSING) for name in changed} if self._stored else {}
        if triggers:
            self._keep(results, changed)
        if network.clears:
            self._swap(changed)
        else:
            self.values.update(changed)
        if heard:
            self._hear(heard)
        shown: tuple[Command, ...] = ()
        if self._tells.values and (is_input or not (self._kept or network.visible.isdisjoint(changed))):
            shown = (self._tells.state(self.values, step),)
        journal: tuple[tuple[str, Any], ...] = ()
        if self._journaled is not None and not is_input:
            journaled = self._journaled
            journal = tuple(update for writes in results for update in writes.updates if update[0] in journaled)
            self.journal.extend(journal)
            self.escapes = tuple(escape for writes in results for escape in writes.escapes)
        asked: Sequence[Writes] = results
        if triggers:
            woken = self._woken(results)
            # Alone it takes the plan's shortest way; only packets and commands stand beside it.
            asked = [*results, woken] if any(writes.goto or writes.sends for writes in results) else [woken]
        tasks: tuple[Task, ...]
        settled: tuple[Join, ...]
        if self.escapes:  # what follows is for the graph around this one to say
            tasks, self._held, settled = (), Due(), ()
            self._heard = {}
        elif self._stays is not None:
            tasks, settled = (*self._stays, *self._added(results)), ()
        else:
            tasks, self._held, settled = plan(network, step + 1, asked, fired, self._heard, self._held)
        if settled:
            for join in settled:
                del self._heard[join]
        if network.once and tasks:
            twice = self._twice(tasks)
            if twice is not None:
                return last + self._torn(twice)
        pause = self._breakpoint(tasks) if self._stops and tasks and not self._edits else None
        if self._stored:
            self.standing = standing = Standing(tasks, self._held, self._heard.copy(), self._kept, pause)
            last = self._committed(changed, before, standing, journal, last)
        emitted = last + shown
        if pause is not None:
            self.pauses = (pause,)
            return emitted + self._pause()
        if self._edits or self.escapes:
            self._phase = Phase.FINISHED
            return (*emitted, Finish())
        if not tasks:
            return emitted + self._end()
        if step >= self._last:
            return (*emitted, self._exhausted(tasks))
        if self._tells.follows:
            self._tells.blame_all(self._tasks, results, (*fired, *settled))
        self.step = step + 1
        return emitted + self._run(tasks) if emitted else self._run(tasks)

    def _committed(
        self,
        changed: Mapping[str, Any],
        before: Mapping[str, Any],
        standing: Standing,
        journal: tuple[tuple[str, Any], ...],
        last: tuple[Command, ...],
    ) -> tuple[Command, ...]:
        """Return what stores this superstep, and the parts that tell of it, after those of the task that ended last."""
        step = self.step
        results: list[Writes] = self._results  # type: ignore[assignment]
        source = "input" if self._tasks[0].node is self._network.start else "update" if self._edits else "loop"
        updates = results[0].updates
        if len(results) > 1:
            updates = tuple(update for writes in results for update in writes.updates)
        overwritten = NOTHING
        for name, update in updates:
            if type(update) is Overwrite:
                overwritten |= {name}
        carried = () if self._stays is None else tuple(task.id for task in self._stays)
        commit = CommitBarrier(
            step, source, changed, before, overwritten, standing, journal, self.escapes, self.dropped, carried, updates
        )
        told = self._tells.committed(self.values, step, self._before, source, standing.tasks)
        self._before = step
        self._rows = set()
        self.dropped = ()
        return (commit, *last, *told)

    def _added(self, results: Sequence[Writes]) -> Iterator[Task]:
        """Yield the tasks that an edit adds to those that stay due; a deferred one waits with the others."""
        known, stays = self._network.nodes, self._stays or ()
        due = {task.node.name for task in stays if task.arg is MISSING}
        names = dict.fromkeys(name for writes in results for name in writes.goto if name not in due)
        sends = [send for writes in results for send in writes.sends]
        waits = stays or self._held
        held = [name for name in names if waits and known[name].defer]
        packets = [send for send in sends if waits and known[send.node].defer]
        if held or packets:
            self._held = Due([*self._held.nodes, *held], [*self._held.sends, *packets])
        ready = [known[name] for name in names if name not in held]
        for task in tasks_of(self._network, self.step + 1, ready, [send for send in sends if send not in packets]):
            yield task._replace(place=len(stays) + task.place)

    def _torn(self, error: PregelError) -> tuple[Command, ...]:
        """Finish a run whose barrier failed: nothing is changed, and all tasks of the superstep are due again."""
        finish = self._fail(error)
        return (DropTasks(self.step), finish) if self._rows else (finish,)

    def _fail(self, error: Exception) -> Finish:
        self._phase = Phase.FINISHED
        self._failure = error
        return Finish(error)

    def _twice(self, tasks: Sequence[Task]) -> PregelError | None:
        """Return what is wrong if a graph that remembers its runs would run twice at once."""
        seen: set[str] = set()
        for task in tasks:
            name = task.node.name
            if name in self._network.once and name in seen:
                return InvalidUpdateError(
                    f"node {name!r} of graph {self._network.name!r} is a graph with a history of its own "
                    f"(checkpointer=True) and would run twice in superstep {self.step + 1}: which of the runs should "
                    "the next one go on from? Send it once, or compile it with checkpointer=None"
                )
            seen.add(name)
        return None

    def _breakpoint(self, tasks: Sequence[Task]) -> Breakpoint | None:
        """Return why the run stops here, if it does."""
        coming = tuple(dict.fromkeys(task.node.name for task in tasks))
        if self._breaks is not None:
            before, after = self._breaks
            ended = dict.fromkeys(task.node.name for task in self._tasks if task.node is not self._network.start)
            past = tuple(name for name in ended if name in after or "*" in after)
            if past:
                return Breakpoint("after", past)
            stops = tuple(name for name in coming if name in before or "*" in before)
            if stops:
                return Breakpoint("before", stops)
        return Breakpoint("drain", coming) if self._drains is not None and self._drains() else None

    def _pause(self) -> tuple[Command, ...]:
        """Finish a run that waits for answers, or stops at a breakpoint."""
        self._phase = Phase.FINISHED
        emitted: tuple[Command, ...] = ()
        if self.pauses:
            emitted = self._tells.paused(self.pauses, self.step, None)
        else:
            self.pauses = self._open_questions()
        if self._tells.values:
            emitted += (self._tells.state(self.values, self.step, self.pauses),)
        return (*emitted, Finish())

    def _open_questions(self) -> Reasons:
        """Return why tasks are paused, in their order."""
        return tuple(reason for place in sorted(self._paused) for reason in self._paused[place])

    def _keep(self, results: Sequence[Writes], changed: dict[str, Any]) -> None:
        """Keep what outputs hold that are about to be cleared, until one of them is written again."""
        visible = self._network.visible
        if any(name in visible for writes in results for name, _ in writes.updates):
            self._kept = {}
        else:
            self._kept = {
                **{name: self.values[name] for name in visible.intersection(changed)},
                **self._kept,
            }

    def _woken(self, results: Sequence[Writes]) -> Writes:
        """Return what the fields that were written ask for: to run the nodes that subscribe to them."""
        network = self._network
        names: list[str] = []
        for field in waking(network, results, self.values):
            for name in network.triggers[field]:
                names.append(name)
                if self._tells.follows:
                    self._tells.blame(name, field)
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
        return (self._fail(StarvedJoinError(message, dict(self.values))),)

    def _exhausted(self, tasks: Sequence[Task]) -> Finish:
        due = ", ".join(dict.fromkeys(repr(task.node.name) for task in tasks))
        return self._fail(
            GraphRecursionError(
                f"graph {self._network.name!r} has run {self._limit} supersteps, its recursion_limit, and {due} would "
                "run next. Give the loop a way to END, or raise config={'recursion_limit': ...}; "
                "the error's `state` is where the run stood",
                dict(self.values),
            )
        )

    def _failed(self) -> Finish:
        """Finish a run in which tasks failed: one error is raised as it is, several as a group in task order."""
        errors = [self._errors[place] for place in sorted(self._errors)]
        if len(errors) == 1:
            return self._fail(errors[0])
        return self._fail(
            ExceptionGroup(
                f"{len(errors)} tasks of superstep {self.step} of graph {self._network.name!r} failed", errors
            )
        )
