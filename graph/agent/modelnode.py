"""The node that calls the model, through whatever the middleware wraps around the call.

Theory of operation. The call is an onion: the innermost layer calls the model and reads a structured response off its
message, each `wrap_model_call` is a layer around the others, the first of the list the outermost. A layer hands on what
it answers, and what the commands of it and of the layers inside it update. It hands on those of the last call that it
made: what an earlier call of its handler updated is dropped with that call's answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from anyio import from_thread

from pregel.channels.base import MISSING
from pregel.errors import GraphDefinitionError, InvalidUpdateError, InvalidUpdateTypeError
from pregel.graph.agent.answering import answered, asking
from pregel.graph.agent.middleware.base import forms_of
from pregel.graph.agent.models.calling import acall_model, call_model
from pregel.graph.agent.offloading import in_worker
from pregel.graph.agent.requests import ExtendedModelResponse, ModelRequest, ModelResponse
from pregel.graph.agent.routing import pairs_of, updated
from pregel.graph.agent.structured import resolved
from pregel.graph.agent.turns import answer_to, is_answer_of_model
from pregel.runtime import message_writer
from pregel.text import show
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.graph.agent.middleware.base import AgentMiddleware
    from pregel.graph.agent.routing import Router
    from pregel.graph.messages import SystemMessage
    from pregel.runtime import Runtime

__all__ = ["ModelNode"]


class Made(NamedTuple):
    """What a layer answers, and what the commands of it and of the layers inside it update."""

    response: ModelResponse
    updates: tuple[tuple[str, Any], ...] = ()


Layer: TypeAlias = Callable[[ModelRequest], Made]
AsyncLayer: TypeAlias = Callable[[ModelRequest], Awaitable[Made]]
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
        """Run the node on an event loop. A wrapper without an async form runs in a worker thread."""
        request = self.request(state, runtime)
        layer: AsyncLayer = partial(self.aask, config, message_writer())
        for wrapper in reversed(self.wrappers):
            layer = partial(aaround, wrapper, layer)
        return self.result(await layer(request), request)

    def request(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> ModelRequest:
        """Return what the outermost wrapper is given. Its lists and dicts are its own."""
        return ModelRequest(
            model=self.model,
            messages=list(state.get("messages", ())),
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
        return Made(settled(call_model(request.model, asking(request), config, tell), request))

    async def aask(self, config: Mapping[str, Any], tell: Tell, request: ModelRequest) -> Made:
        """Do the same, awaited."""
        request = self.checked(request)
        return Made(settled(await acall_model(request.model, asking(request), config, tell), request))

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
        response, state = made.response, request.state
        if unsettled(response, request):
            response = settled(response.message, request)
        messages = [self.signed(message) for message in response.result]
        answer = response.structured_response
        updates: list[tuple[str, Any]] = [("messages", messages)]
        if answer is not None or state.get("structured_response") is not None:  # an earlier answer is none to this call
            updates.append(("structured_response", answer))
        merged = merge([*updates, *made.updates], self.folding)
        if self.router is None:
            return Command(update=merged)
        return Command(update=merged, goto=self.router.after_model(*updated(state, merged)))

    def follow(self, state: Mapping[str, Any]) -> list[Any]:
        """Return what follows a result that somebody else gave in the node's place."""
        return self.router.after_model(*updated(state, ()))  # type: ignore[union-attr]  # asked only where there is one

    def signed(self, message: Any) -> Any:
        """Return a message with the agent's name, if it is the model's and has none."""
        if self.name is None or message.name or not is_answer_of_model(message):
            return message
        return message.model_copy(update={"name": self.name})


def name_of(tool: Any) -> str | None:
    """Return the name of a tool that is run here; a dict describes one that the provider runs."""
    return None if isinstance(tool, Mapping) else getattr(tool, "name", None)


