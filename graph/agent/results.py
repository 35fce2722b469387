"""What a tool may return, and what becomes of it: the messages and commands that answer a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import isasyncgen, isawaitable, isgenerator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic_core import to_json

from pregel.channels.base import Overwrite
from pregel.errors import InvalidUpdateTypeError
from pregel.graph.messages import REMOVE_ALL_MESSAGES, ToolMessage
from pregel.text import show
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pregel.graph.agent.tooltype import ResponseFormat
    from pregel.graph.messages import ToolCall

__all__ = ["Answer", "ToolResultError", "answer", "answers_as_updates", "check_awaited", "checked", "is_tool_message"]

#: What answers a call: a `ToolMessage` (ours or LangChain's), a `Command`, or a list of these.
Answer: TypeAlias = Any

#: The types of content blocks that models take from tools; a list of other dicts is data.
BLOCKS: Final = frozenset(
    {
        "audio",
        "document",
        "file",
        "image",
        "image_url",
        "input_audio",
        "json",
        "reasoning",
        "search_result",
        "text",
        "text-plain",
        "tool_reference",
        "video",
    }
)
PAIR: Final = 2


class ToolResultError(InvalidUpdateTypeError):
    """What a tool, or a wrapper around its call, returned is no answer to the call."""


def answer(result: Any, call: ToolCall, response_format: ResponseFormat, messages_key: str) -> Answer:
    """Return what a tool returned as the answer to its call.

    - A text or a list of content blocks is what the model is told; other values are told as JSON.
    - A `ToolMessage` that answers the call, or a `Command` whose update has one, stands as it is; so does a list of
      these, one of which answers.
    - A `Command` to the graph around this one needs no answer: this one ends.

    Raises:
        ToolResultError: It is none of these, or answers another call, or nothing; says how to write it.
    """
    several = isinstance(result, (list, tuple)) and any(map(is_control, result))
    if several or is_control(result):
        return checked(list(result) if several else result, call, f"tool {call['name']!r}", messages_key)
    if isawaitable(result) or isgenerator(result) or isasyncgen(result):
        if hasattr(result, "close"):
            result.close()  # never awaited: say so in our words instead of the interpreter's warning
        raise ToolResultError(
            f"tool {call['name']!r} returned a {type(result).__name__}, which is no result yet: declare the tool with "
            "`async def`, so that it is awaited, and let it return; parts go to `runtime.stream_writer`"
        )
    strange = next((each for each in (result if isinstance(result, list) else [result]) if is_strange(each)), None)
    if strange is not None:
        raise ToolResultError(
            f"tool {call['name']!r} returned {show(strange)}, which is no Command of this library: return "
            "pregel.types.Command(update=..., goto=...)"
        )
    artifact = None
    if response_format == "content_and_artifact":
        if not isinstance(result, tuple) or len(result) != PAIR:
            raise ToolResultError(
                f"tool {call['name']!r} has response_format='content_and_artifact' and returned {show(result)}: return "
                "a pair, `return text, artifact`"
            )
        result, artifact = result
    if getattr(result, "type", None) in {"human", "ai", "system", "remove"} and hasattr(result, "id"):
        raise ToolResultError(
            f"tool {call['name']!r} returned {show(result)}: of messages only a ToolMessage answers a call. Return the "
            "text, or Command(update={'messages': [ToolMessage(...), ...]}) to add others behind it"
        )
    return ToolMessage(content_of(result), tool_call_id=call["id"] or "", name=call["name"], artifact=artifact)


def content_of(result: Any) -> Any:
    """Return a value as the content of a message: text and content blocks as they are, other values as JSON."""
    if isinstance(result, str):
        return result
    if isinstance(result, list) and any(isinstance(part, dict) for part in result) and all(map(is_content, result)):
        return result
    try:
        return to_json(result, fallback=str).decode()
    except (ValueError, RecursionError):  # bytes that are no text, or a value that holds itself
        return str(result)


def is_strange(value: Any) -> bool:
    """Return whether a value looks like control and is none here, so that a model would be told of it as data."""
    return type(value).__name__ in {"Command", "Send", "Overwrite"} and not isinstance(value, Command)


def is_content(part: Any) -> bool:
    """Return whether something can be a part of a message's content."""
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") in BLOCKS)


def is_tool_message(value: Any) -> bool:
    """Return whether a value is a `ToolMessage`, ours or LangChain's."""
    return isinstance(value, ToolMessage) or (getattr(value, "type", None) == "tool" and hasattr(value, "tool_call_id"))


def is_control(value: Any) -> bool:
    """Return whether a value is part of an answer by itself."""
    return isinstance(value, Command) or is_tool_message(value)


