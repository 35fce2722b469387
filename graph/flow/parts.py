"""What a node of a flow graph is: as it was added, as it is told of itself, and what one that is an agent must have.

The compiled graph has nodes and fields of its own for loops and keys; what they are called stands here too.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.templates import Template

__all__ = [
    "DATA",
    "TRACE",
    "AgentPart",
    "FlowNode",
    "Record",
    "again_of",
    "items_of",
    "key_field",
    "position_of",
    "takes_node",
]

#: The fields of the compiled graph.
DATA: Final = "data"
TRACE: Final = "@trace"


def key_field(key: str) -> str:
    """Return the field of a key that has a reducer."""
    return f"@key/{key}"


def items_of(loop: str) -> str:
    """Return the field of the items of a loop."""
    return f"@items/{loop}"


def position_of(loop: str) -> str:
    """Return the field of the position of a loop."""
    return f"@at/{loop}"


def again_of(loop: str) -> str:
    """Return the node that goes on with the next item of a loop."""
    return f"@next/{loop}"


class FlowNode(NamedTuple):
    """What an activity is told of itself, as its second parameter."""

    graph: str
    name: str
    #: "activity", "agent", "exclusive", "inclusive", "parallel", "join" or "loop".
    kind: str
    #: What `add_...(meta=...)` was given.
    meta: Mapping[str, Any]
    #: The superstep, counted over the runs of the graph on its context.
    step: int
    #: The number of this attempt, from 1.
    attempt: int
    #: The same when the task runs again, and no other task's: for effects outside that must not happen twice.
    idempotency_key: str


class AgentPart(Protocol):
    """What `FlowGraph.add_agent` takes. `SimpleAgent` and `TeamAgent` are such."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def output_key(self) -> str | None:
        """The key that gets the final answer, or None."""

    @property
    def has_prompt(self) -> bool:
        """Whether it knows what to ask its model without `add_agent(prompt=...)`."""

    @property
    def reads(self) -> Collection[str]:
        """The names in its own templates."""

    def fields(self) -> Mapping[str, Any]:
        """Return the fields it keeps beside the data: names that begin with "@", and Annotated types with channels.

        They last as long as the context: a run begins with what the last one left, whatever graph that was.
        """

    def resources(self) -> Mapping[str, type]:
        """Return what a run must be given, by name, with the type that each must be."""

    def act(self, ctx: FlowContext, node: FlowNode, prompt: Template | None) -> Mapping[str, Any]:
        """Run the agent inside a task: read and write the context, and return updates of its fields.

        Args:
            ctx: The task's view. `ctx.home` has the resources; the fields' values of the last barrier are in
                `pregel.runtime.get_runtime().state`.
            node: The node.
            prompt: What `add_agent(prompt=...)` was given.
        """

    async def aact(self, ctx: FlowContext, node: FlowNode, prompt: Template | None) -> Mapping[str, Any]:
        """Run the agent on an event loop; see `act`."""


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
    #: What a run must be given for it, by name, if it is an activity.
    needs: Mapping[str, type] = field(default_factory=dict)

    @property
    def resources(self) -> Mapping[str, type]:
        """What a run must be given for it, by name."""
        return self.action.resources() if self.kind == "agent" else self.needs

    def where(self, graph: str) -> str:
        """Return how messages name it."""
        return f"{self.kind} {self.name!r} of graph {graph!r}"


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
