"""`TeamAgent`: several agents that work on one prompt, as one node of a flow graph.

Theory of operation. A protocol makes one graph of the members, and the team's node runs it inside its task; so a team
that pauses, or whose process dies, goes on with the member that it was at. All protocols have one interface: a graph
with a field `messages`, whose new messages bear the name of whoever spoke. What the team has done is read off them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from pregel.clock import clock
from pregel.errors import GraphRecursionError, nearest
from pregel.graph.agent import AgentMiddleware, create_supervisor
from pregel.graph.flow.agents import GAP, Agent, Call, SimpleAgent, said, steps_of
from pregel.graph.flow.errors import FlowDefinitionError
from pregel.graph.flow.resources import named, resolved
from pregel.graph.flow.session import HISTORY, AgentSession
from pregel.graph.flow.trace import (
    AgentCall,
    Metrics,
    Record,
    TeamCall,
    TeamTrace,
    agent_field,
    calls_of,
    log,
    team_field,
    usage_of,
)
from pregel.graph.messages import HumanMessage, MessagesState
from pregel.graph.state import StateGraph
from pregel.types import START

if TYPE_CHECKING:
    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.parts import FlowNode
    from pregel.graph.flow.templates import Template
    from pregel.main import Pregel
    from pregel.runtime import Runtime

__all__ = ["Lead", "Sequential", "Supervisor", "TeamAgent", "TeamProtocol"]


#: How often a supervisor is asked unless something else is said; each time it hands work out or has the last word.
MAX_TURNS: Final = 8


class Lead(NamedTuple):
    """The team itself, as a protocol sees it."""

    name: str
    #: The model of the team, or None.
    model: Any
    #: The team's own role and instruction.
    system: str
    #: How often the team's model may be asked in one call of the team.
    max_turns: int = MAX_TURNS


class TeamProtocol(Protocol):
    """How the members of a team work together: the seam for ways of one's own."""

    @property
    def name(self) -> str:
        """What the protocol is called."""

    @property
    def needs_model(self) -> bool:
        """Whether the team has a model of its own."""

    def build(self, lead: Lead, members: Mapping[str, Pregel]) -> Pregel:
        """Return a graph of the members, which has a field `messages`.

        Args:
            lead: The team.
            members: The members' graphs by name, in order, each with what it was told in place.
        """

    def state(self, records: Sequence[Record]) -> Mapping[str, Any]:
        """Return what the protocol has to say of a call that made these records; see `TeamTrace.protocol_state`."""


