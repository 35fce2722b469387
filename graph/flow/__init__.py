"""Flows: graphs of activities and agents over one context of business data, in Solon's vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.graph.flow.agents import SimpleAgent
    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.errors import (
        AgentOutputError,
        ContextBusyError,
        ContextKeyError,
        FlowDefinitionError,
        FlowError,
        FlowRunError,
        KeyTypeError,
        MissingKeyError,
        MissingResourceError,
        NoRouteError,
        ResumeError,
        TemplateError,
    )
    from pregel.graph.flow.flowgraph import FlowGraph
    from pregel.graph.flow.home import Cursor, Visit
    from pregel.graph.flow.keys import Key, KeySpace
    from pregel.graph.flow.parts import AgentPart, FlowNode
    from pregel.graph.flow.resources import Resource
    from pregel.graph.flow.running import Outcome
    from pregel.graph.flow.session import AgentSession
    from pregel.graph.flow.team import Lead, TeamAgent, TeamProtocol
    from pregel.graph.flow.templates import Template
    from pregel.graph.flow.trace import AgentStep, AgentTrace, Metrics, Record, TeamTrace

__all__ = [
    "AgentOutputError",
    "AgentPart",
    "AgentSession",
    "AgentStep",
    "AgentTrace",
    "ContextBusyError",
    "ContextKeyError",
    "Cursor",
    "FlowContext",
    "FlowDefinitionError",
    "FlowError",
    "FlowGraph",
    "FlowNode",
    "FlowRunError",
    "Key",
    "KeySpace",
    "KeyTypeError",
    "Lead",
    "Metrics",
    "MissingKeyError",
    "MissingResourceError",
    "NoRouteError",
    "Outcome",
    "Record",
    "Resource",
    "ResumeError",
    "SimpleAgent",
    "TeamAgent",
    "TeamProtocol",
    "TeamTrace",
    "Template",
    "TemplateError",
    "Visit",
]

_HOMES = {
    "AgentOutputError": "pregel.graph.flow.errors",
    "AgentPart": "pregel.graph.flow.parts",
    "AgentSession": "pregel.graph.flow.session",
    "AgentStep": "pregel.graph.flow.trace",
    "AgentTrace": "pregel.graph.flow.trace",
    "ContextBusyError": "pregel.graph.flow.errors",
    "ContextKeyError": "pregel.graph.flow.errors",
    "Cursor": "pregel.graph.flow.home",
    "FlowContext": "pregel.graph.flow.context",
    "FlowDefinitionError": "pregel.graph.flow.errors",
    "FlowError": "pregel.graph.flow.errors",
    "FlowGraph": "pregel.graph.flow.flowgraph",
    "FlowNode": "pregel.graph.flow.parts",
    "FlowRunError": "pregel.graph.flow.errors",
    "Key": "pregel.graph.flow.keys",
    "KeySpace": "pregel.graph.flow.keys",
    "KeyTypeError": "pregel.graph.flow.errors",
    "Lead": "pregel.graph.flow.team",
    "Metrics": "pregel.graph.flow.trace",
    "MissingKeyError": "pregel.graph.flow.errors",
    "MissingResourceError": "pregel.graph.flow.errors",
    "NoRouteError": "pregel.graph.flow.errors",
    "Outcome": "pregel.graph.flow.running",
    "Record": "pregel.graph.flow.trace",
    "Resource": "pregel.graph.flow.resources",
    "ResumeError": "pregel.graph.flow.errors",
    "SimpleAgent": "pregel.graph.flow.agents",
    "TeamAgent": "pregel.graph.flow.team",
    "TeamProtocol": "pregel.graph.flow.team",
    "TeamTrace": "pregel.graph.flow.trace",
    "Template": "pregel.graph.flow.templates",
    "TemplateError": "pregel.graph.flow.errors",
    "Visit": "pregel.graph.flow.home",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
