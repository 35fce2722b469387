"""OpenAI's protocol, by the official client, against a real server on loopback."""

import gc
import json
import re

import anyio
import openai
import pytest

from pregel.graph.agent.models import AIMessageChunk, ModelAnswerError, ModelError, OpenAIChat, call_model, named_model
from pregel.graph.agent.models.chunks import joined
from pregel.graph.agent.models.openai_answers import StreamReader
from pregel.graph.agent.requests import ModelRequest
from pregel.graph.blocks import audio_block, file_block, image_block
from pregel.graph.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from tests.chat_server import DONE, ChatServer, Reply, call, completion, delta, event, refused, reported, streamed

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
REPORT = {
    "input_tokens": 9,
    "output_tokens": 4,
    "total_tokens": 13,
    "input_token_details": {"cache_read": 2},
    "output_token_details": {"reasoning": 1},
}
ASK = [HumanMessage("how is the weather?")]
WEATHER = {"name": "weather", "description": "Tell it.", "parameters": {"type": "object", "properties": {}}}


def model_of(server, **options):
    return OpenAIChat("gpt-test", base_url=server.url, api_key="key", **options)


def ask(door, server, messages=ASK, *, way="invoke", options=None, **asked):
    """Ask a model by its whole answer or its stream, in the door's way; return the message."""
    if door.way == "sync":
        model = model_of(server, **options or {})
        return model.invoke(messages, **asked) if way == "invoke" else joined(model.stream(messages, **asked)).message()

    async def main():
        model = model_of(server, **options or {})
        if way == "invoke":
            return await model.ainvoke(messages, **asked)
        return joined([piece async for piece in model.astream(messages, **asked)]).message()

    try:
        return door.run(main)
    finally:
        if way == "stream":
            gc.collect(1)  # whatever was left half-read would be reported here


@pytest.fixture(params=["invoke", "stream"])
def way(request):
    return request.param


def test_a_whole_answer_has_its_text_its_calls_and_its_usage(door):
    calls = [call("weather", {"city": "Oslo"}, "c1"), call("weather", {"city": "Rome"}, "c2")]
    reply = completion({"content": "Let me see.", "tool_calls": calls}, usage=USAGE, model="gpt-test")
    with ChatServer(reply) as server:
        answer = ask(door, server, tools=[WEATHER])
    assert answer == AIMessage(
        "Let me see.",
        tool_calls=[
            {"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"},
            {"name": "weather", "args": {"city": "Rome"}, "id": "c2", "type": "tool_call"},
        ],
        usage_metadata=REPORT,
        response_metadata={"finish_reason": "stop", "model_name": "gpt-test"},
    )
    assert server.asked == [
        {
            "model": "gpt-test",
            "messages": [{"role": "user", "content": "how is the weather?"}],
            "tools": [{"type": "function", "function": WEATHER}],
        }
    ]
    assert server.headers[0]["authorization"] == "Bearer key"


