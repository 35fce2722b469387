"""What users hold in their hands: control values and the names of modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar

from pregel.channels.base import MISSING, Overwrite
from pregel.lazy import lazily
from pregel.transient import default_retry_on

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from datetime import timedelta

    from pregel.interrupting import interrupt

__all__ = [
    "END",
    "START",
    "Breakpoint",
    "CachePolicy",
    "Command",
    "Defer",
    "Durability",
    "ExecutorLike",
    "ExecutorName",
    "GroupCommit",
    "Interrupt",
    "Migration",
    "NodeError",
    "OnBusy",
    "OnFailure",
    "Overwrite",
    "PregelTask",
    "RetryPolicy",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamMode",
    "StreamPart",
    "StreamVersion",
    "StreamWriter",
    "TimeoutPolicy",
    "default_retry_on",
    "interrupt",
]

#: The virtual node before the first superstep: edges from it say which nodes an input makes due.
START: Final = "__start__"
#: The virtual node that runs nothing: an edge to it says that a path ends.
END: Final = "__end__"

StreamMode = Literal["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug"]
#: The shape of stream parts: bare or tagged ones, or typed ones.
StreamVersion = Literal["v1", "v2"]
#: Where a node's code runs: in the thread of the run, or in a worker thread.
ExecutorName = Literal["inline", "thread"]
#: The same, or what runs it somewhere else.
ExecutorLike: TypeAlias = "ExecutorName | Executor"
#: What happens to the siblings of a task that failed.
OnFailure = Literal["finish", "cancel"]
#: Whether a node waits until nothing else is due, or until nothing that is due can lead to it.
Defer: TypeAlias = bool | Literal["live"]
#: When what a run does is stored: before the next superstep starts, in groups while the run goes on, or at its end.
Durability = Literal["sync", "async", "exit"]
#: What a run does that finds its thread taken by another one.
OnBusy = Literal["reject", "wait"]
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
        resume: The answer to a paused run, or several as a mapping from `Interrupt.id`; only for the input of a run.
            `None` is an answer.
    """

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    update: Any = None
    goto: N | Send | Sequence[N | Send] = ()
    graph: str | None = None
    resume: Any = MISSING


@dataclass(frozen=True, slots=True)
class Interrupt:
    """What a paused task asks."""

    #: What the node gave to `interrupt`.
    value: Any
    #: What an answer names it by: the task's id and the number of the question in it.
    id: str
    #: The JSON schema that the answer must fit, where the node gave a `response_schema`.
    response_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Why a run stopped that asks nothing: `interrupt_before` or `interrupt_after` names these nodes, or it drained."""

    #: "drain" where its `RunControl` asked it to stop; the nodes are those that would have run next.
    when: Literal["before", "after", "drain"]
    nodes: tuple[str, ...]


class PregelTask(NamedTuple):
    """A task that is due, or whose superstep is not committed yet."""

    id: str
    name: str
    #: What it raised, as text, if it failed.
    error: str | None = None
    #: What it asks, if it is paused.
    interrupts: tuple[Interrupt | Breakpoint, ...] = ()
    #: Where its node is a graph that has begun: with `subgraphs=True` the state of that, else the config to read it.
    state: Any = None
    #: The updates it made, if it ended well while its siblings did not.
    result: Any = None


class StateSnapshot(NamedTuple):
    """Where a thread stands, or stood."""

    #: The values of the last barrier, private fields included.
    values: Any
    #: The nodes that are due and have not ended well.
    next: tuple[str, ...]
    #: Names this checkpoint; give it to `invoke` or `get_state` to go back to it.
    config: Mapping[str, Any]
    #: "source" ("input", "loop", "update", "fork"), "step", what the run's config had as metadata, and where there is
    #: something to tell "dropped" (due nodes that were left behind) and "pause" (a `Breakpoint`).
    metadata: Mapping[str, Any] | None
    created_at: str | None
    parent_config: Mapping[str, Any] | None
    tasks: tuple[PregelTask, ...]
    #: What all paused tasks ask.
    interrupts: tuple[Interrupt | Breakpoint, ...]


class StateUpdate(NamedTuple):
    """One update of `bulk_update_state`."""

    values: Any
    as_node: str | None = None


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """`durability="async"` with bounds of its own: how much of a run a crash may lose.

    Args:
        steps: How many commits may wait to be written.
        milliseconds: How long the oldest of them may have waited before the run waits for it.
    """

    steps: int = 100
    milliseconds: float = 100.0


@dataclass(frozen=True, slots=True)
class Migration:
    """How a checkpoint of another version of the graph becomes one of this version.

    Args:
        nodes: New names of nodes, by their old ones.
        state: From the stored values, by field, to those of this version. It gets a dict of its own.
        of: The `fingerprint` of the version it is for; None for any other version.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    state: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    of: str | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a node that failed is tried again, and how long it waits before.

    The wait after the n-th failure is `initial_interval * backoff_factor ** (n - 1)` seconds, at most `max_interval`.

    Args:
        initial_interval: The first wait, in seconds.
        backoff_factor: What each wait is multiplied by to give the next.
        max_interval: No wait is longer, in seconds.
        max_attempts: How many attempts there are, the first one among them.
        jitter: Whether waits differ by up to a quarter from task to task, so that what failed together does not come
            again together. The same task waits as long each time it is run.
        retry_on: The exceptions after which there is another attempt, as a class, a tuple, or a function that says
            whether there is.
    """

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool] = default_retry_on


@dataclass(frozen=True, slots=True)
class TimeoutPolicy:
    """How long one attempt at a node may take; None is for ever.

    Args:
        run_timeout: From its beginning to its end, in seconds.
        idle_timeout: From one sign of life to the next, in seconds: `runtime.heartbeat()`, a part that it writes to a
            stream, or a token of a model.
    """

    run_timeout: float | timedelta | None = None
    idle_timeout: float | timedelta | None = None


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """When the result of an earlier run of a node stands for another one.

    Args:
        key_func: Gives what tells inputs apart from what the node is given; None for all of that.
        ttl: How long a result may be used, in seconds; None for ever.
    """

    key_func: Callable[[Any], Any] | None = None
    ttl: float | None = None


class NodeError(NamedTuple):
    """Why an error handler runs: given to its parameter `error`."""

    #: The node that failed.
    node: str
    #: What its last attempt raised.
    error: Exception
    #: How many attempts there were.
    attempts: int


# Where LangGraph has it; its home needs this module.
__getattr__, __dir__ = lazily(__name__, {"interrupt": "pregel.interrupting"})
