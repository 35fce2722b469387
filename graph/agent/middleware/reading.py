"""What middleware reads from messages and makes of them, whether they are ours or langchain-core's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "calls_of",
    "replaced_text",
    "role_of",
    "tool_name",
    "with_calls",
    "with_content",
]


def role_of(message: Any) -> str:
    """Return the type of a message: "human", "ai", "system" or "tool". LangChain's pieces of one count as one."""
    kind: str = message.type
    return kind.removesuffix("MessageChunk").lower()


def calls_of(message: Any) -> list[Any]:
    """Return the tool calls of a message: dicts with "name", "args" and "id"."""
    return list(getattr(message, "tool_calls", None) or ())


def with_calls(message: Any, calls: Sequence[Any]) -> Any:
    """Return a copy of a model's message with other tool calls; it replaces the original in a list, by its id."""
    return message.model_copy(update={"tool_calls": list(calls)})


def with_content(message: Any, content: Any) -> Any:
    """Return a copy of a message with another content; it replaces the original in a list, by its id."""
    return message.model_copy(update={"content": content})


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
