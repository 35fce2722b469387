"""Agents that hand a conversation over to one another: the tool for it, a supervisor, and a swarm.

Theory of operation. Each agent is a node of the graph around, and shares its `messages`. A hand-off is a command to
that graph. The superstep in which it is made is finished first, and what the agent's nodes have written goes to the
graph around before the command does; so the message with the call, the results of the calls beside it, and the answer
to the call itself are all in the conversation that the next agent reads. The agent that hands over ends there: its
`after_agent` hooks do not run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NotRequired

from pregel.errors import GraphDefinitionError, InvalidInputError, nearest
from pregel.graph.agent.create import create_agent
from pregel.graph.agent.injection import Injected, ToolRuntime
from pregel.graph.agent.tooltype import Tool
from pregel.graph.agent.turns import pending_calls
from pregel.graph.messages import MessagesState, ToolMessage
from pregel.graph.state import StateGraph
from pregel.main import Pregel
from pregel.types import START, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.compile import CompiledStateGraph
    from pregel.graph.messages import SystemMessage
    from pregel.store.base import BaseStore

__all__ = ["SwarmState", "create_supervisor", "create_swarm", "handoff_tool"]

NO_WORD: Final = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Handoff:
    """The code of a tool that hands over.

    Args:
        tool: The tool's name.
        agent: The node to hand over to.
        alone: Whether of several hand-offs in one turn only the first counts.
    """

    tool: str
    agent: str
    alone: bool

    def __call__(self, runtime: ToolRuntime[Any, Any]) -> ToolMessage | Command[Any]:
        """Hand over, or say that another tool does."""
        call_id = runtime.tool_call_id or ""
        first = first_handoff(runtime) if self.alone else None
        if first is not None and first["id"] != call_id:
            return ToolMessage(
                f"Not done: {first['name']!r} hands over already, and only one agent can have the conversation.",
                tool_call_id=call_id,
                name=self.tool,
                status="error",
            )
        text = f"The conversation was handed over to {self.agent}."
        done = ToolMessage(text, tool_call_id=call_id, name=self.tool)
        return Command(graph=Command.PARENT, goto=self.agent, update={"messages": [done]})


class SwarmState(MessagesState):
    """The state of a swarm. Extend it with fields of your own."""

    #: The agent that has the conversation: the next input begins there.
    active_agent: NotRequired[str]


def handoff_tool(agent_name: str, *, name: str | None = None, description: str | None = None) -> Tool:
    """Return a tool by which an agent hands the conversation over to another one.

    Both agents are nodes of one graph, which has a field `messages`. Of several hand-offs in one turn the first counts;
    the others are answered with an error.

    Args:
        agent_name: The node to hand over to.
        name: The tool's name; `transfer_to_<agent_name>` by default.
        description: What the model is told; say when it should hand over.

    Raises:
        GraphDefinitionError: There is no name to hand over to.
    """
    given: Any = agent_name
    if not isinstance(given, str) or not given:
        raise GraphDefinitionError(
            f"handoff_tool({agent_name!r}) hands over to nobody: give the name of the other agent's node"
        )
    return handing(agent_name, name, description, alone=True)


def handing(agent: str, name: str | None, description: str | None, *, alone: bool) -> Tool:
    """Return a tool that hands over.

    Args:
        agent: The node to hand over to.
        name: The tool's name, if it is to have one of its own.
        description: What the model is told, if it is to be told more than whom the tool hands over to.
        alone: Whether of several hand-offs in one turn only the first counts.
    """
    called = name or f"transfer_to_{NO_WORD.sub('_', agent)}"
    return Tool(
        name=called,
        description=f"Hand the conversation over to {agent}." if description is None else description,
        parameters={"type": "object", "properties": {}, "additionalProperties": False},
        function=Handoff(called, agent, alone),
        injected={"runtime": Injected("runtime")},
    )


def first_handoff(runtime: ToolRuntime[Any, Any]) -> Mapping[str, Any] | None:
    """Return the first call of the turn that hands over and has no answer yet; None where that can't be seen."""
    names = {each.name for each in runtime.tools if isinstance(each.function, Handoff)}
    calls = pending_calls(runtime.state.get("messages", ()))
    return next((call for call in calls if call["name"] in names), None)


