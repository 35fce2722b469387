"""Chat models: what an agent calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.graph.agent.models.base import (
        BaseChatModel,
        ChatGeneration,
        ChatGenerationChunk,
        ChatResult,
        LanguageModelInput,
        Runnable,
    )
    from pregel.graph.agent.models.calling import acall_model, call_model, has_native_async
    from pregel.graph.agent.models.chunks import AIMessageChunk, ToolCallChunk
    from pregel.graph.agent.models.foreign import to_langchain, to_own
    from pregel.graph.agent.models.named import named_model
    from pregel.graph.agent.models.openai_chat import OpenAIChat
    from pregel.graph.agent.models.protocol import ChatModel, ModelAnswerError, ModelError
    from pregel.graph.agent.models.scripted import ModelCall, ScriptedModel, ScriptExhaustedError

__all__ = [
    "AIMessageChunk",
    "BaseChatModel",
    "ChatGeneration",
    "ChatGenerationChunk",
    "ChatModel",
    "ChatResult",
    "LanguageModelInput",
    "ModelAnswerError",
    "ModelCall",
    "ModelError",
    "OpenAIChat",
    "Runnable",
    "ScriptExhaustedError",
    "ScriptedModel",
    "ToolCallChunk",
    "acall_model",
    "call_model",
    "has_native_async",
    "named_model",
    "to_langchain",
    "to_own",
]

_HOMES = {
    "AIMessageChunk": "pregel.graph.agent.models.chunks",
    "BaseChatModel": "pregel.graph.agent.models.base",
    "ChatGeneration": "pregel.graph.agent.models.base",
    "ChatGenerationChunk": "pregel.graph.agent.models.base",
    "ChatModel": "pregel.graph.agent.models.protocol",
    "ChatResult": "pregel.graph.agent.models.base",
    "LanguageModelInput": "pregel.graph.agent.models.base",
    "ModelAnswerError": "pregel.graph.agent.models.protocol",
    "ModelCall": "pregel.graph.agent.models.scripted",
    "ModelError": "pregel.graph.agent.models.protocol",
    "OpenAIChat": "pregel.graph.agent.models.openai_chat",
    "Runnable": "pregel.graph.agent.models.base",
    "ScriptExhaustedError": "pregel.graph.agent.models.scripted",
    "ScriptedModel": "pregel.graph.agent.models.scripted",
    "ToolCallChunk": "pregel.graph.agent.models.chunks",
    "acall_model": "pregel.graph.agent.models.calling",
    "call_model": "pregel.graph.agent.models.calling",
    "has_native_async": "pregel.graph.agent.models.calling",
    "named_model": "pregel.graph.agent.models.named",
    "to_langchain": "pregel.graph.agent.models.foreign",
    "to_own": "pregel.graph.agent.models.foreign",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