@pytest.mark.parametrize("part", [None, 1, 7])
def test_a_streamed_answer_is_the_same_however_its_bytes_are_cut(door, part):
    reply = streamed(
        delta(role="assistant", content=""),
        delta(content="Let me "),
        b": a comment\n\n",
        delta(content="see, Ås.\u2028"),
        delta(tool_calls=[{"index": 0, **call("weather", "", "c1")}]),
        delta(tool_calls=[{"index": 1, **call("time", "", "c2")}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"ci'}}]),
        delta(tool_calls=[{"index": 1, "function": {"arguments": "{}"}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": 'ty": "Oslo"}'}}]),
        delta(finish_reason="tool_calls"),
        reported(USAGE),
        DONE,
        part=part,
    )
    with ChatServer(reply) as server:
        answer = ask(door, server, way="stream")
    assert answer == AIMessage(
        "Let me see, Ås.\u2028",
        tool_calls=[
            {"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"},
            {"name": "time", "args": {}, "id": "c2", "type": "tool_call"},
        ],
        usage_metadata=REPORT,
        response_metadata={"finish_reason": "tool_calls"},
    )
    assert server.asked[0]["stream"] is True
    assert server.asked[0]["stream_options"] == {"include_usage": True}


def test_pieces_arrive_while_the_answer_is_still_being_made(door):
    with ChatServer(streamed(delta(content="one "), delta(content="two "), part=None, after="stall")) as server:
        if door.way == "sync":
            pieces = model_of(server).stream(ASK)
            heard = [next(pieces).text, next(pieces).text]
            pieces.close()
        else:

            async def main():
                pieces = model_of(server).astream(ASK)
                heard = [(await anext(pieces)).text, (await anext(pieces)).text]
                await pieces.aclose()
                return heard

            heard = door.run(main)
    assert heard == ["one ", "two "]


def test_a_conversation_is_passed_on_with_all_that_belongs_to_it(door):
    messages = [
        SystemMessage("be short"),
        HumanMessage(["look", {"type": "image", "base64": "AAAA", "mime_type": "image/gif"}], name="ann"),
        AIMessage(
            [{"type": "reasoning", "reasoning": "hm"}, "I will."],
            tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}],
            invalid_tool_calls=[{"name": "time", "args": "{oops", "id": "c2", "error": "no JSON"}],
            name="not a name that the API takes",
        ),
        ToolMessage("rain", tool_call_id="c1", artifact=object),
        ToolMessage("bad arguments", tool_call_id="c2", status="error"),
    ]
    with ChatServer(completion({"content": "ok"})) as server:
        ask(door, server, messages, tool_choice="any", tools=[WEATHER], temperature=0.5, options={"seed": 3})
    asked = server.asked[0]
    assert asked["messages"] == [
        {"role": "system", "content": "be short"},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/gif;base64,AAAA"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I will."}],
            "tool_calls": [call("weather", {"city": "Oslo"}, "c1"), call("time", "{oops", "c2")],
        },
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        {"role": "tool", "content": "bad arguments", "tool_call_id": "c2"},
    ]
    assert (asked["tool_choice"], asked["temperature"], asked["seed"]) == ("required", 0.5, 3)


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        (image_block(url="http://x/y"), {"type": "image_url", "image_url": {"url": "http://x/y"}}),
        (
            audio_block(data=b"abc", mime_type="audio/mpeg"),
            {"type": "input_audio", "input_audio": {"data": "YWJj", "format": "mp3"}},
        ),
        (
            file_block(data=b"abc", mime_type="text/plain", filename="a.txt"),
            {"type": "file", "file": {"file_data": "data:text/plain;base64,YWJj", "filename": "a.txt"}},
        ),
        ({"type": "file", "file": {"file_id": "f1"}}, {"type": "file", "file": {"file_id": "f1"}}),
    ],
)
def test_content_blocks_take_the_protocols_form(block, sent):
    with ChatServer(completion({"content": "ok"})) as server:
        model_of(server).invoke([HumanMessage([block])])
    assert server.asked[0]["messages"][0]["content"] == [sent]


def test_a_block_that_the_protocol_has_no_form_for_is_refused():
    with ChatServer() as server:
        with pytest.raises(ModelError, match="'audio' is given by its address 'http://x/y'"):
            model_of(server).invoke([HumanMessage([audio_block(url="http://x/y")])])
    assert server.asked == []


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", "auto"), ("none", "none"), ("weather", {"type": "function", "function": {"name": "weather"}})],
)
def test_the_tool_that_must_be_called_is_named(choice, sent):
    with ChatServer(completion({"content": "ok"})) as server:
        model_of(server).invoke(ASK, tools=[WEATHER], tool_choice=choice)
    assert server.asked[0]["tool_choice"] == sent


