"""`Pregel`: a compiled graph and the ways to run it."""

from __future__ import annotations

from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5

from pregel.config import read_config, read_modes, read_on_failure
from pregel.drivers.sync import SyncDriver
from pregel.errors import InvalidConfigError
from pregel.runtime import Run
from pregel.superstep import Superstep

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence

    from pregel.config import RunConfig, RunOptions
    from pregel.door import Door
    from pregel.network import Network
    from pregel.superstep import Command, Emit
    from pregel.types import OnFailure, StreamMode

__all__ = ["Pregel"]


class Pregel:
    """A compiled graph. It holds no run's state, so one may be run any number of times at once.

    Every way to run it takes sync and async nodes in any mixture, under no event loop, asyncio and trio.
    """

    def __init__(
        self,
        network: Network,
        door: Door,
        *,
        on_failure: OnFailure = "finish",
        read_context: Callable[[Any], Any] = lambda context: context,
    ) -> None:
        self._network = network
        self._door = door
        self._on_failure = read_on_failure(on_failure)
        self._read_context = read_context

    @property
    def name(self) -> str:
        """The graph's name, as messages give it."""
        return self._network.name

    @property
    def channels(self) -> Mapping[str, Any]:
        """The channel of each field, by the field's name."""
        return {name: field.channel for name, field in self._network.fields.items()}

    def invoke(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        on_failure: OnFailure | None = None,
    ) -> dict[str, Any]:
        """Run the graph to its end.

        Args:
            input: A mapping of fields, or an instance of the input schema.
            config: Options of the run; see `pregel.config.RunConfig`.
            context: What nodes find as `runtime.context`.
            on_failure: What becomes of the siblings of a task that fails: "finish" lets them run to their end,
                "cancel" does not.

        Returns:
            The visible fields of the final state that have a value.

        Raises:
            InvalidInputError: The input does not fit the schema; nothing was run.
            InvalidConfigError: An option is unknown or wrong; nothing was run.
            InvalidUpdateError: A node's result is no valid update, or updates conflict.
            GraphRecursionError: The run is not over after `recursion_limit` supersteps.
            StarvedJoinError: The run ended with a join that heard from some of its sources only.
            Exception: What a node raised; several failed tasks make an `ExceptionGroup`.
        """
        session = Session(self, input, config, context, on_failure, ())
        if self._network.needs_loop:
            from pregel.drivers.bridge import run_async  # noqa: PLC0415 - only graphs with async nodes need a loop

            return run_async(session.complete)
        for _ in session.parts():
            pass
        return session.result()

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        on_failure: OnFailure | None = None,
    ) -> dict[str, Any]:
        """Run the graph to its end, on asyncio or trio; see `invoke`."""
        return await Session(self, input, config, context, on_failure, ()).complete()

    def stream(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        stream_mode: StreamMode | Sequence[StreamMode] = "updates",
        context: Any = None,
        on_failure: OnFailure | None = None,
    ) -> Generator[Any, None, None]:
        """Run the graph and yield parts as they come.

        Args:
            input: See `invoke`.
            config: See `invoke`.
            stream_mode: "values" (the visible state after the input and after each superstep that changed it),
                "updates" (`{node: updates}` for each task that ended, in the order of ending), "custom" (what nodes
                give to their writer), or a list of these.
            context: See `invoke`.
            on_failure: See `invoke`.

        Yields:
            The parts of one mode as they are, those of a list of modes as `(mode, part)`.

        Raises:
            Exception: As `invoke`, after the parts that were made before. Bad options raise at the call itself.
        """
        modes, tagged = read_modes(stream_mode)
        session = Session(self, input, config, context, on_failure, modes)
        if self._network.needs_loop:
            from pregel.drivers.bridge import iterate_async  # noqa: PLC0415 - only graphs with async nodes need a loop

            return shown_parts(iterate_async(session.aparts), tagged)
        return shown_parts(session.parts(), tagged)

    def astream(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        stream_mode: StreamMode | Sequence[StreamMode] = "updates",
        context: Any = None,
        on_failure: OnFailure | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Run the graph on asyncio or trio and yield parts as they come; see `stream`.

        The run lives in a task of its own. Leaving the loop early and closing the generator cancel the run and wait
        for its end (PEP 789: no cancel scope is held across a `yield`).
        """
        modes, tagged = read_modes(stream_mode)
        return ashown_parts(Session(self, input, config, context, on_failure, modes).aparts(), tagged)


class Session:
    """One run: its machine, and the driver that performs it. Making one checks all that a caller can get wrong."""

    def __init__(
        self,
        graph: Pregel,
        given: Any,
        config: Mapping[str, Any] | None,
        context: Any,
        on_failure: OnFailure | None,
        modes: tuple[str, ...],
    ) -> None:
        self.network = graph._network  # noqa: SLF001 - one class in two: what a graph is, and one run of it
        self.options: RunOptions = read_config(config)
        self.context = graph._read_context(context)  # noqa: SLF001 - see above
        self.modes = modes
        self.machine = Superstep(
            self.network,
            limit=self.options.recursion_limit,
            modes=modes,
            on_failure=graph._on_failure if on_failure is None else read_on_failure(on_failure),  # noqa: SLF001 - see above
        )
        self.new_id = id_maker(self.options.config.get("run_id"))
        self.commands: Sequence[Command] = self.machine.start(graph._door.updates(given, self.new_id))  # noqa: SLF001 - see above

    def run(self, write: Callable[[Any], None]) -> Run:
        """Return what the tasks of this run share."""
        writer = write if "custom" in self.modes else ignore
        return Run(self.options.config, self.context, writer, self.new_id)

    def result(self) -> dict[str, Any]:
        """Return the visible fields of the state."""
        return self.network.project(self.machine.values)

    def parts(self) -> Generator[Emit, None, None]:
        """Run without an event loop."""
        driver = SyncDriver(self.network, self.machine, self.options.max_concurrency, live="custom" in self.modes)
        driver.run = self.run(driver.write)
        yield from driver.perform(self.commands)

    async def complete(self) -> dict[str, Any]:
        """Run on the event loop at hand, in the task of the caller."""
        from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - sync runs do not pay for anyio
        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

        driver = AsyncDriver(
            self.network, self.machine, self.run(ignore), self.options.max_concurrency, current_loop(), None
        )
        await driver.perform(self.commands)
        return self.result()

    async def aparts(self) -> AsyncGenerator[Emit, None]:
        """Run on the event loop at hand, in a task of its own."""
        from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - sync runs do not pay for anyio
        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above
        from pregel.drivers.mailbox import Mailbox  # noqa: PLC0415 - as above
        from pregel.superstep import Emit  # noqa: PLC0415 - as above

        loop = current_loop()
        mailbox = Mailbox(loop)
        run = self.run(lambda payload: mailbox.put_from_anywhere(Emit("custom", payload)))
        driver = AsyncDriver(self.network, self.machine, run, self.options.max_concurrency, loop, mailbox)
        failure: list[BaseException] = []

        async def main() -> None:
            try:
                await driver.perform(self.commands)
            except Exception as error:  # noqa: BLE001 - raised again where the parts are read
                failure.append(error)
            finally:
                mailbox.put(None)

        stop = loop.launch(main)
        try:
            while (part := await mailbox.get()) is not None:
                yield part
        finally:
            await stop()
        if failure:
            raise failure.pop()


def ignore(payload: Any) -> None:
    """Take what a node writes to a stream that nobody asked for."""


def shown_parts(parts: Generator[Emit, None, None], tagged: bool) -> Generator[Any, None, None]:  # noqa: FBT001 - internal
    """Yield parts in the shape that was asked for."""
    with closing(parts):
        for part in parts:
            yield tuple(part) if tagged else part.payload


async def ashown_parts(parts: AsyncGenerator[Emit, None], tagged: bool) -> AsyncGenerator[Any, None]:  # noqa: FBT001 - internal
    """Yield parts in the shape that was asked for."""
    async with aclosing(parts):
        async for part in parts:
            yield tuple(part) if tagged else part.payload


def id_maker(run_id: Any) -> Callable[[str, int], str]:
    """Return what names the things that tasks make: ids that depend on run, task and number only.

    Raises:
        InvalidConfigError: `run_id` is no UUID.
    """
    if run_id is None:
        made: list[UUID] = []  # at the first id that is asked for: most runs make none

        def new_id(task: str, number: int) -> str:
            if not made:
                made.append(uuid4())
            return str(uuid5(made[0], f"{task}:{number}"))

        return new_id
    try:
        space = run_id if isinstance(run_id, UUID) else UUID(run_id)
    except (AttributeError, TypeError, ValueError):
        raise InvalidConfigError(f"config['run_id'] takes a UUID, not {run_id!r}") from None
    return partial(named_id, space)


def named_id(space: UUID, task: str, number: int) -> str:
    """Return the id of the n-th thing that a task makes."""
    return str(uuid5(space, f"{task}:{number}"))
