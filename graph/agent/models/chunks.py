"""Pieces of a model's answer, as they arrive, and how they add up.

A tool call arrives in pieces too: the first has its name and id, the others a bit of its arguments each. They are told
apart by their `index`. As providers differ, an index that comes again with a new id and a name begins another call, and
a piece without an index goes on with the last call unless it has a name of its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from pregel.graph.agent.models.surrogates import without_surrogates
from pregel.graph.messages import AIMessage, Content, InvalidToolCall, Message, ToolCall
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AIMessageChunk", "ToolCallChunk", "joined", "parsed_calls", "pieces_of"]


class ToolCallChunk(BaseModel):
    """A piece of a tool call.

    Args:
        name: The tool's name, in the first piece.
        args: A bit of the JSON text of the arguments.
        id: The call's id, in the first piece.
        index: Which call of the answer it belongs to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    args: str | None = None
    id: str | None = None
    index: int | None = None


class AIMessageChunk(Message):
    """A piece of what a model says. Pieces add up: `first + second`, and `.message()` is the whole.

    Args:
        tool_call_chunks: Pieces of tool calls.
        usage_metadata: What the answer cost; in the last piece, as a rule.
        response_metadata: What else the provider says of the answer; what comes later adds to it.
    """

    type: Literal["AIMessageChunk"] = "AIMessageChunk"
    content: Content = ""
    tool_call_chunks: list[ToolCallChunk] = []  # noqa: RUF012 - pydantic copies it
    usage_metadata: dict[str, Any] | None = None
    response_metadata: dict[str, Any] = {}  # noqa: RUF012 - as above

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Content = "",
            *,
            tool_call_chunks: list[ToolCallChunk] = ...,
            usage_metadata: dict[str, Any] | None = None,
            response_metadata: dict[str, Any] = ...,
            id: str | None = None,  # noqa: A002 - the field's name
            name: str | None = None,
        ) -> None: ...

    def __add__(self, other: AIMessageChunk) -> AIMessageChunk:
        if not isinstance(other, AIMessageChunk):
            return NotImplemented
        return joined((self, other))

    def message(self) -> AIMessage:
        """Return the finished message; calls whose arguments are no JSON object are its `invalid_tool_calls`."""
        calls, invalid = parsed_calls(self.tool_call_chunks)
        return AIMessage(
            self.content,
            tool_calls=calls,
            invalid_tool_calls=invalid,
            usage_metadata=self.usage_metadata,
            response_metadata=self.response_metadata,
            id=self.id,
            name=self.name,
        )


def joined(chunks: Iterable[AIMessageChunk]) -> AIMessageChunk:
    """Return the sum of pieces, in time linear in their length.

    Raises:
        ValueError: There are none.
    """
    pieces = list(chunks)
    if not pieces:
        raise ValueError("no chunks: there is nothing to add up")
    usage: dict[str, Any] | None = None
    for piece in pieces:
        usage = added(usage, piece.usage_metadata)
    return AIMessageChunk(
        joined_content([piece.content for piece in pieces]),
        tool_call_chunks=joined_calls(call for piece in pieces for call in piece.tool_call_chunks),
        usage_metadata=usage,
        response_metadata={name: said for piece in pieces for name, said in piece.response_metadata.items()},
        id=next((piece.id for piece in pieces if piece.id), None),
        name=next((piece.name for piece in pieces if piece.name), None),
    )


def joined_content(contents: list[Content]) -> Content:
    """Return contents one after the other; texts that meet become one, content blocks stay as they are."""
    if all(isinstance(content, str) for content in contents):
        return "".join(contents)  # type: ignore[arg-type]  # texts, all of them
    parts: list[str | dict[str, Any]] = []
    for content in contents:
        for part in [content] if isinstance(content, str) else content:
            before = parts[-1] if parts else None
            if isinstance(before, str) and isinstance(part, str):
                parts[-1] = before + part
            elif part != "":
                parts.append(part)
    return parts


def joined_calls(chunks: Iterable[ToolCallChunk]) -> list[ToolCallChunk]:
    """Return one piece for each call, with all that is known of it."""
    calls: list[dict[str, Any]] = []
    last: dict[int | None, dict[str, Any]] = {}
    for chunk in chunks:
        call = last.get(chunk.index) if chunk.index is not None or chunk.name else (calls[-1] if calls else None)
        if chunk.index is None and chunk.name:
            call = None
        if call is None or (chunk.name and chunk.id and call["id"] and chunk.id != call["id"]):
            call = {"name": None, "id": None, "index": chunk.index, "args": []}
            calls.append(call)
        last[chunk.index] = call
        if chunk.name and chunk.name != call["name"]:
            call["name"] = (call["name"] or "") + chunk.name
        call["id"] = call["id"] or chunk.id or None
        if chunk.args is not None:
            call["args"].append(chunk.args)
    return [ToolCallChunk(**{**call, "args": "".join(call["args"]) if call["args"] else None}) for call in calls]


def added(left: dict[str, Any] | None, right: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the sum of two reports of usage: numbers add up, whatever else is replaced."""
    if left is None or right is None:
        return right if left is None else left
    total = dict(left)
    for key, value in right.items():
        before = total.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            total[key] = added(before, value)
        elif isinstance(before, (int, float)) and isinstance(value, (int, float)):
            total[key] = before + value
        elif value is not None:
            total[key] = value
    return total


def parsed_calls(chunks: Iterable[ToolCallChunk]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """Return whole calls as such, and apart those that can't be carried out.

    Args:
        chunks: One for each call, with the whole text of its arguments. No text means no arguments.
    """
    calls: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for chunk in chunks:
        args, error = parsed_args(chunk.args)
        if not chunk.name:
            error = "the call names no tool"
        if error is None:
            calls.append({"name": chunk.name or "", "args": args, "id": chunk.id, "type": "tool_call"})
        else:
            invalid.append({"name": chunk.name, "args": chunk.args, "id": chunk.id, "error": error})
    return calls, invalid


def parsed_args(text: str | None) -> tuple[dict[str, Any], str | None]:
    """Return the arguments that a text holds, and what is wrong with it, if something is."""
    if not text or text.isspace():
        return {}, None
    try:
        # Models write line breaks into texts as they are.
        args = without_surrogates(json.loads(text, strict=False))
    except ValueError as error:
        return {}, f"the arguments are no JSON: {error}"
    except RecursionError:
        return {}, "the arguments are no JSON that can be read: they are nested too deeply"
    if not isinstance(args, dict):
        return {}, f"the arguments are no JSON object: {shortened(args)}"
    return args, None


def pieces_of(message: AIMessage, texts: Iterable[str]) -> Iterable[AIMessageChunk]:
    """Yield a whole message in pieces that add up to it.

    Args:
        message: The message.
        texts: Its text in pieces; not read where the content is a list, which stays whole.
    """
    mine: dict[str, Any] = {"id": message.id, "name": message.name}
    if isinstance(message.content, str):
        for text in texts:
            yield AIMessageChunk(text, **mine)
    elif message.content:
        yield AIMessageChunk(message.content, **mine)
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls]
    calls += [(call["name"] or "", call["args"] or "", call["id"]) for call in message.invalid_tool_calls]
    for index, (name, args, identity) in enumerate(calls):
        yield AIMessageChunk(tool_call_chunks=[ToolCallChunk(name=name, id=identity, index=index)], **mine)
        yield AIMessageChunk(tool_call_chunks=[ToolCallChunk(args=args, index=index)], **mine)
    yield AIMessageChunk(usage_metadata=message.usage_metadata, response_metadata=message.response_metadata, **mine)