def create_supervisor(
    agents: Sequence[Pregel],
    model: Any,
    prompt: str | SystemMessage | None = None,
    *,
    tools: Sequence[Any] = (),
    middleware: Sequence[Any] = (),
    state_schema: Any = None,
    context_schema: Any = None,
    checkpointer: Checkpointer | bool | None = None,
    store: BaseStore | None = None,
    name: str = "supervisor",
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph in which one agent hands work to others, and gets the conversation back from each.

    All read and extend one conversation. Where the supervisor hands over to several agents in one turn, they work side
    by side. (For agents that see only what they are asked, give `as_tool(agent)` to an agent as a tool.)

    Args:
        agents: Compiled graphs with `messages`, each with a name of its own.
        model: The supervisor's model.
        prompt: The supervisor's system prompt: say what each agent is for.
        tools: Other tools of the supervisor.
        middleware: The supervisor's middleware.
        state_schema: The state of the graph, which has a field `messages`.
        context_schema: What nodes find as `runtime.context`.
        checkpointer: Where runs are stored.
        store: Long-term memory.
        name: The supervisor's name, which is also its node's.

    Raises:
        GraphDefinitionError: Agents that can't stand side by side; says why.
    """
    team = by_name(agents, reserved=[name])
    handoffs = [handing(agent, None, None, alone=False) for agent in team]
    lead = create_agent(
        model,
        [*tools, *handoffs],
        system_prompt=prompt,
        middleware=middleware,
        context_schema=context_schema,
        name=name,
    )
    builder = StateGraph(state_schema or MessagesState, context_schema)
    builder.add_node(name, lead, destinations=tuple(team)).add_edge(START, name)
    for agent, graph in team.items():
        builder.add_node(agent, graph).add_edge(agent, name)
    return builder.compile(checkpointer, store=store, name=f"{name}'s team")


def create_swarm(
    agents: Sequence[Pregel],
    default_active_agent: str,
    *,
    state_schema: Any = None,
    context_schema: Any = None,
    checkpointer: Checkpointer | bool | None = None,
    store: BaseStore | None = None,
    name: str = "swarm",
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph in which agents hand the conversation over to one another, by their `handoff_tool`s.

    The agent that had it last gets the next input: the state's `active_agent`, which is set before an agent begins.
    Each agent has two nodes: one of its name, which sets that, and `<name>.agent`.

    Args:
        agents: Compiled graphs with `messages`, each with a name of its own.
        default_active_agent: The agent that has the conversation first.
        state_schema: The state of the graph: a `SwarmState`.
        context_schema: What nodes find as `runtime.context`.
        checkpointer: Where runs are stored.
        store: Long-term memory.
        name: The graph's name.

    Raises:
        GraphDefinitionError: Agents that can't stand side by side, or none of the default's name; says why.
    """
    team = by_name(agents)
    if default_active_agent not in team:
        raise GraphDefinitionError(
            f"default_active_agent is {default_active_agent!r}, which is no agent of the swarm."
            f"{nearest(default_active_agent, team)} Agents: {', '.join(team)}"
        )

    def active(state: Any) -> str:
        chosen = state.get("active_agent") if isinstance(state, Mapping) else getattr(state, "active_agent", None)
        if chosen is not None and chosen not in team:
            raise InvalidInputError(
                f"active_agent is {chosen!r}, which is no agent of swarm {name!r}.{nearest(chosen, team)} Agents: "
                f"{', '.join(team)}"
            )
        return chosen or default_active_agent

    builder = StateGraph(state_schema or SwarmState, context_schema)
    for agent, graph in team.items():
        builder.add_node(agent, taking_over(agent)).add_node(f"{agent}.agent", graph, destinations=tuple(team))
        builder.add_edge(agent, f"{agent}.agent")
    builder.add_conditional_edges(START, active, list(team))
    return builder.compile(checkpointer, store=store, name=name)


def taking_over(agent: str) -> Callable[[Any], dict[str, str]]:
    """Return the node that notes that an agent has the conversation now."""

    def take_over(state: Any) -> dict[str, str]:  # noqa: ARG001 - a node
        return {"active_agent": agent}

    return take_over


def by_name(agents: Iterable[Any], reserved: Sequence[str] = ()) -> dict[str, Pregel]:
    """Return agents by their names.

    Args:
        agents: Compiled graphs.
        reserved: Names that they can't have.

    Raises:
        GraphDefinitionError: Something is no compiled graph or has no messages, or two have one name.
    """
    team: dict[str, Pregel] = {}
    for agent in agents:
        if not isinstance(agent, Pregel):
            raise GraphDefinitionError(f"{agent!r} is no agent: give what create_agent or compile returned")
        if not agent.takes("messages"):
            raise GraphDefinitionError(f"agent {agent.name!r} takes no `messages`, so it can't join the conversation")
        if agent.name in team or agent.name in reserved:
            raise GraphDefinitionError(
                f"two agents are named {agent.name!r}, and they hand over by name: create_agent(..., name=...)"
            )
        team[agent.name] = agent
    if not team:
        raise GraphDefinitionError("there are no agents: give at least one")
    return team
