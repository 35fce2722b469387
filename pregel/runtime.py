"""What a task knows about the run it is part of, and how code inside it finds out."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from pregel.cancellation import Token
from pregel.errors import MissingStoreError, OutsideTaskError
from pregel.lazy import lazily
from pregel.reporter import Told, is_quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from pregel.control import RunControl
    from pregel.interrupting import interrupt
    from pregel.reporter import Emit, Speech
    from pregel.task import Task
    from pregel.types import Breakpoint, Interrupt, NodeError, StreamWriter

__all__ = [
    "FRAME",
    "Calls",
    "Frame",
    "Quiet",
    "Run",
    "Runtime",
    "current_frame",
    "get_runtime",
    "interrupt",
    "is_read",
    "message_writer",
    "numbered",
    "runtime_of",
    "store_of",
]

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
    #: The superstep, from 1; where runs are stored it counts on over the runs of the thread.
    step: int
    #: The same when the task runs again after a crash, and no other task's: a key for effects outside that must not
    #: happen twice. It begins with the thread's id where runs are stored; without a checkpointer nothing is repeated,
    #: and two runs have the same ids.
    task_id: str
    #: The long-term memory that the graph was compiled with, or None.
    store: Any = None
    #: The state of the last barrier, to be read: every field of the graph that has a value, also where the node was
    #: given the argument of a `Send` in its place.
    state: Mapping[str, Any] = field(default_factory=dict)
    #: The number of this attempt at the task, from 1; a run that goes on after a crash counts anew.
    attempt: int = 1
    token: Token | None = field(default=None, repr=False, compare=False)
    beat: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """The `task_id`, by the name of what it is for; all attempts at a task have the same."""
        return self.task_id

    def cancelled(self) -> bool:
        """Return whether nobody waits for this code any more: its attempt was given up, or the run was left.

        Sync code that takes long asks now and then, for nothing else can end it early.
        """
        return self.token is not None and self.token.cancelled()

    def heartbeat(self) -> None:
        """Give a sign of life: an idle timeout begins anew.

        Raises:
            AttemptRevokedError: The attempt was given up.
        """
        if self.beat is not None:
            self.beat()
        elif self.token is not None:
            self.token.check()


def ignore(payload: Any) -> None:
    """Take what a node writes to a stream that nobody asked for."""


class Quiet:
    """Takes what a node writes to a stream that nobody asked for, as a sign of life."""

    __slots__ = ("beat",)

    def __init__(self, beat: Callable[[], None]) -> None:
        self.beat = beat

    def __call__(self, _payload: Any) -> None:
        """Take what is written."""
        self.beat()


def is_read(writer: StreamWriter) -> bool:
    """Return whether somebody reads what is written there."""
    return writer is not ignore and type(writer) is not Quiet


class Calls(Protocol):
    """What a task has started beside its own code, and must not outlive it."""

    def settled(self, asked: list[Any]) -> Coroutine[Any, Any, None]:
        """Wait for all; nothing is awaited where the task is not.

        Args:
            asked: What the task asks, as in its frame: what they ask gets its place there.

        Raises:
            Exception: What one of them failed with whose result nobody has asked for.
            GraphInterrupt: The same, of one that waits for an answer.
        """

    def close(self, error: BaseException, asked: list[Any]) -> Coroutine[Any, Any, Exception | None]:
        """Wait for all before what the task raised goes on; cancel them before if it was left.

        Args:
            error: What the task raised.
            asked: See `settled`.

        Returns:
            What the task has failed with in the place of that; None for nothing else.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What all tasks of one run share; made at the door and handed down explicitly."""

    config: Mapping[str, Any]
    context: Any
    #: Gives the text of a new id for the n-th thing that a task makes: (task id, n) -> text.
    new_id: Callable[[str, int], str]
    #: How many supersteps of nodes may run, and the number of the last one that may.
    limit: int
    last_step: int
    #: How many tasks may run at once.
    max_concurrency: int | None = None
    #: Gives tasks their turns: `pregel.drivers.limits.Limits`; and whether they need one.
    limits: Any = None
    limited: bool = False
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
    #: Asks the run, and those inside it, to stop at a barrier.
    control: RunControl | None = None
    #: The answers to what tasks of the run and of runs inside it ask, by `Interrupt.id`; None where nothing is stored,
    #: so that nothing can wait for an answer.
    answers: Mapping[str, Any] | None = None
    #: Whether no run is around this one that would begin it again.
    is_outermost: bool = True
    #: The thread that the run is stored on, if it is.
    thread: str | None = None
    #: Stores what the run commits: a `pregel.checkpoint.recorder.Recorder`, of which the core knows nothing.
    recorder: Any = None
    #: The long-term memory that nodes may ask for.
    store: Any = None
    #: How messages are told; None where nobody reads them. Who reads them has set `publish`.
    speech: Speech | None = None
    #: Keeps results of nodes for later runs: a `pregel.cache.results.Results`, of which the core knows nothing.
    cache: Any = None
    #: For one attempt at a task: takes what the node returned, if it asked nothing; None where nobody keeps it.
    keeps: list[Any] | None = None
    #: For one attempt at a task: its number, what takes its signs of life, and what an error handler is to handle.
    attempt: int = 1
    beat: Callable[[], None] | None = None
    failure: NodeError | None = None
    #: Is told of supersteps and tasks: a `pregel.watch.Watch`, of which the core knows nothing; None for most runs.
    watch: Any = None
    #: Whether the results of calls that tasks make are told as updates, as they come.
    tells_calls: bool = False
    #: For a call that a task has made: its labels below the namespace, which graphs inside it have in theirs.
    calls: tuple[str, ...] = ()

    def task_id(self, task: Task) -> str:
        """Return a task's id with the path to its run: unique in the outermost run."""
        return "|".join((*self.path, task.id))


