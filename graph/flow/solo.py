"""An agent or a team that is run by itself on a session: a graph of one node, which takes part in the conversation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.graph.flow.errors import ContextBusyError, FlowRunError
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.templates import Template
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.parts import FlowNode
    from pregel.graph.flow.running import Outcome
    from pregel.graph.flow.session import AgentSession

__all__ = ["Solo", "Spoken"]


class Spoken(Template):
    """What a user said: a text in which nothing is a place, asked in a conversation that the agent takes part in."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = (text,)


class Solo(ABC):
    """Runs an agent by itself; what it is asked is kept beside the data, so that a run goes on with it anywhere."""

    #: The graph, once it was needed.
    _alone: FlowGraph | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The node's name."""

    def run(self, session: AgentSession, prompt: str, *, resources: Mapping[str, Any] | None = None) -> Outcome:
        """Ask the agent something, after what the session's conversation holds so far.

        Args:
            session: The conversation, and with it the context.
            prompt: The question; nothing in it is a template.
            resources: What the agent needs and no snapshot holds, by name.

        Returns:
            How the run ended; the answer is the session's last message, and goes to the output key.

        Raises:
            FlowRunError: The agent has an unfinished run on the context: `resume` goes on with it.
            Exception: See `FlowGraph.run`.
        """
        return self._asked(session, prompt).run(session.ctx, resources=resources)

    async def arun(self, session: AgentSession, prompt: str, *, resources: Mapping[str, Any] | None = None) -> Outcome:
        """Ask the agent something, on asyncio or trio; see `run`."""
        return await self._asked(session, prompt).arun(session.ctx, resources=resources)

    def resume(
        self, session: AgentSession, answer: Any = MISSING, *, resources: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Go on with a run that is paused, failed or was stopped.

        Raises:
            FlowRunError: Nothing is unfinished.
            Exception: See `FlowGraph.resume`.
        """
        return self.alone.resume(session.ctx, answer, resources=resources)

    async def aresume(
        self, session: AgentSession, answer: Any = MISSING, *, resources: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Go on with a run, on asyncio or trio; see `resume`."""
        return await self.alone.aresume(session.ctx, answer, resources=resources)

    @property
    def alone(self) -> FlowGraph:
        """The graph of this agent alone."""
        if self._alone is None:
            self._alone = FlowGraph(f"{self.name} (alone)").add_agent(InSession(self))
        return self._alone

    def _asked(self, session: AgentSession, prompt: str) -> FlowGraph:
        """Keep what is asked where the run finds it, and return the graph.

        Raises:
            FlowRunError: It is no text.
            ContextBusyError: A run has the context.
        """
        if not isinstance(prompt, str):
            raise FlowRunError(f"agent {self.name!r} is asked a text, not {show(prompt)}")
        home = session.ctx.home
        if home.running is not None:
            raise ContextBusyError(f"agent {self.name!r} can't be asked while graph {home.running!r} has its context")
        if self.alone.cursor(session.ctx).status != "unfinished":  # else the run is refused, and what it is at stays
            home.private[asked_field(self.name)] = prompt
        return self.alone


def asked_field(name: str) -> str:
    """Return the field of what an agent alone is asked."""
    return f"@asked/{name}"


class InSession:
    """An agent as the node of its graph alone: it is asked what was kept for it.

    Args:
        agent: The agent.
    """

    has_prompt = True

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.name: str = agent.name
        self.output_key: str | None = agent.output_key
        self.reads = agent.reads

    def fields(self) -> dict[str, Any]:
        """Return the agent's fields, and that of what it is asked."""
        return {**self.agent.fields(), asked_field(self.name): str}

    def resources(self) -> Mapping[str, type]:
        """Return what the agent needs."""
        return self.agent.resources()  # type: ignore[no-any-return]  # an agent

    def act(self, ctx: FlowContext, node: FlowNode, _prompt: Template | None) -> Mapping[str, Any]:
        """Ask the agent."""
        return self.agent.act(ctx, node, self.spoken(ctx))  # type: ignore[no-any-return]  # an agent

    async def aact(self, ctx: FlowContext, node: FlowNode, _prompt: Template | None) -> Mapping[str, Any]:
        """Ask the agent on an event loop."""
        return await self.agent.aact(ctx, node, self.spoken(ctx))  # type: ignore[no-any-return]  # an agent

    def spoken(self, ctx: FlowContext) -> Spoken:
        """Return what the agent is asked."""
        return Spoken(ctx.home.private[asked_field(self.name)])
