"""What a task knows about the run it is part of, and how code inside it finds out."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from pregel.channels.base import MISSING
from pregel.errors import (
    AttemptRevokedError,
    GraphInterrupt,
    InvalidResumeError,
    MissingCheckpointerError,
    MissingStoreError,
    OutsideTaskError,
)
from pregel.reporter import Told, is_quiet
from pregel.text import shortened
from pregel.types import START, Interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pregel.control import RunControl
    from pregel.reporter import Emit, Speech
    from pregel.task import Task
    from pregel.types import Breakpoint, NodeError, StreamWriter

__all__ = [
    "FRAME",
    "AttemptToken",
    "Calls",
    "Frame",
    "Quiet",
    "Run",
    "Runtime",
    "Token",
    "current_frame",
    "get_runtime",
    "interrupt",
    "is_read",
    "message_writer",
    "numbered",
    "runtime_of",
    "store_of",
    "unanswered",
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


class Token:
    """Whether a run was left before its end; asked before each task, so that nothing begins after it.

    Args:
        outer: The token of the run inside whose task this one takes place.
    """

    __slots__ = ("_cancelled", "_outer", "_watchers")

    #: Whether something of the same task may have been done and stored by an earlier attempt.
    repeats = False

    def __init__(self, outer: Token | None = None) -> None:
        self._cancelled = False
        self._outer = outer
        self._watchers: list[Callable[[], None]] | None = None

    def cancel(self) -> None:
        """Say that the run is left, and with it the runs inside it."""
        self._cancelled = True
        for call in tuple(self._watchers or ()):
            call()

    def cancelled(self) -> bool:
        """Return whether this run, or one around it, was left."""
        return self._cancelled or (self._outer is not None and self._outer.cancelled())

    def attempts(self) -> Iterator[AttemptToken]:
        """Yield the attempts that this run is a part of, the innermost first."""
        token: Token | None = self
        while token is not None:
            if isinstance(token, AttemptToken):
                yield token
            token = token._outer  # noqa: SLF001 - of the same class

    def check(self) -> None:
        """Check that the attempts this run is a part of still count.

        Raises:
            AttemptRevokedError: One was given up.
        """
        if any(token.revoked for token in self.attempts()):
            raise AttemptRevokedError(
                "this code goes on in an attempt that was given up: it took too long, or failed while a part of it "
                "still ran. Nothing of it counts any more. Code that takes long asks runtime.cancelled() and ends"
            )

    def watch(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call something when the run is left, on any thread, or at once where it was; return what undoes that."""
        chain: list[list[Callable[[], None]]] = []
        token: Token | None = self
        while token is not None:
            if token._watchers is None:  # noqa: SLF001 - of the same class, here and below
                token._watchers = []  # noqa: SLF001
            token._watchers.append(call)  # noqa: SLF001
            chain.append(token._watchers)  # noqa: SLF001
            token = token._outer  # noqa: SLF001
        if self.cancelled():
            call()

        def undo() -> None:
            for watchers in chain:
                watchers.remove(call)

        return undo


class AttemptToken(Token):
    """Whether one attempt at a task still counts. Only tasks whose node has a policy have one.

    Args:
        outer: The token of the run.
        repeats: Whether it is not the first attempt.
        hold: Lets one thread at a time past: a lock.
    """

    __slots__ = ("_after", "_hold", "repeats", "revoked")

    def __init__(self, outer: Token, *, repeats: bool, hold: AbstractContextManager[Any]) -> None:
        super().__init__(outer)
        self.repeats = repeats
        self.revoked = False
        self._hold = hold
        self._after: list[Callable[[], None]] = []

    def revoke(self) -> None:
        """Say that nothing counts any more that the attempt does from now on."""
        self.revoked = True
        self.cancel()

    def settle(self) -> None:
        """Wait for what the attempt was storing when it was revoked, and clear up after it."""
        with self._hold:
            while self._after:
                self._after.pop()()

    def after(self, call: Callable[[], None]) -> None:
        """Clear up in this way if the attempt is revoked."""
        self._after.append(call)

    def within(self, call: Callable[[], Any]) -> Any:
        """Call something that must not happen once the attempt is revoked, nor while that is settled.

        Raises:
            AttemptRevokedError: It is revoked.
        """
        with self._hold:
            self.check()
            around = next(self._outer.attempts(), None)  # type: ignore[union-attr]  # it is a part of a run
            return call() if around is None else around.within(call)


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


