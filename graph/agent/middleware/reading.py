"""What middleware reads from messages and makes of them, whether they are ours or langchain-core's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.graph.agent.routing import last_turn, pending_calls
from pregel.graph.messages import ToolMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "answer",
    "answered",
    "calls_of",
    "last_ai",
    "pending_calls",
    "replaced_text",
    "role_of",
    "text_of",
    "tool_name",
    "with_calls",
    "with_content",
]


def role_of(message: Any) -> str:
    """Return the type of a message: "human", "ai", "system" or "tool". LangChain's pieces of one count as one."""
    kind: str = message.type
    return kind.removesuffix("MessageChunk").lower()


def last_ai(messages: Sequence[Any]) -> Any:
    """Return the model's last message, or None."""
    return last_turn(messages)[0]


def calls_of(message: Any) -> list[Any]:
    """Return the tool calls of a message: dicts with "name", "args" and "id"."""
    return list(getattr(message, "tool_calls", None) or ())


def answered(messages: Sequence[Any]) -> set[str]:
    """Return the ids of the calls of the model's last message that have an answer.

    Only what follows that message counts: a model may use the ids of an earlier one again.
    """
    return {message.tool_call_id for message in last_turn(messages)[1] if message.type == "tool"}


def answer(call: Mapping[str, Any], text: str, *, error: bool) -> ToolMessage:
    """Return the message that answers a call in the place of its tool."""
    return ToolMessage(
        text, tool_call_id=str(call["id"]), name=str(call["name"]), status="error" if error else "success"
    )


def with_calls(message: Any, calls: Sequence[Any]) -> Any:
    """Return a copy of a model's message with other tool calls; it replaces the original in a list, by its id."""
    return message.model_copy(update={"tool_calls": list(calls)})


def with_content(message: Any, content: Any) -> Any:
    """Return a copy of a message with another content; it replaces the original in a list, by its id."""
    return message.model_copy(update={"content": content})


def text_of(message: Any) -> str:
    """Return the text of a message, without its other content blocks."""
    if isinstance(message.content, str):
        return message.content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in message.content)


def replaced_text(content: Any, replace: Callable[[str], str]) -> Any:
    """Return a content in which each text, and each text of a block of type "text", is replaced.

    Args:
        content: A message's content; it is left alone.
        replace: From a text to the one in its place.
    """
    if isinstance(content, str):
        return replace(content)
    return [
        replace(part)
        if isinstance(part, str)
        else {**part, "text": replace(part["text"])}
        if part.get("type") == "text" and isinstance(part.get("text"), str)
        else part
        for part in content
    ]


def tool_name(thing: Any) -> str:
    """Return the name of a tool: of a `Tool`, a tool of LangChain, a function, or a name itself."""
    if isinstance(thing, str):
        return thing
    return str(getattr(thing, "name", None) or getattr(thing, "__name__", ""))
