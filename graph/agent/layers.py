"""The layers around a call of the model: what each `wrap_model_call` is given, and what it may give back.

Theory of operation. The call is an onion: the innermost layer calls the model and reads a structured response off its
message, each `wrap_model_call` is a layer around the others, the first of the list the outermost. A layer hands on what
it answers, and what the commands of it and of the layers inside it update. It hands on those of the last call that it
made: what an earlier call of its handler updated is dropped with that call's answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pregel.channels.base import MISSING
from pregel.errors import InvalidUpdateError, InvalidUpdateTypeError
from pregel.graph.agent.answering import answered
from pregel.graph.agent.middleware.base import forms_of, is_awaited
from pregel.graph.agent.offloading import back_on_loop, in_worker
from pregel.graph.agent.requests import ExtendedModelResponse, ModelRequest, ModelResponse
from pregel.graph.agent.results import check_awaited
from pregel.graph.agent.routing import is_correction, pairs_of
from pregel.graph.agent.runs import TRIES, tries_in
from pregel.graph.agent.structured import resolved
from pregel.graph.agent.turns import answer_to, is_answer_of_model, last_turn, with_call_ids
from pregel.graph.agent.turns import answered as answered_calls
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.graph.agent.middleware.base import AgentMiddleware

__all__ = ["AsyncLayer", "Layer", "Made", "aaround", "around", "completed", "settled"]


class Made(NamedTuple):
    """What a layer answers, and what the commands of it and of the layers inside it update."""

    response: ModelResponse
    updates: tuple[tuple[str, Any], ...] = ()


Layer: TypeAlias = Callable[[ModelRequest], Made]
AsyncLayer: TypeAlias = Callable[[ModelRequest], Awaitable[Made]]


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

    sync: Any
    awaited: Any
    sync, awaited = forms_of(wrapper, "wrap_model_call")
    if is_awaited(sync, awaited):
        result = await awaited(request, handler)
    else:
        result = await in_worker(partial(sync, request, partial(back_on_loop, handler)))
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
        made = Made(checked_response(result, where))
    elif getattr(result, "type", None) is not None and is_answer_of_model(result):
        made = settled(result, request)
    else:
        check_awaited(result, where, InvalidUpdateTypeError)
        raise InvalidUpdateTypeError(
            f"{where} returned {show(result)}: it returns a ModelResponse, an AIMessage or an ExtendedModelResponse"
        )
    made = Made(made.response, (*inner, *made.updates))
    if command is None:
        return made
    if command.goto or command.graph is not None or command.resume is not MISSING:
        raise InvalidUpdateError(
            f"{where} returned a command that steers the run. A wrapper's command only updates: steer by jump_to from "
            "an after_model hook"
        )
    return Made(made.response, (*made.updates, *pairs_of(command.update)))


def checked_response(response: ModelResponse, where: str) -> ModelResponse:
    """Return what a wrapper returned, if it has one message of the model.

    Raises:
        InvalidUpdateTypeError: It has none or several, or something in it is no message.
    """
    strange = [each for each in response.result if getattr(each, "type", None) is None]
    if strange:
        raise InvalidUpdateTypeError(f"{where} returned a ModelResponse with {show(strange[0])}, which is no message")
    count = sum(map(is_answer_of_model, response.result))
    if count != 1:
        raise InvalidUpdateTypeError(
            f"{where} returned a ModelResponse with {count or 'no'} message{'s' if count else ''} of the model: it has "
            "one AIMessage, and behind that what answers its calls"
        )
    return response


def settled(message: Any, request: ModelRequest) -> Made:
    """Return what a message of the model comes to: calls that can't be read are answered, as is structured output."""
    message = with_call_ids(message, "made" if request.runtime is None else f"{request.runtime.task_id}:made")
    request = replace(request, response_format=resolved(request.response_format, request.model))
    response, is_wrong = answered(message, request)
    done = answered_calls(response.result)
    broken = [
        answer_to(
            call,
            f"Error: the arguments of this call can't be read: {call.get('error') or 'they are no JSON object'}. Call "
            "the tool again with arguments that are a JSON object.",
            error=True,
        )
        for call in getattr(message, "invalid_tool_calls", ())
        if call["id"] not in done
    ]
    updates = ((TRIES, tries_in(request.state) + 1),) if is_wrong else ()
    return Made(replace(response, result=[*response.result, *broken]) if broken else response, updates)


def completed(made: Made, request: ModelRequest) -> Made:
    """Return what the model gave; what a wrapper made by itself is read as a message of the model is."""
    response = made.response
    _, after = last_turn(response.result)
    if response.structured_response is not None or any(each.type == "tool" or is_correction(each) for each in after):
        return made
    again = settled(response.message, request)
    before = [each for each in response.result if not is_answer_of_model(each)]
    return Made(replace(again.response, result=[*before, *again.response.result]), (*made.updates, *again.updates))
