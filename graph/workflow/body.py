"""How the code of a node is run once, whatever form it has, and what it says is collected."""

from __future__ import annotations

from inspect import isasyncgen, isawaitable, isgenerator
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.graph.workflow.asking import NO_REPLIES, Asked, named
from pregel.graph.workflow.context import Context
from pregel.graph.workflow.errors import WorkflowDataError
from pregel.graph.workflow.event import NO_OUTPUT, Event, RequestInput
from pregel.main import Pregel
from pregel.text import show
from pregel.types import Command, Send

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from pregel.graph.workflow.asking import Replies
    from pregel.graph.workflow.binding import Binder
    from pregel.graph.workflow.nodes import Kind
    from pregel.graph.workflow.telling import Telling

__all__ = ["PLAIN", "Body", "GraphBody", "JoinBody"]

#: An output of exactly one of these types needs no further look.
PLAIN: Final = frozenset({str, int, float, bool, dict, list, tuple, bytes, set, frozenset})


class Body:
    """The code of a node that is a function.

    Args:
        kind: Its form.
        binder: Makes its arguments.
        run_node: What `ctx.run_node` does.
    """

    __slots__ = ("binder", "kind", "run_node")

    #: It has one form only.
    any_loop = True

    def __init__(self, kind: Kind, binder: Binder, run_node: Callable[..., Any]) -> None:
        self.kind = kind
        self.binder = binder
        self.run_node = run_node

    @property
    def code(self) -> Any:
        """What its name stands for where it is recorded."""
        function: Any = self.binder.function
        function = getattr(function, "__func__", function)  # a method is another object each time
        return getattr(function, "__code__", function)

    @property
    def needs_loop(self) -> bool:
        """Whether it can't run without an event loop."""
        return self.kind in {"coroutine", "async generator"}

    @property
    def uses_loop(self) -> bool:
        """Whether it is awaited where there is an event loop."""
        return self.needs_loop

    @property
    def is_quick(self) -> bool:
        """Whether it is a plain function."""
        return self.kind == "function"

    def begin(self, telling: Telling, node_input: Any, replies: Replies) -> Any:
        """Call the function and return what it returned: a value, something to await, or a generator."""
        binder = self.binder
        context = None if binder.context is None else Context(telling, replies.given, self.run_node)
        return binder.call(telling.view, node_input, context)

    def run(self, telling: Telling, node_input: Any, replies: Replies) -> Asked | None:
        """Run it to its end, or to a question that has no reply.

        Args:
            telling: Takes what it tells.
            node_input: Its input, or `NO_OUTPUT`.
            replies: The replies to earlier questions.

        Returns:
            The question.

        Raises:
            WorkflowDataError: What it tells can't be told.
            Exception: What it raises.
        """
        return self.take_result(self.begin(telling, node_input, replies), telling, replies)

    def take_result(self, result: Any, telling: Telling, replies: Replies = NO_REPLIES) -> Asked | None:
        """Take what the function returned."""
        if type(result) not in PLAIN and isgenerator(result):
            return self.drive(result, telling, replies)
        return conclude(result, telling, replies)

    async def arun(self, telling: Telling, node_input: Any, replies: Replies) -> Asked | None:
        """Do the same, awaited; see `run`."""
        result = self.begin(telling, node_input, replies)
        if self.kind == "coroutine":
            result = await result
        if type(result) not in PLAIN:
            if isasyncgen(result):
                return await self.adrive(result, telling, replies)
            if isgenerator(result):
                return self.drive(result, telling, replies)
        return conclude(result, telling, replies)

    def drive(self, generator: Generator[Any, Any, Any], telling: Telling, replies: Replies) -> Asked | None:
        """Take what a generator yields, and what it returns; a `yield` of a question gives the reply."""
        reply = None
        try:
            while True:
                try:
                    item = generator.send(reply)
                except StopIteration as stop:
                    request = None if stop.value is None else take(stop.value, telling, replies)
                    if request is not None and replies.hear(request, telling) is MISSING:
                        return Asked(request, continues=True)
                    return conclude(None, telling, replies)
                request, reply = take(item, telling, replies), None
                if request is not None:
                    reply = replies.hear(request, telling)
                    if reply is MISSING:
                        return Asked(request, continues=True)
        finally:
            generator.close()

    async def adrive(self, generator: AsyncGenerator[Any, Any], telling: Telling, replies: Replies) -> Asked | None:
        """Take what an async generator yields; see `drive`."""
        reply = None
        try:
            while True:
                try:
                    item = await generator.asend(reply)
                except StopAsyncIteration:
                    break
                request, reply = take(item, telling, replies), None
                if request is not None:
                    reply = replies.hear(request, telling)
                    if reply is MISSING:
                        return Asked(request, continues=True)
        finally:
            await generator.aclose()
        return conclude(None, telling, replies)


def conclude(result: Any, telling: Telling, replies: Replies) -> Asked | None:
    """Take the last that a node gives, and tell what is not told yet; return it if it is a question without a reply."""
    request = None if result is None else take(result, telling, replies)
    if request is not None and replies.to(request) is MISSING:
        return Asked(request, continues=False)
    telling.tell()
    return None


def take(item: Any, telling: Telling, replies: Replies) -> RequestInput | None:
    """Take what a node returned or yielded; return it if it is a question.

    Raises:
        WorkflowDataError: It is nothing that a node gives.
    """
    if type(item) not in PLAIN:
        if item is None or item is NO_OUTPUT:
            return None  # a yield without a value
        if isinstance(item, RequestInput):
            return named(item, telling, replies)
        if isinstance(item, (Command, Send)):
            raise WorkflowDataError(
                f"{telling.place.where} gave {show(item)}, which steers other graphs: take a route of the workflow by "
                "ctx.route, and set keys of the state by ctx.state"
            )
        if not isinstance(item, Event) and (isawaitable(item) or isasyncgen(item) or isgenerator(item)):
            if hasattr(item, "close"):
                item.close()
            raise WorkflowDataError(
                f"{telling.place.where} gave {show(item)}: declare its function with `async def`, and `await` in it "
                "what is to be awaited"
            )
    telling.take(item)
    return None


class JoinBody:
    """The code of a join: its input is its output."""

    needs_loop = False
    uses_loop = False
    any_loop = True

    def run(self, telling: Telling, node_input: Any, _: Replies) -> None:
        """Give the input on."""
        telling.take(node_input)


class GraphBody:
    """The code of a node that is a compiled graph, or another object with `invoke` or `ainvoke`.

    Args:
        graph: It.
    """

    def __init__(self, graph: Any) -> None:
        self.graph = self.code = graph
        #: Whether it can be awaited on every event loop, and not on asyncio alone.
        self.any_loop = isinstance(graph, Pregel) or getattr(graph, "any_loop", False) is True
        self.needs_loop = not hasattr(graph, "invoke") or getattr(graph, "needs_loop", False) is True
        self.uses_loop = hasattr(graph, "ainvoke") and (self.needs_loop or getattr(graph, "uses_loop", True) is True)

    def run(self, telling: Telling, node_input: Any, replies: Replies) -> Asked | None:
        """Call it with the node's input; what it returns is the output."""
        return conclude(self.graph.invoke(None if node_input is NO_OUTPUT else node_input), telling, replies)

    async def arun(self, telling: Telling, node_input: Any, replies: Replies) -> Asked | None:
        """Do the same, awaited."""
        result = await self.graph.ainvoke(None if node_input is NO_OUTPUT else node_input)
        return conclude(result, telling, replies)