def test_the_form_of_the_answer_is_asked_for(door, way):
    form = {"name": "Answer", "schema": {"type": "object"}, "strict": True}
    text = json.dumps({"city": "Oslo"})
    reply = completion({"content": text}) if way == "invoke" else streamed(delta(content=text), delta("stop"), DONE)
    with ChatServer(reply) as server:
        answer = ask(door, server, way=way, response_format=form)
    assert json.loads(answer.text) == {"city": "Oslo"}
    assert server.asked[0]["response_format"] == {"type": "json_schema", "json_schema": form}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_request_that_may_succeed_later_is_repeated(door, way, status):
    good = completion({"content": "ok"}) if way == "invoke" else streamed(delta(content="ok"), delta("stop"), DONE)
    with ChatServer(refused(status), refused(status), good) as server:
        assert ask(door, server, way=way).text == "ok"
    assert len(server.asked) == 3


@pytest.mark.parametrize(("status", "error"), [(429, openai.RateLimitError), (500, openai.InternalServerError)])
def test_what_fails_to_the_end_is_the_clients_error(door, way, status, error):
    with ChatServer(*[refused(status, "slow down")] * 2) as server:
        with pytest.raises(error, match="slow down"):
            ask(door, server, way=way, options={"max_retries": 1})
    assert len(server.asked) == 2


def test_a_request_that_is_wrong_is_not_repeated(door, way):
    with ChatServer(refused(400, "no such model")) as server:
        with pytest.raises(openai.BadRequestError, match="no such model"):
            ask(door, server, way=way)
    assert len(server.asked) == 1


@pytest.mark.parametrize("args", ['{"city": "Os', "[1]", "null", '{"a": 1} and so on'])
def test_arguments_that_are_no_json_object_make_an_invalid_call(door, way, args):
    calls = [call("weather", args, "c1", index=0), call("time", "", "c2", index=1)]
    whole = completion({"content": None, "tool_calls": calls})
    with ChatServer(whole if way == "invoke" else streamed(delta(tool_calls=calls), delta("tool_calls"))) as server:
        answer = ask(door, server, way=way)
    assert answer.tool_calls == [{"name": "time", "args": {}, "id": "c2", "type": "tool_call"}]
    (invalid,) = answer.invalid_tool_calls
    assert (invalid["name"], invalid["args"], invalid["id"]) == ("weather", args, "c1")
    assert "JSON" in invalid["error"]


@pytest.mark.parametrize(
    "body",
    [b"<html>hello</html>", b"[]", b'{"choices": []}', b'{"choices": [{"message": 3}]}', b"", b'{"choices": [{"mess'],
)
def test_a_body_that_is_no_answer_is_an_error(door, body):
    with ChatServer(Reply(body)) as server:
        with pytest.raises(ModelAnswerError, match="base_url"):
            ask(door, server)


@pytest.mark.parametrize(
    "choice", [{"content": 3}, {"content": "x", "tool_calls": [3]}, {"tool_calls": [{"function": {"name": []}}]}]
)
def test_an_answer_of_another_form_is_an_error(choice):
    with ChatServer(completion(choice)) as server:
        with pytest.raises(ModelAnswerError, match="is no message"):
            model_of(server).invoke(ASK)


@pytest.mark.parametrize("text", ["{oops", "[]"])
def test_an_event_that_is_no_json_object_is_an_error(door, text):
    with ChatServer(streamed(delta(content="one"), event(text), DONE)) as server:
        with pytest.raises(ModelAnswerError, match="no JSON"):
            ask(door, server, way="stream")


def test_an_error_in_the_middle_of_a_stream_is_the_clients_error(door):
    with ChatServer(streamed(delta(content="one"), event({"error": {"message": "overloaded", "code": 7}}))) as server:
        with pytest.raises(openai.APIError, match="overloaded") as caught:
            ask(door, server, way="stream")
    assert caught.value.code == "7"


@pytest.mark.parametrize("after", ["drop", "fade", "end"])
@pytest.mark.parametrize("events", [[delta(content="one "), delta(content="two")], [b'data: {"choi'], []])
def test_a_stream_that_breaks_off_is_an_error_and_no_shorter_answer(door, after, events):
    with ChatServer(streamed(*events, after=after)) as server:
        with pytest.raises(openai.APIConnectionError, match="in the middle of the model's answer"):
            ask(door, server, way="stream")
    assert len(server.asked) == 1


