"""What a task knows about the run it is part of, and how code inside it finds out."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pregel.errors import OutsideTaskError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pregel.superstep import Emit
    from pregel.task import Task
    from pregel.types import StreamWriter

__all__ = ["FRAME", "Frame", "Run", "Runtime", "Token", "current_frame", "get_runtime", "numbered", "runtime_of"]

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


class Token:
    """Whether a run was left before its end; asked before each task, so that nothing begins after it.

    Args:
        outer: The token of the run inside whose task this one takes place.
    """

    __slots__ = ("_cancelled", "_outer")

    def __init__(self, outer: Token | None = None) -> None:
        self._cancelled = False
        self._outer = outer

    def cancel(self) -> None:
        """Say that the run is left, and with it the runs inside it."""
        self._cancelled = True

    def cancelled(self) -> bool:
        """Return whether this run, or one around it, was left."""
        return self._cancelled or (self._outer is not None and self._outer.cancelled())


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
    #: The same for the ids of its tasks; a run inside a task that is read there has no namespace, but a path.
    path: tuple[str, ...] = ()
    #: Takes the parts of runs inside this one, on any thread; None where nobody reads them.
    publish: Callable[[Emit], None] | None = None
    #: The modes that runs inside this one emit.
    nested_modes: tuple[str, ...] = ()
    #: Whether this run is a node of another graph, which its commands can address.
    is_node: bool = False
    token: Token = field(default_factory=Token)

    def task_id(self, task: Task) -> str:
        """Return a task's id with the path to its run: unique in the outermost run."""
        return "|".join((*self.path, task.id))


#: The task that runs the current code, its run, and the numbers of the runs that it holds. A bare tuple: each task
#: makes one.
Frame = tuple["Task", Run, "Iterator[int]"]

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


def numbered(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call that holds the next of the current task's runs, in whatever thread and order it is made.

    Runs that a task starts side by side would else be numbered, and so named, by luck.
    """
    frame = FRAME.get(None)
    if frame is None:
        return call
    task, run, numbers = frame
    mine = iter((next(numbers),))

    def held() -> Any:
        FRAME.set((task, run, mine))
        return call()

    return held


def runtime_of(task: Task, run: Run) -> Runtime[Any]:
    """Return what a task's code may ask for."""
    return Runtime(run.context, run.writer, run.config, task.node.name, task.step, run.task_id(task))


def get_runtime() -> Runtime[Any]:
    """Return the runtime of the task that runs the current code.

    Raises:
        OutsideTaskError: None does.
    """
    task, run, _ = current_frame()
    return runtime_of(task, run)
