"""`StateGraph`: the builder. It records what a graph shall be; `compile` makes it a `Pregel`."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Self

from typing_extensions import TypeVar

from pregel.errors import STRICTNESS_CODES, GraphDefinitionError, nearest
from pregel.names import check_concurrency, check_executor, check_name
from pregel.policy import read_cache_policy, read_retries, read_timeout
from pregel.types import END, START

if TYPE_CHECKING:
    from datetime import timedelta

    from pregel.cache.base import BaseCache
    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.compile import CompiledStateGraph
    from pregel.store.base import BaseStore
    from pregel.types import (
        CachePolicy,
        Defer,
        Durability,
        ExecutorLike,
        GroupCommit,
        Migration,
        OnBusy,
        OnFailure,
        RetryPolicy,
        TimeoutPolicy,
    )

__all__ = ["END", "START", "StateGraph"]

StateT = TypeVar("StateT")
ContextT = TypeVar("ContextT", default=None)
InputT = TypeVar("InputT", default=StateT)
OutputT = TypeVar("OutputT", default=StateT)

#: A path function's answers, given by name or as a list of nodes.
PathMap = Mapping[Hashable, str] | Sequence[str]
WAITS = ("all", "live")


@dataclass(frozen=True, slots=True)
class Options:
    """What a node, or the defaults of all nodes, say of how nodes are run; None where they do not say."""

    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None
    timeout: float | timedelta | TimeoutPolicy | None = None
    cache_policy: CachePolicy | None = None
    error_handler: Any = None
    executor: ExecutorLike | None = None
    max_concurrency: int | None = None

    def over(self, defaults: Options) -> Options:
        """Return the same with the defaults where it does not say.

        An empty list of retry policies and a `TimeoutPolicy()` do say: that there is none.
        """
        if defaults == NOTHING_SAID:
            return self
        chosen = {name: getattr(defaults if getattr(self, name) is None else self, name) for name in Options.__slots__}
        return Options(**chosen)

    def check(self, where: str) -> Options:
        """Return the same, checked.

        Raises:
            GraphDefinitionError: One of them has no such value.
        """
        read_retries(self.retry_policy, where)
        read_timeout(self.timeout, where)
        read_cache_policy(self.cache_policy, where)
        handler = self.error_handler
        if not (handler is None or callable(handler) or hasattr(handler, "invoke") or hasattr(handler, "ainvoke")):
            raise GraphDefinitionError(
                f"error_handler of {where} takes a function of what the node got, not {handler!r}"
            )
        if self.executor is not None:
            check_executor(self.executor, where)
        if self.max_concurrency is not None:
            check_concurrency(self.max_concurrency, where)
        return self


NOTHING_SAID = Options()


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as it was added."""

    name: str
    action: Any
    input_schema: Any = None
    defer: Defer = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    destinations: tuple[str, ...] = ()
    options: Options = NOTHING_SAID


@dataclass(frozen=True, slots=True)
class BranchRecord:
    """A conditional edge as it was added."""

    source: str
    path: Any
    path_map: Mapping[Any, str] | None


