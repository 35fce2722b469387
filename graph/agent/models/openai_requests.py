"""A conversation, its tools and the form of its answer, as OpenAI's chat completions take them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pregel.graph.agent.models.foreign import to_own
from pregel.graph.agent.models.protocol import ModelError
from pregel.graph.agent.models.surrogates import without_surrogates
from pregel.graph.agent.models.toolforms import as_function
from pregel.graph.blocks import content_blocks
from pregel.graph.messages import add_messages
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.graph.messages import Content

__all__ = ["body_of"]

ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
#: What the API takes as the name of a speaker.
NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}")
#: What it takes of an assistant's content; what else a model said is for people.
SAYABLE: Final = frozenset({"text", "refusal"})
#: What it calls the forms of sound that it knows besides "wav".
FORMATS: Final = {"audio/mpeg": "mp3", "audio/mp3": "mp3"}


def body_of(
    messages: Any,
    tools: Sequence[Mapping[str, Any]],
    tool_choice: str | None,
    response_format: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the fields of a request.

    Raises:
        InvalidUpdateError: The messages are none.
        ModelError: A message has a role, or a content block, that the API has no form for.
    """
    body: dict[str, Any] = {"messages": [message_of(each) for each in to_own(add_messages(None, messages))]}
    if tools:
        body["tools"] = [as_function(tool) for tool in tools]
    if tool_choice is not None:
        body["tool_choice"] = choice_of(tool_choice)
    if response_format is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": dict(response_format)}
    return body


def choice_of(choice: str) -> Any:
    """Return which tool must be called."""
    if choice in {"auto", "none"}:
        return choice
    return "required" if choice == "any" else {"type": "function", "function": {"name": choice}}


def message_of(message: Any) -> dict[str, Any]:
    """Return a message of ours in the API's form.

    Raises:
        ModelError: It has a content block that the API has no form for.
    """
    fields: dict[str, Any] = {"role": ROLES[message.type], "content": content_of(message.content)}
    if message.type == "tool":
        return {**fields, "tool_call_id": message.tool_call_id}
    if message.name and NAME.fullmatch(message.name):
        fields["name"] = message.name
    if message.type == "ai":
        if not isinstance(fields["content"], str):
            fields["content"] = [part for part in fields["content"] if part["type"] in SAYABLE]
        calls = [
            (call["id"], call["name"], json.dumps(without_surrogates(call["args"]))) for call in message.tool_calls
        ]
        # They too have been answered, with what is wrong with them.
        calls += [(call["id"], call["name"], call["args"] or "") for call in message.invalid_tool_calls]
        if calls:
            fields["content"] = fields["content"] or None
            fields["tool_calls"] = [
                {"id": identity, "type": "function", "function": {"name": name or "", "arguments": args}}
                for identity, name, args in calls
            ]
    return fields


def content_of(content: Content) -> str | list[dict[str, Any]]:
    """Return a message's content.

    Raises:
        ModelError: It has a block that the API has no form for.
    """
    return content if isinstance(content, str) else [part_of(block) for block in content_blocks(content)]


def part_of(block: dict[str, Any]) -> dict[str, Any]:
    """Return a content block in the API's form; one that is none of the standard ones is passed on as it is.

    Raises:
        ModelError: The API has no form for it.
    """
    kind, data, url = block.get("type"), block.get("base64"), block.get("url")
    if kind not in {"image", "audio", "file"} or not (data or url):
        return block
    mime_type = block.get("mime_type", "")
    inline = f"data:{mime_type};base64,{data}"
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url or inline}}
    if not data:
        raise ModelError(
            f"a content block of type {kind!r} is given by its address {shortened(url)}, and OpenAI's protocol takes "
            "none: fetch it and give its bytes"
        )
    if kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": data, "format": FORMATS.get(mime_type, "wav")}}
    return {"type": "file", "file": {"file_data": inline, "filename": block.get("filename", "file")}}
