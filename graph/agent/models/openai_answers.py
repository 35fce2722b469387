"""What OpenAI's chat completions answer, whole or as a stream of events: values in, values out, no I/O.

The answers are read as plain JSON, since the servers that speak this protocol differ in what they leave out. Half a
surrogate pair is replaced: no later request could be made of it.
A stream is whole when the model has said why it ends, or the server that it does. One that ends before is an error,
never a shorter answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pregel.graph.agent.models.chunks import AIMessageChunk, ToolCallChunk
from pregel.graph.agent.models.protocol import ModelAnswerError, ModelError
from pregel.graph.agent.models.surrogates import without_surrogates
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pregel.graph.messages import Content

__all__ = ["BrokenStreamError", "ServerError", "StreamReader", "answer_of"]

#: Bytes of one event; more is no answer of a model.
EVENT_LIMIT: Final = 64 * 1024 * 1024
DONE: Final = "[DONE]"


class BrokenStreamError(ModelError):
    """The connection to a model ended in the middle of its answer."""


class ServerError(ModelError):
    """The server reports an error in the middle of an answer; `.body` is what it says."""

    def __init__(self, message: str, body: Any) -> None:
        super().__init__(message)
        self.body = body


def answer_of(text: str | bytes) -> AIMessageChunk:
    """Return a whole answer, as one piece.

    Args:
        text: The body of the response.

    Raises:
        ModelAnswerError: It is no chat completion.
    """
    completion = object_in(text)
    choice = first_choice(completion) or {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ModelAnswerError(f"the server's answer has no message: {shortened(completion)}. Is base_url right?")
    said = {"usage_metadata": usage_of(completion.get("usage")), "response_metadata": metadata_of(completion, choice)}
    return piece_of(message).model_copy(update=said)


class StreamReader:
    """Reads the bytes of an event stream into the pieces of an answer."""

    __slots__ = ("_buffer", "_complete", "_data", "_said", "_usage", "done")

    def __init__(self) -> None:
        #: The bytes of the line that is not ended yet.
        self._buffer = bytearray()
        #: The "data" lines of the event that is not ended yet.
        self._data: list[str] = []
        #: The last report of usage: some servers count up in each event.
        self._usage: dict[str, Any] | None = None
        self._said: dict[str, Any] = {}
        self._complete = False
        #: Whether the server has said that nothing more comes: it may keep the connection open for longer.
        self.done = False

    def feed(self, data: bytes) -> Iterator[AIMessageChunk]:
        """Yield the pieces that some more bytes complete.

        Raises:
            ModelAnswerError: They are no events of a chat completion.
            ServerError: The server reports an error.
        """
        self._buffer += data
        if len(self._buffer) > EVENT_LIMIT and b"\n" not in data:
            raise ModelAnswerError(f"the stream has an event of more than {EVENT_LIMIT} bytes: that is no answer")
        # By line feeds only: the other ends of line that Unicode has may stand in a JSON text.
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        for line in lines:
            event = self._event(line.rstrip(b"\r").decode("utf-8", "replace"))
            piece = self._piece(event) if event else None
            if piece is not None:
                yield piece

    def close(self) -> AIMessageChunk:
        """Return the last piece, when the stream has ended.

        Raises:
            BrokenStreamError: It has ended too early.
        """
        self._event(self._buffer.decode("utf-8", "replace"))
        if not (self._complete or self.done or self._data == [DONE]):
            raise BrokenStreamError(
                "the connection ended in the middle of the model's answer: what had arrived is not used"
            )
        return AIMessageChunk(usage_metadata=self._usage, response_metadata=self._said)

    def _event(self, line: str) -> str | None:
        """Take a line, and return the data of the event that it ends."""
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        event = "\n".join(self._data)
        self._data.clear()
        return event

    def _piece(self, event: str) -> AIMessageChunk | None:
        """Return the piece that an event holds, if it does.

        Raises:
            ModelAnswerError: It is no event of a chat completion.
            ServerError: The server reports an error.
        """
        if event == DONE:
            self.done = True
            return None
        completion = object_in(event)
        if completion.get("error"):
            told = completion["error"].get("message") if isinstance(completion["error"], dict) else completion["error"]
            raise ServerError(f"the server reports an error in the middle of its answer: {told}", completion["error"])
        self._usage = usage_of(completion.get("usage")) or self._usage
        choice = first_choice(completion)
        if choice is None:
            return None
        self._complete = self._complete or bool(choice.get("finish_reason"))
        self._said |= metadata_of(completion, choice)
        delta = choice.get("delta")
        piece = piece_of(delta) if isinstance(delta, dict) else None
        return piece if piece is not None and (piece.content or piece.tool_call_chunks) else None


def object_in(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object that a text is.

    Raises:
        ModelAnswerError: It is none.
    """
    try:
        value = without_surrogates(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ModelAnswerError(
            f"the server's answer is no JSON: {shortened(text)}. Is base_url right? {error}"
        ) from None
    if not isinstance(value, dict):
        raise ModelAnswerError(f"the server's answer is no JSON object: {shortened(value)}. Is base_url right?")
    return value


def first_choice(completion: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first of the answers that a completion offers; the last event of a stream has none."""
    choices = completion.get("choices")
    if not isinstance(choices, list):
        return None
    return next((each for each in choices if isinstance(each, dict) and not each.get("index")), None)


def piece_of(message: dict[str, Any]) -> AIMessageChunk:
    """Return a message, or the delta of one, as a piece.

    Raises:
        ModelAnswerError: Its content or its calls have another form.
    """
    content: Content = message.get("content") or ""
    if message.get("refusal"):
        refusal = {"type": "refusal", "refusal": message["refusal"]}
        content = [*([content] if isinstance(content, str) and content else content), refusal]
    try:
        calls = [call_of(call, place) for place, call in enumerate(message.get("tool_calls") or ())]
        return AIMessageChunk(content, tool_call_chunks=calls)
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelAnswerError(f"the server's answer is no message: {shortened(message)}: {error}") from None


def call_of(call: dict[str, Any], place: int) -> ToolCallChunk:
    """Return a tool call, or a piece of one.

    Args:
        call: As the server sent it.
        place: Its place in the list, which is its index where it has none.
    """
    function = call.get("function") or {}
    args = function.get("arguments")
    if args is not None and not isinstance(args, str):  # some servers send the arguments themselves
        args = json.dumps(args)
    index = call.get("index")
    return ToolCallChunk(
        name=function.get("name"), args=args, id=call.get("id"), index=place if index is None else index
    )


def metadata_of(completion: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]:
    """Return which model answered, and why it ended, as far as the server says so."""
    said = {"finish_reason": choice.get("finish_reason"), "model_name": completion.get("model")}
    return {name: value for name, value in said.items() if value is not None}


def usage_of(usage: Any) -> dict[str, Any] | None:
    """Return what an answer cost, under the names that messages use."""
    if not isinstance(usage, dict):
        return None
    given, made = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    report: dict[str, Any] = {
        "input_tokens": given,
        "output_tokens": made,
        "total_tokens": usage.get("total_tokens") or given + made,
    }
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    if cached is not None:
        report["input_token_details"] = {"cache_read": cached}
    if thought is not None:
        report["output_token_details"] = {"reasoning": thought}
    return report
