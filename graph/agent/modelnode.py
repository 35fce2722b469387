"""The node that calls the model, through whatever the middleware wraps around the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pregel.errors import GraphDefinitionError, nearest
from pregel.graph.agent.answering import asking, check_tries
from pregel.graph.agent.layers import Made, aaround, around, completed, settled
from pregel.graph.agent.middleware.base import forms_of
from pregel.graph.agent.models.calling import acall_model, call_model, stream_numbers
from pregel.graph.agent.requests import ModelRequest
from pregel.graph.agent.routing import updated
from pregel.graph.agent.runs import ANSWER, TRIES, noted, tries_in
from pregel.graph.agent.structured import MissingStructuredOutputError, resolved
from pregel.graph.agent.turns import answer_to, is_answer_of_model, pending_calls, repaired
from pregel.runtime import message_writer
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.graph.agent.layers import AsyncLayer, Layer
    from pregel.graph.agent.middleware.base import AgentMiddleware
    from pregel.graph.agent.routing import Router
    from pregel.graph.messages import SystemMessage
    from pregel.runtime import Runtime

__all__ = ["ModelNode"]


#: Takes the pieces of an answer; None where nobody reads them.
Tell: TypeAlias = Callable[[Any], None] | None


@dataclass(frozen=True, slots=True)
class ModelNode:
    """Calls the model of one agent.

    Args:
        model: The model.
        tools: What it is told of.
        system_message: What it is told first.
        response_format: A strategy, or None.
        wrappers: The middlewares that wrap the call, the outermost first.
        name: The agent's name, which its messages have.
        local: The names of the tools that can be run; None where a wrapper of tool calls may run others.
        folding: The fields that take several updates.
        router: Says what follows; None where a hook follows.
    """

    model: Any
    tools: Sequence[Any]
    system_message: SystemMessage | None
    response_format: Any
    wrappers: Sequence[AgentMiddleware]
    name: str | None
    local: frozenset[str] | None
    folding: frozenset[str]
    router: Router | None

    #: By this a trace knows that the graph of this node is an agent.
    is_of_agent: ClassVar[bool] = True

    @property
    def forms(self) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
        """The sync form and the async form, each if there is one.

        A wrapper that has only an async form leaves no sync one. Where nothing is worth awaiting there is no async one:
        the engine runs the other in a worker thread.
        """
        forms = [forms_of(wrapper, "wrap_model_call") for wrapper in self.wrappers]
        sync = all(call is not None for call, _ in forms) and hasattr(self.model, "invoke")
        awaits = any(acall is not None for _, acall in forms)
        awaits = awaits or inspect.iscoroutinefunction(getattr(self.model, "ainvoke", None)) or not sync
        return self.call if sync else None, self.acall if awaits else None

    def call(self, state: Mapping[str, Any], runtime: Runtime[Any], config: Mapping[str, Any]) -> Any:
        """Run the node."""
        request = self.request(state, runtime)
        layer: Layer = partial(self.ask, config, message_writer())
        for wrapper in reversed(self.wrappers):
            layer = partial(around, wrapper, layer)
        return self.result(layer(request), request)

    async def acall(self, state: Mapping[str, Any], runtime: Runtime[Any], config: Mapping[str, Any]) -> Any:
        """Run the node on an event loop. A wrapper whose sync form is called runs in a worker thread."""
        request = self.request(state, runtime)
        stream_numbers()  # begin here, as what comes back from a thread has a copy of this context
        layer: AsyncLayer = partial(self.aask, config, message_writer())
        for wrapper in reversed(self.wrappers):
            layer = partial(aaround, wrapper, layer)
        return self.result(await layer(request), request)

    def request(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> ModelRequest:
        """Return what the outermost wrapper is given. Its lists and dicts are its own."""
        return ModelRequest(
            model=self.model,
            messages=repaired(state.get("messages", ())),
            system_message=self.system_message,
            tools=list(self.tools),
            response_format=resolved(self.response_format, self.model),
            model_settings={},
            state=state,
            runtime=runtime,
        )

    def ask(self, config: Mapping[str, Any], tell: Tell, request: ModelRequest) -> Made:
        """Call the model: the innermost layer."""
        request = self.checked(request)
        return settled(call_model(request.model, asking(request), config, tell), request)

    async def aask(self, config: Mapping[str, Any], tell: Tell, request: ModelRequest) -> Made:
        """Do the same, awaited."""
        request = self.checked(request)
        return settled(await acall_model(request.model, asking(request), config, tell), request)

    def checked(self, request: ModelRequest) -> ModelRequest:
        """Return a request whose tools can be run and whose strategy fits its model.

        Raises:
            GraphDefinitionError: A wrapper has added a tool that nothing would run.
        """
        strange = [] if self.local is None else [name for name in map(name_of, request.tools) if self.is_strange(name)]
        if strange:
            raise GraphDefinitionError(
                f"a wrap_model_call added the tool {strange[0]!r}, which the agent does not have, so nothing would run "
                "it: give it to create_agent, list it in the middleware's `tools`, or run it in a wrap_tool_call"
            )
        return request.override(response_format=resolved(request.response_format, request.model))

    def is_strange(self, name: str | None) -> bool:
        """Return whether a tool can't be run; one without a name is the provider's."""
        return name is not None and name not in (self.local or ())

    def result(self, made: Made, request: ModelRequest) -> Any:
        """Return the update of the node, and what follows."""
        state = request.state
        made = self.without_tools(completed(made, request), request)
        answer = made.response.structured_response
        updates: list[tuple[str, Any]] = [("messages", self.own(made.response.result, state))]
        if answer is not None or state.get(ANSWER) is not None:  # an earlier answer is none to this call
            updates.append((ANSWER, answer))
        merged = merge([*updates, *made.updates], self.folding)
        if self.response_format is not None or self.wrappers:  # which may ask for a form
            written = {name for name, _ in merged}
            has_form = self.response_format is not None
            merged += noted(state, written, has_form=has_form, may_begin=True).items()
        if self.router is None:
            return Command(update=merged)
        tries = next((value for name, value in merged if name == TRIES), tries_in(state))
        return Command(update=merged, goto=self.router.after_model(*updated(state, merged), tries))

    def without_tools(self, made: Made, request: ModelRequest) -> Made:
        """Return what the model gave; where the agent runs no tools, with answers to the calls of such.

        Raises:
            StructuredOutputError: The model is to give a structured response, and may not be told of it any more.
        """
        if self.local is None or self.local:  # the node of the tools answers them
            return made
        response, strategy = made.response, request.response_format
        known = [*map(described_name, request.tools), *(each.name for each in getattr(strategy, "schemas", ()))]
        strange = [call for call in pending_calls(response.result) if call["name"] not in known]
        if not strange:
            return made
        tools = ", ".join(known) or "none"
        answers = [
            answer_to(
                call, f"There is no tool {call['name']!r}.{nearest(call['name'], known)} Tools: {tools}.", error=True
            )
            for call in strange
        ]
        updates = made.updates
        if strategy is not None and TRIES not in dict(updates):
            names = " and ".join(repr(call["name"]) for call in strange)
            fault = MissingStructuredOutputError(f"the model called {names}, which there is not", response.message)
            check_tries(fault, request)
            updates = (*updates, (TRIES, tries_in(request.state) + 1))
        return Made(replace(response, result=[*response.result, *answers]), updates)

    def follow(self, state: Mapping[str, Any]) -> list[Any]:
        """Return what follows a result that somebody else gave in the node's place."""
        return self.router.after_model(*updated(state, ()))  # type: ignore[union-attr]  # asked only where there is one

    def own(self, messages: Sequence[Any], state: Mapping[str, Any]) -> list[Any]:
        """Return messages as they are added: the model's with the agent's name, and none in the place of another one.

        Args:
            messages: The messages.
            state: The state that they are added to.
        """
        taken = {message.id for message in state.get("messages", ())}
        found = []
        for message in messages:
            changes: dict[str, Any] = {}
            if is_answer_of_model(message) or message.type == "tool":
                if message.id in taken:
                    changes["id"] = None
                taken.add(message.id)
            if self.name is not None and not message.name and is_answer_of_model(message):
                changes["name"] = self.name
            found.append(message.model_copy(update=changes) if changes else message)
        return found


def described_name(tool: Any) -> str:
    """Return the name of a tool that a model is told of; empty where it has none."""
    if not isinstance(tool, Mapping):
        return str(getattr(tool, "name", ""))
    function = tool.get("function")
    return str(tool.get("name") or (function.get("name") if isinstance(function, Mapping) else None) or "")


def name_of(tool: Any) -> str | None:
    """Return the name of a tool that is run here; a dict describes one that the provider runs."""
    return None if isinstance(tool, Mapping) else getattr(tool, "name", None)


def merge(updates: Sequence[tuple[str, Any]], folding: frozenset[str]) -> list[tuple[str, Any]]:
    """Return updates in which a field that takes one has one: the last."""
    last = {name: place for place, (name, _) in enumerate(updates)}
    return [pair for place, pair in enumerate(updates) if pair[0] in folding or last[pair[0]] == place]
