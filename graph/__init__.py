"""How people write graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pregel.graph.compile import CompiledStateGraph
    from pregel.graph.findings import Finding
    from pregel.graph.messages import MessagesState, add_messages
    from pregel.graph.schema import OmitFromInput, OmitFromOutput, OmitFromSchema, PrivateStateAttr, Unchecked
    from pregel.graph.state import StateGraph
    from pregel.types import END, START

__all__ = [
    "END",
    "START",
    "CompiledStateGraph",
    "Finding",
    "MessagesState",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "PrivateStateAttr",
    "StateGraph",
    "Unchecked",
    "add_messages",
]

_HOMES = {
    "END": "pregel.types",
    "START": "pregel.types",
    "CompiledStateGraph": "pregel.graph.compile",
    "Finding": "pregel.graph.findings",
    "MessagesState": "pregel.graph.messages",
    "OmitFromInput": "pregel.graph.schema",
    "OmitFromOutput": "pregel.graph.schema",
    "OmitFromSchema": "pregel.graph.schema",
    "PrivateStateAttr": "pregel.graph.schema",
    "StateGraph": "pregel.graph.state",
    "Unchecked": "pregel.graph.schema",
    "add_messages": "pregel.graph.messages",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home when it is first used (PEP 562): messages need pydantic, graphs may not."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pregel.graph' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
