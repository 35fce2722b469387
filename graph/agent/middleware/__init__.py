"""What can be put around an agent: hooks before and after its steps, wrappers around its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.graph.agent.middleware.base import AgentMiddleware, hook_config
    from pregel.graph.agent.middleware.context_editing import ClearToolUsesEdit, ContextEdit, ContextEditingMiddleware
    from pregel.graph.agent.middleware.decisions import (
        Action,
        ActionRequest,
        ApproveDecision,
        Decision,
        DecisionType,
        EditDecision,
        HITLRequest,
        HITLResponse,
        InterruptOnConfig,
        RejectDecision,
        RespondDecision,
        ReviewConfig,
    )
    from pregel.graph.agent.middleware.decorators import (
        after_agent,
        after_model,
        before_agent,
        before_model,
        dynamic_prompt,
        modify_model_request,
        wrap_model_call,
        wrap_tool_call,
    )
    from pregel.graph.agent.middleware.detectors import PIIMatch
    from pregel.graph.agent.middleware.human_in_the_loop import HumanInTheLoopMiddleware
    from pregel.graph.agent.middleware.model_call_limit import ModelCallLimitExceededError, ModelCallLimitMiddleware
    from pregel.graph.agent.middleware.model_fallback import ModelFallbackMiddleware
    from pregel.graph.agent.middleware.model_retry import ModelRetryMiddleware
    from pregel.graph.agent.middleware.pii import PIIDetectionError, PIIMiddleware
    from pregel.graph.agent.middleware.summarization import EmptySummaryError, SummarizationMiddleware
    from pregel.graph.agent.middleware.todo import Todo, TodoListMiddleware
    from pregel.graph.agent.middleware.tool_call_limit import ToolCallLimitExceededError, ToolCallLimitMiddleware
    from pregel.graph.agent.middleware.tool_retry import ToolRetryMiddleware
    from pregel.graph.agent.middleware.tool_selection import LLMToolSelectorMiddleware, ToolSelectionError
    from pregel.graph.agent.requests import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
    from pregel.graph.agent.state import AgentState
    from pregel.graph.schema import OmitFromInput, OmitFromOutput, OmitFromSchema, PrivateStateAttr

__all__ = [
    "Action",
    "ActionRequest",
    "AgentMiddleware",
    "AgentState",
    "ApproveDecision",
    "ClearToolUsesEdit",
    "ContextEdit",
    "ContextEditingMiddleware",
    "Decision",
    "DecisionType",
    "EditDecision",
    "EmptySummaryError",
    "ExtendedModelResponse",
    "HITLRequest",
    "HITLResponse",
    "HumanInTheLoopMiddleware",
    "InterruptOnConfig",
    "LLMToolSelectorMiddleware",
    "ModelCallLimitExceededError",
    "ModelCallLimitMiddleware",
    "ModelFallbackMiddleware",
    "ModelRequest",
    "ModelResponse",
    "ModelRetryMiddleware",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "PIIDetectionError",
    "PIIMatch",
    "PIIMiddleware",
    "PrivateStateAttr",
    "RejectDecision",
    "RespondDecision",
    "ReviewConfig",
    "SummarizationMiddleware",
    "Todo",
    "TodoListMiddleware",
    "ToolCallLimitExceededError",
    "ToolCallLimitMiddleware",
    "ToolCallRequest",
    "ToolRetryMiddleware",
    "ToolSelectionError",
    "after_agent",
    "after_model",
    "before_agent",
    "before_model",
    "dynamic_prompt",
    "hook_config",
    "modify_model_request",
    "wrap_model_call",
    "wrap_tool_call",
]

_HERE = "pregel.graph.agent.middleware"
_HOMES = {
    "Action": f"{_HERE}.decisions",
    "ActionRequest": f"{_HERE}.decisions",
    "AgentMiddleware": f"{_HERE}.base",
    "AgentState": "pregel.graph.agent.state",
    "ApproveDecision": f"{_HERE}.decisions",
    "ClearToolUsesEdit": f"{_HERE}.context_editing",
    "ContextEdit": f"{_HERE}.context_editing",
    "ContextEditingMiddleware": f"{_HERE}.context_editing",
    "Decision": f"{_HERE}.decisions",
    "DecisionType": f"{_HERE}.decisions",
    "EditDecision": f"{_HERE}.decisions",
    "EmptySummaryError": f"{_HERE}.summarization",
    "ExtendedModelResponse": "pregel.graph.agent.requests",
    "HITLRequest": f"{_HERE}.decisions",
    "HITLResponse": f"{_HERE}.decisions",
    "HumanInTheLoopMiddleware": f"{_HERE}.human_in_the_loop",
    "InterruptOnConfig": f"{_HERE}.decisions",
    "LLMToolSelectorMiddleware": f"{_HERE}.tool_selection",
    "ModelCallLimitExceededError": f"{_HERE}.model_call_limit",
    "ModelCallLimitMiddleware": f"{_HERE}.model_call_limit",
    "ModelFallbackMiddleware": f"{_HERE}.model_fallback",
    "ModelRequest": "pregel.graph.agent.requests",
    "ModelResponse": "pregel.graph.agent.requests",
    "ModelRetryMiddleware": f"{_HERE}.model_retry",
    "OmitFromInput": "pregel.graph.schema",
    "OmitFromOutput": "pregel.graph.schema",
    "OmitFromSchema": "pregel.graph.schema",
    "PIIDetectionError": f"{_HERE}.pii",
    "PIIMatch": f"{_HERE}.detectors",
    "PIIMiddleware": f"{_HERE}.pii",
    "PrivateStateAttr": "pregel.graph.schema",
    "RejectDecision": f"{_HERE}.decisions",
    "RespondDecision": f"{_HERE}.decisions",
    "ReviewConfig": f"{_HERE}.decisions",
    "SummarizationMiddleware": f"{_HERE}.summarization",
    "Todo": f"{_HERE}.todo",
    "TodoListMiddleware": f"{_HERE}.todo",
    "ToolCallLimitExceededError": f"{_HERE}.tool_call_limit",
    "ToolCallLimitMiddleware": f"{_HERE}.tool_call_limit",
    "ToolCallRequest": "pregel.graph.agent.requests",
    "ToolRetryMiddleware": f"{_HERE}.tool_retry",
    "ToolSelectionError": f"{_HERE}.tool_selection",
    "after_agent": f"{_HERE}.decorators",
    "after_model": f"{_HERE}.decorators",
    "before_agent": f"{_HERE}.decorators",
    "before_model": f"{_HERE}.decorators",
    "dynamic_prompt": f"{_HERE}.decorators",
    "hook_config": f"{_HERE}.base",
    "modify_model_request": f"{_HERE}.decorators",
    "wrap_model_call": f"{_HERE}.decorators",
    "wrap_tool_call": f"{_HERE}.decorators",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
