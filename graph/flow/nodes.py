"""What the engine runs for each node of a flow graph: a view of the context, the user's code, and its update."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.clock import clock
from pregel.graph.buffered import Buffered
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import ContextKeyError, FlowError, NoRouteError
from pregel.graph.flow.folding import folded_keys
from pregel.graph.flow.home import Home, TaskPart, Visit
from pregel.graph.flow.parts import FlowNode
from pregel.graph.flow.storing import check_storable
from pregel.text import shortened, show
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.graph.flow.keys import Key, KeySpace
    from pregel.graph.flow.parts import AgentPart
    from pregel.graph.flow.templates import Template
    from pregel.runtime import Runtime

__all__ = ["DATA", "TRACE", "Plan", "Record", "again_of", "items_of", "position_of", "runner_of"]

#: The fields of the compiled graph.
DATA: Final = "data"
TRACE: Final = "@trace"


def items_of(loop: str) -> str:
    """Return the field of the items of a loop."""
    return f"@items/{loop}"


def position_of(loop: str) -> str:
    """Return the field of the position of a loop."""
    return f"@at/{loop}"


def again_of(loop: str) -> str:
    """Return the node that goes on with the next item of a loop."""
    return f"@next/{loop}"


@dataclass(frozen=True, slots=True)
class Record:
    """A node as it was added."""

    name: str
    kind: str
    #: Where it leads, in order; of a loop the body and what follows.
    targets: tuple[str, ...] = ()
    #: The function, the agent, the conditions with their targets, or what a loop goes over.
    action: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    #: What it says that it reads and writes; None where it does not say.
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] | None = None
    #: The default of a gateway.
    default: str | None = None
    #: The key of a loop's item.
    item: str = ""
    prompt: Template | None = None
    #: Options of the engine's node.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: What a run must be given for it, by name.
    needs: Mapping[str, type] = field(default_factory=dict)


class Plan:
    """What all nodes of a compiled flow graph share.

    Args:
        graph: The graph's name.
        keys: Its keys, if it has declared them.
        stored: Whether runs are stored, so that values must be storable.
    """

    __slots__ = ("declared", "folded", "graph", "keys", "stored")

    def __init__(self, graph: str, keys: type[KeySpace] | None, *, stored: bool) -> None:
        self.graph = graph
        self.keys = keys
        self.stored = stored
        self.declared: Mapping[str, Key[Any]] = {} if keys is None else keys.keys
        #: The keys with a reducer: each is a field of its own.
        self.folded = {each.key: each for each in folded_keys(self.declared.values())}

    def check(self, node: str, key: str, value: Any) -> Any:
        """Return the value that a node may write to a key.

        Raises:
            ContextKeyError: The key is not declared.
            KeyTypeError: The value is not of the key's type.
            EncodeError: It can't be stored.
        """
        where = f"node {node!r} of graph {self.graph!r}"
        if self.keys is not None:
            value = self.keys.find(key, where).accept(value, where)
        if self.stored:
            check_storable(key, value, where)
        return value

    def view(
        self, node: str, state: Mapping[str, Any], runtime: Runtime[Any], frozen: str | None = None
    ) -> FlowContext:
        """Return a task's view of the context."""
        home = runtime.context
        if not isinstance(home, Home):  # the compiled graph was run by itself
            home = Home(runtime.config["configurable"].get("thread_id") or self.graph)
        data = state.get(DATA, {})
        if self.folded:
            misplaced = [key for key in self.folded if key in data]
            if misplaced:  # in an input of the compiled graph by itself: nobody would see it
                raise ContextKeyError(
                    f"{DATA!r} of graph {self.graph!r} has {misplaced[0]!r}, which is folded by its reducer: give it as "
                    f"the field {self.folded[misplaced[0]].field!r}"
                )
            held = {key: each.value(state) for key, each in self.folded.items()}
            data = ChainMap({key: value for key, value in held.items() if value is not MISSING}, data)
        check = partial(self.check, node)
        task = TaskPart(self.graph, node, Buffered(data, check), check, self.declared, state.get(TRACE, []), frozen)
        return FlowContext.of_home(home, task)

    def told(self, record: Record, runtime: Runtime[Any]) -> FlowNode:
        """Return what a node is told of itself."""
        return FlowNode(
            self.graph,
            record.name,
            record.kind,
            record.meta,
            runtime.step,
            runtime.attempt,
            runtime.idempotency_key,
        )

    def visit(self, node: str, step: int, began: float) -> Visit:
        """Return the line of the trace for a node that has run."""
        return Visit(self.graph, node, step, "done", clock().now() - began)


#: What a node returns: updates of fields, in one mapping or, where a field gets several, in more.
Updates = dict[str, Any] | list[dict[str, Any]]


