"""The model's last message in a conversation: which of its calls wait for an answer, and how one is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.graph.messages import ToolMessage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.graph.messages import ToolCall

__all__ = ["answer_to", "answered", "is_answer_of_model", "last_turn", "pending_calls", "plain"]


def is_answer_of_model(message: Any) -> bool:
    """Return whether a message is the model's; in LangChain the pieces of one have a type of their own."""
    return message.type in {"ai", "AIMessageChunk"}


def last_turn(messages: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """Return the model's last message, or None, and what follows it."""
    for place in range(len(messages) - 1, -1, -1):
        if is_answer_of_model(messages[place]):
            return messages[place], messages[place + 1 :]
    return None, ()


def answered(messages: Sequence[Any]) -> set[str]:
    """Return the ids of the calls of the model's last message that have an answer.

    Only what follows that message counts: a model may use the ids of an earlier one again.
    """
    return {message.tool_call_id for message in last_turn(messages)[1] if message.type == "tool"}


def pending_calls(messages: Sequence[Any]) -> list[ToolCall]:
    """Return the calls of the model's last message that no `ToolMessage` answers."""
    message, _ = last_turn(messages)
    if message is None:
        return []
    done = answered(messages)
    return [call for call in message.tool_calls if (call["id"] or "") not in done]


def plain(call: Mapping[str, Any]) -> ToolCall:
    """Return a call without what only its maker knows of it; without an id it has an empty one."""
    return {"name": call["name"], "args": call["args"], "id": call.get("id") or "", "type": "tool_call"}


def answer_to(call: Mapping[str, Any], text: str, *, error: bool) -> ToolMessage:
    """Return the message that answers a call in the place of its tool."""
    return ToolMessage(
        text, tool_call_id=call["id"] or "", name=call.get("name"), status="error" if error else "success"
    )