#: The task that runs the current code, its run, the numbers of the runs that it holds, what it has asked (None for a
#: question that is answered, one that is not, and a tuple of what a run inside it waits for), the state of the last
#: barrier, which is only read, the calls that it has made beside its own code (none, or one `Calls`), and whether it is
#: awaited. A bare tuple: each task makes one.
Frame = tuple[
    "Task",
    Run,
    "Iterator[int]",
    "list[Interrupt | tuple[Interrupt | Breakpoint, ...] | None]",
    "dict[str, Any]",
    "list[Calls]",
    bool,
]

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
    task, run, numbers, *rest = frame
    mine = iter((next(numbers),))

    def held() -> Any:
        FRAME.set((task, run, mine, *rest))  # type: ignore[arg-type]  # one of each
        return call()

    return held


def runtime_of(task: Task, run: Run, values: dict[str, Any]) -> Runtime[Any]:
    """Return what a task's code may ask for."""
    task_id = run.task_id(task) if run.thread is None else f"{run.thread}|{run.task_id(task)}"
    state = MappingProxyType(values)
    return Runtime(
        run.context,
        run.writer,
        run.config,
        task.node.name,
        task.step,
        task_id,
        run.store,
        state,
        run.attempt,
        run.token,
        run.beat,
    )


def store_of(task: Task, run: Run) -> Any:
    """Return the long-term memory of a task's graph.

    Raises:
        MissingStoreError: It has none.
    """
    if run.store is None:
        raise MissingStoreError(
            f"node {task.node.name!r} asks for the store, and its graph was compiled without one: "
            "compile(store=InMemoryStore())"
        )
    return run.store


def get_runtime() -> Runtime[Any]:
    """Return the runtime of the task that runs the current code.

    Raises:
        OutsideTaskError: None does.
    """
    task, run, _, _, values, *_ = current_frame()
    return runtime_of(task, run, values)


def message_writer() -> Callable[[Any], None] | None:
    """Return what tells a piece of a message to those who read `stream_mode="messages"`, while the task runs.

    It may be called in any thread. Pieces of one message have one `id`, and the message that is made of them has it as
    well, so that it is not told again when the task's update brings it. The tokens of LangChain's chat models need not
    be told: a callback does. Once the reader has left, a piece that is told in a thread ends the code there, by what no
    `except Exception` catches.

    Returns:
        None where nobody reads messages, or the run is tagged "nostream": then a model need not be asked for pieces.

    Raises:
        OutsideTaskError: No task runs this code.
    """
    task, run, *_ = current_frame()
    speech, publish = run.speech, run.publish
    if speech is None or is_quiet(speech.tags):
        beat = run.beat  # whether a node is idle must not depend on whether somebody reads it
        return None if beat is None else lambda _piece: beat()
    return lambda piece: publish(speech.part(Told, piece, task))  # type: ignore[misc]  # set wherever somebody reads


# A public name of this module too; its home needs this module.
__getattr__, __dir__ = lazily(__name__, {"interrupt": "pregel.interrupting"})