def around(wrapper: AgentMiddleware, inner: Layer, request: ModelRequest) -> Made:
    """Make a call through a wrapper."""
    updates: list[tuple[str, Any]] = []

    def handler(request: ModelRequest) -> ModelResponse:
        updates.clear()
        made = inner(checked_request(request, wrapper))
        updates[:] = made.updates
        return made.response

    call, _ = forms_of(wrapper, "wrap_model_call")
    return read(call(request, handler), request, wrapper, updates)  # type: ignore[misc]  # asked only where there is one


async def aaround(wrapper: AgentMiddleware, inner: AsyncLayer, request: ModelRequest) -> Made:
    """Make a call through a wrapper, awaited."""
    updates: list[tuple[str, Any]] = []

    async def handler(request: ModelRequest) -> ModelResponse:
        updates.clear()
        made = await inner(checked_request(request, wrapper))
        updates[:] = made.updates
        return made.response

    call, acall = forms_of(wrapper, "wrap_model_call")
    if acall is not None:
        result = await acall(request, handler)
    else:
        sync: Any = call  # one form is there
        back: Any = from_thread.run
        result = await in_worker(partial(sync, request, partial(back, handler)))
    return read(result, request, wrapper, updates)


def checked_request(request: Any, wrapper: AgentMiddleware) -> ModelRequest:
    """Return what a wrapper hands to its handler, if it is a request.

    Raises:
        InvalidUpdateTypeError: It is none.
    """
    if isinstance(request, ModelRequest):
        return request
    raise InvalidUpdateTypeError(
        f"wrap_model_call of {wrapper.name!r} called its handler with {show(request)}: give it a ModelRequest, such as "
        "request.override(...)"
    )


def read(result: Any, request: ModelRequest, wrapper: AgentMiddleware, inner: Sequence[tuple[str, Any]]) -> Made:
    """Return what a wrapper answered, with the updates of the layers inside it.

    Raises:
        InvalidUpdateTypeError: It is nothing that a wrapper may return.
        InvalidUpdateError: Its command does more than to update.
    """
    where = f"wrap_model_call of {wrapper.name!r}"
    command = None
    if isinstance(result, ExtendedModelResponse):
        result, command = result.model_response, result.command
    if isinstance(result, ModelResponse):
        response = result
    elif getattr(result, "type", None) is not None and is_answer_of_model(result):
        response = settled(result, request)
    else:
        raise InvalidUpdateTypeError(
            f"{where} returned {show(result)}: it returns a ModelResponse, an AIMessage or an ExtendedModelResponse"
        )
    if command is None:
        return Made(response, tuple(inner))
    if command.goto or command.graph is not None or command.resume is not MISSING:
        raise InvalidUpdateError(
            f"{where} returned a command that steers the run. A wrapper's command only updates: steer by jump_to from "
            "an after_model hook"
        )
    return Made(response, (*inner, *pairs_of(command.update)))


def settled(message: Any, request: ModelRequest) -> ModelResponse:
    """Return what a message of the model comes to: calls that can't be read are answered, as is structured output."""
    response = answered(message, replace(request, response_format=resolved(request.response_format, request.model)))
    broken = [
        answer_to(
            call,
            f"Error: the arguments of this call can't be read: {call.get('error') or 'they are no JSON object'}. Call "
            "the tool again with arguments that are a JSON object.",
            error=True,
        )
        for call in getattr(message, "invalid_tool_calls", ())
    ]
    return replace(response, result=[*response.result, *broken]) if broken else response


def unsettled(response: ModelResponse, request: ModelRequest) -> bool:
    """Return whether a wrapper made an answer by itself, without the structured response that was asked for."""
    if request.response_format is None or response.structured_response is not None:
        return False
    return len(response.result) == 1 and is_answer_of_model(response.result[0])


def merge(updates: Sequence[tuple[str, Any]], folding: frozenset[str]) -> list[tuple[str, Any]]:
    """Return updates in which a field that takes one has one: the last."""
    last = {name: place for place, (name, _) in enumerate(updates)}
    return [pair for place, pair in enumerate(updates) if pair[0] in folding or last[pair[0]] == place]
