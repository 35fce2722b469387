"""Agents: a model that calls tools until it has an answer, and what can be put around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.graph.agent.arguments import ToolArgumentsError, ToolDefinitionError
    from pregel.graph.agent.create import create_agent
    from pregel.graph.agent.handoff import SwarmState, create_supervisor, create_swarm, handoff_tool
    from pregel.graph.agent.injection import (
        InjectedState,
        InjectedStore,
        InjectedToolArg,
        InjectedToolCallId,
        ToolInjectionError,
        ToolRuntime,
    )
    from pregel.graph.agent.mcp import McpConnectionError, McpToolError, mcp_tools
    from pregel.graph.agent.middleware.base import AgentMiddleware, hook_config
    from pregel.graph.agent.models import BaseChatModel, ChatModel, OpenAIChat, ScriptedModel
    from pregel.graph.agent.requests import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
    from pregel.graph.agent.results import ToolResultError
    from pregel.graph.agent.state import AgentState, JumpTo, ResponseT
    from pregel.graph.agent.structured import (
        AutoStrategy,
        MissingStructuredOutputError,
        MultipleStructuredOutputsError,
        ProviderStrategy,
        StructuredOutputError,
        StructuredOutputValidationError,
        ToolStrategy,
    )
    from pregel.graph.agent.toolnode import ToolNode, tools_condition
    from pregel.graph.agent.tools import as_tool, tool
    from pregel.graph.agent.tooltype import Tool

__all__ = [
    "AgentMiddleware",
    "AgentState",
    "AutoStrategy",
    "BaseChatModel",
    "ChatModel",
    "ExtendedModelResponse",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "JumpTo",
    "McpConnectionError",
    "McpToolError",
    "MissingStructuredOutputError",
    "ModelRequest",
    "ModelResponse",
    "MultipleStructuredOutputsError",
    "OpenAIChat",
    "ProviderStrategy",
    "ResponseT",
    "ScriptedModel",
    "StructuredOutputError",
    "StructuredOutputValidationError",
    "SwarmState",
    "Tool",
    "ToolArgumentsError",
    "ToolCallRequest",
    "ToolDefinitionError",
    "ToolInjectionError",
    "ToolNode",
    "ToolResultError",
    "ToolRuntime",
    "ToolStrategy",
    "as_tool",
    "create_agent",
    "create_supervisor",
    "create_swarm",
    "handoff_tool",
    "hook_config",
    "mcp_tools",
    "tool",
    "tools_condition",
]

_HERE = "pregel.graph.agent"
_HOMES = {
    "AgentMiddleware": f"{_HERE}.middleware.base",
    "AgentState": f"{_HERE}.state",
    "AutoStrategy": f"{_HERE}.structured",
    "BaseChatModel": f"{_HERE}.models.base",
    "ChatModel": f"{_HERE}.models.protocol",
    "ExtendedModelResponse": f"{_HERE}.requests",
    "InjectedState": f"{_HERE}.injection",
    "InjectedStore": f"{_HERE}.injection",
    "InjectedToolArg": f"{_HERE}.injection",
    "InjectedToolCallId": f"{_HERE}.injection",
    "JumpTo": f"{_HERE}.state",
    "McpConnectionError": f"{_HERE}.mcp",
    "McpToolError": f"{_HERE}.mcp",
    "MissingStructuredOutputError": f"{_HERE}.structured",
    "ModelRequest": f"{_HERE}.requests",
    "ModelResponse": f"{_HERE}.requests",
    "MultipleStructuredOutputsError": f"{_HERE}.structured",
    "OpenAIChat": f"{_HERE}.models.openai_chat",
    "ProviderStrategy": f"{_HERE}.structured",
    "ResponseT": f"{_HERE}.state",
    "ScriptedModel": f"{_HERE}.models.scripted",
    "StructuredOutputError": f"{_HERE}.structured",
    "StructuredOutputValidationError": f"{_HERE}.structured",
    "SwarmState": f"{_HERE}.handoff",
    "Tool": f"{_HERE}.tooltype",
    "ToolArgumentsError": f"{_HERE}.arguments",
    "ToolCallRequest": f"{_HERE}.requests",
    "ToolDefinitionError": f"{_HERE}.arguments",
    "ToolInjectionError": f"{_HERE}.injection",
    "ToolNode": f"{_HERE}.toolnode",
    "ToolResultError": f"{_HERE}.results",
    "ToolRuntime": f"{_HERE}.injection",
    "ToolStrategy": f"{_HERE}.structured",
    "as_tool": f"{_HERE}.tools",
    "create_agent": f"{_HERE}.create",
    "create_supervisor": f"{_HERE}.handoff",
    "create_swarm": f"{_HERE}.handoff",
    "handoff_tool": f"{_HERE}.handoff",
    "hook_config": f"{_HERE}.middleware.base",
    "mcp_tools": f"{_HERE}.mcp",
    "tool": f"{_HERE}.tools",
    "tools_condition": f"{_HERE}.toolnode",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
