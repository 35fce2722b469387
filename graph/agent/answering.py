"""What a model is asked where an answer of a form is wanted, and what becomes of what it says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.graph.agent.requests import ModelResponse
from pregel.graph.agent.routing import CORRECTION
from pregel.graph.agent.runs import tries_in
from pregel.graph.agent.structured import (
    MissingStructuredOutputError,
    MultipleStructuredOutputsError,
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from pregel.graph.agent.turns import all_calls, answer_to
from pregel.graph.messages import HumanMessage
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.graph.agent.requests import ModelRequest
    from pregel.graph.agent.structured import StructuredOutputError

__all__ = ["Read", "answered", "asking", "check_tries"]


class Read(NamedTuple):
    """What a model's message comes to."""

    response: ModelResponse
    #: Whether it is no answer, and the model is told to correct it.
    is_wrong: bool = False


def asking(request: ModelRequest) -> ModelRequest:
    """Return a request as the model is given it: with the tools, or the form, of its `response_format`."""
    strategy = request.response_format
    if not isinstance(strategy, ToolStrategy):
        return request
    choice = request.tool_choice or "any"
    return request.override(tools=[*request.tools, *strategy.tools], tool_choice=choice, response_format=None)


def answered(message: Any, request: ModelRequest) -> Read:
    """Return what a model's message comes to: with the structured response, or with what the model has to correct.

    A message that calls other tools and gives no structured response is on its way to one.

    Args:
        message: The model's message.
        request: What was asked.

    Raises:
        StructuredOutputError: It is no answer, and the model may not correct it (any more), or refuses to give one.
    """
    strategy = request.response_format
    if not isinstance(strategy, (ToolStrategy, ProviderStrategy)):
        return Read(ModelResponse([message]))
    calls = all_calls(message)
    refusal = "" if calls else refusal_in(message)
    if refusal:
        raise MissingStructuredOutputError(
            f"the model refused to give the structured response, and is not asked again: {shortened(refusal)}", message
        )
    if isinstance(strategy, ToolStrategy):
        return answered_by_tool(message, strategy, request)
    if calls:
        return Read(ModelResponse([message]))
    (schema,) = strategy.schemas
    try:
        return Read(ModelResponse([message], schema.parse(parsed(str(message.text)))))
    except ValueError as error:
        fault = StructuredOutputValidationError(schema.name, error, message)
        told = f"Error: {fault}. Answer with nothing but a JSON object of that form."
        return Read(ModelResponse([message, *corrections(fault, told, request, [])]), is_wrong=True)


def parsed(text: str) -> Any:
    """Return the JSON that a model wrote.

    Raises:
        ValueError: It is none; says what the model wrote instead.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is no JSON ({error}), but {shortened(text)}") from error


def refusal_in(message: Any) -> str:
    """Return in what words a model refuses to answer, as OpenAI's models say it; empty where it does not."""
    blocks = message.content if isinstance(message.content, list) else ()
    refusals = [block for block in blocks if isinstance(block, dict) and block.get("type") == "refusal"]
    if refusals:  # of a stream there may be several pieces
        return "".join(str(block.get("refusal") or "") for block in refusals) or "without a reason"
    return str((getattr(message, "additional_kwargs", None) or {}).get("refusal") or "")  # where LangChain has it


def answered_by_tool(message: Any, strategy: ToolStrategy[Any], request: ModelRequest) -> Read:
    """Do what `answered` does, where the answer is the call of a tool."""
    schemas = {schema.name: schema for schema in strategy.schemas}
    calls = [call for call in all_calls(message) if call["name"] in schemas]
    fault: StructuredOutputError
    if not calls:
        if all_calls(message):
            return Read(ModelResponse([message]))
        names = " or ".join(schemas)
        fault = MissingStructuredOutputError(f"the model answered in words; it is to call {names}", message)
    elif len(calls) > 1:
        fault = MultipleStructuredOutputsError([call["name"] for call in calls], message)
    else:
        (call,) = calls
        try:
            answer = schemas[call["name"]].parse(arguments_of(call))
        except ValueError as error:
            fault = StructuredOutputValidationError(call["name"], error, message)
        else:
            content = strategy.tool_message_content
            content = f"Returning structured response: {answer!r}" if content is None else content
            return Read(ModelResponse([message, answer_to(call, content, error=False)], answer))
    return Read(ModelResponse([message, *corrections(fault, strategy.told(fault), request, calls)]), is_wrong=True)


def arguments_of(call: Mapping[str, Any]) -> Any:
    """Return the arguments of a call.

    Raises:
        ValueError: They can't be read.
    """
    if isinstance(call["args"], dict):
        return call["args"]
    raise ValueError(f"the arguments can't be read: {call.get('error') or 'they are no JSON object'}")


def corrections(
    fault: StructuredOutputError, told: str | None, request: ModelRequest, calls: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Return the messages that tell a model to correct its answer.

    Args:
        fault: What is wrong with it.
        told: What the model is told; None where it may not correct it.
        request: What was asked; its strategy says how often it may.
        calls: The calls that are the answer.

    Raises:
        StructuredOutputError: The fault, if the model may not correct it.
    """
    if told is None:
        raise fault
    check_tries(fault, request)
    if not calls:
        return [HumanMessage(told, name=CORRECTION)]
    return [answer_to(call, told, error=True) for call in calls]


def check_tries(fault: StructuredOutputError, request: ModelRequest) -> None:
    """Check that a model may correct its answer once more in this run.

    Raises:
        StructuredOutputError: The fault, if it may not.
    """
    tried, most = tries_in(request.state), request.response_format.max_retries
    if tried >= most:
        fault.add_note(f"The model was told {tried} times to correct its answer (max_retries={most}).")
        raise fault