def updates(ctx: FlowContext, visit: Visit, extra: Mapping[str, Any] | None = None) -> Updates:
    """Return what a task changed, field by field, and let the run stop if the task asked for it."""
    task: TaskPart = ctx.task  # type: ignore[assignment]  # it was made for this task
    found: dict[str, Any] = {TRACE: visit}
    if task.buffer.has_delta():
        found[DATA] = task.buffer.delta()
    if extra:
        found.update(extra)
    if task.stops:
        ctx.home.request_stop(task.stops[0], f"node {visit.node!r} of graph {visit.graph!r}")
    task.frozen = "its task has ended, and the write would be lost"
    return [found, *({f"@key/{key}": value} for key, value in task.added)] if task.added else found


class Activity:
    """Runs a function of the context."""

    def __init__(self, plan: Plan, record: Record) -> None:
        self.plan = plan
        self.record = record
        self.takes_node = takes_node(record.action)

    def begin(self, state: Any, runtime: Runtime[Any]) -> tuple[FlowContext, tuple[Any, ...]]:
        """Return the task's view and the function's arguments."""
        ctx = self.plan.view(self.record.name, state, runtime)
        return ctx, (ctx, self.plan.told(self.record, runtime)) if self.takes_node else (ctx,)

    def end(self, ctx: FlowContext, result: Any, step: int, began: float) -> Updates:
        """Return the update.

        Raises:
            FlowError: The function returned something, which nobody would see.
        """
        if result is not None:
            unawaited(result)
            raise FlowError(
                f"activity {self.record.name!r} of graph {self.plan.graph!r} returned {show(result)}: what it finds is "
                "written to the context, ctx['key'] = value, and nothing is returned. Async code is an `async def`"
            )
        return updates(ctx, self.plan.visit(self.record.name, step, began))

    def call(self, state: Any, runtime: Runtime[Any]) -> Updates:
        """Run a sync function."""
        began = clock().now()
        ctx, arguments = self.begin(state, runtime)
        return self.end(ctx, self.record.action(*arguments), runtime.step, began)

    async def acall(self, state: Any, runtime: Runtime[Any]) -> Updates:
        """Run an async function."""
        began = clock().now()
        ctx, arguments = self.begin(state, runtime)
        return self.end(ctx, await self.record.action(*arguments), runtime.step, began)


class Agent:
    """Runs an agent; on an event loop its async form."""

    any_loop = True

    def __init__(self, plan: Plan, record: Record) -> None:
        self.plan = plan
        self.record = record
        self.agent: AgentPart = record.action

    def invoke(self, state: Any, runtime: Runtime[Any]) -> Updates:
        """Run the agent."""
        began = clock().now()
        ctx = self.plan.view(self.record.name, state, runtime)
        extra = self.agent.act(ctx, self.plan.told(self.record, runtime), self.record.prompt)
        return updates(ctx, self.plan.visit(self.record.name, runtime.step, began), extra)

    async def ainvoke(self, state: Any, runtime: Runtime[Any]) -> Updates:
        """Run the agent on an event loop."""
        began = clock().now()
        ctx = self.plan.view(self.record.name, state, runtime)
        extra = await self.agent.aact(ctx, self.plan.told(self.record, runtime), self.record.prompt)
        return updates(ctx, self.plan.visit(self.record.name, runtime.step, began), extra)


class Gateway:
    """Asks the conditions, in order: an exclusive gateway takes the first that holds, an inclusive one all."""

    def __init__(self, plan: Plan, record: Record) -> None:
        self.plan = plan
        self.record = record
        self.first = record.kind == "exclusive"

    def view(self, state: Any, runtime: Runtime[Any]) -> FlowContext:
        """Return what conditions may read."""
        return self.plan.view(self.record.name, state, runtime, frozen="a condition only reads")

    def end(self, ctx: FlowContext, found: list[str], step: int, began: float) -> Command[Any]:
        """Return where to go.

        Raises:
            NoRouteError: No condition holds, and there is no default.
        """
        record = self.record
        if not found:
            if record.default is None:
                raise NoRouteError(
                    f"no condition of {record.kind} gateway {record.name!r} of graph {self.plan.graph!r} holds for "
                    f"{shortened(dict(ctx))}, and it has no default: add_{record.kind}(..., default='node')"
                )
            found = [record.default]
        goto = tuple(dict.fromkeys(found))
        return Command(update=updates(ctx, self.plan.visit(record.name, step, began)), goto=goto)

    def call(self, state: Any, runtime: Runtime[Any]) -> Command[Any]:
        """Ask sync conditions."""
        began = clock().now()
        ctx = self.view(state, runtime)
        found = []
        for condition, target in self.record.action:
            answer = condition(ctx)
            if type(answer) is not bool and unawaited(answer):
                raise FlowError(
                    f"a condition of {self.record.kind} gateway {self.record.name!r} of graph {self.plan.graph!r} "
                    "returned something to await, which would always hold: make it an `async def`"
                )
            if answer:
                found.append(target)
                if self.first:
                    break
        return self.end(ctx, found, runtime.step, began)

    async def acall(self, state: Any, runtime: Runtime[Any]) -> Command[Any]:
        """Ask conditions of which one at least is async."""
        began = clock().now()
        ctx = self.view(state, runtime)
        found = []
        for condition, target in self.record.action:
            answer = condition(ctx)
            if await answer if inspect.isawaitable(answer) else answer:
                found.append(target)
                if self.first:
                    break
        return self.end(ctx, found, runtime.step, began)


