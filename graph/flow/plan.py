"""What the nodes of a compiled flow graph share: how a task gets its view of the context, and what comes of it."""

from __future__ import annotations

from collections import ChainMap
from functools import partial
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.clock import clock
from pregel.errors import MutatedStateError
from pregel.graph.buffered import Buffered
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.folding import folded_keys
from pregel.graph.flow.home import Home, Visit
from pregel.graph.flow.parts import DATA, TRACE, FlowNode, key_field
from pregel.graph.flow.storing import check_storable
from pregel.graph.flow.taskpart import TaskPart
from pregel.mutation import copied, differs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pregel.graph.flow.keys import Key, KeySpace
    from pregel.graph.flow.parts import Record
    from pregel.runtime import Runtime

__all__ = ["Plan", "Updates", "updates"]

#: What a node returns: updates of fields, in one mapping or, where a field gets several, in more.
Updates = dict[str, Any] | list[dict[str, Any]]


class Plan:
    """What all nodes of a compiled flow graph share.

    Args:
        graph: The graph's name.
        keys: Its keys, if it has declared them.
        stored: Whether runs are stored, so that values must be storable.
        debug: Whether tasks get copies of the values, to find what is changed in place.
    """

    __slots__ = ("debug", "declared", "folded", "graph", "keys", "stored")

    def __init__(self, graph: str, keys: type[KeySpace] | None, *, stored: bool, debug: bool = False) -> None:
        self.graph = graph
        self.keys = keys
        self.stored = stored
        self.debug = debug
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
            held = {key: each.value(state) for key, each in self.folded.items()}
            data = ChainMap({key: value for key, value in held.items() if value is not MISSING}, data)
        before = None
        if self.debug:
            before, data = data, {key: copied(value) for key, value in data.items()}
        check = partial(self.check, node)
        trace = state.get(TRACE, [])
        task = TaskPart(self.graph, node, Buffered(data, check), check, self.keys, trace, frozen)
        if before is not None:
            task.given = before, data
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


def updates(ctx: FlowContext, visit: Visit, extra: Mapping[str, Any] | None = None) -> Updates:
    """Return what a task changed, field by field, and let the run stop if the task asked for it.

    Raises:
        MutatedStateError: It changed a value in place; found with `debug` only.
    """
    task: TaskPart = ctx.task  # type: ignore[assignment]  # it was made for this task
    if task.given is not None:
        check_unchanged(*task.given, task.where)
    found: dict[str, Any] = {TRACE: visit}
    if task.buffer.has_delta():
        found[DATA] = task.buffer.delta()
    if extra:
        found.update(extra)
    if task.stops:
        ctx.home.request_stop(task.stops[0], task.where)
    task.frozen = "its task has ended, and the write would be lost"
    return [found, *({key_field(key): value} for key, value in task.added)] if task.added else found


def check_unchanged(before: Mapping[str, Any], copies: Mapping[str, Any], where: str) -> None:
    """Check that a task has left alone the values that it was given.

    Raises:
        MutatedStateError: It has changed one; the message names the key.
    """
    for key, value in copies.items():
        if differs(before[key], value):
            raise MutatedStateError(
                f"{where} changed the value of {key!r} in place, which is no write: make a changed copy and set "
                f"ctx[{key!r}] = ..."
            )
