"""The messages of a model in a conversation: which of their calls wait for an answer, and how one is answered."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pregel.graph.messages import ToolMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pregel.graph.messages import ToolCall

__all__ = [
    "all_calls",
    "answer_to",
    "answered",
    "has_error",
    "is_answer_of_model",
    "last_turn",
    "pending_calls",
    "plain",
    "repaired",
    "with_call_ids",
]

#: What the model is told of a call that nothing will answer any more.
ABANDONED: Final = "Error: this call was not carried out: the conversation went on without it. Call again if need be."


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


def all_calls(message: Any) -> list[Mapping[str, Any]]:
    """Return the calls of a message, and behind them those whose arguments can't be read."""
    return [*(getattr(message, "tool_calls", None) or ()), *(getattr(message, "invalid_tool_calls", None) or ())]


def has_error(messages: Iterable[Any]) -> bool:
    """Return whether a tool's answer among some messages is an error, which the model should see."""
    return any(message.type == "tool" and getattr(message, "status", "success") == "error" for message in messages)


def repaired(messages: Sequence[Any]) -> list[Any]:
    """Return a conversation in which each call has an answer, for providers refuse one in which some have none.

    A call is left open where its tool raised, where a question about it was never answered, or where a hook went on
    without it. It gets an error behind the message that has it; what is answered stays as it is.

    Args:
        messages: The conversation as it is shown to a model: no call of it is about to be made.
    """
    found: list[Any] = []
    answers: set[str] = set()
    for message in reversed(messages):
        if message.type == "tool":
            answers.add(message.tool_call_id)
        elif is_answer_of_model(message):
            left = [call for call in all_calls(message) if (call["id"] or "") not in answers]
            found.extend(answer_to(call, ABANDONED, error=True) for call in reversed(left))
            answers = set()
        found.append(message)
    found.reverse()
    return found


def with_call_ids(message: Any, place: str) -> Any:
    """Return a message of a model whose calls each have an id of their own: what answers one answers no other.

    Args:
        message: The message; a call of it may have no id, or that of another one, which keeps it.
        place: Distinguishes it from other messages of the model.
    """
    taken: set[str] = set()
    changed = False
    kinds: dict[str, list[Any]] = {"tool_calls": [], "invalid_tool_calls": []}
    for kind, calls in kinds.items():
        for call in getattr(message, kind, None) or ():
            identity = call["id"]
            if not identity or identity in taken:
                changed = True
                # Short and plain: providers take no more than letters, digits, "_" and "-".
                identity = f"call_{sha256(f'{place}:{len(taken)}'.encode()).hexdigest()[:24]}"
            taken.add(identity)
            calls.append({**call, "id": identity})
    return message.model_copy(update={kind: calls for kind, calls in kinds.items() if calls}) if changed else message
