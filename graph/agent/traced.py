"""Calls of models and tools as spans, named and described as the GenAI conventions of OpenTelemetry have it.

What people and models say is not in them: it may be private, and it may be long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import NoOpTracer

from pregel.graph.agent.models.calling import Call
from pregel.observe import TRACING
from pregel.runtime import FRAME
from pregel.spans import current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from opentelemetry.trace import Span, Tracer

    from pregel.graph.agent.injection import ToolRuntime
    from pregel.graph.agent.tooltype import ResponseFormat, Tool
    from pregel.graph.messages import ToolCall

__all__ = ["TracedCall", "TracedTool"]

#: The providers that LangChain or we call otherwise than the conventions do.
PROVIDERS: Final = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "openaichat": "openai",
    "xai": "x_ai",
}
#: The settings of a request that are told, by what models call them.
SETTINGS: Final = {
    "frequency_penalty": "frequency_penalty",
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop_sequences",
    "temperature": "temperature",
    "top_p": "top_p",
}
#: Where a report of usage has them, the counts that are told.
COUNTS: Final = {
    ("input_tokens",): "input_tokens",
    ("output_tokens",): "output_tokens",
    ("input_token_details", "cache_read"): "cache_read.input_tokens",
    ("input_token_details", "cache_creation"): "cache_creation.input_tokens",
    ("output_token_details", "reasoning"): "reasoning.output_tokens",
}
#: How often a model is bound; what goes on beyond that has any attribute that one asks for, such as a mock.
MOST_BOUND: Final = 16


class TracedCall(Call):
    """A call of a model that is a span; see `Call`."""

    __slots__ = ()

    def run(self, tell: Callable[[Any], None] | None, identity: str | None) -> Any:
        """Make the call."""
        with self.span(streamed=tell is not None) as span:
            answer = super().run(tell, identity)
            span.set_attributes(dict(said(answer)))
            return answer

    async def arun(self, tell: Callable[[Any], None] | None, identity: str | None) -> Any:
        """Make the call, awaited."""
        with self.span(streamed=tell is not None) as span:
            answer = await super().arun(tell, identity)
            span.set_attributes(dict(said(answer)))
            return answer

    def span(self, *, streamed: bool) -> AbstractContextManager[Span]:
        """Return the span of the call."""
        model = unbound(self.model)
        params: Any = model._get_ls_params() if hasattr(model, "_get_ls_params") else {}  # noqa: SLF001 - how LangChain's own tracers ask
        params = params if isinstance(params, Mapping) else {}
        provider = str(params.get("ls_provider") or type(model).__name__.lower())
        name = params.get("ls_model_name") or getattr(model, "model", None) or getattr(model, "model_name", None)
        attributes: dict[str, Any] = {
            **conversation(),
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        }
        if isinstance(name, str):
            attributes["gen_ai.request.model"] = name
        if "response_format" in self.options:
            attributes["gen_ai.output.type"] = "json"
        if streamed:
            attributes["gen_ai.request.stream"] = True
        own = getattr(model, "settings", None)
        settings = {**(own if isinstance(own, dict) else {}), **self.options}
        for setting, told in SETTINGS.items():
            value = settings.get(setting, params.get(f"ls_{setting}", getattr(model, setting, None)))
            if isinstance(value, (int, float)):
                attributes[f"gen_ai.request.{told}"] = value
            elif told == "stop_sequences" and isinstance(value, (str, list, tuple)):
                attributes[f"gen_ai.request.{told}"] = [value] if isinstance(value, str) else list(map(str, value))
        return current(tracer(), f"chat {name}" if isinstance(name, str) else "chat", attributes, remote=True)


class TracedTool:
    """A tool, each call of which is a span.

    Args:
        tool: The tool.
        call: What the model asked for.
    """

    __slots__ = ("id", "tool")

    def __init__(self, tool: Tool, call: ToolCall) -> None:
        self.tool = tool
        self.id = call["id"]

    @property
    def response_format(self) -> ResponseFormat:
        """What the tool returns."""
        return self.tool.response_format

    def call(self, args: Mapping[str, Any], *, runtime: ToolRuntime[Any, Any] | None = None) -> Any:
        """Call the tool."""
        with self.span():
            return self.tool.call(args, runtime=runtime)

    async def acall(self, args: Mapping[str, Any], *, runtime: ToolRuntime[Any, Any] | None = None) -> Any:
        """Call the tool, awaited."""
        with self.span():
            return await self.tool.acall(args, runtime=runtime)

    def span(self) -> AbstractContextManager[Span]:
        """Return the span of a call."""
        attributes = {
            **conversation(),
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": self.tool.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.description": self.tool.description,
        }
        if self.id is not None:
            attributes["gen_ai.tool.call.id"] = self.id
        return current(tracer(), f"execute_tool {self.tool.name}", attributes)


def tracer() -> Tracer:
    """Return what makes spans; of nothing, where `uninstrument` was called after the call had been prepared."""
    found: Tracer | None = TRACING.tracer
    return NoOpTracer() if found is None else found


def conversation() -> dict[str, str]:
    """Return the attribute that names the thread, if the run has one."""
    frame = FRAME.get(None)
    thread = None if frame is None else frame[1].config["configurable"].get("thread_id")
    return {} if thread is None else {"gen_ai.conversation.id": thread}


def unbound(model: Any) -> Any:
    """Return a model without the tools and options that are bound to it, by LangChain or here."""
    for _ in range(MOST_BOUND):
        inner = getattr(model, "bound", None)
        if inner is None:
            inner = getattr(model, "model", None)
        if not (hasattr(inner, "invoke") or hasattr(inner, "ainvoke")):
            break
        model = inner
    return model


def said(answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a span holds of an answer: what it cost, which model gave it, and why it ended."""
    usage = answer.usage_metadata or {}
    for path, told in COUNTS.items():
        count: Any = usage
        for name in path:
            count = count.get(name) if isinstance(count, dict) else None
        if isinstance(count, int):
            yield f"gen_ai.usage.{told}", count
    about = answer.response_metadata or {}
    model = about.get("model_name") or about.get("model")
    if isinstance(model, str):
        yield "gen_ai.response.model", model
    reason = about.get("finish_reason") or about.get("stop_reason")
    if isinstance(reason, str):
        yield "gen_ai.response.finish_reasons", [reason]
    if isinstance(about.get("id"), str):
        yield "gen_ai.response.id", about["id"]
