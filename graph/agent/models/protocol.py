"""What a chat model is to an agent: three methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pregel.errors import PregelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pregel.graph.agent.models.chunks import AIMessageChunk
    from pregel.graph.messages import AIMessage, AnyMessage

__all__ = ["ChatModel", "ModelAnswerError", "ModelError"]


class ModelError(PregelError):
    """A chat model could not be called, or failed."""


class ModelAnswerError(ModelError):
    """A chat model answered something that is no answer: no message, a message of another role, an empty stream."""


@runtime_checkable
class ChatModel(Protocol):
    """What answers a conversation. An agent takes this, and LangChain's chat models as they are.

    `invoke` alone is enough: where there is no `ainvoke` it is called in a worker thread, and where there is no
    `stream` the answer arrives as one piece. An `astream` is used if there is one. An agent passes the keyword
    arguments that it has something for, and no others.

    Keyword arguments of all three:
        tools: The tools that may be called: dicts with "name", "description" and "parameters" (a JSON schema). A dict
            of another form describes a tool that the provider runs, and is passed on as it is.
        tool_choice: The name of the tool that must be called, "any" for some tool, "none", or "auto".
        response_format: The form that the answer's text must have: a dict with "name", "schema" (a JSON schema) and
            "strict".
        settings: Whatever else the model knows, such as `temperature`.
    """

    def invoke(
        self,
        messages: Sequence[AnyMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AIMessage:
        """Return the answer."""

    async def ainvoke(
        self,
        messages: Sequence[AnyMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AIMessage:
        """Return the answer, awaited."""

    def stream(
        self,
        messages: Sequence[AnyMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Iterator[AIMessageChunk]:
        """Yield the answer in pieces; their sum is what `invoke` returns."""