def interrupt(value: Any, response_schema: Any = None) -> Any:
    """Ask whoever runs the graph something: pause the task until there is an answer, and return it.

    The run ends with what is asked under `__interrupt__`; `invoke(Command(resume=answer), config)` goes on. The node
    then runs again from its top, and this call returns the answer. So what stands before it runs twice: keep effects
    out of there. Several calls of one node are told apart by their order.

    Args:
        value: What to ask; anything that can be stored.
        response_schema: The type that the answer must have, as pydantic understands it: JSON is converted to it.

    Returns:
        The answer, which may be None.

    Raises:
        GraphInterrupt: There is no answer yet. It is no `Exception`: let it through.
        MissingCheckpointerError: The graph runs without a checkpointer, so nothing could wait for the answer.
        OutsideTaskError: No task runs this code.
    """
    task, run, _, asked, *_ = current_frame()
    run.token.check()
    if run.answers is None:
        raise MissingCheckpointerError(
            f"node {task.node.name!r} calls interrupt, and its graph runs without a checkpointer, so that no later run "
            "could go on from here: compile(checkpointer=...) and give config={'configurable': {'thread_id': ...}}"
        )
    if task.node.name == START and run.is_outermost:
        raise OutsideTaskError(
            "a conditional edge of START can't ask anything: the input is stored when it has answered, so nothing "
            "could wait. Let the edge lead to a node, and ask there or in its own conditional edge"
        )
    adapter = None if response_schema is None else adapter_of(response_schema)
    question = Interrupt(
        value,
        # Runs inside the task that wait are no questions of its own: when they go on they are not in the list.
        f"{run.task_id(task)}#{sum(type(each) is not tuple for each in asked)}",
        None if adapter is None else adapter.json_schema(),
    )
    answer = run.answers.get(question.id, MISSING)
    error: Exception | None = None
    if answer is not MISSING and adapter is not None:
        try:
            answer = adapter.validate_python(answer)
        except ValueError as raised:
            error = InvalidResumeError(
                f"the answer to {question.id!r} of node {task.node.name!r} does not fit what was asked for: "
                f"{shortened(answer)}. The task is still paused; answer again. {raised}"
            )
            answer = MISSING
    if answer is MISSING:
        asked.append(question)
        raise GraphInterrupt((question,), error)
    asked.append(None)
    return answer


def adapter_of(schema: Any) -> Any:
    """Return what checks answers against a type."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - most graphs ask nothing

    return TypeAdapter(schema)


def unanswered(asked: Sequence[Any]) -> tuple[Interrupt | Breakpoint, ...]:
    """Return what a task, with the runs inside it, waits for.

    Its own questions come first, in their order; then those of the runs inside it, by the number of the run: which of
    several side by side was the first to pause is luck.
    """
    own = [each for each in asked if each is not None and type(each) is not tuple]
    inside = sorted((each for each in asked if type(each) is tuple), key=place_of)
    return (*own, *(reason for reasons in inside for reason in reasons))


def place_of(reasons: tuple[Interrupt | Breakpoint, ...]) -> list[list[tuple[bool, int, str]]]:
    """Return what sorts the runs inside a task: the labels of the first id, with numbers as numbers."""
    first = next((reason.id for reason in reasons if isinstance(reason, Interrupt)), "")
    return [
        [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in label.split(":")]
        for label in first.split("|")
    ]