class Loop:
    """Goes over items. What they are is settled when the loop is entered, and kept with the position in the state."""

    def __init__(self, plan: Plan, record: Record) -> None:
        self.plan = plan
        self.record = record

    def items(self, ctx: FlowContext) -> list[Any]:
        """Return what to go over."""
        over = self.record.action
        return self.checked(over(ctx) if callable(over) else ctx[over])

    def checked(self, found: Any) -> list[Any]:
        """Return the items of what was found.

        Raises:
            FlowError: It is no sequence.
            EncodeError: The items can't be stored.
        """
        if unawaited(found):
            raise FlowError(
                f"what loop {self.record.name!r} of graph {self.plan.graph!r} goes over is to be awaited: make the "
                "function an `async def`"
            )
        if not isinstance(found, Sequence) or isinstance(found, (str, bytes)):
            raise FlowError(
                f"loop {self.record.name!r} of graph {self.plan.graph!r} goes over a list or another sequence, not "
                f"{show(found)}"
            )
        items = list(found)
        if self.plan.stored:
            check_storable(self.record.item, items, f"loop {self.record.name!r} of graph {self.plan.graph!r}")
        return items

    def enter(self, state: Any, runtime: Runtime[Any]) -> Command[Any]:
        """Begin with the first item."""
        began = clock().now()
        ctx = self.plan.view(self.record.name, state, runtime)
        return self.first(ctx, self.items(ctx), runtime.step, began)

    async def aenter(self, state: Any, runtime: Runtime[Any]) -> Command[Any]:
        """Begin with the first item of what an async function finds."""
        began = clock().now()
        ctx = self.plan.view(self.record.name, state, runtime)
        return self.first(ctx, self.checked(await self.record.action(ctx)), runtime.step, began)

    def first(self, ctx: FlowContext, items: list[Any], step: int, began: float) -> Command[Any]:
        """Return where the first item leads."""
        return self.go(ctx, items, 0, {items_of(self.record.name): items}, step, began)

    def again(self, state: Any, runtime: Runtime[Any]) -> Command[Any]:
        """Go on with the next item."""
        began = clock().now()
        ctx = self.plan.view(self.record.name, state, runtime)
        name = self.record.name
        return self.go(ctx, state[items_of(name)], state[position_of(name)] + 1, {}, runtime.step, began)

    def go(
        self, ctx: FlowContext, items: list[Any], position: int, extra: dict[str, Any], step: int, began: float
    ) -> Command[Any]:
        """Return where the position leads."""
        body, then = self.record.targets
        more = position < len(items)
        if more:
            ctx[self.record.item] = items[position]
        extra = {**extra, position_of(self.record.name): position}
        visit = self.plan.visit(self.record.name, step, began)
        return Command(update=updates(ctx, visit, extra), goto=(body if more else then,))


def passing(plan: Plan, record: Record) -> Callable[..., Any]:
    """Return what a parallel gateway or a join does: nothing but leave a line in the trace."""

    def run(_state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        return {TRACE: plan.visit(record.name, runtime.step, clock().now())}

    return run


def runner_of(plan: Plan, record: Record) -> Any:
    """Return what the engine runs for a node; of a loop, what runs when it is entered."""
    if record.kind == "activity":
        activity = Activity(plan, record)
        return activity.acall if is_async(record.action) else activity.call
    if record.kind == "agent":
        return Agent(plan, record)
    if record.kind in {"exclusive", "inclusive"}:
        gateway = Gateway(plan, record)
        return gateway.acall if any(is_async(condition) for condition, _ in record.action) else gateway.call
    if record.kind == "loop":
        loop = Loop(plan, record)
        return loop.aenter if is_async(record.action) else loop.enter
    return passing(plan, record)


def unawaited(result: Any) -> bool:
    """Return whether something is to be awaited; nobody will, and a coroutine is closed, which else would warn."""
    if inspect.iscoroutine(result):
        result.close()
        return True
    return inspect.isawaitable(result)


def is_async(function: Any) -> bool:
    """Return whether a function, or what an object does when it is called, is async."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - the method itself is asked for


def takes_node(function: Any) -> bool:
    """Return whether an activity takes the node as its second parameter; one with a default counts if it is so named.

    Raises:
        TypeError: It takes neither (ctx) nor (ctx, node).
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin that does not tell
        return False
    one, two = (binds(signature, count) for count in (1, 2))
    if not one and not two:
        raise TypeError(f"{signature} takes neither (ctx, node) nor (ctx)")
    return two and (not one or "node" in list(signature.parameters)[1:2])


def binds(signature: inspect.Signature, count: int) -> bool:
    """Return whether a function can be called with so many arguments."""
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
