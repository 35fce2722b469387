"""Workflows: functions as nodes, edges in one list, and a state that the nodes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.graph.workflow.binding import FromState
    from pregel.graph.workflow.context import Context
    from pregel.graph.workflow.edges import START, Edge
    from pregel.graph.workflow.errors import (
        NotPersistedError,
        ScopeConflictError,
        SessionNotFoundError,
        StateSchemaError,
        WorkflowConfigurationError,
        WorkflowDataError,
    )
    from pregel.graph.workflow.event import NO_OUTPUT, Event, EventActions, RequestInput
    from pregel.graph.workflow.nodes import JoinNode, node
    from pregel.graph.workflow.routes import DEFAULT_ROUTE
    from pregel.graph.workflow.runner import Runner
    from pregel.graph.workflow.scopes import Scope
    from pregel.graph.workflow.sessions import Session, SessionInfo, Sessions
    from pregel.graph.workflow.workflow import Workflow
    from pregel.types import END

__all__ = [
    "DEFAULT_ROUTE",
    "END",
    "NO_OUTPUT",
    "START",
    "Context",
    "Edge",
    "Event",
    "EventActions",
    "FromState",
    "JoinNode",
    "NotPersistedError",
    "RequestInput",
    "Runner",
    "Scope",
    "ScopeConflictError",
    "Session",
    "SessionInfo",
    "SessionNotFoundError",
    "Sessions",
    "StateSchemaError",
    "Workflow",
    "WorkflowConfigurationError",
    "WorkflowDataError",
    "node",
]

_HERE = "pregel.graph.workflow"
_HOMES = {
    "DEFAULT_ROUTE": f"{_HERE}.routes",
    "END": "pregel.types",
    "NO_OUTPUT": f"{_HERE}.event",
    "START": f"{_HERE}.edges",
    "Context": f"{_HERE}.context",
    "Edge": f"{_HERE}.edges",
    "Event": f"{_HERE}.event",
    "EventActions": f"{_HERE}.event",
    "FromState": f"{_HERE}.binding",
    "JoinNode": f"{_HERE}.nodes",
    "NotPersistedError": f"{_HERE}.errors",
    "RequestInput": f"{_HERE}.event",
    "Runner": f"{_HERE}.runner",
    "Scope": f"{_HERE}.scopes",
    "ScopeConflictError": f"{_HERE}.errors",
    "Session": f"{_HERE}.sessions",
    "SessionInfo": f"{_HERE}.sessions",
    "SessionNotFoundError": f"{_HERE}.errors",
    "Sessions": f"{_HERE}.sessions",
    "StateSchemaError": f"{_HERE}.errors",
    "Workflow": f"{_HERE}.workflow",
    "WorkflowConfigurationError": f"{_HERE}.errors",
    "WorkflowDataError": f"{_HERE}.errors",
    "node": f"{_HERE}.nodes",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
