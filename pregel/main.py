"""`Pregel`: a compiled graph and the ways to run it."""

from __future__ import annotations

from contextlib import aclosing, closing
from copy import copy
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Self

from typing_extensions import TypeVar

from pregel.config import merged_config, read_config, read_control, read_modes, read_on_failure, read_version
from pregel.drivers.offloop import off_loop
from pregel.errors import MissingCheckpointerError
from pregel.lowlevel import compile_channels
from pregel.observe import watched
from pregel.persistence import UNSTORED, read_persistence
from pregel.placing import results
from pregel.reporter import Audience
from pregel.runtime import FRAME, numbered
from pregel.session import Session
from pregel.stateful import Stateful
from pregel.types import Command, StreamPart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence

    from pregel.channels.base import Channel
    from pregel.checkpoint.base import Checkpointer
    from pregel.config import RunConfig
    from pregel.control import RunControl
    from pregel.door import Door
    from pregel.lowlevel import ChannelNode, NodeBuilder
    from pregel.network import Network
    from pregel.persistence import Persistence
    from pregel.reporter import Emit
    from pregel.store.base import BaseStore
    from pregel.types import (
        Durability,
        ExecutorLike,
        GroupCommit,
        Migration,
        OnBusy,
        OnFailure,
        StreamMode,
        StreamVersion,
    )

__all__ = ["Pregel"]


#: What the caller of a run gets: a dict for a `StateGraph`.
ResultT = TypeVar("ResultT", default=Any)


