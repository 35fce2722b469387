"""Runs whose tasks end in an order that a seed chooses: the same seed, the same run.

What a graph comes to must not depend on which of its parallel tasks is done first. Under threads and event loops that
order is luck; here it is a number, so a test can try many orders, and can try one again.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from queue import SimpleQueue
from random import Random
from typing import TYPE_CHECKING, Any

from pregel.commands import concluded
from pregel.drivers.aio import AsyncDriver
from pregel.drivers.bridge import run_async
from pregel.drivers.loops import current_loop
from pregel.drivers.sync import SyncDriver
from pregel.reporter import Audience
from pregel.testing.tracing import recorded, task_id
from pregel.types import StreamPart

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pregel.commands import Command
    from pregel.main import Pregel
    from pregel.reporter import Emit
    from pregel.session import Session
    from pregel.task import Task
    from pregel.testing.tracing import Entry
    from pregel.types import OnFailure, StreamMode

__all__ = ["SeededRun", "run_seeded"]


@dataclass(frozen=True, slots=True)
class SeededRun:
    """How a run with a chosen order of completion went."""

    seed: int
    #: What `invoke` returns, or None if the run failed.
    result: Any
    #: What the run failed with, if it did.
    error: Exception | None
    #: What happened, as `pregel.testing.trace` tells it.
    trace: list[Entry]
    #: The parts of the stream modes asked for. Those of "debug" carry no time.
    parts: list[StreamPart]


def run_seeded(
    graph: Pregel,
    input: Any,  # noqa: A002 - as `Pregel.invoke`
    *,
    seed: int,
    config: Mapping[str, Any] | None = None,
    context: Any = None,
    on_failure: OnFailure | None = None,
    stream_mode: StreamMode | Sequence[StreamMode] | None = None,
    subgraphs: bool = False,
) -> SeededRun:
    """Run a graph with the tasks of each superstep ending in an order that a seed chooses.

    The tasks of a superstep run one after the other in that order, sync and async ones alike; so a task that waits for
    a sibling waits for ever. A graph with async nodes gets one asyncio loop for the run. Tasks of graphs inside this
    one run one after the other as well, in their declared order.

    Args:
        graph: The compiled graph.
        input: See `Pregel.invoke`.
        seed: Chooses the order.
        config: See `Pregel.invoke`. Where it has no `run_id`, a fixed one is used, so that ids are the same each time.
        context: See `Pregel.invoke`.
        on_failure: See `Pregel.invoke`; with "cancel" the error does depend on the order.
        stream_mode: The parts to keep, as for `Pregel.stream`; None keeps none.
        subgraphs: See `Pregel.stream`.

    Returns:
        How it went. What the run failed with is in there, and is not raised; so is what a run that is stored could not
        begin with, or could not store.

    Raises:
        InvalidConfigError: As `Pregel.invoke`.
        InvalidInputError: The input does not fit the schema.
    """
    session, tracer = recorded(graph, input, config, context, on_failure, stream_mode, subgraphs=subgraphs)
    parts: list[Emit] = []
    session.connect(parts.append, custom=session.custom)
    session.run = replace(session.run, max_concurrency=1)
    result: Any = None
    error: Exception | None = None
    try:
        parts.extend(performed(session, Random(seed)))  # noqa: S311 - an order is no secret
        result = graph._result(session)  # noqa: SLF001 - what `invoke` returns
    except Exception as raised:
        if raised is not tracer.error and session.claim is None:
            raise  # neither the graph nor a storage has failed
        error = raised
    return SeededRun(seed, result, error, tracer.entries, list(map(typed, filter(Audience().takes, parts))))


def performed(session: Session, order: Random) -> Generator[Emit, None, None]:
    """Perform a run from its beginning to its end, and yield the parts that do not come in another way."""
    try:
        session.open()
        if session.network.needs_loop:
            run_async(lambda: perform(session, order))
        else:
            with closing(SeededDriver(session, order).perform(session.commands)) as made:
                yield from made
    finally:
        session.close()


async def perform(session: Session, order: Random) -> None:
    """Perform a run on the event loop at hand."""
    await AsyncSeededDriver(session, order).perform(session.commands)


def typed(part: Emit) -> StreamPart:
    """Return a part in the shape of `version="v2"`."""
    data = tuple(part.payload) if part.mode == "messages" else part.payload
    return StreamPart(type=part.mode, ns=part.namespace, data=data, step=part.step, task=task_id(part))


def shuffled(tasks: Sequence[Task], order: Random) -> list[Task]:
    """Return tasks in another order."""
    return order.sample(tasks, len(tasks))


class SeededDriver(SyncDriver):
    """A sync driver whose parallel tasks run in this thread, in an order of its own."""

    def __init__(self, session: Session, order: Random) -> None:
        super().__init__(session.network, session.machine, session.run, SimpleQueue())
        self.order = order

    def crowd(self, tasks: tuple[Task, ...]) -> Generator[Emit, None, Sequence[Command]]:
        """Run the tasks of a superstep; return the commands that follow."""
        for task in shuffled(tasks, self.order):
            commands = self.machine.handle(self.attempt(task))
            if concluded(commands):
                return commands
            yield from self.meanwhile([*commands])
        raise AssertionError("a superstep ended without a conclusion")  # pragma: no cover - the machine concludes


class AsyncSeededDriver(AsyncDriver):
    """An async driver whose parallel tasks are awaited one after the other, in an order of its own."""

    def __init__(self, session: Session, order: Random) -> None:
        super().__init__(session.network, session.machine, session.run, current_loop(), None)
        self.order = order

    async def crowd(self, tasks: tuple[Task, ...]) -> Sequence[Command]:
        """Run the tasks of a superstep; return the commands that follow."""
        for task in shuffled(tasks, self.order):
            commands = self.machine.handle(await self.isolated(self.attempt(task)))
            if concluded(commands):
                return commands
            await self.obey(commands)
        raise AssertionError("a superstep ended without a conclusion")  # pragma: no cover - the machine concludes

    async def stretch(self, tasks: tuple[Task, ...]) -> Sequence[Command]:
        """Do the same where only sync code is due."""
        return await self.crowd(tasks)
