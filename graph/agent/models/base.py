"""A base class for chat models in LangChain's shape: what is written against theirs needs other imports only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from pregel.graph.agent.models.chunks import pieces_of
from pregel.graph.agent.models.foreign import to_own
from pregel.graph.agent.models.protocol import ModelAnswerError
from pregel.graph.agent.offloading import in_worker
from pregel.graph.messages import AIMessage, add_messages
from pregel.text import show

if TYPE_CHECKING:
    from pregel.graph.agent.models.chunks import AIMessageChunk

__all__ = [
    "BaseChatModel",
    "ChatGeneration",
    "ChatGenerationChunk",
    "ChatResult",
    "LanguageModelInput",
    "Runnable",
]

#: A text, which the user says, or messages in any form that `add_messages` takes.
LanguageModelInput: TypeAlias = str | Sequence[Any]

Input_contra = TypeVar("Input_contra", contravariant=True)
Output_co = TypeVar("Output_co", covariant=True)


class Runnable(Protocol[Input_contra, Output_co]):
    """What can be invoked, for annotations: `bind_tools` returns a `Runnable[LanguageModelInput, AIMessage]`."""

    def invoke(self, messages: Input_contra, /, **options: Any) -> Output_co:
        """Return what comes of an input."""

    async def ainvoke(self, messages: Input_contra, /, **options: Any) -> Output_co:
        """Do the same, awaited."""


@dataclass(frozen=True, slots=True)
class ChatGeneration:
    """One answer of a model."""

    message: Any
    #: What the provider says of it.
    generation_info: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChatGenerationChunk:
    """A piece of an answer."""

    message: AIMessageChunk
    generation_info: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChatResult:
    """What a model's `_generate` returns. The first generation is the answer."""

    generations: list[ChatGeneration]
    #: What the provider says of the call.
    llm_output: dict[str, Any] | None = None


class BaseChatModel(BaseModel, ABC):
    """Subclass it and write `_generate` and `_llm_type`; annotated attributes are the constructor's arguments.

    `_stream` and `_agenerate` may be written too: without them a stream has one piece, and the async form calls
    `_generate` in a worker thread. Tools, `tool_choice`, `response_format` and settings arrive as `**kwargs`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    @abstractmethod
    def _generate(
        self,
        messages: list[Any],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Return the answer to messages. There is never a `run_manager`."""

    @property
    @abstractmethod
    def _llm_type(self) -> str:
        """What kind of model it is, for people."""

    async def _agenerate(
        self,
        messages: list[Any],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Do the same as `_generate`, awaited."""
        call = partial(self._generate, messages, stop, run_manager, **kwargs)
        return await in_worker(call)

    def _stream(
        self,
        messages: list[Any],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        """Yield the answer in pieces."""
        raise NotImplementedError

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any) -> Any:
        """Return the model as it may call tools, given as dicts; they reach `_generate` as `tools=`."""
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        return BoundModel(self, {"tools": list(tools), **choice, **kwargs})

    def invoke(self, messages: LanguageModelInput, *, stop: list[str] | None = None, **options: Any) -> Any:
        """Return the answer.

        Raises:
            ModelAnswerError: `_generate` returned none.
            InvalidUpdateError: The messages are none.
        """
        return self._answer(self._generate(add_messages(None, messages), stop=stop, **options))

    async def ainvoke(self, messages: LanguageModelInput, *, stop: list[str] | None = None, **options: Any) -> Any:
        """Do the same, awaited.

        Raises:
            ModelAnswerError: `_agenerate` returned none.
            InvalidUpdateError: The messages are none.
        """
        return self._answer(await self._agenerate(add_messages(None, messages), stop=stop, **options))

    def stream(
        self, messages: LanguageModelInput, *, stop: list[str] | None = None, **options: Any
    ) -> Iterator[AIMessageChunk]:
        """Yield the answer in pieces, or as a whole where there is no `_stream`.

        Raises:
            ModelAnswerError: `_generate` returned none.
            InvalidUpdateError: The messages are none.
        """
        if not self._streams():
            yield from whole(self.invoke(messages, stop=stop, **options))
            return
        for piece in self._stream(add_messages(None, messages), stop=stop, **options):
            yield piece.message

    async def astream(
        self, messages: LanguageModelInput, *, stop: list[str] | None = None, **options: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """Do the same, awaited; `_stream` is read in worker threads.

        Raises:
            ModelAnswerError: `_agenerate` returned none.
            InvalidUpdateError: The messages are none.
        """
        if not self._streams():
            for chunk in whole(await self.ainvoke(messages, stop=stop, **options)):
                yield chunk
            return
        pieces = iter(self._stream(add_messages(None, messages), stop=stop, **options))
        while (piece := await in_worker(partial(next, pieces, None))) is not None:
            yield piece.message

    def _streams(self) -> bool:
        """Return whether a subclass has a `_stream`."""
        return type(self)._stream is not BaseChatModel._stream  # noqa: SLF001 - the same method of our own class

    def _answer(self, result: Any) -> Any:
        """Return the message of a result.

        Raises:
            ModelAnswerError: There is none.
        """
        generations = getattr(result, "generations", None)
        if not generations:
            raise ModelAnswerError(
                f"{type(self).__name__} generated {show(result)}: return "
                "ChatResult(generations=[ChatGeneration(message=AIMessage(...))])"
            )
        return generations[0].message


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A model with options that every call of it has."""

    model: BaseChatModel
    options: dict[str, Any]

    def invoke(self, messages: LanguageModelInput, /, **options: Any) -> AIMessage:
        """Return the answer."""
        answer: AIMessage = self.model.invoke(messages, **self.options, **options)
        return answer

    async def ainvoke(self, messages: LanguageModelInput, /, **options: Any) -> AIMessage:
        """Do the same, awaited."""
        answer: AIMessage = await self.model.ainvoke(messages, **self.options, **options)
        return answer

    def stream(self, messages: LanguageModelInput, **options: Any) -> Iterator[AIMessageChunk]:
        """Yield the answer in pieces."""
        return self.model.stream(messages, **self.options, **options)

    def astream(self, messages: LanguageModelInput, **options: Any) -> AsyncIterator[AIMessageChunk]:
        """Do the same, awaited."""
        return self.model.astream(messages, **self.options, **options)


def whole(answer: Any) -> Iterator[AIMessageChunk]:
    """Yield an answer whose text is one piece."""
    message: Any = to_own([answer])[0]
    return iter(pieces_of(message, [message.text]))
