"""What a run did, as plain values: the commands of its machine, and between them how each task ended.

A trace is a list of tuples that begin with what happened:

    ("run", task ids)                                  a superstep begins; its tasks in the order of application
    ("done", task id, updates)                         a task ended, and asked for these (field, update) pairs
    ("failed", task id, error)                         a task raised
    ("paused", task id, reasons)                       a task waits for answers
    ("keep", task id)                                  how a task ended is stored, for its superstep is open
    ("commit", step, changed, due task ids)            a superstep is stored: what it changed, and what is due
    ("drop", step)                                     what is stored of the tasks of a superstep goes
    ("emit", mode, payload, namespace, step, task id)  a part for the reader of the stream
    ("warn", message)                                  a `PregelWarning` was given
    ("finish", error)                                  the run is over; None for a run that ended well

Errors are texts: the type and the message, and those of the parts of a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from pregel.commands import CommitBarrier, CommitTask, DropTasks, Finish, RunTasks, TaskDone, TaskPaused, Warn
from pregel.config import read_modes
from pregel.drivers.bridge import iterate_async, run_async
from pregel.errors import InvalidConfigError, nearest
from pregel.reporter import Emit
from pregel.superstep import Superstep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pregel.commands import Command, Event, Outcome
    from pregel.main import Pregel
    from pregel.session import Session
    from pregel.types import OnFailure, StreamMode

__all__ = ["DriverName", "Entry", "Tracer", "recorded", "trace"]

Entry = tuple[Any, ...]  #: What happened, then what is to be said about it.
DriverName = Literal["sync", "asyncio", "trio"]
DRIVERS: Final[tuple[str, ...]] = ("sync", "asyncio", "trio")
#: The ids that tasks make depend on it, and must be the same in two runs that are compared.
RUN_ID: Final = "00000000-0000-0000-0000-000000000000"


def trace(
    graph: Pregel,
    input: Any,  # noqa: A002 - as `Pregel.invoke`
    *,
    driver: DriverName = "sync",
    config: Mapping[str, Any] | None = None,
    context: Any = None,
    on_failure: OnFailure | None = None,
    stream_mode: StreamMode | Sequence[StreamMode] | None = None,
    subgraphs: bool = False,
) -> list[Entry]:
    """Run a graph as `invoke` or its twins do, and return what happened.

    An error that ends the run is the last entry; it is not raised.

    Args:
        graph: The compiled graph.
        input: See `Pregel.invoke`.
        driver: What performs the run: "sync" is what `invoke` and `stream` use, the others are `ainvoke` and
            `astream` under that event loop.
        config: See `Pregel.invoke`. Where it has no `run_id`, a fixed one is used, so that ids are the same each time.
        context: See `Pregel.invoke`.
        on_failure: See `Pregel.invoke`.
        stream_mode: The parts that a reader takes, as for `Pregel.stream`; None runs the graph without a reader.
        subgraphs: See `Pregel.stream`. What graphs inside this one do is no part of the trace.

    Returns:
        The trace, as the head of this module describes it.

    Raises:
        InvalidConfigError: There is no such driver, or as `Pregel.invoke`.
        InvalidInputError: The input does not fit the schema.
    """
    if driver not in DRIVERS:
        raise InvalidConfigError(
            f"there is no driver {driver!r}.{nearest(driver, DRIVERS)} There are {', '.join(map(repr, DRIVERS))}"
        )
    session, tracer = recorded(graph, input, config, context, on_failure, stream_mode, subgraphs=subgraphs)
    try:
        perform(session, driver, reader=stream_mode is not None)
    except Exception as error:
        if error is not tracer.error:
            raise
    return tracer.entries


def recorded(
    graph: Pregel,
    given: Any,
    config: Mapping[str, Any] | None,
    context: Any,
    on_failure: OnFailure | None,
    stream_mode: StreamMode | Sequence[StreamMode] | None,
    *,
    subgraphs: bool,
) -> tuple[Session, Tracer]:
    """Return a run that has taken its input, and what writes its machine's doings down.

    Raises:
        InvalidConfigError: As `Pregel.invoke`.
        InvalidInputError: The input does not fit the schema.
    """
    modes = () if stream_mode is None else read_modes(stream_mode)[0]
    bound = graph._config or {}  # noqa: SLF001 - a test kit looks inside
    if config is None or isinstance(config, Mapping):
        config = config or {}
        if "run_id" not in bound and "run_id" not in config:
            config = {**config, "run_id": RUN_ID}
    session = graph._session(given, config, context, on_failure, modes=modes, subgraphs=subgraphs)  # noqa: SLF001 - as above
    tracer = session.machine = Tracer(session.machine, session.commands)
    return session, tracer


def perform(session: Session, driver: str, *, reader: bool) -> None:
    """Perform a run as the doors of `Pregel` do; a reader takes all parts."""
    if driver == "sync" and not session.network.needs_loop:
        if reader:
            drain(session.parts())
        else:
            session.complete()
    elif driver == "sync" and reader:
        drain(iterate_async(session.aparts))
    elif driver == "trio":
        anyio.run(perform_async, session, reader, backend="trio")
    else:
        run_async(lambda: perform_async(session, reader))


async def perform_async(session: Session, reader: bool) -> None:  # noqa: FBT001 - anyio.run passes by position
    """Perform a run on the event loop at hand."""
    if not reader:
        await session.acomplete()
        return
    async with aclosing(session.aparts()) as parts:
        async for _ in parts:
            pass


def drain(parts: Any) -> None:
    """Take all parts of a sync run."""
    with closing(parts):
        for _ in parts:
            pass


class Tracer(Superstep):
    """A machine that writes down what it is told and what it answers.

    Args:
        machine: The machine of a run that has begun; the tracer takes its place.
        commands: What that one has answered to its input.
    """

    __slots__ = ("entries", "error")

    def __init__(self, machine: Superstep, commands: Sequence[Command]) -> None:
        for name in Superstep.__slots__:
            setattr(self, name, getattr(machine, name))
        self.entries: list[Entry] = [entry(command) for command in commands]
        #: What the run failed with.
        self.error: Exception | None = None

    def start(self, updates: Sequence[tuple[str, Any]], *, edits: bool = False) -> tuple[Command, ...]:
        """Begin with an input, and write down what follows: only a run that is stored begins this late."""
        return self.written(super().start(updates, edits=edits))

    def resume(self, outcomes: Mapping[int, Outcome]) -> tuple[Command, ...]:
        """Go on with what is due, and write down what follows."""
        return self.written(super().resume(outcomes))

    def handle(self, event: Event) -> tuple[Command, ...]:
        """Take an event, and write it and the answer down."""
        self.entries.append(ended(event))
        return self.written(super().handle(event))

    def written(self, commands: tuple[Command, ...]) -> tuple[Command, ...]:
        """Write commands down, and return them."""
        for command in commands:
            self.entries.append(entry(command))
            if isinstance(command, Finish):
                self.error = command.error
        return commands


def ended(event: Event) -> Entry:
    """Return how a task ended as a plain value."""
    if isinstance(event, TaskDone):
        return "done", event.task.id, event.writes.updates
    if isinstance(event, TaskPaused):
        return "paused", event.task.id, event.reasons
    return "failed", event.task.id, told(event.error)


def entry(command: Command) -> Entry:  # noqa: PLR0911 - one answer for each kind of command
    """Return a command as a plain value."""
    if isinstance(command, RunTasks):
        return "run", tuple(task.id for task in command.tasks)
    if isinstance(command, Emit):
        return "emit", command.mode, command.payload, command.namespace, command.step, task_id(command)
    if isinstance(command, Warn):
        return "warn", command.message
    if isinstance(command, CommitTask):
        return "keep", command.task.id
    if isinstance(command, CommitBarrier):
        return "commit", command.step, dict(command.changed), tuple(task.id for task in command.standing.tasks)
    if isinstance(command, DropTasks):
        return "drop", command.step
    return "finish", None if command.error is None else told(command.error)


def task_id(part: Emit) -> str | None:
    """Return the id of the task that a part is about."""
    return None if part.task is None else part.task.id


def told(error: BaseException) -> str:
    """Return an error as a text."""
    text = f"{type(error).__name__}: {error}"
    return f"{text} {told_all(error.exceptions)}" if isinstance(error, BaseExceptionGroup) else text


def told_all(errors: Iterable[BaseException]) -> str:
    """Return several errors as a text."""
    return f"[{'; '.join(map(told, errors))}]"