def checked(result: Any, call: ToolCall, by: str, messages_key: str) -> Answer:
    """Return what was returned if it answers a call.

    Args:
        result: A `ToolMessage`, a `Command`, or a list of these.
        call: The call.
        by: Who returned it, for messages.
        messages_key: The field of the state that holds the messages.

    Raises:
        ToolResultError: It is none of these, or answers another call, or nothing; says how to write it.
    """
    check_awaited(result, by, ToolResultError)
    parts = result if isinstance(result, list) else [result]
    for part in parts:
        if not is_control(part):
            raise ToolResultError(
                f"{by} returned {show(result)} for the call {call['id']!r} of tool {call['name']!r}: return a "
                f"ToolMessage, a Command, or a list of these, such as {written(call)}"
            )
    answered = [message.tool_call_id if is_tool_message(message) else None for message in parts]
    others = [each for each in answered if each not in {None, call["id"]}]
    if others:
        raise ToolResultError(
            f"{by} answers the call {others[0]!r}, and was asked for {call['id']!r} of tool {call['name']!r}: return "
            f"{written(call)}"
        )
    commands = [part for part in parts if isinstance(part, Command)]
    count = answered.count(call["id"]) + sum(answers_in(command, call, messages_key) for command in commands)
    if count > 1:
        raise ToolResultError(
            f"{by} answers the call {call['id']!r} of tool {call['name']!r} {count} times: models take one answer to a "
            "call. Return one ToolMessage"
        )
    excused = any(command.graph == Command.PARENT or clears(command, messages_key) for command in commands)
    if count == 0 and not excused:
        raise ToolResultError(
            f"{by} returned {show(result)}, which does not answer the call {call['id']!r} of tool {call['name']!r}, "
            "and models refuse a conversation in which a call has no answer: return "
            f"Command(update={{{messages_key!r}: [{written(call)}], ...}}). The id comes "
            "in a parameter `tool_call_id: Annotated[str, InjectedToolCallId]`"
        )
    own = [without_id(part, call, messages_key) for part in parts]
    return own if isinstance(result, list) else own[0]


def check_awaited(result: Any, by: str, error: type[InvalidUpdateTypeError]) -> None:
    """Check that what a wrapper returned is not yet to be awaited.

    Raises:
        InvalidUpdateTypeError: It is, in the given class.
    """
    if isawaitable(result):
        if hasattr(result, "close"):
            result.close()  # never awaited: said in our words instead of the interpreter's warning
        raise error(
            f"{by} returned a {type(result).__name__} in the place of a result: its handler is to be awaited, `return "
            "await handler(request)`"
        )


def without_id(part: Any, call: ToolCall, messages_key: str) -> Any:
    """Return a part of an answer in which the message that answers the call has no id yet.

    It is given one of its own: with an id that a tool writes down, the answer to one call would take the place of the
    answer to another.
    """

    def cleared(message: Any) -> Any:
        if is_tool_message(message) and message.tool_call_id == call["id"] and message.id:
            return message.model_copy(update={"id": None})
        return message

    def each(given: Any) -> Any:
        return [cleared(message) for message in given] if isinstance(given, list) else cleared(given)

    if not isinstance(part, Command):
        return cleared(part)
    update = part.update
    if isinstance(update, Mapping) and messages_key in update:
        return replace(part, update={**update, messages_key: each(update[messages_key])})
    if isinstance(update, (list, tuple)):
        pairs = [
            (pair[0], each(pair[1]))
            if isinstance(pair, tuple) and len(pair) == PAIR and pair[0] == messages_key
            else pair
            for pair in update
        ]
        return replace(part, update=pairs)
    return part


def written(call: ToolCall) -> str:
    """Return how the message is written that answers a call."""
    return f"ToolMessage('...', tool_call_id={call['id']!r})"


def given_in(command: Command[Any], messages_key: str) -> Sequence[Any]:
    """Return the updates of the messages that a command has."""
    update = command.update
    if isinstance(update, Mapping):
        return [update[messages_key]] if messages_key in update else []
    if isinstance(update, (list, tuple)):
        return [pair[1] for pair in update if isinstance(pair, tuple) and pair and pair[0] == messages_key]
    return [getattr(update, messages_key, [])]


def messages_in(command: Command[Any], messages_key: str) -> Iterator[Any]:
    """Yield the messages of a command's update."""
    for given in given_in(command, messages_key):
        messages = given.value if isinstance(given, Overwrite) else given
        yield from messages if isinstance(messages, (list, tuple)) else (messages,)


def answers_in(command: Command[Any], call: ToolCall, messages_key: str) -> int:
    """Return how many messages of a command answer a call; they may be dicts."""

    def part(message: Any, *names: str) -> Any:
        read = message.get if isinstance(message, dict) else lambda name: getattr(message, name, None)
        return next((found for found in map(read, names) if found is not None), None)

    return sum(
        part(message, "role", "type") == "tool" and part(message, "tool_call_id") == call["id"]
        for message in messages_in(command, messages_key)
    )


def clears(command: Command[Any], messages_key: str) -> bool:
    """Return whether a command removes all messages, and with them the call."""
    return any(
        isinstance(given, Overwrite) or getattr(given, "id", None) == REMOVE_ALL_MESSAGES
        for given in (*given_in(command, messages_key), *messages_in(command, messages_key))
    )


def answers_as_updates(answers: Sequence[Answer], messages_key: str) -> list[Any]:
    """Return answers as the result of a node: commands as they are, and the messages between them as updates."""
    results: list[Any] = []
    for each in answers:
        for part in each if isinstance(each, list) else [each]:
            if isinstance(part, Command):
                results.append(part)
            elif results and isinstance(results[-1], dict):
                results[-1][messages_key].append(part)
            else:
                results.append({messages_key: [part]})
    return results or [{}]
