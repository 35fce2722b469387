"""What users hold in their hands: control values and the names of modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Literal, TypedDict, TypeVar

from pregel.channels.base import Overwrite

__all__ = [
    "END",
    "START",
    "Command",
    "ExecutorName",
    "OnFailure",
    "Overwrite",
    "Send",
    "StreamMode",
    "StreamPart",
    "StreamVersion",
    "StreamWriter",
]

#: The virtual node before the first superstep: edges from it say which nodes an input makes due.
START: Final = "__start__"
#: The virtual node that runs nothing: an edge to it says that a path ends.
END: Final = "__end__"

StreamMode = Literal["values", "updates", "custom", "tasks", "debug"]
#: The shape of stream parts: bare or tagged ones, or typed ones.
StreamVersion = Literal["v1", "v2"]
#: Where a node's code runs: in the thread of the run, or in a worker thread.
ExecutorName = Literal["inline", "thread"]
#: What happens to the siblings of a task that failed.
OnFailure = Literal["finish", "cancel"]
#: What a node calls to add a part to the `custom` stream.
StreamWriter = Callable[[Any], None]

N = TypeVar("N", bound=str)


class StreamPart(TypedDict):
    """A part of a stream with `version="v2"`."""

    #: The stream mode it belongs to.
    type: str
    #: The path to the graph that made it: `node:task` labels, outermost first; empty for the graph that was run.
    ns: tuple[str, ...]
    data: Any
    #: The superstep of that graph; 0 is its input.
    step: int
    #: The id of the task that it is about; None for a part about a whole superstep.
    task: str | None


@dataclass(frozen=True, slots=True)
class Send:
    """A request to run `node` in the next superstep with `arg` as its input, in place of the state.

    Several `Send`s to one node are several tasks. `arg` may be of any type and is given as it is.
    """

    node: str
    arg: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Generic[N]):
    """What a node returns to update the state and choose what runs next, in one value.

    Args:
        update: A mapping of updates, a list of (field, update) pairs, or an instance of a schema.
        goto: A node's name, a `Send`, or a sequence of these; it adds to the node's static edges.
        graph: None for this graph; `Command.PARENT` for the graph whose node this one is.
        resume: Answers to a paused run; only for the input of a run.
    """

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    update: Any = None
    goto: N | Send | Sequence[N | Send] = ()
    graph: str | None = None
    resume: Any = None
