"""What a model is asked where an answer of a form is wanted, and what becomes of what it says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pregel.graph.agent.requests import ModelResponse
from pregel.graph.agent.routing import CORRECTION, is_correction
from pregel.graph.agent.structured import (
    MissingStructuredOutputError,
    MultipleStructuredOutputsError,
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from pregel.graph.agent.turns import answer_to
from pregel.graph.messages import HumanMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.graph.agent.requests import ModelRequest
    from pregel.graph.agent.structured import StructuredOutputError
    from pregel.graph.messages import ToolCall

__all__ = ["answered", "asking"]


def asking(request: ModelRequest) -> ModelRequest:
    """Return a request as the model is given it: with the tools, or the form, of its `response_format`."""
    strategy = request.response_format
    if not isinstance(strategy, ToolStrategy):
        return request
    choice = request.tool_choice or "any"
    return request.override(tools=[*request.tools, *strategy.tools], tool_choice=choice, response_format=None)


def answered(message: Any, request: ModelRequest) -> ModelResponse:
    """Return what a model's message comes to: with the structured response, or with what the model has to correct.

    A message that calls other tools and gives no structured response is on its way to one.

    Args:
        message: The model's message.
        request: What was asked.

    Raises:
        StructuredOutputError: It is no answer, and the model may not correct it (any more).
    """
    strategy = request.response_format
    if isinstance(strategy, ToolStrategy):
        return answered_by_tool(message, strategy, request)
    if not isinstance(strategy, ProviderStrategy) or message.tool_calls or invalid_calls(message):
        return ModelResponse([message])
    (schema,) = strategy.schemas
    try:
        return ModelResponse([message], schema.parse(json.loads(str(message.text))))
    except ValueError as error:
        fault = StructuredOutputValidationError(schema.name, error, message)
        told = f"Error: {fault}. Answer with nothing but a JSON object of that form."
        return ModelResponse([message, *corrections(fault, told, strategy, request, [])])


def answered_by_tool(message: Any, strategy: ToolStrategy[Any], request: ModelRequest) -> ModelResponse:
    """Do what `answered` does, where the answer is the call of a tool."""
    schemas = {schema.name: schema for schema in strategy.schemas}
    calls = [call for call in message.tool_calls if call["name"] in schemas]
    fault: StructuredOutputError
    if not calls:
        if message.tool_calls or invalid_calls(message):
            return ModelResponse([message])
        names = " or ".join(schemas)
        fault = MissingStructuredOutputError(f"the model answered in words; it is to call {names}", message)
    elif len(calls) > 1:
        fault = MultipleStructuredOutputsError([call["name"] for call in calls], message)
    else:
        (call,) = calls
        try:
            answer = schemas[call["name"]].parse(call["args"])
        except ValueError as error:
            fault = StructuredOutputValidationError(call["name"], error, message)
        else:
            content = strategy.tool_message_content
            content = f"Returning structured response: {answer!r}" if content is None else content
            return ModelResponse([message, answer_to(call, content, error=False)], answer)
    return ModelResponse([message, *corrections(fault, strategy.told(fault), strategy, request, calls)])


def corrections(
    fault: StructuredOutputError,
    told: str | None,
    strategy: ToolStrategy[Any] | ProviderStrategy[Any],
    request: ModelRequest,
    calls: Sequence[ToolCall],
) -> list[Any]:
    """Return the messages that tell a model to correct its answer.

    Raises:
        StructuredOutputError: The fault, if the model may not correct it.
    """
    names = {schema.name for schema in strategy.schemas}
    # Of the state, for a wrapper may have shortened what the model reads.
    tried = corrected_before(request.state.get("messages", request.messages), names)
    if told is None:
        raise fault
    if tried >= strategy.max_retries:
        fault.add_note(f"The model was told {tried} times to correct its answer (max_retries={strategy.max_retries}).")
        raise fault
    if not calls:
        return [HumanMessage(told, name=CORRECTION)]
    return [answer_to(call, told, error=True) for call in calls]


def corrected_before(messages: Sequence[Any], names: set[str]) -> int:
    """Return how often the model was told to correct its answer since somebody last spoke to it."""
    times, told = 0, False
    for message in reversed(messages):
        before = told
        told = is_correction(message) or (
            message.type == "tool" and message.status == "error" and message.name in names
        )
        times += told and not before  # several calls of one message are one answer
        if message.type == "human" and not told:
            break
    return times


def invalid_calls(message: Any) -> list[Any]:
    """Return the calls of a message whose arguments can't be read."""
    return list(getattr(message, "invalid_tool_calls", ()))
