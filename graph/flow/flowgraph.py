"""`FlowGraph`: activities, gateways, joins, loops and agents, linked by name, over one `FlowContext`."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.errors import ConcurrentRunError, GraphChangedError, nearest
from pregel.graph.flow.builder import FlowBuilder
from pregel.graph.flow.errors import FlowDefinitionError, MissingKeyError
from pregel.graph.flow.folding import Folded, folded_keys
from pregel.graph.flow.home import what_is_there
from pregel.graph.flow.parts import TRACE
from pregel.graph.flow.resources import add_needs
from pregel.graph.flow.running import Outcome, Turn, cursor_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.compile import CompiledStateGraph
    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.home import Cursor
    from pregel.graph.flow.keys import KeySpace

__all__ = ["FlowGraph"]

#: What the fields of graphs and contexts begin with.
OWN: Final = ("@@", "@key/", "@items/", "@at/")


class FlowGraph(FlowBuilder):
    """A graph of steps that share the data of one context. It records; running or `compile` checks and compiles it.

    It begins at the node that was added first. A node without a link ends its path.

    Args:
        name: Names it on a context: each graph has its own cursor there.
        keys: The keys it may use, with their types and writers; None for any.
        debug: Give nodes copies, and raise `MutatedStateError` where one changes a value in place. Slow.
    """

    def __init__(self, name: str, keys: type[KeySpace] | None = None, *, debug: bool = False) -> None:
        super().__init__(name, keys)
        self.debug = debug
        #: The compiled graph that runs are made of, once there is one and until the graph is changed.
        self._compiled: CompiledStateGraph[Any, Any, Any, Any] | None = None
        self._folded: list[Folded] | None = None

    def changed(self) -> None:
        """Forget what was compiled."""
        self._compiled = None

    # -- compiling -----------------------------------------------------------------------------------------------------

    def compile(
        self,
        checkpointer: Checkpointer | bool | None = None,  # noqa: FBT001 - as `StateGraph.compile`
        **options: Any,
    ) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Check the graph and make it a `Pregel` of its own, for use without a context or as a node.

        Its input and result are `{"data": {key: value}}`; a name with a reducer is the field "@key/<name>". What it
        keeps for itself (the trace, the positions of loops, the logs of agents) is private: see `get_state`.

        Args:
            checkpointer: See `StateGraph.compile`; this and the options.
            options: See `StateGraph.compile`.

        Raises:
            FlowDefinitionError: The graph, or what it says of its keys, can't mean anything.
        """
        from pregel.graph.flow.compiling import build  # noqa: PLC0415 - the engine's builder is loaded when it is needed

        options = {"name": self.name, "debug": self.debug, **options}
        builder = build(self, stored=checkpointer not in {None, False}, debug=bool(options["debug"]))
        return builder.compile(checkpointer, **options)

    def stored_in(self, saver: Checkpointer) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the compiled graph with runs that are stored there. It is compiled once, whatever the contexts."""
        if self._compiled is None:
            from pregel.graph.flow.compiling import build  # noqa: PLC0415 - as above

            builder = build(self, stored=True, handed_over=True, debug=self.debug)
            self._compiled = builder.compile(checkpointer=True, name=self.name, debug=self.debug)
        # Each context has a store of its own, and to compile anew for each would cost more than a short run does. The
        # engine has no public name for a compiled graph in another store, so the part that stores is exchanged in a
        # copy; all else of a compiled graph is never changed, and shared.
        bound = copy(self._compiled)
        bound._persistence = self._compiled._persistence.stored_in(saver)  # noqa: SLF001 - see above
        return bound

    def private_fields(self) -> dict[str, Any]:
        """Return the fields that its agents keep on a context, with their types.

        Raises:
            FlowDefinitionError: One has a name that is not an agent's to give.
        """
        found: dict[str, Any] = {}
        for record in self.records.values():
            if record.kind == "agent":
                found.update(record.action.fields())
        for name in found:
            if not name.startswith("@") or name.startswith(OWN) or name == TRACE:
                raise FlowDefinitionError(
                    f"an agent of graph {self.name!r} keeps the field {name!r}: such fields have names that begin with "
                    f"one '@', and neither {TRACE!r} nor {', '.join(map(repr, OWN))}"
                )
        return found

    def resources(self, names: Collection[str] | None = None) -> dict[str, type]:
        """Return what a run must be given, by name.

        Args:
            names: The nodes that may run; None for all.

        Raises:
            FlowDefinitionError: Two nodes want one name to be of two types.
        """
        found: dict[str, type] = {}
        for record in self.records.values():
            if names is None or record.name in names:
                add_needs(found, record.resources, record.where(self.name))
        return found

    def folded(self) -> list[Folded]:
        """Return the keys that have a reducer, with their fields."""
        if self._folded is None:
            self._folded = [] if self.keys is None else folded_keys(self.keys.keys.values())
        return self._folded

    def checked_data(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return data that the caller gives, as a dict of its own. Keys that the graph does not know may be there.

        Raises:
            KeyTypeError: A value is not of its key's type.
        """
        if self.keys is None:
            return dict(values)
        declared = self.keys.keys
        where = f"the data for graph {self.name!r}"
        return {k: declared[k].accept(value, where) if k in declared else value for k, value in values.items()}

    def check_given(self, there: Collection[str], where: str) -> None:
        """Check that a run has the keys that it must be given.

        Args:
            there: The keys that it has.
            where: How messages name what it is given them by.

        Raises:
            MissingKeyError: Some are not there; the message names them.
        """
        missing = [name for name, key in ({} if self.keys is None else self.keys.keys).items() if key.given]
        missing = [name for name in missing if name not in there]
        if missing:
            raise MissingKeyError(
                f"graph {self.name!r} must be given {', '.join(map(repr, missing))}, by its Key(given=True), and "
                f"{where} does not have it.{nearest(missing[0], there)} {what_is_there(there)} Nothing was run"
            )

    # -- running -------------------------------------------------------------------------------------------------------

    def run(
        self,
        ctx: FlowContext,
        *,
        resources: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        restart: bool = False,
    ) -> Outcome:
        """Run the graph from its beginning on a context, whose data it reads and writes.

        When it ends, in whatever way, the context has the data and the trace of the last superstep that was committed.

        Args:
            ctx: The context. It takes one run at a time.
            resources: What agents need and no snapshot holds, by name.
            max_steps: How many supersteps may run (a gateway is a step too); None for the engine's limit.
            restart: Drop an unfinished run of this graph.

        Returns:
            How it ended: "finished", "paused" or "stopped".

        Raises:
            FlowDefinitionError: The graph can't mean anything; nothing was run.
            FlowRunError: The graph has an unfinished run on the context; nothing was run.
            MissingKeyError: A key that must be given is not there; nothing was run.
            MissingResourceError: A resource is missing; nothing was run.
            ContextBusyError: Another run has the context; nothing was run.
            GraphRecursionError: `max_steps` were not enough; `resume` goes on.
            Exception: What an activity raised; `resume` runs again what did not end.
        """
        return self._run(
            Turn(self, ctx, resources, max_steps), lambda turn: turn.start(restart=restart), restart=restart
        )

    async def arun(
        self,
        ctx: FlowContext,
        *,
        resources: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        restart: bool = False,
    ) -> Outcome:
        """Run the graph on asyncio or trio; see `run`."""
        return await self._arun(
            Turn(self, ctx, resources, max_steps), lambda turn: turn.start(restart=restart), restart=restart
        )

    def resume(
        self,
        ctx: FlowContext,
        answer: Any = MISSING,
        *,
        resources: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
    ) -> Outcome:
        """Go on with an unfinished run: with what is due, and nothing that has ended.

        Args:
            ctx: The context; what was changed in it meanwhile counts.
            answer: For a paused run: the answer, or several by `Interrupt.id`. None is an answer.
            resources: See `run`; for the nodes that may still run.
            max_steps: See `run`.

        Returns:
            How it ended.

        Raises:
            FlowRunError: Nothing is unfinished, or all that is waits for an answer; nothing was run.
            InvalidResumeError: The answer fits nothing that is asked, and nothing was run; or it is not of the type
                that was asked for, or that its key takes, and it is asked again.
            Exception: See `run`.
        """
        return self._run(Turn(self, ctx, resources, max_steps), lambda turn: turn.go_on(answer))

    async def aresume(
        self,
        ctx: FlowContext,
        answer: Any = MISSING,
        *,
        resources: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
    ) -> Outcome:
        """Go on with an unfinished run on asyncio or trio; see `resume`."""
        return await self._arun(Turn(self, ctx, resources, max_steps), lambda turn: turn.go_on(answer))

    def cursor(self, ctx: FlowContext) -> Cursor:
        """Return where the graph stands on a context."""
        home = ctx.home
        return cursor_of(self.name, self.stored_in(home.storage()).get_state(thread_config(home.thread(self.name))))

    def _run(self, turn: Turn, given: Callable[[Turn], Any], *, restart: bool = False) -> Outcome:
        """Run what a turn gives, and settle it."""
        graph, thread = turn.compiled, turn.thread
        try:
            try:
                turn.found = graph.get_state(thread)
            except GraphChangedError as error:
                if not restart:
                    raise turn.gone(error) from error
                turn.forget()
                turn.found = graph.get_state(thread)
            begin = given(turn)
            turn.mark()
            try:
                result = graph.invoke(begin, **turn.options)
            except ConcurrentRunError:  # what is stored now is another run's
                raise
            except BaseException:
                turn.failed(graph.get_state(thread))
                turn.store()
                raise
            outcome = turn.ended(result, graph.get_state(thread) if "__interrupt__" in result else None)
            turn.store()
            return outcome
        finally:
            turn.release()

    async def _arun(self, turn: Turn, given: Callable[[Turn], Any], *, restart: bool = False) -> Outcome:
        """Run what a turn gives on an event loop, and settle it."""
        from anyio import CancelScope  # noqa: PLC0415 - sync runs do not pay for it

        graph, thread = turn.compiled, turn.thread
        try:
            try:
                turn.found = await graph.aget_state(thread)
            except GraphChangedError as error:
                if not restart:
                    raise turn.gone(error) from error
                await turn.off_loop(turn.forget)
                turn.found = await graph.aget_state(thread)
            begin = given(turn)
            await turn.off_loop(turn.mark)
            try:
                result = await graph.ainvoke(begin, **turn.options)
            except ConcurrentRunError:  # what is stored now is another run's
                raise
            except BaseException:
                with CancelScope(shield=True):
                    turn.failed(await graph.aget_state(thread))
                    await turn.off_loop(turn.store)
                raise
            outcome = turn.ended(result, await graph.aget_state(thread) if "__interrupt__" in result else None)
            with CancelScope(shield=True):
                await turn.off_loop(turn.store)
            return outcome
        finally:
            turn.release()


def thread_config(thread: str) -> dict[str, Any]:
    """Return the config that names a thread."""
    return {"configurable": {"thread_id": thread}}
