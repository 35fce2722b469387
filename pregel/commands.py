"""What a run's machine is told, and what it answers: values that compare by what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.plan import Due
from pregel.reporter import Emit
from pregel.task import Task, Writes
from pregel.types import Breakpoint, Interrupt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.node import Join

__all__ = [
    "COMMITS",
    "Command",
    "CommitBarrier",
    "CommitTask",
    "DropTasks",
    "Event",
    "Finish",
    "Outcome",
    "Reasons",
    "RunTasks",
    "Standing",
    "TaskDone",
    "TaskFailed",
    "TaskPaused",
    "Warn",
    "concluded",
    "stored_first",
]

#: Why a task or a run is paused.
Reasons = tuple[Interrupt | Breakpoint, ...]
#: How a task ended.
Outcome = Writes | Exception | Reasons


class TaskDone(NamedTuple):
    """Event: a task ended well."""

    task: Task
    writes: Writes


class TaskFailed(NamedTuple):
    """Event: a task raised."""

    task: Task
    error: Exception


class TaskPaused(NamedTuple):
    """Event: a task waits for answers."""

    task: Task
    reasons: Reasons
    #: An answer that it was given and does not take; the run ends with it.
    error: Exception | None = None


class RunTasks(NamedTuple):
    """Command: run these tasks, and tell how each of them ended."""

    tasks: tuple[Task, ...]


class CommitTask(NamedTuple):
    """Command: store how a task ended, for its superstep is not over, or can't be committed."""

    task: Task
    outcome: Outcome
    #: Whether something is stored of an earlier attempt.
    replaces: bool


class Standing(NamedTuple):
    """Where a run stands after a barrier, beside its values."""

    #: What is due next, in order.
    tasks: tuple[Task, ...] = ()
    #: The deferred nodes and packets that wait.
    held: Due = Due()  # never changed in place: a plan makes a new one
    #: What joins have heard; those that have heard nothing are absent.
    heard: Mapping[Join, frozenset[str]] = {}
    #: What outputs held before they were cleared.
    kept: Mapping[str, Any] = {}
    #: Why the run stops here although something is due.
    pause: Breakpoint | None = None


class CommitBarrier(NamedTuple):
    """Command: store what a superstep changed, and where the run stands now; the rows of its tasks go."""

    step: int
    #: What kind of superstep it was: "input", "loop" or "update".
    source: str
    #: The new values (`MISSING` for none), and what they replace.
    changed: Mapping[str, Any]
    before: Mapping[str, Any]
    #: The fields whose value an `Overwrite` gave.
    overwritten: frozenset[str]
    standing: Standing
    #: For a node of another graph: the updates of the fields that it gives back, and its commands to that graph.
    journal: tuple[tuple[str, Any], ...] = ()
    escapes: tuple[Any, ...] = ()
    #: The names of due nodes that a new input leaves behind.
    dropped: tuple[str, ...] = ()
    #: The ids of tasks whose rows stay, for they are due still.
    carried: tuple[str, ...] = ()
    #: The updates of the superstep in order. What stands in one is stored anew, also where the value held it before:
    #: its node may have changed it in place.
    updates: tuple[tuple[str, Any], ...] = ()

    @property
    def ends(self) -> bool:
        """Whether the run is over with it, so that no commit follows."""
        standing = self.standing
        return not standing.tasks and not standing.held and standing.pause is None


class DropTasks(NamedTuple):
    """Command: forget how the tasks of a superstep ended: all of them are due again."""

    step: int


class Warn(NamedTuple):
    """Command: give a `PregelWarning`."""

    message: str


class Finish(NamedTuple):
    """Command: the run is over. Tasks that still run are cancelled; `error` is raised if there is one."""

    error: Exception | None = None


Event = TaskDone | TaskFailed | TaskPaused
Command = RunTasks | CommitTask | CommitBarrier | DropTasks | Emit | Warn | Finish


def concluded(commands: Sequence[Command]) -> bool:
    """Return whether an answer ends the superstep; else other tasks of it still run."""
    return bool(commands) and type(commands[-1]) in CONCLUSIONS


def stored_first(waiting: Sequence[Command], following: Sequence[Command]) -> list[Command] | None:
    """Return how a superstep ends while something of it still waits to be kept and told, if it is committed.

    Nobody needs the rows of its tasks then, and what is told of them is told when it is stored.

    Args:
        waiting: What was asked for while its tasks ran.
        following: How it ends.
    """
    for place, command in enumerate(following, 1):
        if type(command) is CommitBarrier:
            told = [each for each in waiting if type(each) is not CommitTask]
            return [*following[:place], *told, *following[place:]]
    return None


CONCLUSIONS = (RunTasks, Finish)
#: The commands to store something.
COMMITS = (CommitBarrier, CommitTask, DropTasks)
