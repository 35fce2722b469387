"""What the engine runs for each node of a flow graph: a view of the context, the user's code, and its update."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.callables import is_async
from pregel.channels.base import MISSING
from pregel.clock import clock
from pregel.errors import GraphInterrupt, InvalidResumeError
from pregel.graph.flow.errors import FlowError, KeyTypeError, NoRouteError
from pregel.graph.flow.parts import TRACE, items_of, position_of, takes_node
from pregel.graph.flow.plan import updates
from pregel.graph.flow.storing import check_storable
from pregel.runtime import current_frame
from pregel.text import shortened, show
from pregel.types import Command, Interrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.home import Home
    from pregel.graph.flow.parts import AgentPart, Record
    from pregel.graph.flow.plan import Plan, Updates
    from pregel.runtime import Runtime

__all__ = ["Loop", "runner_of"]


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
        try:
            result = self.record.action(*arguments)
        except KeyTypeError as error:
            ask_again(error, ctx.home)
            raise
        return self.end(ctx, result, runtime.step, began)

    async def acall(self, state: Any, runtime: Runtime[Any]) -> Updates:
        """Run an async function."""
        began = clock().now()
        ctx, arguments = self.begin(state, runtime)
        try:
            result = await self.record.action(*arguments)
        except KeyTypeError as error:
            ask_again(error, ctx.home)
            raise
        return self.end(ctx, result, runtime.step, began)


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


def ask_again(error: KeyTypeError, home: Home) -> None:
    """Pause the task anew where the value that a key refused is what its question was answered, or a part of that.

    An answer that was taken is kept, so the task would fail of it for ever; one to what a task asks again is dropped.
    Which question it was is told by the value: what an activity has made itself is its own error, which no other answer
    mends.

    Args:
        error: What the write of the key raised.
        home: Knows what was asked.

    Raises:
        GraphInterrupt: The question is asked again.
    """
    task, run, _, asked, *_ = current_frame()
    own = [place for place, each in enumerate(asked) if type(each) is not tuple]  # those of graphs inside are tuples
    for number, place in reversed([*enumerate(own)]):
        name = f"{run.task_id(task)}#{number}"  # as `interrupt` numbers them
        if asked[place] is None and holds((run.answers or {}).get(name, MISSING), error.value):
            question = home.questions.get(name) or Interrupt(f"another answer, for {error}", name)
            asked[place] = question
            refused = InvalidResumeError(f"the answer to {name!r} does not fit: {error}. It is asked again")
            raise GraphInterrupt((question,), refused) from error


def holds(answer: Any, value: Any) -> bool:
    """Return whether a value is an answer, or stands in it."""
    if answer is value or (type(answer) is type(value) and answer == value):
        return True
    parts: Any = answer.values() if isinstance(answer, Mapping) else answer
    return isinstance(answer, (Mapping, Sequence)) and not isinstance(answer, str) and any(p is value for p in parts)


def unawaited(result: Any) -> bool:
    """Return whether something is to be awaited; nobody will, and a coroutine is closed, which else would warn."""
    if inspect.iscoroutine(result):
        result.close()
        return True
    return inspect.isawaitable(result)
