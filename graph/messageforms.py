"""What can be a message: a message, a text, a `(role, text)` pair, a dict, or a list of these."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from pregel.errors import InvalidUpdateError, nearest
from pregel.graph.messagetypes import (
    LASTING,
    AIMessage,
    HumanMessage,
    Message,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    is_foreign,
)
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["as_message", "coerce"]

PAIR = 2

ROLES: Final[dict[str, type[Message | RemoveMessage]]] = {
    "human": HumanMessage,
    "user": HumanMessage,
    "ai": AIMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
    "tool": ToolMessage,
    "remove": RemoveMessage,
}

MINE: Final = LASTING | {RemoveMessage}


def coerce(update: Any) -> Iterable[Any]:
    """Return an update as messages: a list is several, anything else is one."""
    if isinstance(update, list):
        return map(coerce_item, update)
    return (as_message(update),)


def coerce_item(value: Any) -> Any:
    """Return an item of a list as a message. Here a pair may be a list as well, as in JSON."""
    return as_message(tuple(value) if isinstance(value, list) else value)


def as_message(value: Any) -> Any:
    """Return a value as a message.

    Raises:
        InvalidUpdateError: It is nothing that can be one; the message says what can.
    """
    if type(value) in MINE or isinstance(value, Message | RemoveMessage) or is_foreign(value):
        return value
    if isinstance(value, str):
        return HumanMessage(value)
    if isinstance(value, tuple) and len(value) == PAIR and isinstance(value[0], str):
        return from_fields({"role": value[0], "content": value[1]}, value)
    if isinstance(value, dict):
        return from_fields(value, value)
    raise refusal(value, "it is no message")


def from_fields(fields: dict[str, Any], source: Any) -> Any:
    """Return the message that a dict describes.

    Args:
        fields: The dict; it is left alone.
        source: What was given, for error messages.

    Raises:
        InvalidUpdateError: The role is missing or unknown, or the fields do not fit it.
    """
    rest = dict(fields)
    given = [(key, rest.pop(key)) for key in ("role", "type") if key in rest]
    if not given:
        raise refusal(source, 'it has neither "role" nor "type"')
    for key, role in given:
        if not isinstance(role, str) or role not in ROLES:
            raise refusal(source, f"the {key} {role!r} is unknown", nearest(role, ROLES))
    kinds = {ROLES[role] for _, role in given}
    if len(kinds) > 1:
        raise refusal(source, f"role {given[0][1]!r} and type {given[1][1]!r} contradict each other")
    (kind,) = kinds
    if kind is not RemoveMessage and "content" not in rest:
        raise refusal(source, 'it has no "content"')
    if kind is AIMessage:
        if rest["content"] is None:  # as in OpenAI's form of an answer that only calls tools
            rest["content"] = ""
        if isinstance(rest.get("tool_calls"), list):
            rest["tool_calls"] = [plain_call(call) for call in rest["tool_calls"]]
    try:
        return kind(**{str(key): part for key, part in rest.items()})
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise refusal(source, f"its fields do not fit {kind.__name__}: {faults}") from None


def plain_call(call: Any) -> Any:
    """Return a tool call, which may be in OpenAI's form, as a `ToolCall`."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    args = function.get("arguments")
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return call  # the model refuses it and says where
    return {"name": function.get("name"), "args": args, "id": call.get("id"), "type": "tool_call"}


def refusal(value: Any, reason: str, hint: str = "") -> InvalidUpdateError:
    """Return the error for a value that can't be a message."""
    return InvalidUpdateError(
        f"add_messages can't take {show(value)}: {reason}.{hint} It takes a message, a text, "
        'a (role, text) pair, a dict with "role" and "content", or a list of these; '
        f"the roles are {', '.join(sorted(ROLES))}"
    )
