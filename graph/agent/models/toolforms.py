"""Tools in the form in which a model is told of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pregel.graph.agent.models.foreign import is_langchain_tool
from pregel.graph.agent.models.protocol import ModelError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["as_function", "described", "for_langchain"]


def described(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """Return tools as dicts with "name", "description" and "parameters"; dicts stay what they are.

    Raises:
        ModelError: Something is no tool.
    """
    return [description_of(tool) for tool in tools]


def description_of(tool: Any) -> dict[str, Any]:
    """Return one tool as a dict.

    Raises:
        ModelError: It is no tool.
    """
    if isinstance(tool, Mapping):
        return dict(tool)
    if is_langchain_tool(tool):
        convert = import_module("langchain_core.utils.function_calling").convert_to_openai_tool
        function = convert(tool)["function"]
        return {"description": "", "parameters": {}, **function}
    try:
        return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    except AttributeError:
        raise ModelError(
            f"{show(tool)} is no tool that a model can be told of: give a function through `as_tool`, a tool of "
            'LangChain, or a dict with "name", "description" and "parameters"'
        ) from None


def for_langchain(tools: Iterable[Any]) -> list[Any]:
    """Return tools as LangChain's models take them: theirs as they are, ours as function dicts.

    Raises:
        ModelError: Something is no tool.
    """
    # One of ours may have been made from one of theirs, or from something else.
    pairs = [(tool, getattr(tool, "origin", None)) for tool in tools]
    originals = [origin if is_langchain_tool(origin) else tool for tool, origin in pairs]
    return [tool if is_langchain_tool(tool) else as_function(description_of(tool)) for tool in originals]


def as_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's dict in OpenAI's form; a dict that describes a tool of the provider stays what it is."""
    if "type" in tool or "name" not in tool or "parameters" not in tool:
        return dict(tool)
    return {"type": "function", "function": dict(tool)}
