"""The one way in which an agent calls a model, whoever made it.

A model is one of LangChain, or has our protocol. Either may be read as a stream, so that somebody hears the answer as
it is made; what the call returns is the whole answer all the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import aclosing, closing, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

from anyio import from_thread

from pregel.drivers.loops import current_loop
from pregel.graph.agent.models.chunks import AIMessageChunk, joined
from pregel.graph.agent.models.foreign import is_langchain_model, to_langchain, to_own
from pregel.graph.agent.models.protocol import ModelAnswerError, ModelError
from pregel.graph.agent.models.toolforms import described, for_langchain
from pregel.graph.agent.offloading import in_worker
from pregel.graph.agent.turns import with_call_ids
from pregel.graph.messages import AIMessage
from pregel.graph.messagetypes import is_foreign
from pregel.observe import TRACING
from pregel.reporter import is_quiet
from pregel.runtime import FRAME, current_frame
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pregel.graph.agent.requests import ModelRequest

__all__ = ["acall_model", "call_model", "has_native_async", "stream_numbers"]

#: The questions of the current task, which stand for it, and the numbers of the answers that it reads as streams.
STREAMS: ContextVar[tuple[Any, Iterator[int]]] = ContextVar("pregel_model_streams")


def call_model(
    model: Any, request: ModelRequest, config: Mapping[str, Any], tell: Callable[[Any], None] | None = None
) -> Any:
    """Call a model and return its answer.

    Args:
        model: A `ChatModel`, or a chat model of LangChain. The request's own model is not looked at.
        request: What to ask.
        config: The run's config, for LangChain's callbacks, tags and metadata.
        tell: Takes the pieces of the answer as they arrive, on this thread; None where nobody reads them.

    Returns:
        The answer: an `AIMessage`, or LangChain's. Each of its calls has an id of its own, whatever the model gave.
        Where there is a `tell`, the answer has the id of its pieces.

    Raises:
        ModelError: The model can't be called like this.
        ModelAnswerError: It answered something that is no answer.
        Exception: Whatever the model raised.
    """
    tell = None if asks_for_quiet(model) else tell
    return Call.of(model, request, config).run(tell, stream_id() if tell else None)


async def acall_model(
    model: Any, request: ModelRequest, config: Mapping[str, Any], tell: Callable[[Any], None] | None = None
) -> Any:
    """Do the same on an event loop; a model without an async form is called in a worker thread.

    Args:
        model: As for `call_model`.
        request: As for `call_model`.
        config: As for `call_model`.
        tell: As for `call_model`; it is called on the loop.

    Raises:
        ModelError: The model can't be called like this.
        ModelAnswerError: It answered something that is no answer.
        Exception: Whatever the model raised.
    """
    tell = None if asks_for_quiet(model) else tell
    call = Call.of(model, request, config)
    identity = stream_id() if tell else None
    if call.is_awaitable(streamed=tell is not None):
        return await call.arun(tell, identity)
    return await in_worker(partial(call.run, tell and partial(told_on_the_loop, tell), identity))


def has_native_async(model: Any) -> bool:
    """Return whether a model's async form is worth awaiting on the event loop that runs here.

    LangChain's async forms need asyncio, so on trio they are not.
    """
    if is_langchain_model(model):
        return current_loop().prefer_async
    return inspect.iscoroutinefunction(getattr(model, "ainvoke", None))


def asks_for_quiet(model: Any) -> bool:
    """Return whether a chat model of LangChain has a tag that asks that its tokens are not told."""
    if not is_langchain_model(model):
        return False
    bound_config = getattr(model, "config", None) or {}
    return is_quiet([*(getattr(model, "tags", None) or ()), *(bound_config.get("tags") or ())])


def told_on_the_loop(tell: Callable[[Any], None], piece: Any) -> None:
    """Hand a piece from a worker thread to the loop; ends the thread's work where the call was cancelled."""
    from_thread.check_cancelled()
    from_thread.run_sync(tell, piece)


