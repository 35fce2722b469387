"""`SimpleAgent`: a model with a part to play, as a node of a flow graph. It sees what its templates say, no more."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence  # noqa: TC003 - read by who asks for the hints of a NamedTuple
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.clock import clock
from pregel.graph.agent import create_agent
from pregel.graph.flow.errors import AgentOutputError, FlowDefinitionError
from pregel.graph.flow.home import check_key
from pregel.graph.flow.output import is_folded, kind_of, parsed_output
from pregel.graph.flow.resources import named, resolved
from pregel.graph.flow.session import HISTORY, AgentSession
from pregel.graph.flow.solo import Solo, Spoken
from pregel.graph.flow.templates import Template
from pregel.graph.flow.trace import AgentCall, AgentStep, AgentTrace, Metrics, agent_field, calls_of, log, usage_of
from pregel.graph.functional import arecorded, recorded
from pregel.graph.messages import AIMessage, HumanMessage, SystemMessage
from pregel.names import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.parts import FlowNode
    from pregel.graph.messages import AnyMessage
    from pregel.main import Pregel

__all__ = ["GAP", "Agent", "Brief", "SimpleAgent", "steps_of"]

#: Between the parts of a text that a model is told.
GAP: Final = "\n\n"
#: The note that a task was failed by an answer.
REFUSED: Final = "refused answer"


def noted(first: list[bool]) -> bool:
    """Tell who asks that nothing was noted before."""
    first.append(True)
    return True


async def anoted(first: list[bool]) -> bool:
    """Tell who asks that nothing was noted before."""
    return noted(first)


class Brief(NamedTuple):
    """What an agent is told, with all values in their places."""

    #: Its part, before the conversation; empty for none.
    system: str
    #: What it is asked.
    prompt: str


class Call(NamedTuple):
    """A call that has begun. One that was paused has been told before what it is told now, and goes on with that."""

    graph: Pregel
    given: list[AnyMessage]
    began: float
    #: What was made on the way to answers that were no value of the output key.
    refused: tuple[Any, ...] = ()


class Said(NamedTuple):
    """What a call came to."""

    asked: Any
    #: The messages that were made, in order.
    made: Sequence[Any]
    answer: AIMessage

    @property
    def history(self) -> list[AnyMessage]:
        """What is kept of it in the conversation."""
        return [self.asked, self.answer]


def said(call: Call, result: Mapping[str, Any], asked: str, name: str) -> Said:
    """Return what a call came to.

    Args:
        call: The call.
        result: The whole conversation.
        asked: The id of the question.
        name: Who answers.
    """
    messages = result["messages"]
    place = next(index for index, message in enumerate(messages) if message.id == asked)
    answer = AIMessage(str(messages[-1].text), id=f"{asked}:answer", name=name)
    return Said(messages[place], [*call.refused, *messages[place + 1 :]], answer)


class Agent(Solo):
    """What agents and teams have in common: templates, a key for the answer, and runs by themselves.

    Args:
        name: The node's name, and the agent's in messages.
        role: Who it is, for its system prompt; a template.
        instruction: What to do, and how; a template. Where there is no prompt, this is what it is asked.
        prompt: What it is asked; a template. `add_agent(prompt=...)` takes its place.
        output_key: The key that gets the final answer, parsed to the key's type if it has one.

    Raises:
        GraphDefinitionError: The name can't be one.
        FlowDefinitionError: A text is none.
        ContextKeyError: The output key can't be one.
        TemplateError: One can't be read.
    """

    def __init__(
        self,
        name: str,
        role: str | None,
        instruction: str | None,
        prompt: str | None,
        output_key: str | None,
    ) -> None:
        check_name(name, "an agent", reserved="|:/")
        if name.startswith("@"):
            raise FlowDefinitionError(f"an agent can't be named {name!r}: '@' is the engine's")
        if output_key is not None:
            check_key(output_key)
        self._name = name
        self.role = self._template("role", role)
        self.instruction = self._template("instruction", instruction)
        self.prompt = self._template("prompt", prompt)
        self._output_key = output_key

    def _template(self, option: str, text: Any) -> Template | None:
        if text is not None and not isinstance(text, str):
            raise FlowDefinitionError(f"agent {self._name!r}: {option} is a text, not {text!r}")
        return None if text is None else Template(text, f"the {option} of agent {self._name!r}")

    @property
    def name(self) -> str:
        """The node's name."""
        return self._name

    @property
    def output_key(self) -> str | None:
        """The key that gets the final answer, or None."""
        return self._output_key

    @property
    def has_prompt(self) -> bool:
        """Whether it knows what to ask its model without `add_agent(prompt=...)`."""
        return self.prompt is not None or self.instruction is not None

    @property
    def reads(self) -> tuple[str, ...]:
        """The names in its own templates."""
        own = (self.role, self.instruction, self.prompt)
        return tuple(dict.fromkeys(name for each in own if each is not None for name in each.reads))

    def brief(self, ctx: Mapping[str, Any], prompt: Template | None = None, *, asked: bool = True) -> Brief:
        """Return what the agent is told on a context.

        Args:
            ctx: Gives the values.
            prompt: What it is asked, in place of its own prompt.
            asked: Whether it must be asked something; members of a team are asked by the team.

        Raises:
            MissingKeyError: A value is not there.
        """
        where = f"agent {self._name!r}"
        prompt = prompt or self.prompt
        if prompt is None and asked:
            told, prompt = [self.role], self.instruction
        else:
            told = [self.role, self.instruction]
        system = GAP.join(each.render(ctx, where) for each in told if each is not None)
        return Brief(system, "" if prompt is None else prompt.render(ctx, where))

    def remembered(self, ctx: FlowContext, prompt: Template | None) -> list[AnyMessage]:
        """Return the conversation that the agent takes part in: none, but where it is run on a session by itself."""
        return list(ctx.home.private.get(HISTORY, ())) if isinstance(prompt, Spoken) else []

    @abstractmethod
    def _begin(self, ctx: FlowContext, node: FlowNode, prompt: Template | None) -> Call:
        """Begin a call."""

    @abstractmethod
    def _end(self, ctx: FlowContext, node: FlowNode, call: Call, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write what a call came to, and return the updates of the agent's fields.

        Raises:
            AgentOutputError: See `write`.
        """

    def act(self, ctx: FlowContext, node: FlowNode, prompt: Template | None) -> Mapping[str, Any]:
        """Run the agent inside a task: see `AgentPart`."""
        call = self._begin(ctx, node, prompt)
        while True:
            result = call.graph.invoke({"messages": call.given})
            try:
                return self._end(ctx, node, call, result)
            except AgentOutputError:
                first: list[bool] = []
                recorded(REFUSED, partial(noted, first))
                if first:
                    raise
            call = self._once_more(call, node, result)

    async def aact(self, ctx: FlowContext, node: FlowNode, prompt: Template | None) -> Mapping[str, Any]:
        """Run the agent on an event loop: see `AgentPart`."""
        call = self._begin(ctx, node, prompt)
        while True:
            result = await call.graph.ainvoke({"messages": call.given})
            try:
                return self._end(ctx, node, call, result)
            except AgentOutputError:
                first: list[bool] = []
                await arecorded(REFUSED, partial(anoted, first))
                if first:
                    raise
            call = self._once_more(call, node, result)

    def _once_more(self, call: Call, node: FlowNode, result: Mapping[str, Any]) -> Call:
        """Return the call that asks anew: an answer that has failed the task before is stored, and would ever come."""
        return call._replace(refused=tuple(said(call, result, node.idempotency_key, self._name).made))

    def write(self, ctx: FlowContext, answer: str) -> None:
        """Set the output key to an answer, where there is one; to one with a reducer the answer is added.

        Raises:
            AgentOutputError: The answer is none of the key's type.
        """
        key = self._output_key
        if key is not None:
            value = parsed_output(answer, key, kind_of(ctx, key), self._name)
            if is_folded(ctx, key):
                ctx.add(key, value)
            else:
                ctx[key] = value


class SimpleAgent(Agent):
    """One model, perhaps with tools.

    Args:
        model: A chat model, a name of one ("openai:gpt-5"), or a `Resource` that each run is given.
        name: The node's name, and the agent's in messages.
        role: See `Agent`.
        instruction: See `Agent`.
        prompt: See `Agent`.
        output_key: See `Agent`.
        tools: What the model may call; see `create_agent`. One that calls `interrupt` pauses the node.

    Raises:
        Exception: See `Agent` and `create_agent`.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str,
        role: str | None = None,
        instruction: str | None = None,
        prompt: str | None = None,
        output_key: str | None = None,
        tools: Sequence[Any] = (),
    ) -> None:
        super().__init__(name, role, instruction, prompt, output_key)
        self.model = model
        self.tools = tuple(tools)
        #: The agent's graph, with the model that it was compiled for.
        self._compiled: tuple[Any, Pregel] | None = None
        if not self.resources():
            self.graph({})

    def fields(self) -> Mapping[str, Any]:
        """Return the fields it keeps beside the data: see `AgentPart`."""
        return {agent_field(self.name): log(AgentCall), HISTORY: log(Any)}

    def resources(self) -> dict[str, type]:
        """Return what a run must be given: see `AgentPart`."""
        return named([self.model])

    def graph(self, given: Mapping[str, Any], system_prompt: str | None = None) -> Pregel:
        """Return the agent's graph for a run that was given these resources."""
        model = resolved(self.model, given)
        if system_prompt is not None:
            return create_agent(model, self.tools, name=self.name, system_prompt=system_prompt)
        compiled = self._compiled
        if compiled is None or compiled[0] is not model:
            self._compiled = compiled = (model, create_agent(model, self.tools, name=self.name))
        return compiled[1]

    def _begin(self, ctx: FlowContext, node: FlowNode, prompt: Template | None) -> Call:
        brief = self.brief(ctx, prompt)
        given: list[AnyMessage] = [SystemMessage(brief.system)] if brief.system else []
        given += self.remembered(ctx, prompt)
        given.append(HumanMessage(brief.prompt, id=node.idempotency_key))
        return Call(self.graph(ctx.home.resources), given, clock().now())

    def _end(self, ctx: FlowContext, node: FlowNode, call: Call, result: Mapping[str, Any]) -> Mapping[str, Any]:
        messages = tuple(result["messages"])
        found = said(call, result, node.idempotency_key, self.name)
        self.write(ctx, found.answer.text)
        line = AgentCall(
            self.name,
            node.idempotency_key,
            str(found.asked.text),
            found.answer.text,
            messages,
            steps_of(found.made, self.name),
            usage_of(found.made) + Metrics(seconds=clock().now() - call.began),
        )
        return {agent_field(self.name): [line], HISTORY: found.history}

    def trace(self, session: AgentSession | FlowContext) -> AgentTrace:
        """Return what the agent did on a session's context, in the calls that came to an answer."""
        ctx = session.ctx if isinstance(session, AgentSession) else session
        return AgentTrace.of(self.name, calls_of(ctx.home.private, agent_field(self.name)))


def steps_of(messages: Sequence[Any], agent: str) -> tuple[AgentStep, ...]:
    """Return what messages tell of an agent's work, step by step."""
    return tuple(
        AgentStep(
            "model" if message.type == "ai" else "tool",
            agent if message.type == "ai" else message.name or "tool",
            str(message.text),
            tuple(call["name"] for call in getattr(message, "tool_calls", ())),
        )
        for message in messages
        if message.type in {"ai", "tool"}
    )