@pytest.mark.parametrize("last", [[delta("stop")], [DONE], [b"data: [DONE]"]])
def test_a_stream_is_whole_when_the_model_or_the_server_says_so(door, last):
    with ChatServer(streamed(delta(content="one"), *last)) as server:
        assert ask(door, server, way="stream").text == "one"


def test_a_whole_answer_that_breaks_off_is_an_error(door):
    with ChatServer(Reply(b'{"choices": [', after="drop")) as server:
        with pytest.raises(openai.APIConnectionError):
            ask(door, server, options={"max_retries": 0})


def test_nothing_is_waited_for_when_the_server_has_said_that_it_is_done(door):
    with ChatServer(streamed(delta(content="one"), delta("stop"), DONE, after="stall")) as server:
        assert ask(door, server, way="stream").text == "one"


@pytest.mark.parametrize("reply", [Reply(b"", after="stall"), Reply(b'{"cho', after="stall")])
def test_an_answer_that_does_not_come_is_given_up(door, reply):
    with ChatServer(reply) as server:
        with pytest.raises(openai.APITimeoutError):
            ask(door, server, options={"timeout": 0.05, "max_retries": 0})


def test_a_stream_that_does_not_go_on_is_given_up(door):
    with ChatServer(streamed(delta(content="one"), after="stall")) as server:
        with pytest.raises(openai.APITimeoutError):
            ask(door, server, way="stream", options={"timeout": 0.05, "max_retries": 0})


def test_a_call_can_be_cancelled(loop, way):
    reply = Reply(b"", after="stall") if way == "invoke" else streamed(delta(content="one"), after="stall")

    async def main():
        model = model_of(server)

        async def ask_for_ever():
            if way == "invoke":
                await model.ainvoke(ASK)
            async for _ in model.astream(ASK):
                pass

        async with anyio.create_task_group() as group:
            group.start_soon(ask_for_ever)
            await anyio.to_thread.run_sync(server.arrived.acquire)
            group.cancel_scope.cancel()
        gc.collect(1)

    with ChatServer(reply) as server:
        loop.run(main)
    assert len(server.asked) == 1


def test_a_model_outlives_event_loops_and_is_shared_by_tasks(loop):
    with ChatServer(*[completion({"content": "ok"})] * 6) as server:
        model = model_of(server)

        async def main():
            answers = []

            async def one():
                answers.append((await model.ainvoke(ASK)).text)

            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(one)
            return answers

        assert loop.run(main) == ["ok"] * 3
        assert loop.run(main) == ["ok"] * 3


def test_usage_that_a_server_counts_up_in_each_event_is_counted_once():
    counting = [{"prompt_tokens": 9, "completion_tokens": made} for made in (1, 2, 3)]
    events = [delta(content="x", usage=usage) for usage in counting]
    with ChatServer(streamed(*events, delta("stop"), DONE)) as server:
        answer = joined(model_of(server).stream(ASK)).message()
    assert answer.usage_metadata == {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}


def test_a_refusal_is_a_content_block_and_goes_back_as_one():
    with ChatServer(completion({"content": None, "refusal": "I can't."}), completion({"content": "ok"})) as server:
        model = model_of(server)
        answer = model.invoke(ASK)
        model.invoke([*ASK, answer])
    assert answer.content == [{"type": "refusal", "refusal": "I can't."}]
    assert server.asked[1]["messages"][1]["content"] == answer.content


def test_an_event_without_end_is_no_answer(monkeypatch):
    monkeypatch.setattr("pregel.graph.agent.models.openai_answers.EVENT_LIMIT", 10)
    with pytest.raises(ModelAnswerError, match="more than 10 bytes"):
        list(StreamReader().feed(b"data: 12345"))


def test_an_agents_call_streams_and_gives_calls_without_id_one():
    calls = [call("weather", "{}", None, index=0)]
    with ChatServer(streamed(delta(content="one "), delta(tool_calls=calls), delta("tool_calls"), DONE)) as server:
        model = model_of(server)
        told = []
        answer = call_model(model, ModelRequest(model, ASK), {}, told.append)
    assert [type(piece) for piece in told] == [AIMessageChunk] * 3
    assert [re.sub("[0-9a-f]{24}", "*", each["id"]) for each in answer.tool_calls] == ["call_*"]