def stream_id() -> str | None:
    """Return the id of the next answer that the current task reads as a stream; None outside of tasks.

    It is the same when the task runs again after a crash, as the ids are that messages are given when a task ends.
    """
    frame = FRAME.get(None)
    if frame is None:
        return None
    task, run, *_ = frame
    return run.new_id(f"{task.id}|model", next(stream_numbers()))


def stream_numbers() -> Iterator[int]:
    """Return the numbers of the answers that the current task reads as streams, also in later copies of the context."""
    asked = current_frame()[3]
    mine, numbers = STREAMS.get((None, count()))
    if mine is not asked:
        numbers = count()
        STREAMS.set((asked, numbers))
    return numbers


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a model, ready to be made in any form."""

    model: Any
    #: What is passed by position: the messages, and to LangChain's models the config.
    given: tuple[Any, ...]
    options: dict[str, Any]
    #: Distinguishes tool calls that have no id from those of other answers.
    place: str
    #: Whether the model is one of LangChain.
    is_foreign: bool
    #: The ids of the conversation's messages.
    known: frozenset[str | None]

    @classmethod
    def of(cls, model: Any, request: ModelRequest, config: Mapping[str, Any]) -> Call:
        """Return the call that a request asks for.

        Raises:
            ModelError: The model can't be called like this.
        """
        if TRACING.tracer is not None:
            from pregel.graph.agent.traced import TracedCall  # noqa: PLC0415 - nothing of OpenTelemetry is loaded before

            cls = TracedCall  # noqa: PLW0642 - the same call, as a span
        is_foreign_model = is_langchain_model(model)
        if not (callable(getattr(model, "invoke", None)) or callable(getattr(model, "ainvoke", None))):
            raise ModelError(
                f"{show(model)} is no chat model: give one with `invoke(messages, ...)`, a chat model of LangChain, or "
                'a name such as "openai:gpt-5" to create_agent'
            )
        messages = [*([request.system_message] if request.system_message else []), *request.messages]
        options = dict(request.model_settings)
        choice = {} if request.tool_choice is None else {"tool_choice": request.tool_choice}
        if request.tools:
            tools = (for_langchain if is_foreign_model else described)(request.tools)
            if is_foreign_model or hasattr(model, "bind_tools"):
                model = bound(model, tools, choice)
            else:
                options |= {"tools": tools, **choice}
        form = form_of(request.response_format)
        if form is not None:
            wrapped = {"type": "json_schema", "json_schema": form}
            options["response_format"] = wrapped if is_foreign_model else form
        place = "call" if request.runtime is None else request.runtime.task_id
        place = f"{place}:{len(request.messages)}"
        given = (to_langchain(messages), dict(config)) if is_foreign_model else (to_own(messages),)
        # Those of the state too, for a wrapper may have shortened what the model reads.
        known = frozenset(message.id for message in (*messages, *request.state.get("messages", ())))
        return cls(model, given, options, place, is_foreign_model, known)

    def is_awaitable(self, *, streamed: bool) -> bool:
        """Return whether the async form of the call is worth awaiting."""
        if not has_native_async(self.model):
            return False
        return not streamed or hasattr(self.model, "astream") or not hasattr(self.model, "stream")

    def run(self, tell: Callable[[Any], None] | None, identity: str | None) -> Any:
        """Make the call.

        Args:
            tell: Takes the pieces.
            identity: The id of the pieces and the answer, where they have none.

        Raises:
            ModelError: The model has only an async form.
            ModelAnswerError: The answer is none.
        """
        if tell is None or not hasattr(self.model, "stream"):
            if not hasattr(self.model, "invoke"):
                raise ModelError(f"{self.named()} has no `invoke`, only `ainvoke`: run the graph by `ainvoke`")
            return self.whole(self.model.invoke(*self.given, **self.options), tell, identity)
        pieces: list[Any] = []
        stream = self.model.stream(*self.given, **self.options)
        with closing(stream) if hasattr(stream, "close") else nullcontext():
            for piece in stream:
                pieces.append(self.named_piece(piece, identity))
                tell(pieces[-1])
        return self.summed(pieces)

    async def arun(self, tell: Callable[[Any], None] | None, identity: str | None) -> Any:
        """Make the call, awaited; the arguments are those of `run`.

        Raises:
            ModelAnswerError: The answer is none.
        """
        if tell is None or not hasattr(self.model, "astream"):
            return self.whole(await self.model.ainvoke(*self.given, **self.options), tell, identity)
        pieces: list[Any] = []
        stream = self.model.astream(*self.given, **self.options)
        async with aclosing(stream) if hasattr(stream, "aclose") else nullcontext():
            async for piece in stream:
                pieces.append(self.named_piece(piece, identity))
                tell(pieces[-1])
        return self.summed(pieces)

    def whole(self, answer: Any, tell: Callable[[Any], None] | None, identity: str | None) -> Any:
        """Return an answer that came as one, told if somebody listens."""
        message = self.checked(answer)
        if tell is not None:
            message = self.identified(message, identity)
            tell(message)
        return message

    def named_piece(self, piece: Any, identity: str | None) -> Any:
        """Return a piece of an answer with an id.

        Raises:
            ModelAnswerError: It is none.
        """
        if not (isinstance(piece, AIMessageChunk) or (self.is_foreign and is_foreign(piece))):
            raise ModelAnswerError(f"the stream of {self.named()} gave {show(piece)}: it gives AIMessageChunks")
        return self.identified(piece, identity)

    def summed(self, pieces: list[Any]) -> Any:
        """Return the answer that pieces make up.

        Raises:
            ModelAnswerError: There are none.
        """
        if not pieces:
            raise ModelAnswerError(f"the stream of {self.named()} ended without a piece: the model gave no answer")
        if not self.is_foreign:
            return self.checked(joined(pieces).message())
        home = import_module("langchain_core.messages")
        # LangChain adds a list of pieces in one go.
        return self.checked(home.message_chunk_to_message(pieces[0] + pieces[1:] if pieces[1:] else pieces[0]))

    def identified(self, message: Any, identity: str | None) -> Any:
        """Return a message or piece with an id: its own where no other message has it, or the given one."""
        has_own = message.id and message.id not in self.known
        return message if identity is None or has_own else message.model_copy(update={"id": identity})

    def checked(self, answer: Any) -> Any:
        """Return an answer that is one, each of its calls with an id of its own.

        Raises:
            ModelAnswerError: It is none.
        """
        if isinstance(answer, AIMessageChunk):
            answer = answer.message()
        if not (isinstance(answer, AIMessage) or (is_foreign(answer) and answer.type.startswith(("ai", "AI")))):
            raise ModelAnswerError(f"{self.named()} answered {show(answer)}: a chat model answers with an AIMessage")
        return with_call_ids(answer, self.place)

    def named(self) -> str:
        """Return the model's name for messages."""
        return type(self.model).__name__


def bound(model: Any, tools: list[Any], choice: dict[str, Any]) -> Any:
    """Return a model that has tools.

    Raises:
        ModelError: It can't have any.
    """
    try:
        return model.bind_tools(tools, **choice)
    except (NotImplementedError, AttributeError) as error:
        raise ModelError(
            f"{type(model).__name__} can't be told of tools: it has no `bind_tools` of its own. Use a model that has, "
            "or call the agent without tools"
        ) from error


def form_of(strategy: Any) -> dict[str, Any] | None:
    """Return the form that a provider is asked to answer in: a dict with "name", "schema" and "strict"."""
    if strategy is None:
        return None
    if isinstance(strategy, Mapping):
        return dict(strategy)
    response_format: Iterable[Any] | None = getattr(strategy, "response_format", None)
    return None if response_format is None else dict(response_format)
