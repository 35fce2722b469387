"""How people write graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

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

__getattr__, __dir__ = lazily(__name__, _HOMES)