class Pregel(Stateful, Generic[ResultT]):
    """A compiled graph. It holds no run's state, so one may be run any number of times at once.

    Every way to run it takes sync and async nodes in any mixture, under no event loop, asyncio and trio.

    A `StateGraph` compiles into one. The constructor is the low level, for nodes that subscribe to channels.

    Args:
        nodes: Nodes by name, in the order in which their writes are applied; a `NodeBuilder` need not be built.
        channels: Channels by name; a class that needs no parameters stands for its instance.
        input_channels: What the input sets: a list, for a mapping from channel to update, or one name, for the bare
            update of that channel.
        output_channels: What the caller gets: a list, for a dict of those that hold a value, or one name, for its bare
            value (None if it holds none).
        name: The graph's name, for messages.
        executor: Where the sync code of nodes runs: "thread" in a worker thread when others run beside it, "inline"
            never.
        on_failure: What becomes of the siblings of a task that fails, where a run does not say.
        checkpointer: Where runs are stored; this and what follows is as for `StateGraph.compile`.
        store: Long-term memory.
        durability: When what a run commits is stored.
        on_busy: What a run does whose thread is taken.
        interrupt_before: Nodes before which a run stops.
        interrupt_after: Nodes after which it does.
        migrations: What has become of versions of the graph that are stored.

    Raises:
        GraphDefinitionError: A name is unknown, a node can never run or does nothing, or no node subscribes to an
            input channel.
    """

    #: The config that every run begins from, if one was bound.
    _config: Mapping[str, Any] | None = None

    def __init__(
        self: Pregel[Any],
        *,
        nodes: Mapping[str, NodeBuilder | ChannelNode],
        channels: Mapping[str, Channel | type[Channel]],
        input_channels: str | Sequence[str],
        output_channels: str | Sequence[str],
        name: str = "Pregel",
        executor: ExecutorLike = "thread",
        on_failure: OnFailure = "finish",
        checkpointer: Checkpointer | bool | None = None,
        store: BaseStore | None = None,
        durability: Durability | GroupCommit = "sync",
        on_busy: OnBusy = "reject",
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        migrations: Migration | Sequence[Migration] = (),
    ) -> None:
        network, door, output = compile_channels(
            nodes=nodes,
            channels=channels,
            input_channels=input_channels,
            output_channels=output_channels,
            name=name,
            executor=executor,
        )
        self._assemble(
            network,
            door,
            on_failure=on_failure,
            persistence=read_persistence(
                network,
                checkpointer=checkpointer,
                types=tuple,
                durability=durability,
                on_busy=on_busy,
                interrupt_before=interrupt_before,
                interrupt_after=interrupt_after,
                migrations=migrations,
                store=store,
                children={},
            ),
            output=output,
        )

    def _assemble(
        self,
        network: Network,
        door: Door,
        *,
        on_failure: OnFailure,
        persistence: Persistence = UNSTORED,
        read_context: Callable[[Any], Any] = lambda context: context,
        output: str | None = None,
    ) -> None:
        """Take what a front door compiled: every subclass calls this in place of the public constructor."""
        self._network = network
        self._door = door
        self._on_failure = read_on_failure(on_failure)
        self._persistence = persistence
        self._read_context = read_context
        # The field whose bare value is the result; None where the result is a dict.
        self._output = output

    @property
    def name(self) -> str:
        """The graph's name, as messages give it."""
        return self._network.name

    @property
    def outputs(self) -> tuple[str, ...]:
        """The fields that a caller gets."""
        return self._network.outputs

    @property
    def needs_loop(self) -> bool:
        """Whether some node is async only, so that a run needs an event loop."""
        return self._network.needs_loop

    @property
    def uses_loop(self) -> bool:
        """Whether some code is awaited where there is an event loop."""
        return self._network.uses_loop

    @property
    def fingerprint(self) -> str:
        """What tells this version of the graph from others: it changes with nodes, edges and channels."""
        return self._persistence.format.fingerprint  # type: ignore[union-attr]  # every graph that can be stored has one

    @property
    def remembers(self) -> bool:
        """Whether it has a history of its own inside the graph that runs it."""
        return self._persistence.checkpointer is True

    def takes(self, name: str) -> bool:
        """Return whether a caller may set a field."""
        return name in self._door.accepted

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
        durability: Durability | GroupCommit | None = None,
        on_busy: OnBusy | None = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        control: RunControl | None = None,
    ) -> ResultT:
        """Run the graph to its end.

        Args:
            input: A mapping of fields, or an instance of the input schema; where there is one bare input channel, its
                update. Where runs are stored, None goes on with what is due on the thread, and `Command(resume=...)`
                answers what a paused run asked.
            config: Options of the run; see `pregel.config.RunConfig`.
            context: What nodes find as `runtime.context`.
            on_failure: What becomes of the siblings of a task that fails: "finish" lets them run to their end,
                "cancel" does not.
            durability: When what the run commits is stored: "sync" before the next superstep, "async" in groups while
                it goes on, "exit" at its end.
            on_busy: What to do where another run has the thread: "reject" raises, "wait" waits.
            interrupt_before: Nodes before which the run stops; "*" for all.
            interrupt_after: Nodes after which it does.
            control: Lets another thread ask the run to stop at the next barrier: `RunControl.request_drain`.

        Returns:
            A dict of the visible fields of the final state that have a value; where there is one bare output channel,
            its value, or None. A run that is paused gives a dict with `__interrupt__`: why, as a list of `Interrupt`s
            and `Breakpoint`s.

        Raises:
            InvalidInputError: The input does not fit the schema; nothing was run.
            InvalidConfigError: An option is unknown or wrong; nothing was run.
            InvalidUpdateError: A node's result is no valid update, or updates conflict.
            GraphRecursionError: The run is not over after `recursion_limit` supersteps.
            StarvedJoinError: The run ended with a join that heard from some of its sources only.
            InvalidResumeError: An answer fits nothing that was asked; nothing was run.
            ThreadBusyError: Another run has the thread; nothing was run.
            ConcurrentRunError: Another run took the thread over, since this one's lease had expired; it commits nothing
                more.
            GraphChangedError: What is stored belongs to another version of the graph; nothing was run.
            Exception: What a node raised; several failed tasks make an `ExceptionGroup`.
        """
        session = self._session(
            input,
            config,
            context,
            on_failure,
            self._persistence.for_run(self._network, durability, on_busy, interrupt_before, interrupt_after),
            inside=True,
            control=control,
        )
        if self._network.needs_loop:
            from pregel.drivers.bridge import run_async  # noqa: PLC0415 - only graphs with async nodes need a loop

            run_async(session.acomplete)
        else:
            session.complete()
        return self._result(session)

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        on_failure: OnFailure | None = None,
        durability: Durability | GroupCommit | None = None,
        on_busy: OnBusy | None = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        control: RunControl | None = None,
    ) -> ResultT:
        """Run the graph to its end, on asyncio or trio; see `invoke`."""
        session = self._session(
            input,
            config,
            context,
            on_failure,
            self._persistence.for_run(self._network, durability, on_busy, interrupt_before, interrupt_after),
            inside=True,
            control=control,
        )
        await session.acomplete()
        return self._result(session)

    def _result(self, session: Session) -> ResultT:
        """Return what the caller of a run that is over gets."""
        shown: Any = session.result()
        if self._output is None or session.machine.pauses:
            return shown  # type: ignore[no-any-return]
        return shown.get(self._output)  # type: ignore[no-any-return]

    def stream(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        stream_mode: StreamMode | Sequence[StreamMode] = "updates",
        subgraphs: bool = False,
        version: StreamVersion = "v1",
        context: Any = None,
        on_failure: OnFailure | None = None,
        durability: Durability | GroupCommit | None = None,
        on_busy: OnBusy | None = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        control: RunControl | None = None,
    ) -> Generator[Any, None, None]:
        """Run the graph and yield parts as they come.

        Args:
            input: See `invoke`.
            config: See `invoke`.
            stream_mode: One of these, or a list:
                "values": the visible state after the input and after each superstep that changed it;
                "updates": `{node: updates}` for each task that ended, in the order of ending;
                "custom": what nodes give to their writer;
                "messages": `(message, metadata)` for each token of a model while its node still runs, and for each
                message of an update whose tokens were not told;
                "tasks": a part when a task begins and one when it ends, with everything it read and wrote;
                "checkpoints": the state after each superstep that was stored, with what is due next;
                "debug": both, with step and time.
            subgraphs: Whether the parts of graphs inside this one are yielded too, each with the path to its graph.
            version: "v1" yields `part`, `(mode, part)` for a list of modes, with subgraphs `(path, part)` and
                `(path, mode, part)`. "v2" always yields a `StreamPart`.
            context: See `invoke`.
            on_failure: See `invoke`.
            durability: See `invoke`.
            on_busy: See `invoke`.
            interrupt_before: See `invoke`.
            interrupt_after: See `invoke`.
            control: See `invoke`.

        Yields:
            The parts, in the shape that `version` says.

        Raises:
            Exception: As `invoke`, after the parts that were made before. Bad options raise at the call itself.
        """
        stored = self._persistence.for_run(self._network, durability, on_busy, interrupt_before, interrupt_after)
        session, shape, takes = self._streamed(
            input,
            config,
            context,
            on_failure,
            stored,
            stream_mode=stream_mode,
            subgraphs=subgraphs,
            version=version,
            control=control,
        )
        if self._network.needs_loop:
            from pregel.drivers.bridge import iterate_async  # noqa: PLC0415 - only graphs with async nodes need a loop

            return shown_parts(iterate_async(session.aparts), shape, takes)
        return shown_parts(session.parts(), shape, takes)

    def astream(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        stream_mode: StreamMode | Sequence[StreamMode] = "updates",
        subgraphs: bool = False,
        version: StreamVersion = "v1",
        context: Any = None,
        on_failure: OnFailure | None = None,
        durability: Durability | GroupCommit | None = None,
        on_busy: OnBusy | None = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        control: RunControl | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Run the graph on asyncio or trio and yield parts as they come; see `stream`.

        The run lives in a task of its own. Leaving the loop early and closing the generator cancel the run and wait
        for its end (PEP 789: no cancel scope is held across a `yield`).
        """
        stored = self._persistence.for_run(self._network, durability, on_busy, interrupt_before, interrupt_after)
        session, shape, takes = self._streamed(
            input,
            config,
            context,
            on_failure,
            stored,
            stream_mode=stream_mode,
            subgraphs=subgraphs,
            version=version,
            control=control,
        )
        return ashown_parts(session.aparts(), shape, takes)

    def _streamed(
        self,
        given: Any,
        config: Mapping[str, Any] | None,
        context: Any,
        on_failure: OnFailure | None,
        persistence: Persistence,
        *,
        stream_mode: StreamMode | Sequence[StreamMode],
        subgraphs: bool,
        version: StreamVersion,
        control: RunControl | None,
    ) -> tuple[Session, Callable[[Emit], Any], Callable[[Emit], bool] | None]:
        """Return a run for a reader, what gives its parts their shape, and what says which he takes, if not all."""
        modes, tagged = read_modes(stream_mode)
        bare = "debug" not in modes and "messages" not in modes
        shape = shaper(tagged=tagged, subgraphs=subgraphs, bare=bare, version=read_version(version))
        session = self._session(
            given, config, context, on_failure, persistence, modes=modes, subgraphs=subgraphs, control=control
        )
        return session, shape, Audience().takes if "messages" in modes else None

    def with_config(self, config: RunConfig | Mapping[str, Any]) -> Self:
        """Return this graph with a config that each of its runs begins from; what a run is given is laid over it.

        Raises:
            InvalidConfigError: An option is unknown or wrong.
        """
        read_config(config)
        bound = copy(self)
        bound._config = merged_config(self._config, config)  # noqa: SLF001 - a copy of this very object
        return bound

    def batch(
        self,
        inputs: Sequence[Any],
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Run the graph once for each input, side by side in threads.

        Args:
            inputs: The inputs.
            config: Options of each run; its `max_concurrency` also says how many runs go on at once.
            return_exceptions: Whether an error stands in the place of a result. Otherwise the first one in the order of
                the inputs is raised, when all runs have ended.
            options: As `invoke`.

        Returns:
            The results in the order of the inputs.
        """
        from pregel.batch import run_all  # noqa: PLC0415 - most programs never run a batch

        limit = read_config(merged_config(self._config, config)).max_concurrency
        calls = [numbered(partial(self.invoke, each, config, **options)) for each in inputs]
        return run_all(calls, limit, keep_errors=return_exceptions)

    async def abatch(
        self,
        inputs: Sequence[Any],
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Run the graph once for each input, side by side on asyncio or trio; see `batch`."""
        from pregel.batch import run_all_async  # noqa: PLC0415 - most programs never run a batch

        limit = read_config(merged_config(self._config, config)).max_concurrency
        calls = [numbered(partial(self.ainvoke, each, config, **options)) for each in inputs]
        return await run_all_async(calls, limit, keep_errors=return_exceptions)

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget the results that are kept in the graph's cache; without one nothing happens.

        Args:
            nodes: The nodes whose results go; None for all nodes of this graph.

        Raises:
            InvalidConfigError: One is no node.
        """
        kept = results(self._persistence, None)
        if kept is not None:
            kept.clear(nodes)

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget the results that are kept in the graph's cache, on asyncio or trio; see `clear_cache`."""
        kept = results(self._persistence, None)
        if kept is not None and kept.blocking:
            await off_loop(partial(kept.clear, nodes))
        else:
            self.clear_cache(nodes)

    def _session(
        self,
        given: Any,
        config: Mapping[str, Any] | None,
        context: Any,
        on_failure: OnFailure | None,
        persistence: Persistence | None = None,
        *,
        modes: tuple[str, ...] = (),
        subgraphs: bool = False,
        inside: bool = False,
        control: RunControl | None = None,
    ) -> Session:
        """Return a run that has taken its input. Everything that a caller can get wrong is checked here.

        A run inside a task of another one has that one's config and context unless it is given its own; if nobody reads
        it here, its parts go where that task's parts go.
        """
        frame = FRAME.get(None)
        if frame is not None:
            config = frame[1].config if config is None else config
            context = frame[1].context if context is None else context
        session = watched(Session)(
            self._network,
            read_config(config if self._config is None else merged_config(self._config, config)),
            context=self._read_context(context),
            on_failure=self._on_failure if on_failure is None else read_on_failure(on_failure),
            persistence=persistence or self._persistence,
            modes=modes,
            subgraphs=subgraphs,
            around=frame,
            tells=inside,
            control=read_control(control),
        )
        if session.place == "nowhere" and "checkpoints" in modes:
            raise MissingCheckpointerError(
                f"graph {self.name!r} was compiled without a checkpointer, so stream_mode='checkpoints' has nothing to "
                "tell: compile(checkpointer=...)"
            )
        if session.place == "root" and (given is None or isinstance(given, Command)):
            session.resume(given)
        else:
            session.start(self._door.updates(given, session.run.new_id))
        return session


def shaper(*, tagged: bool, subgraphs: bool, bare: bool, version: StreamVersion) -> Callable[[Emit], Any]:
    """Return what gives parts the shape that was asked for; bare payloads are shown as they are."""
    if version == "v2":
        return lambda part: StreamPart(
            type=part.mode, ns=part.namespace, data=shown(part), step=part.step, task=part.task and part.task.id
        )
    if subgraphs:
        return lambda part: (part.namespace, part.mode, shown(part)) if tagged else (part.namespace, shown(part))
    if tagged:
        return lambda part: (part.mode, shown(part))
    return attrgetter("payload") if bare else shown


def shown(part: Emit) -> Any:
    """Return a part's payload; one for debugging gets the time, which the machine does not know."""
    if part.mode == "debug":
        return {"step": part.step, "timestamp": datetime.now(UTC).isoformat(), **part.payload}
    return tuple(part.payload) if part.mode == "messages" else part.payload


def shown_parts(
    parts: Generator[Emit, None, None], shape: Callable[[Emit], Any], takes: Callable[[Emit], bool] | None
) -> Generator[Any, None, None]:
    """Yield the parts that the reader takes, in their shape."""
    with closing(parts):
        for part in parts:
            if takes is None or takes(part):
                yield shape(part)


async def ashown_parts(
    parts: AsyncGenerator[Emit, None], shape: Callable[[Emit], Any], takes: Callable[[Emit], bool] | None
) -> AsyncGenerator[Any, None]:
    """Yield the parts that the reader takes, in their shape."""
    async with aclosing(parts):
        async for part in parts:
            if takes is None or takes(part):
                yield shape(part)
