"""Messages as text for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["pretty"]

WIDTH: Final = 80
TITLES: Final = {"human": "Human", "ai": "Ai", "system": "System", "tool": "Tool"}


def pretty(message: Any) -> str:
    """Return a message with its role as a heading, and what more it holds than its text."""
    title = f" {TITLES.get(message.type, message.type)} Message "
    return "\n".join([title.center(WIDTH, "="), *head(message), "", *body(message)])


def head(message: Any) -> Iterator[str]:
    """Yield the lines below the heading."""
    if message.name is not None:
        yield f"Name: {message.name}"
    if getattr(message, "status", "success") == "error":
        yield "Status: error"


def body(message: Any) -> Iterator[str]:
    """Yield the lines of the content and of the calls."""
    if isinstance(message.content, str):
        parts: list[Any] = [message.content] if message.content else []
    else:
        parts = message.content
    for part in parts:
        yield part if isinstance(part, str) else block(part)
    calls = getattr(message, "tool_calls", ())
    if calls:
        yield "Tool Calls:"
    for call in calls:
        yield f"  {call['name']} ({call['id']})"
        for name, value in call["args"].items():
            yield f"    {name}: {value}"
    wrong = getattr(message, "invalid_tool_calls", ())
    if wrong:
        yield "Invalid Tool Calls:"
    for call in wrong:
        yield f"  {call['name']} ({call['id']})"
        yield f"    Error: {call['error']}"
        yield f"    {call['args']}"


def block(part: dict[str, Any]) -> str:
    """Return a content block in a line; long ones, such as images, are cut."""
    if part.get("type") == "text":
        return str(part.get("text", ""))
    text = json.dumps(part, default=str, ensure_ascii=False)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."
