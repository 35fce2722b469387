"""Messages for people, content blocks, and calls that can't be carried out."""

import langchain_core.messages as lc
import pytest
from pydantic import ValidationError

from pregel.codec import Codec
from pregel.graph.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    add_messages,
    audio_block,
    file_block,
    image_block,
    text_block,
)
from pregel.graph.storable import storable_types

WRONG = {"name": "search", "args": '{"q": ', "id": "call-2", "error": "no JSON: it ends too early"}

# --- for people -------------------------------------------------------------------------------------------------------


def test_a_message_is_shown_under_its_role(capsys):
    HumanMessage("hello", name="ann").pretty_print()
    assert capsys.readouterr().out == (
        "================================ Human Message =================================\nName: ann\n\nhello\n"
    )
    assert SystemMessage("be kind").pretty_repr() == (
        "================================ System Message ================================\n\nbe kind"
    )


@pytest.mark.parametrize("kind", [HumanMessage, SystemMessage, AIMessage])
def test_the_heading_is_that_of_langchain(kind):
    theirs = getattr(lc, kind.__name__)("x").pretty_repr()
    assert kind("x").pretty_repr() == theirs


def test_calls_and_those_that_cant_be_made_are_shown():
    message = AIMessage(
        tool_calls=[{"name": "add", "args": {"a": 1, "b": [2]}, "id": "call-1"}], invalid_tool_calls=[WRONG]
    )
    assert message.pretty_repr().splitlines()[1:] == [
        "",
        "Tool Calls:",
        "  add (call-1)",
        "    a: 1",
        "    b: [2]",
        "Invalid Tool Calls:",
        "  search (call-2)",
        "    Error: no JSON: it ends too early",
        '    {"q": ',
    ]


def test_an_error_of_a_tool_is_shown_as_one():
    assert ToolMessage("no", tool_call_id="1", name="add", status="error").pretty_repr().splitlines()[1:] == [
        "Name: add",
        "Status: error",
        "",
        "no",
    ]


def test_long_blocks_are_cut():
    message = HumanMessage(["look", text_block("here"), image_block(data=b"x" * 900, mime_type="image/png")])
    *_, first, second, picture = message.pretty_repr().splitlines()
    assert (first, second) == ("look", "here")
    assert picture.startswith('{"type": "image", "base64": "eHh4')
    assert picture.endswith("...")
    assert len(picture) == 80


# --- content blocks ---------------------------------------------------------------------------------------------------


def test_blocks_have_the_standard_form():
    assert text_block("a") == {"type": "text", "text": "a"}
    assert image_block(url="u") == {"type": "image", "url": "u"}
    assert image_block(url="u", mime_type="image/png") == {"type": "image", "url": "u", "mime_type": "image/png"}
    assert audio_block(data=b"abc", mime_type="audio/wav") == {
        "type": "audio",
        "base64": "YWJj",
        "mime_type": "audio/wav",
    }
    assert file_block(data="YWJj", mime_type="application/pdf", filename="a.pdf") == {
        "type": "file",
        "base64": "YWJj",
        "mime_type": "application/pdf",
        "filename": "a.pdf",
    }


def test_langchain_reads_them_as_standard_blocks():
    blocks = [text_block("a"), image_block(url="u"), audio_block(data=b"abc", mime_type="audio/wav")]
    assert lc.HumanMessage(blocks).content_blocks == blocks


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a block of type 'image' is given by one of url= and data="),
        ({"url": "u", "data": b"a"}, "a block of type 'image' is given by one of url= and data="),
        ({"data": b"a"}, "a block of type 'image' that is given by data= needs mime_type=, such as 'image/png'"),
    ],
)
def test_a_block_says_what_it_lacks(given, said):
    with pytest.raises(ValueError) as caught:
        image_block(**given)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        ("", []),
        ("a", [text_block("a")]),
        (["a", "", image_block(url="u")], [text_block("a"), image_block(url="u")]),
    ],
)
def test_the_content_of_a_message_is_given_as_blocks(content, blocks):
    assert AIMessage(content).content_blocks == blocks


# --- calls that can't be carried out ----------------------------------------------------------------------------------


def test_invalid_calls_are_part_of_the_message():
    assert AIMessage().invalid_tool_calls == []
    assert AIMessage(invalid_tool_calls=[WRONG]).invalid_tool_calls == [WRONG]
    unnamed = {"name": None, "args": None, "id": None, "error": None, "type": "invalid_tool_call"}
    assert AIMessage(invalid_tool_calls=[unnamed]).invalid_tool_calls == [unnamed]
    (read,) = add_messages([], {"role": "ai", "content": "", "invalid_tool_calls": [WRONG]})
    assert read == AIMessage(invalid_tool_calls=[WRONG])


@pytest.mark.parametrize("wrong", [{**WRONG, "args": {}}, {**WRONG, "more": 1}, {"name": "f"}])
def test_invalid_calls_are_validated(wrong):
    with pytest.raises(ValidationError):
        AIMessage(invalid_tool_calls=[wrong])


def test_messages_that_were_stored_before_there_were_invalid_calls_are_read():
    codec = Codec(storable_types([AIMessage]))
    message = AIMessage("a", id="1")
    stored = codec.encode(message)
    new = b"\xb2invalid_tool_calls\x90\xb1response_metadata\x80"  # as msgpack writes names, an empty list and dict
    assert stored.count(b"\x88\xa7content") == stored.count(new) == 1
    before = stored.replace(new, b"").replace(b"\x88\xa7content", b"\x86\xa7content")
    assert codec.decode(before) == message
    assert codec.decode(codec.encode(AIMessage(invalid_tool_calls=[WRONG]))) == AIMessage(invalid_tool_calls=[WRONG])
