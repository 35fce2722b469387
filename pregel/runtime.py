"""What a task knows about the run it is part of, and how code inside it finds out."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pregel.errors import OutsideTaskError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.superstep import Emit
    from pregel.task import Task
    from pregel.types import StreamWriter

__all__ = ["FRAME", "Frame", "Run", "Runtime", "get_runtime"]

ContextT = TypeVar("ContextT")


@dataclass(frozen=True, slots=True)
class Runtime(Generic[ContextT]):
    """Injected into a node that has a parameter named `runtime` or annotated with `Runtime`."""

    #: What the caller gave as `context=`, checked against the graph's context schema.
    context: ContextT
    #: Adds a part to the `custom` stream.
    stream_writer: StreamWriter
    config: Mapping[str, Any]
    node: str
    #: The superstep, from 1.
    step: int
    #: The same when the run is repeated: a key for effects outside that must not happen twice.
    task_id: str


def ignore(payload: Any) -> None:
    """Take what a node writes to a stream that nobody asked for."""


def never() -> bool:
    """Say that a run was not cancelled: nobody else can."""
    return False


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What all tasks of one run share; made at the door and handed down explicitly."""

    config: Mapping[str, Any]
    context: Any
    #: Gives the text of a new id for the n-th thing that a task makes: (task id, n) -> text.
    new_id: Callable[[str, int], str]
    #: How many supersteps of nodes may run.
    limit: int
    #: How many tasks may run at once.
    max_concurrency: int | None = None
    #: Where a node's stream writer puts its parts.
    writer: StreamWriter = ignore
    #: The graphs and tasks around this run, outermost first; empty for a run of its own.
    namespace: tuple[str, ...] = ()
    #: Takes the parts of runs inside this one, on any thread; None where nobody reads them.
    publish: Callable[[Emit], None] | None = None
    #: The modes that runs inside this one emit.
    nested_modes: tuple[str, ...] = ()
    #: Whether this run is a node of another graph, which its commands can address.
    is_node: bool = False
    #: Asked before each task: whether the run was cancelled from outside.
    stopped: Callable[[], bool] = never

    def inner_namespace(self, task: Task) -> tuple[str, ...]:
        """Return the namespace of a run inside one of this run's tasks."""
        return (*self.namespace, f"{task.node.name}:{task.id}")

    def task_id(self, task: Task) -> str:
        """Return a task's id with the path to its run: unique in the outermost run."""
        return "|".join((*self.namespace, task.id))


#: The task that runs the current code, and its run. A bare tuple: each task makes one.
Frame = tuple["Task", Run]

#: Set in the context of each task, and nowhere else.
FRAME: Final[ContextVar[Frame]] = ContextVar("pregel_frame")


def current_frame() -> Frame:
    """Return the task that runs the current code.

    Raises:
        OutsideTaskError: None does.
    """
    frame = FRAME.get(None)
    if frame is None:
        raise OutsideTaskError(
            "no task is running here: get_config, get_stream_writer and get_runtime work inside nodes and conditional "
            "edges. In a thread that a node starts by itself, run the code in contextvars.copy_context()"
        )
    return frame


def runtime_of(frame: Frame) -> Runtime[Any]:
    """Return what a task's code may ask for."""
    task, run = frame
    return Runtime(run.context, run.writer, run.config, task.node.name, task.step, run.task_id(task))


def get_runtime() -> Runtime[Any]:
    """Return the runtime of the task that runs the current code.

    Raises:
        OutsideTaskError: None does.
    """
    return runtime_of(current_frame())