class Member:
    """A member of a sequence: it is asked the team's prompt, with what the members before it have answered.

    Where the team takes part in a conversation, it is told what came before the prompt.

    Args:
        graph: The member.
        told: What the team tells all members before the prompt; empty for nothing.
    """

    def __init__(self, graph: Pregel, told: str) -> None:
        self.graph = graph
        self.told = told

    def invoke(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the member."""
        told = question(state["messages"], self.told)
        return answered(self.graph.invoke({"messages": told}), len(told))

    async def ainvoke(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the member on an event loop."""
        told = question(state["messages"], self.told)
        return answered(await self.graph.ainvoke({"messages": told}), len(told))


def question(messages: Sequence[Any], told: str) -> list[Any]:
    """Return the conversation with what a member of a sequence is asked at its end."""
    place = max(index for index, message in enumerate(messages) if message.type == "human")
    prompt = messages[place]
    final: dict[str, str] = {}
    for message in messages[place + 1 :]:
        if message.type == "ai" and message.name:
            final[message.name] = str(message.text)  # the last one of each: its answer
    parts = [told, str(prompt.text), *(f"[{name}]\n{text}" for name, text in final.items())]
    return [*messages[:place], HumanMessage(GAP.join(filter(None, parts)))]


def answered(result: Mapping[str, Any], told: int) -> dict[str, Any]:
    """Return what a member of a sequence adds to so many messages that it was told."""
    return {"messages": result["messages"][told:]}


class Sequential:
    """The members work one after the other, each with what those before it have answered."""

    name = "sequential"
    needs_model = False

    def build(self, lead: Lead, members: Mapping[str, Pregel]) -> Pregel:
        """Return a chain of the members."""
        builder = StateGraph(MessagesState)
        before = START
        for name, graph in members.items():
            builder.add_node(name, Member(graph, lead.system)).add_edge(before, name)
            before = name
        return builder.compile(name=lead.name)

    def state(self, records: Sequence[Record]) -> Mapping[str, Any]:
        """Return the order in which the members worked."""
        return {"order": list(dict.fromkeys(record.source for record in records))}


class TurnLimit(AgentMiddleware):
    """Fails a supervisor that goes on handing out work: it has been asked so often since the prompt.

    What counts stands in the conversation, so that a team that was paused counts on.

    Args:
        lead: The team.
    """

    def __init__(self, lead: Lead) -> None:
        self.lead = lead

    def before_model(self, state: Any, runtime: Runtime[Any]) -> None:  # noqa: ARG002 - the form of a hook
        """Count the turns.

        Raises:
            GraphRecursionError: There were as many as there may be.
        """
        messages, (name, _, _, most) = state["messages"], self.lead
        prompt = max(index for index, message in enumerate(messages) if message.type == "human")
        turns = [message for message in messages[prompt:] if message.type == "ai" and message.name == name]
        if len(turns) >= most:
            called = ", ".join(call["name"] for call in turns[-1].tool_calls)
            raise GraphRecursionError(
                f"the supervisor of team {name!r} has had {most} turns, its max_turns, and no last word: in the last "
                f"one it called {called}. Say in its instruction when the work is done, or give it more: "
                "TeamAgent(max_turns=...), and resume goes on",
                state,
            )


class Supervisor:
    """The team's model hands work to the members and gets the conversation back from each; its last word counts."""

    name = "supervisor"
    needs_model = True

    def build(self, lead: Lead, members: Mapping[str, Pregel]) -> Pregel:
        """Return the members around a supervisor of the team's name."""
        limits = [TurnLimit(lead)]
        return create_supervisor(
            [*members.values()], lead.model, lead.system or None, middleware=limits, name=lead.name
        )

    def state(self, records: Sequence[Record]) -> Mapping[str, Any]:
        """Return whom the supervisor has called, in order."""
        return {"decisions": [call for record in records if record.role == "supervisor" for call in record.calls]}


PROTOCOLS: Final[Mapping[str, TeamProtocol]] = {each.name: each for each in (Sequential(), Supervisor())}


class TeamAgent(Agent):
    """Several agents that work on one prompt.

    Args:
        members: The agents. They are asked by the team, so they have neither prompts nor output keys of their own.
        name: The node's name, and the supervisor's.
        protocol: "sequential", "supervisor", or a `TeamProtocol`.
        model: The supervisor's model, for protocols that have one; a `Resource` may stand for it.
        role: Who the team is; a template. The supervisor is told, or in a sequence each member before the prompt.
        instruction: What it is to do; a template, told like the role. Where there is no prompt, this is what it is
            asked.
        prompt: What it is asked; a template. `add_agent(prompt=...)` takes its place.
        output_key: The key that gets the final answer, parsed to the key's type if it has one.
        max_turns: How often the supervisor is asked in one call of the team: to hand out work, and for the last word.
            One that wants more fails with a `GraphRecursionError`. A sequence has no such turns.

    Raises:
        FlowDefinitionError: The members can't be a team, the protocol is unknown or lacks a model, or `max_turns` is no
            number of turns.
        Exception: See `Agent`.
    """

    def __init__(
        self,
        members: Sequence[SimpleAgent],
        *,
        name: str,
        protocol: str | TeamProtocol = "sequential",
        model: Any = None,
        role: str | None = None,
        instruction: str | None = None,
        prompt: str | None = None,
        output_key: str | None = None,
        max_turns: int = MAX_TURNS,
    ) -> None:
        super().__init__(name, role, instruction, prompt, output_key)
        if type(max_turns) is not int or max_turns < 1:
            raise FlowDefinitionError(f"team {name!r}: max_turns is a number of turns from 1, not {max_turns!r}")
        self.max_turns = max_turns
        self.members = checked_members(members, name)
        self.protocol = protocol_of(protocol, name)
        self.model = model
        if (model is None) is self.protocol.needs_model:
            what = "needs a model of the team's own" if model is None else "has no use for a model of the team's own"
            raise FlowDefinitionError(
                f"team {name!r}: the protocol {self.protocol.name!r} {what}: TeamAgent(model=...)"
            )

    @property
    def reads(self) -> tuple[str, ...]:
        """The names in its own templates, and in those of the members."""
        return tuple(dict.fromkeys([*super().reads, *(name for each in self.members for name in each.reads)]))

    def fields(self) -> Mapping[str, Any]:
        """Return the fields it keeps beside the data: see `AgentPart`."""
        logs = {agent_field(each.name): log(AgentCall) for each in self.members}
        return {team_field(self.name): log(TeamCall), **logs, HISTORY: log(Any)}

    def resources(self) -> dict[str, type]:
        """Return what a run must be given: see `AgentPart`."""
        return named([self.model, *(each.model for each in self.members)])

    def _begin(self, ctx: FlowContext, node: FlowNode, prompt: Template | None) -> Call:
        given = ctx.home.resources
        brief = self.brief(ctx, prompt)
        members = {each.name: each.graph(given, each.brief(ctx, asked=False).system or None) for each in self.members}
        graph = self.protocol.build(Lead(self.name, resolved(self.model, given), brief.system, self.max_turns), members)
        asked = HumanMessage(brief.prompt, id=node.idempotency_key)
        return Call(graph, [*self.remembered(ctx, prompt), asked], clock().now())

    def _end(self, ctx: FlowContext, node: FlowNode, call: Call, result: Mapping[str, Any]) -> Mapping[str, Any]:
        found = said(call, result, node.idempotency_key, self.name)
        self.write(ctx, found.answer.text)
        prompt, names = str(found.asked.text), [each.name for each in self.members]
        records = records_of(found.made, self.name, names)
        metrics = usage_of(found.made) + Metrics(seconds=clock().now() - call.began)
        state = dict(self.protocol.state(records))
        line = TeamCall(self.name, node.idempotency_key, prompt, found.answer.text, records, state, metrics)
        updates: dict[str, Any] = {team_field(self.name): [line], HISTORY: found.history}
        for name, mine in by_speaker(found.made, names).items():
            answer = next((str(each.text) for each in reversed(mine) if each.type == "ai"), "")
            steps = steps_of(mine, name)
            updates[agent_field(name)] = [
                AgentCall(name, node.idempotency_key, prompt, answer, tuple(mine), steps, usage_of(mine))
            ]
        return updates

    def trace(self, session: AgentSession | FlowContext) -> TeamTrace:
        """Return what the team did on a session's context, in the calls that came to an answer."""
        ctx = session.ctx if isinstance(session, AgentSession) else session
        return TeamTrace.of(self.name, calls_of(ctx.home.private, team_field(self.name)))


def by_speaker(messages: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the messages of each agent, with the answers of tools to its calls; of those named only."""
    found: dict[Any, list[Any]] = {}
    callers: dict[str, str] = {}
    for message in messages:
        speaker = message.name if message.type == "ai" else callers.get(getattr(message, "tool_call_id", ""))
        callers.update((call["id"], speaker) for call in getattr(message, "tool_calls", ()) if speaker)
        if speaker in names:
            found.setdefault(speaker, []).append(message)
    return found


def records_of(messages: Sequence[Any], team: str, names: Sequence[str]) -> tuple[Record, ...]:
    """Return what members and supervisor have contributed, in order."""
    return tuple(
        Record(
            message.name or team,
            "member" if message.name in names else "supervisor",
            str(message.text),
            tuple(call["name"] for call in message.tool_calls),
        )
        for message in messages
        if message.type == "ai"
    )


def checked_members(members: Any, team: str) -> tuple[SimpleAgent, ...]:
    """Return members that can be a team.

    Raises:
        FlowDefinitionError: They can't; says why.
    """
    if isinstance(members, SimpleAgent) or not isinstance(members, Sequence) or not members:
        raise FlowDefinitionError(f"team {team!r} has no members: TeamAgent([agent, ...])")
    seen = {team}
    for each in members:
        if not isinstance(each, SimpleAgent):
            raise FlowDefinitionError(f"team {team!r}: {each!r} is no SimpleAgent")
        if each.name in seen:
            raise FlowDefinitionError(f"team {team!r}: two are named {each.name!r}, and they are told apart by it")
        if each.output_key is not None or each.prompt is not None:
            raise FlowDefinitionError(
                f"team {team!r}: the member {each.name!r} has {'an output key' if each.output_key else 'a prompt'} of "
                "its own, and a team asks its members and answers for them: give it to the team"
            )
        seen.add(each.name)
    return tuple(members)


def protocol_of(given: Any, team: str) -> TeamProtocol:
    """Return a protocol.

    Raises:
        FlowDefinitionError: There is none of that name.
    """
    if isinstance(given, str):
        if given not in PROTOCOLS:
            raise FlowDefinitionError(
                f"team {team!r}: there is no protocol {given!r}.{nearest(given, PROTOCOLS)} There are "
                f"{', '.join(map(repr, PROTOCOLS))}, and whatever has the methods of TeamProtocol"
            )
        return PROTOCOLS[given]
    if not callable(getattr(given, "build", None)):
        raise FlowDefinitionError(f"team {team!r}: {given!r} is no TeamProtocol, for it has no build(lead, members)")
    return given  # type: ignore[no-any-return]  # a protocol, as far as can be seen