class StateGraph(Generic[StateT, ContextT, InputT, OutputT]):
    """A graph of nodes that read and update one state.

    Args:
        state_schema: A `TypedDict`, dataclass or pydantic model; each field becomes a channel.
        context_schema: What `context=` of a run must be; nodes find it as `runtime.context`.
        input_schema: What a caller may set, if less than the state.
        output_schema: What a caller gets, if less than the state.
        allow: Strictness checks that warn instead of raise, by code; see `docs/errors.md`.
        strict: False lets all strictness checks warn.

    Raises:
        GraphDefinitionError: `allow` names a code that does not exist.
    """

    def __init__(
        self,
        state_schema: type[StateT],
        context_schema: type[ContextT] | None = None,
        *,
        input_schema: type[InputT] | None = None,
        output_schema: type[OutputT] | None = None,
        allow: Collection[str] = (),
        strict: bool = True,
    ) -> None:
        if isinstance(allow, str) or not isinstance(allow, Collection):
            raise GraphDefinitionError(f"allow takes a set of codes, not {allow!r}")
        for code in allow:
            if code not in STRICTNESS_CODES:
                raise GraphDefinitionError(
                    f"allow names {code!r}, which is no strictness check.{nearest(code, STRICTNESS_CODES)} "
                    f"There are: {', '.join(sorted(STRICTNESS_CODES))}"
                )
        self.state_schema = state_schema
        self.context_schema = context_schema
        self.input_schema: Any = input_schema or state_schema
        self.output_schema: Any = output_schema or state_schema
        self.allowed = frozenset(allow) if strict else STRICTNESS_CODES
        #: In the order they were added, which is the order in which their writes are applied.
        self.nodes: dict[str, NodeRecord] = {}
        self.edges: dict[tuple[str, str], None] = {}
        self.joins: dict[tuple[tuple[str, ...], str], str] = {}
        self.branches: list[BranchRecord] = []
        #: How nodes are run that do not say it themselves.
        self.defaults = NOTHING_SAID

    def add_node(
        self,
        node: str | Any,
        action: Any = None,
        *,
        defer: Defer = False,
        metadata: Mapping[str, Any] | None = None,
        input_schema: Any = None,
        destinations: Sequence[str] | Mapping[str, str] = (),
        executor: ExecutorLike | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        max_concurrency: int | None = None,
    ) -> Self:
        """Add a node.

        Args:
            node: Its name; or its action, whose own name it then has.
            action: A sync or async function of the state, an object with `invoke`/`ainvoke`, or a compiled graph.
            defer: True to run it when nothing else is due. "live" to run it once all that comes to it, by edges of any
                kind, has come: when nothing that is due can lead to it any more. Such a graph must declare where its
                conditional edges and commands lead, and its joins wait for all.
            metadata: For people and tools; the engine does not look at it.
            input_schema: What it reads, if not what its first parameter is annotated with, nor the state.
            destinations: The nodes its commands may go to, where its annotation does not say.
            executor: "thread" runs its sync code in a worker thread when others run beside it, "inline" never does; or
                a `concurrent.futures.Executor` that runs it.
            retry_policy: When it is tried again; of several the first one that retries the error decides.
            timeout: How long one attempt may take, in seconds, as a `timedelta` or as a `TimeoutPolicy`.
            cache_policy: When an earlier result stands for a run of it; the graph needs a cache for that.
            error_handler: What runs in its place when it has failed for good: a function of what the node got, which
                may take `error: NodeError`. Its result is the node's, but only its own `Command(goto=...)` leads on.
            max_concurrency: How many tasks of it may run at once.

        Returns:
            This builder.

        Raises:
            GraphDefinitionError: The name is taken or can't be one, or an option has no such value.
        """
        from pregel.graph.code import callable_name  # noqa: PLC0415 - imported with the first node

        if not isinstance(node, str):
            if action is not None:
                raise GraphDefinitionError(f"add_node takes (name, action) or (action), not ({node!r}, {action!r})")
            action, name = node, callable_name(node)
            if name is None:
                raise GraphDefinitionError(f"{node!r} has no name of its own: add_node('name', ...)")
            node = name
        check_name(node)
        if defer not in (True, False, "live"):
            raise GraphDefinitionError(f'defer of node {node!r} takes True, False or "live", not {defer!r}')
        if node in self.nodes:
            raise GraphDefinitionError(f"there is a node {node!r} already: each node needs a name of its own")
        if action is None:
            raise GraphDefinitionError(f"node {node!r} has nothing to run: add_node({node!r}, function)")
        if not is_list_of_names(destinations):
            raise GraphDefinitionError(
                f"destinations of node {node!r} takes a list of names or a mapping from names, not {destinations!r}"
            )
        if metadata is not None and not isinstance(metadata, Mapping):
            raise GraphDefinitionError(f"metadata of node {node!r} takes a mapping, not {metadata!r}")
        options = NOTHING_SAID
        given = (retry_policy, timeout, cache_policy, error_handler, executor, max_concurrency)
        if any(each is not None for each in given):
            options = Options(*given).check(f"node {node!r}")
        self.nodes[node] = NodeRecord(
            node, action, input_schema, defer, dict(metadata or {}), tuple(destinations), options
        )
        return self

    def set_node_defaults(
        self,
        *,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        executor: ExecutorLike | None = None,
        max_concurrency: int | None = None,
    ) -> Self:
        """Say how nodes are run that do not say it themselves, also those that were added before.

        Args:
            retry_policy: See `add_node`; this and what follows. A node that gives an empty list is not retried.
            timeout: A node that gives `TimeoutPolicy()` has none.
            cache_policy: When results are used again.
            error_handler: What runs in the place of nodes that failed.
            executor: Where their sync code runs; it comes before that of `compile`.
            max_concurrency: How many tasks of each node may run at once.

        Returns:
            This builder.

        Raises:
            GraphDefinitionError: An option has no such value.
        """
        given = Options(retry_policy, timeout, cache_policy, error_handler, executor, max_concurrency)
        self.defaults = given.check("set_node_defaults").over(self.defaults)
        return self

    def add_edge(self, start_key: str | Sequence[str], end_key: str, *, wait: Literal["all", "live"] = "all") -> Self:
        """Add an edge: `end_key` runs in the superstep after `start_key` has run.

        Args:
            start_key: A node or START; or a list of nodes, which is a join.
            end_key: A node or END.
            wait: For a join, when it fires: "all" once every source has run since it last fired; "live" already
                when one has, and nothing that is due can lead to a source still missing.

        Returns:
            This builder.

        Raises:
            GraphDefinitionError: The edge leads into START or out of END, or the join is empty. Names are looked up
                at `compile`, so edges may come before their nodes.
        """
        if wait not in WAITS:
            raise GraphDefinitionError(f"wait takes 'all' or 'live', not {wait!r}.{nearest(wait, WAITS)}")
        check_ends(start_key, end_key)
        if end_key == START:
            raise GraphDefinitionError(f"an edge from {start_key!r} leads into START, which only begins a run")
        if isinstance(start_key, str):
            if start_key == END:
                raise GraphDefinitionError(f"an edge to {end_key!r} leads out of END, which only ends a path")
            self.edges[start_key, end_key] = None
            return self
        sources = tuple(dict.fromkeys(start_key))
        if not sources:
            raise GraphDefinitionError(
                f"the join into {end_key!r} has no source and would never fire: list its sources"
            )
        for source in sources:
            if source in {START, END}:
                raise GraphDefinitionError(f"the join into {end_key!r} waits for {source}, which is no node that runs")
        self.joins[sources, end_key] = wait
        return self

    def add_conditional_edges(self, source: str, path: Any, path_map: PathMap | None = None) -> Self:
        """Add a conditional edge: after each run of `source`, `path` says what runs next.

        Args:
            source: A node or START.
            path: A sync or async function of the state (the node's view with its own writes applied) that returns a
                node's name, END, a `Send`, or a list of these.
            path_map: From answers to nodes, or the list of nodes it may answer with. Without it the targets are read
                off a `Literal` in the annotated result; else they count as unknown.

        Returns:
            This builder.

        Raises:
            GraphDefinitionError: `source` is END, or `path_map` is no mapping and no list of names.
        """
        if source == END:
            raise GraphDefinitionError("a conditional edge leads out of END, which only ends a path")
        if not (callable(path) or hasattr(path, "invoke")):
            raise GraphDefinitionError(f"the conditional edge from {source!r} needs a path function, not {path!r}")
        if path_map is not None and not isinstance(path_map, Mapping):
            if not isinstance(path_map, (list, tuple)) or not all(isinstance(name, str) for name in path_map):
                raise GraphDefinitionError(
                    f"path_map of the conditional edge from {source!r} takes a mapping or a list of names, "
                    f"not {path_map!r}"
                )
            path_map = {name: name for name in path_map}
        self.branches.append(BranchRecord(source, path, None if path_map is None else dict(path_map)))
        return self

    def add_sequence(self, nodes: Sequence[Any]) -> Self:
        """Add nodes and the edges that run them one after the other.

        Args:
            nodes: Actions, or (name, action) pairs.

        Returns:
            This builder.

        Raises:
            GraphDefinitionError: There is none, or one can't be added.
        """
        if not nodes:
            raise GraphDefinitionError("add_sequence takes at least one node")
        previous: str | None = None
        for node in nodes:
            if isinstance(node, tuple):
                self.add_node(*node)
            else:
                self.add_node(node)
            name = next(reversed(self.nodes))
            if previous is not None:
                self.add_edge(previous, name)
            previous = name
        return self

    def set_entry_point(self, key: str) -> Self:
        """Add an edge from START."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(self, path: Any, path_map: PathMap | None = None) -> Self:
        """Add a conditional edge from START."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self, key: str) -> Self:
        """Add an edge to END."""
        return self.add_edge(key, END)

    def compile(
        self,
        checkpointer: Checkpointer | bool | None = None,  # noqa: FBT001 - LangGraph's public shape
        *,
        name: str | None = None,
        executor: ExecutorLike = "thread",
        on_failure: OnFailure = "finish",
        debug: bool = False,
        store: BaseStore | None = None,
        cache: BaseCache | None = None,
        durability: Durability | GroupCommit = "sync",
        on_busy: OnBusy = "reject",
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        migrations: Migration | Sequence[Migration] = (),
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """Check the graph and make it runnable. The builder may be changed and compiled again.

        Args:
            checkpointer: Where runs are stored, such as `SqliteSaver("runs.sqlite")`. For a graph inside another one
                None means that its runs are stored as a part of that one's, True that it has a history of its own
                there, which each run goes on from, False that nothing of it is stored.
            name: The graph's name in messages and drawings; the state schema's if left out.
            executor: Where the sync code of nodes runs that do not say it themselves.
            on_failure: What becomes of the siblings of a task that fails; see `Pregel.invoke`.
            debug: Give nodes copies, and raise `MutatedStateError` where one changes them in place. Slow.
            store: Long-term memory, for nodes with a parameter `store` and for `get_store`.
            cache: Where results of nodes with a `cache_policy` are kept, such as `InMemoryCache()`. Graphs inside this
                one that have none use it too.
            durability: When what a run commits is stored, where the run does not say: "sync" before the next
                superstep, "async" (or a `GroupCommit` with bounds) in groups while it goes on, "exit" at its end.
            on_busy: What a run does whose thread is taken by another one: "reject" raises `ThreadBusyError`, "wait"
                waits.
            interrupt_before: Nodes before which a run stops, to go on when it is run with None as input; "*" for all.
            interrupt_after: Nodes after which it does.
            migrations: What has become of nodes and fields of versions of the graph that are stored.

        Returns:
            The compiled graph.

        Raises:
            SchemaError: The schemas can't be compiled into channels.
            GraphDefinitionError: The graph names unknown nodes, has no entry point, a node that nothing reaches, or a
                function with parameters that nothing fills.
        """
        from pregel.graph.compile import compile_graph  # noqa: PLC0415 - the compiler is loaded when it is needed

        check_executor(executor, "compile")
        return compile_graph(
            self,
            name=name,
            executor=executor,
            on_failure=on_failure,
            debug=debug,
            checkpointer=checkpointer,
            store=store,
            cache=cache,
            durability=durability,
            on_busy=on_busy,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            migrations=migrations,
        )


def is_list_of_names(names: object) -> bool:
    """Return whether something lists names, or maps from names, and is no text."""
    listed = isinstance(names, (Sequence, Mapping)) and not isinstance(names, str)
    return listed and all(isinstance(name, str) for name in names)  # type: ignore[attr-defined]


def check_ends(start_key: object, end_key: object) -> None:
    """Check that an edge leads from a name, or a list of names, to a name.

    Raises:
        GraphDefinitionError: It does not.
    """
    sources = start_key if isinstance(start_key, (list, tuple)) else (start_key,)
    for name in (*sources, end_key):
        if not isinstance(name, str):
            raise GraphDefinitionError(
                f"the edge {start_key!r} -> {end_key!r} names {name!r}: an edge leads from a node's name, or a list of "
                "names, to a node's name"
            )
