"""Pieces of answers, tools as models are told of them, messages between two libraries, and models of one's own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core import messages as theirs
from langchain_core.tools import tool as langchain_tool

from pregel.errors import PregelError
from pregel.graph.agent import models
from pregel.graph.agent.models import (
    AIMessageChunk,
    BaseChatModel,
    ChatGeneration,
    ChatGenerationChunk,
    ChatModel,
    ChatResult,
    LanguageModelInput,
    ModelAnswerError,
    ModelError,
    OpenAIChat,
    Runnable,
    ScriptedModel,
    ToolCallChunk,
    named_model,
    to_langchain,
    to_own,
)
from pregel.graph.agent.models.chunks import joined
from pregel.graph.agent.models.toolforms import described, for_langchain
from pregel.graph.messages import AIMessage, HumanMessage, Message, SystemMessage, ToolMessage


def bit(args=None, index=0, name=None, identity=None):
    return AIMessageChunk(tool_call_chunks=[ToolCallChunk(name=name, args=args, id=identity, index=index)])


def calls_of(*bits):
    return [(each["id"], each["name"], each["args"]) for each in joined(bits).message().tool_calls]


def test_two_pieces_add_up():
    usage = {"input_tokens": 1, "input_token_details": {"cache_read": 1}, "tier": "a", "cost": None}
    total = AIMessageChunk("a", id="m", usage_metadata=usage) + AIMessageChunk("b", name="n", usage_metadata=usage)
    assert (total.content, total.id, total.name) == ("ab", "m", "n")
    assert total.usage_metadata == {
        "input_tokens": 2, "input_token_details": {"cache_read": 2}, "tier": "a", "cost": None
    }  # fmt: skip
    with pytest.raises(TypeError):
        total + "c"


def test_content_blocks_stay_whole_and_texts_between_them_meet():
    block = {"type": "image", "url": "u"}
    total = joined([AIMessageChunk("a"), AIMessageChunk("b"), AIMessageChunk([block, "c"]), AIMessageChunk("d")])
    assert total.content == ["ab", block, "cd"]


def test_there_is_no_sum_of_nothing():
    with pytest.raises(ValueError, match="no chunks"):
        joined([])


def test_pieces_of_calls_are_told_apart_by_their_index():
    pieces = [
        bit(name="f", identity="1"), bit(name="g", identity="2", index=1), bit('{"a"'), bit("{}", index=1), bit(":1}")
    ]  # fmt: skip
    assert calls_of(*pieces) == [("1", "f", {"a": 1}), ("2", "g", {})]


@pytest.mark.parametrize(
    "pieces",
    [
        # whole calls that all have the index 0
        [bit('{"a":1}', name="f", identity="1"), bit("{}", name="g", identity="2")],
        # no index at all
        [bit('{"a"', None, "f", "1"), bit(":1}", None), bit("{}", None, "g", "2")],
        # each piece with a new id
        [bit('{"a"', 0, "f", "1"), bit(":1}", 0, None, "9"), bit("{}", 1, "g", "2")],
        # each piece with the name and the id
        [bit('{"a"', 0, "f", "1"), bit(":1}", 0, "f", "1"), bit("{}", 1, "g", "2")],
        # an id that comes late, and empty texts for what is not said
        [bit("", 0, "f", ""), bit('{"a":1}', 0, "", "1"), bit(None, 1, "g", "2")],
    ],
)
def test_what_providers_make_of_the_protocol_is_understood(pieces):
    assert calls_of(*pieces) == [("1", "f", {"a": 1}), ("2", "g", {})]


@given(st.lists(st.dictionaries(st.text(), st.integers()), max_size=4), st.integers(1, 9), st.randoms())
def test_calls_cut_in_pieces_anyhow_come_out_whole(arguments, size, random):
    queues = []
    for index, args in enumerate(arguments):
        text = json.dumps(args)
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        queues.append([bit(None, index, f"f{index}", f"c{index}"), *[bit(part, index) for part in parts]])
    pieces = [AIMessageChunk("")]
    while any(queues):
        pieces.append(random.choice([queue for queue in queues if queue]).pop(0))
    assert sorted(calls_of(*pieces)) == [(f"c{n}", f"f{n}", args) for n, args in enumerate(arguments)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    assert total == joined(pieces)


@pytest.mark.parametrize("args", ['{"a"', "3", "[" * 100_000, "nul"])
def test_malformed_arguments_make_an_invalid_call(args):
    message = bit(args, 0, "f", "1").message()
    assert message.tool_calls == []
    assert message.invalid_tool_calls[0]["args"] == args
    assert message.invalid_tool_calls[0]["error"].startswith("the arguments are no JSON")


def test_a_call_without_a_name_is_invalid():
    assert bit("{}").message().invalid_tool_calls[0]["error"] == "the call names no tool"


def test_line_breaks_in_texts_are_taken_as_models_write_them():
    assert bit('{"a": "x\ny"}', 0, "f", "1").message().tool_calls[0]["args"] == {"a": "x\ny"}


OWN = [
    SystemMessage("s", id="1"),
    HumanMessage(["a", {"type": "image_url", "image_url": {"url": "u"}}], id="2", name="ann"),
    AIMessage(
        "x",
        id="3",
        tool_calls=[{"name": "f", "args": {"a": 1}, "id": "c", "type": "tool_call"}],
        invalid_tool_calls=[{"name": "g", "args": "{", "id": "d", "error": "e"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    ToolMessage("r", id="4", tool_call_id="c", status="error", artifact={"a": 1}, name="f"),
]


def test_messages_go_to_langchain_and_back():
    there = to_langchain(OWN)
    kinds = [theirs.SystemMessage, theirs.HumanMessage, theirs.AIMessage, theirs.ToolMessage]
    assert [type(message) for message in there] == kinds
    assert (there[2].tool_calls[0]["id"], there[2].invalid_tool_calls[0]["args"]) == ("c", "{")
    assert to_own(there) == OWN


def test_messages_stay_what_they_are_where_they_need_no_change():
    there = [theirs.HumanMessage("x"), theirs.FunctionMessage("x", name="f")]
    assert all(after is before for after, before in zip(to_langchain(there), there, strict=True))
    assert all(after is before for after, before in zip(to_own(OWN), OWN, strict=True))


def test_usage_that_langchain_has_no_form_for_is_left_out():
    (there,) = to_langchain([AIMessage("x", usage_metadata={"seconds": 3})])
    assert there.usage_metadata is None


def test_pieces_and_free_roles_of_langchain_become_messages():
    there = [theirs.AIMessageChunk("x"), theirs.ChatMessage("y", role="developer"), theirs.HumanMessageChunk("z")]
    assert to_own(there) == [AIMessage("x"), SystemMessage("y"), HumanMessage("z")]


@pytest.mark.parametrize("message", [theirs.FunctionMessage("x", name="f"), theirs.ChatMessage("x", role="judge")])
def test_a_role_that_we_have_no_class_for_is_refused(message):
    with pytest.raises(ModelError, match="knows the roles human, ai, system and tool"):
        to_own([message])


@langchain_tool
def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b


class Own:
    """A tool by its three attributes."""

    name, description, parameters = "f", "d", {"type": "object"}


def test_tools_are_described_whoever_made_them():
    provider = {"type": "web_search"}
    own, search, foreign = described([Own(), provider, multiply])
    assert own == {"name": "f", "description": "d", "parameters": {"type": "object"}}
    assert search == provider
    assert (foreign["name"], foreign["description"], sorted(foreign["parameters"]["properties"])) == (
        "multiply", "Multiply.", ["a", "b"],
    )  # fmt: skip


def test_langchain_is_given_its_own_tools_as_they_are():
    wrapped = Own()
    wrapped.origin = multiply
    function = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    assert for_langchain([multiply, wrapped, Own(), {"type": "web_search"}]) == [
        multiply, multiply, function, {"type": "web_search"},
    ]  # fmt: skip


def test_a_tool_made_of_something_else_is_described_to_langchain():
    made = Own()
    made.origin = object()
    function = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    assert for_langchain([made]) == [function]


def test_what_is_no_tool_is_refused():
    with pytest.raises(ModelError, match=r"3 \(int\) is no tool"):
        described([3])


class Echo(BaseChatModel):
    """Answers with what it was asked, in the four ways in which it can be."""

    prefix: str = ">"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any):
        text = " ".join([self.prefix, messages[-1].text, *sorted(kwargs), *(stop or ())])
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))], llm_output={})

    @property
    def _llm_type(self):
        return "echo"


class Streaming(Echo):
    def _stream(self, messages, stop=None, run_manager=None, **kwargs: Any):
        for part in ("a", "b"):
            yield ChatGenerationChunk(message=AIMessageChunk(part))


class Asynchronous(Echo):
    def _generate(self, *given, **kwargs: Any):
        raise AssertionError("the async form is there")

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs: Any):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("async"))])


def streamed(pieces):
    return "|".join(piece.text for piece in pieces)


def test_a_model_of_ones_own_needs_one_method():
    model = Echo(prefix="=")
    assert model.invoke("hi").text == "= hi"
    assert model.invoke([("user", "hi")], stop=["x"], temperature=1).text == "= hi temperature x"
    assert model.bind_tools([{"name": "f"}], tool_choice="f").invoke("hi").text == "= hi tool_choice tools"
    assert streamed(model.stream("hi")) == "= hi|"
    assert streamed(model.bind_tools([]).stream("hi")) == "= hi tools|"
    assert streamed(Streaming().stream("hi")) == "a|b"


def test_a_model_of_ones_own_has_async_forms(loop):
    async def main():
        found = [(await model.ainvoke("hi")).text for model in (Echo(), Echo().bind_tools([]), Asynchronous())]
        for model in (Echo(), Streaming(), Asynchronous(), Streaming().bind_tools([])):
            found.append(streamed([piece async for piece in model.astream("hi")]))
        return found

    assert loop.run(main) == ["> hi", "> hi tools", "async", "> hi|", "a|b", "async|", "a|b"]


def test_a_model_that_generates_nothing_is_an_error():
    class Silent(Echo):
        def _generate(self, *given, **kwargs: Any):
            return ChatResult(generations=[])

    with pytest.raises(ModelAnswerError, match=r"Silent generated .*ChatGeneration\(message="):
        Silent().invoke("hi")


def test_what_is_written_against_langchain_needs_other_imports_only():
    class ModelSimulator(BaseChatModel):
        def _generate(
            self,
            messages: list[Message],
            stop: list[str] | None = None,
            run_manager: Any | None = None,
            **kwargs: Any,
        ) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage())], llm_output={})

        @property
        def _llm_type(self) -> str:
            return "model-simulator"

        def bind_tools(
            self, tools: Sequence[dict[str, Any]], *, tool_choice: str | None = None, **kwargs: Any
        ) -> Runnable[LanguageModelInput, AIMessage]:
            return self

    assert ModelSimulator().bind_tools([]).invoke("hi") == AIMessage()


def test_a_base_class_is_no_model():
    with pytest.raises(TypeError, match="_generate"):
        BaseChatModel()


def test_ours_have_the_protocol():
    assert all(issubclass(kind, ChatModel) for kind in (ScriptedModel, OpenAIChat, Echo))


def test_every_public_name_is_there_and_every_error_is_ours():
    found = {name: getattr(models, name) for name in models.__all__}
    assert all(issubclass(kind, PregelError) for name, kind in found.items() if name.endswith("Error"))
    assert set(models.__all__) <= set(dir(models))


def test_neither_langchain_nor_the_client_is_imported():
    code = (
        "import sys; from pregel.graph.agent.models import *; call_model(ScriptedModel(['x']), "
        "__import__('pregel.graph.agent.requests', fromlist='x').ModelRequest(None, []), {}); "
        "print([name for name in ('langchain_core', 'openai', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_other_providers_are_langchains_where_it_is_installed(tmp_path, monkeypatch):
    home = tmp_path / "langchain"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "chat_models.py").write_text(
        "def init_chat_model(model, *, model_provider):\n"
        "    if model_provider != 'acme':\n"
        "        raise ValueError('Unsupported provider')\n"
        "    return (model_provider, model)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("langchain", "langchain.chat_models"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert named_model("acme:big:1") == ("acme", "big:1")
    with pytest.raises(ModelError, match=r"no model 'opena:x': Unsupported provider.* Did you mean 'openai'\?"):
        named_model("opena:x")
    for name in ("langchain", "langchain.chat_models"):
        monkeypatch.delitem(sys.modules, name)
