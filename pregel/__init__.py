"""pregel: parallel agent graphs in supersteps.

State is a schema; its fields compile into typed channels. In each superstep the due nodes run in parallel over one
snapshot, and at the barrier each channel applies its rule once. The names here are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.channels.base import Overwrite
    from pregel.checkpoint.memory import InMemorySaver
    from pregel.checkpoint.sqlite import SqliteSaver
    from pregel.control import RunControl
    from pregel.graph.functional.entry import entrypoint
    from pregel.graph.functional.tasks import task
    from pregel.graph.messages import MessagesState, add_messages
    from pregel.graph.schema import OmitFromInput, OmitFromOutput, OmitFromSchema, PrivateStateAttr
    from pregel.graph.state import StateGraph
    from pregel.interrupting import interrupt
    from pregel.lowlevel import NodeBuilder
    from pregel.main import Pregel
    from pregel.runtime import Runtime
    from pregel.store.memory import InMemoryStore
    from pregel.store.sqlite import SqliteStore
    from pregel.types import END, START, CachePolicy, Command, Interrupt, RetryPolicy, Send, TimeoutPolicy

__version__ = "0.1.0"

__all__ = [
    "END",
    "START",
    "CachePolicy",
    "Command",
    "InMemorySaver",
    "InMemoryStore",
    "Interrupt",
    "MessagesState",
    "NodeBuilder",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "Overwrite",
    "Pregel",
    "PrivateStateAttr",
    "RetryPolicy",
    "RunControl",
    "Runtime",
    "Send",
    "SqliteSaver",
    "SqliteStore",
    "StateGraph",
    "TimeoutPolicy",
    "add_messages",
    "entrypoint",
    "interrupt",
    "task",
]

_HOMES = {
    "END": "pregel.types",
    "START": "pregel.types",
    "CachePolicy": "pregel.types",
    "Command": "pregel.types",
    "InMemorySaver": "pregel.checkpoint.memory",
    "InMemoryStore": "pregel.store.memory",
    "Interrupt": "pregel.types",
    "MessagesState": "pregel.graph.messages",
    "NodeBuilder": "pregel.lowlevel",
    "OmitFromInput": "pregel.graph.schema",
    "OmitFromOutput": "pregel.graph.schema",
    "OmitFromSchema": "pregel.graph.schema",
    "Overwrite": "pregel.channels.base",
    "Pregel": "pregel.main",
    "PrivateStateAttr": "pregel.graph.schema",
    "RetryPolicy": "pregel.types",
    "RunControl": "pregel.control",
    "Runtime": "pregel.runtime",
    "Send": "pregel.types",
    "SqliteSaver": "pregel.checkpoint.sqlite",
    "SqliteStore": "pregel.store.sqlite",
    "StateGraph": "pregel.graph.state",
    "TimeoutPolicy": "pregel.types",
    "add_messages": "pregel.graph.messages",
    "entrypoint": "pregel.graph.functional.entry",
    "interrupt": "pregel.interrupting",
    "task": "pregel.graph.functional.tasks",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