def test_a_model_has_a_name(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    model = named_model("openai:gpt-test")
    assert (type(model), model.model) == (OpenAIChat, "gpt-test")
    assert model.profile == {"structured_output": True}
    assert OpenAIChat("m", base_url="http://127.0.0.1:9/v1").profile == {"structured_output": False}


@pytest.mark.parametrize("name", ["gpt-test", "openai:", ":gpt"])
def test_a_name_of_another_form_is_refused(name):
    with pytest.raises(ModelError, match="provider:model"):
        named_model(name)


def test_an_unknown_provider_is_refused_with_the_nearest(monkeypatch):
    monkeypatch.setattr("pregel.graph.agent.models.named.find_spec", lambda package: None)
    with pytest.raises(ModelError, match=r"'opnai' .* langchain-opnai .*Did you mean 'openai'\?"):
        named_model("opnai:gpt-test")


def test_without_a_key_there_is_no_model(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=r"OpenAIChat\('m'\) has no client: .*api_key"):
        OpenAIChat("m")


def test_without_the_client_there_is_no_model(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(ModelError, match=r"pip install 'pregel\[openai\]'"):
        OpenAIChat("m", api_key="key")


def test_half_a_surrogate_pair_in_an_answer_is_replaced_and_the_next_request_can_be_made(door, way):
    args = '{"city": "Os\\ud83dlo", "\\ude00": ["\\ud83d\\ude00"]}'
    message = {"content": "hi \ud83d", "tool_calls": [call("weather", args, "c1")]}
    first = completion(message) if way == "invoke" else escaped_stream(message)
    second = completion({"content": "yes"}) if way == "invoke" else streamed(delta(content="yes"), delta("stop"), DONE)
    with ChatServer(first, second) as server:
        answer = ask(door, server, way=way)
        again = ask(door, server, [*ASK, answer, ToolMessage("warm", tool_call_id="c1")], way=way)
    assert answer.content == "hi \N{REPLACEMENT CHARACTER}"
    assert answer.tool_calls[0]["args"] == {
        "city": "Os\N{REPLACEMENT CHARACTER}lo",
        "\N{REPLACEMENT CHARACTER}": ["\N{GRINNING FACE}"],
    }
    assert again.content == "yes"


def escaped_stream(message):
    """Return a stream whose one piece is a message, in ASCII."""
    calls = [{**each, "index": place} for place, each in enumerate(message["tool_calls"])]
    choice = {"index": 0, "delta": {**message, "tool_calls": calls}, "finish_reason": "stop"}
    return streamed(event(json.dumps({"choices": [choice]})), DONE)


def test_half_a_surrogate_pair_in_a_conversation_does_not_stop_a_request(door, way):
    said = [
        SystemMessage("be \ud83d"),
        HumanMessage([{"type": "text", "text": "\ude00"}]),
        AIMessage("", tool_calls=[{"name": "weather", "args": {"\ud83d": "\ude00"}, "id": "c1"}]),
        ToolMessage("\ud83d\ude00", tool_call_id="c1"),
    ]
    reply = completion({"content": "yes"}) if way == "invoke" else streamed(delta(content="yes"), delta("stop"), DONE)
    with ChatServer(reply) as server:
        assert ask(door, server, said, way=way, user="\ud83d").content == "yes"
    system, human, ai, tool = server.asked[0]["messages"]
    assert system["content"] == "be \N{REPLACEMENT CHARACTER}"
    assert human["content"] == [{"type": "text", "text": "\N{REPLACEMENT CHARACTER}"}]
    arguments = json.loads(ai["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"\N{REPLACEMENT CHARACTER}": "\N{REPLACEMENT CHARACTER}"}
    assert tool["content"] == "\N{GRINNING FACE}"
    assert server.asked[0]["user"] == "\N{REPLACEMENT CHARACTER}"
