"""Messages and models of LangChain: recognised without importing it, and converted where one side needs its own."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pregel.graph.agent.models.protocol import ModelError
from pregel.graph.messageforms import ROLES
from pregel.graph.messages import AIMessage, RemoveMessage, ToolMessage
from pregel.graph.messagetypes import is_foreign
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pregel.graph.messages import AnyMessage

__all__ = ["is_langchain_model", "is_langchain_tool", "to_langchain", "to_own"]

#: A message that removes another is nothing that a model can be told.
OWN: Final[dict[str, Any]] = {role: kind for role, kind in ROLES.items() if kind is not RemoveMessage}
CLASSES: Final = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}
#: What LangChain's models of usage require.
COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")


def is_langchain_model(model: Any) -> bool:
    """Return whether a model is one of LangChain, or a runnable around one: if so, LangChain is loaded."""
    return is_of("langchain_core.runnables.base", "Runnable", model)


def is_langchain_tool(tool: Any) -> bool:
    """Return whether a tool is one of LangChain."""
    return is_of("langchain_core.tools.base", "BaseTool", tool)


def is_of(module: str, name: str, value: Any) -> bool:
    """Return whether a value is of a class, without loading its module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name, ()))


def to_langchain(messages: Iterable[AnyMessage]) -> list[Any]:
    """Return messages as LangChain's; those that are stay what they are.

    Raises:
        ModuleNotFoundError: langchain-core is not installed.
    """
    home = import_module("langchain_core.messages")
    return [message if is_foreign(message) else as_langchain(message, home) for message in messages]


def as_langchain(message: Any, home: Any) -> Any:
    """Return one of our messages as LangChain's."""
    fields = {"content": message.content, "id": message.id, "name": message.name}
    if message.type == "tool":
        fields |= {"tool_call_id": message.tool_call_id, "status": message.status, "artifact": message.artifact}
    if message.type == "ai":
        usage = message.usage_metadata or {}
        fields |= {
            "tool_calls": [{**call, "type": "tool_call"} for call in message.tool_calls],
            "invalid_tool_calls": [{**call, "type": "invalid_tool_call"} for call in message.invalid_tool_calls],
            "response_metadata": message.response_metadata,
            "usage_metadata": usage if all(isinstance(usage.get(count), int) for count in COUNTS) else None,
        }
    return getattr(home, CLASSES[message.type])(**fields)


def to_own(messages: Iterable[AnyMessage]) -> list[AnyMessage]:
    """Return messages as ours; what only LangChain knows of them is left out.

    Raises:
        ModelError: A message has a role that we have no class for.
    """
    return [as_own(message) if is_foreign(message) else message for message in messages]


def as_own(message: Any) -> Any:
    """Return one of LangChain's messages as ours.

    Raises:
        ModelError: We have no class for its role.
    """
    role = message.type.removesuffix("MessageChunk").lower()
    if role == "chat":
        role = message.role
    kind = OWN.get(role)
    if kind is None:
        raise ModelError(
            f"a {type(message).__name__} can't be passed to this model: it knows the roles human, ai, system and tool. "
            f"Use one of these, or a chat model of LangChain. The message is {show(message)}"
        )
    fields: dict[str, Any] = {"content": message.content, "id": message.id, "name": message.name}
    if kind is ToolMessage:
        fields |= {"tool_call_id": message.tool_call_id, "status": message.status, "artifact": message.artifact}
    if kind is AIMessage and hasattr(message, "tool_calls"):
        fields |= {
            "tool_calls": [
                {"name": call["name"], "args": call["args"], "id": call["id"], "type": "tool_call"}
                for call in message.tool_calls
            ],
            "invalid_tool_calls": [
                {key: call.get(key) for key in ("name", "args", "id", "error")} for call in message.invalid_tool_calls
            ],
            "response_metadata": dict(message.response_metadata),
            "usage_metadata": None if message.usage_metadata is None else dict(message.usage_metadata),
        }
    return kind(**fields)
