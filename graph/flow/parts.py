"""What a flow graph asks of an agent that is one of its nodes, and what it tells nodes about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.templates import Template

__all__ = ["AgentPart", "FlowNode"]


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
