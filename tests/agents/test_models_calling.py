"""How an agent calls a model, whoever made it: whole and streamed, sync, on asyncio and on trio."""

import threading
from itertools import count

import anyio
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainAIMessage
from langchain_core.messages import AIMessageChunk as LangChainChunk
from langchain_core.messages import HumanMessage as LangChainHumanMessage
from langchain_core.messages import SystemMessage as LangChainSystemMessage

from pregel.checkpoint.memory import InMemorySaver
from pregel.graph import END, START, MessagesState, StateGraph
from pregel.graph.agent import create_agent
from pregel.graph.agent.models import (
    AIMessageChunk,
    BaseChatModel,
    ChatGeneration,
    ChatResult,
    ModelAnswerError,
    ModelError,
    ScriptedModel,
    acall_model,
    call_model,
    has_native_async,
)
from pregel.graph.agent.requests import ModelRequest
from pregel.graph.agent.structured import ProviderStrategy
from pregel.graph.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pregel.runtime import message_writer

ASK = [HumanMessage("hi")]
TOOL = {"name": "f", "description": "d", "parameters": {"type": "object"}}
CALL = {"name": "f", "args": {}, "id": "c", "type": "tool_call"}


def ask(door, model, *, tell=None, config=None, **parts):
    """Call a model in the door's way."""
    request = ModelRequest(model, parts.pop("messages", ASK), **parts)
    if door.way == "sync":
        return call_model(model, request, config or {}, tell)

    async def main():
        return await acall_model(model, request, config or {}, tell)

    return door.run(main)


class Bare:
    """A model with `invoke` alone, which says what it was given."""

    def __init__(self, answer=None):
        self.answer = AIMessage("ok") if answer is None else answer
        self.given = None

    def invoke(self, messages, **options):
        self.given = (messages, options)
        return self.answer


def test_a_model_is_given_what_there_is_and_nothing_else(door):
    model = Bare()
    assert ask(door, model) == AIMessage("ok")
    assert model.given == (ASK, {})
    ask(
        door,
        model,
        system_message=SystemMessage("s"),
        tools=[TOOL],
        tool_choice="any",
        response_format={"name": "A", "schema": {}},
        model_settings={"temperature": 1},
    )
    assert model.given == (
        [SystemMessage("s"), *ASK],
        {"tools": [TOOL], "tool_choice": "any", "response_format": {"name": "A", "schema": {}}, "temperature": 1},
    )


def test_a_strategy_of_the_provider_asks_for_its_form(door):
    model = Bare()
    ask(door, model, response_format=ProviderStrategy({"title": "A", "type": "object"}, strict=True))
    form = {"name": "A", "schema": {"title": "A", "type": "object"}, "strict": True}
    assert model.given == (ASK, {"response_format": form})


def test_a_model_without_a_stream_is_told_as_a_whole(door):
    told = []
    assert ask(door, Bare(), tell=told.append) == AIMessage("ok")
    assert told == [AIMessage("ok")]


def test_a_model_is_told_in_pieces(door):
    told = []
    answer = ask(door, ScriptedModel([AIMessage("one two", tool_calls=[CALL])]), tell=told.append)
    assert answer == AIMessage("one two", tool_calls=[CALL])
    assert [piece.text for piece in told if piece.text] == ["one", " two"]


class OnlyStream(Bare):
    """A model with a sync stream, which runs in a worker thread where there is a loop."""

    def __init__(self, *pieces):
        super().__init__()
        self.pieces = pieces
        self.threads = set()

    def stream(self, messages):
        self.threads.add(threading.get_ident())
        yield from self.pieces


def test_a_sync_stream_is_read_beside_the_loop_and_told_on_it(loop):
    model, tellers = OnlyStream(AIMessageChunk("a"), AIMessageChunk("b")), set()
    answer = ask(loop, model, tell=lambda _: tellers.add(threading.get_ident()))
    assert answer.text == "ab"
    assert tellers == {threading.get_ident()}
    assert model.threads.isdisjoint(tellers)


def test_a_sync_stream_ends_when_its_call_is_cancelled(loop):
    left = []

    class Endless(Bare):
        def stream(self, messages):
            try:
                for number in count():
                    yield AIMessageChunk(str(number))
            finally:
                left.append(True)

    async def main():
        with anyio.CancelScope() as scope:
            await acall_model(Endless(), ModelRequest(None, ASK), {}, lambda _: scope.cancel())

    loop.run(main)
    assert left == [True]


def test_a_stream_is_closed_when_a_reader_fails(door):
    left = []

    class Watched(Bare):
        def stream(self, messages):
            try:
                yield AIMessageChunk("a")
            finally:
                left.append("sync")

        async def astream(self, messages):
            try:
                yield AIMessageChunk("a")
            finally:
                left.append("async")

        async def ainvoke(self, messages):
            raise AssertionError("it is streamed")

    def fail(_):
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        ask(door, Watched(), tell=fail)
    assert left == ["sync" if door.way == "sync" else "async"]


def test_a_model_with_only_an_async_form_needs_a_loop(door):
    class Async:
        async def ainvoke(self, messages):
            return AIMessage("ok")

    if door.way == "sync":
        with pytest.raises(ModelError, match="Async has no `invoke`, only `ainvoke`"):
            ask(door, Async())
    else:
        assert ask(door, Async()).text == "ok"


@pytest.mark.parametrize("answer", [3, "text", HumanMessage("x"), LangChainHumanMessage("x")])
def test_what_is_no_answer_is_an_error(door, answer):
    with pytest.raises(ModelAnswerError, match="Bare answered"):
        ask(door, Bare(answer))


@pytest.mark.parametrize("pieces", [(), ("text",), (AIMessage("x"),)])
def test_what_is_no_stream_is_an_error(door, pieces):
    with pytest.raises(ModelAnswerError, match="stream of OnlyStream"):
        ask(door, OnlyStream(*pieces), tell=lambda _: None)


def test_what_is_no_model_is_an_error(door):
    with pytest.raises(ModelError, match="'gpt' \\(str\\) is no chat model"):
        ask(door, "gpt")


def test_calls_without_an_id_get_one_that_no_other_answer_has(door):
    nameless = {**CALL, "id": None}
    model = ScriptedModel([AIMessage("", tool_calls=[nameless, CALL, nameless])] * 2)
    first = ask(door, model)
    second = ask(door, model, messages=[*ASK, first, ToolMessage("r", tool_call_id="c")])
    identities = [call["id"] for answer in (first, second) for call in answer.tool_calls]
    assert identities[1] == identities[4] == "c"
    assert len(set(identities)) == 5


def test_our_models_are_given_our_messages(door):
    model = Bare()
    ask(door, model, messages=[LangChainHumanMessage("hi", id="1"), *ASK])
    assert model.given[0] == [HumanMessage("hi", id="1"), *ASK]


class Binding(BaseChatModel):
    """Has a `bind_tools` that keeps the model as it is, as simulated models do."""

    seen: list = []  # noqa: RUF012 - pydantic copies it

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append(kwargs)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[CALL]))])

    @property
    def _llm_type(self):
        return "binding"

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        self.seen.append((tools, tool_choice))
        return self


@pytest.mark.parametrize("streams", [False, True])
def test_a_model_binds_its_tools_in_its_own_way(door, streams):
    model = Binding()
    answer = ask(door, model, tools=[TOOL], tool_choice="f", tell=(lambda _: None) if streams else None)
    assert answer.tool_calls == [CALL]
    assert model.seen == [([TOOL], "f"), {}]


class LangChainModel(GenericFakeChatModel):
    """A real one of LangChain that says what it was given."""

    seen: list = []  # noqa: RUF012 - pydantic copies it

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append((messages, kwargs))
        return super()._generate(messages, stop, run_manager, **kwargs)

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        return self.bind(tools=tools, tool_choice=tool_choice, **kwargs)


def langchain(*answers):
    return LangChainModel(messages=iter(LangChainAIMessage(answer) for answer in answers))


def test_a_model_of_langchain_is_called_as_it_is(door):
    model = langchain("one two")
    answer = ask(
        door,
        model,
        system_message=SystemMessage("s"),
        tools=[TOOL],
        tool_choice="f",
        response_format={"name": "A", "schema": {}},
        model_settings={"temperature": 1},
    )
    assert (type(answer), answer.text) == (LangChainAIMessage, "one two")
    ((messages, options),) = model.seen
    assert [type(message) for message in messages] == [LangChainSystemMessage, LangChainHumanMessage]
    assert options == {
        "tools": [{"type": "function", "function": TOOL}],
        "tool_choice": "f",
        "temperature": 1,
        "response_format": {"type": "json_schema", "json_schema": {"name": "A", "schema": {}}},
    }


def test_a_model_of_langchain_streams(door):
    told = []
    answer = ask(door, langchain("one two"), tell=told.append)
    assert (type(answer), answer.text) == (LangChainAIMessage, "one two")
    assert {type(piece) for piece in told} == {LangChainChunk}
    assert [piece.text for piece in told] == ["one", " ", "two"]
    assert {piece.id for piece in told} == {answer.id}


def test_a_runnable_around_a_model_of_langchain_is_called_too(door):
    told = []
    model = FakeListChatModel(responses=["ab"]).with_config(tags=["mine"])
    assert ask(door, model, tell=told.append).text == "ab"
    assert "".join(piece.text for piece in told) == "ab"


@pytest.mark.parametrize("where", ["model", "around"])
def test_a_model_that_asks_for_quiet_is_not_told(door, where):
    told = []
    model = FakeListChatModel(responses=["ab"], tags=["nostream"] if where == "model" else None)
    model = model if where == "model" else model.with_config(tags=["nostream"])
    assert ask(door, model, tell=told.append).text == "ab"
    assert told == []


def test_the_callbacks_of_the_run_reach_langchain(door):
    from langchain_core.callbacks import BaseCallbackHandler

    class Tracer(BaseCallbackHandler):
        def on_chat_model_start(self, *given, **more):
            seen.append("start")

    seen = []
    ask(door, langchain("x"), config={"callbacks": [Tracer()]})
    assert seen == ["start"]


@pytest.mark.parametrize("streams", [False, True])
def test_callbacks_and_tokens_of_a_model_that_an_agent_binds_tools_to_come_once(door, streams):
    from langchain_core.callbacks import BaseCallbackHandler

    class Tracer(BaseCallbackHandler):
        run_inline = True

        def on_chat_model_start(self, *given, **more):
            seen.append("start")

        def on_llm_new_token(self, token, **more):
            seen.append("token")

    def look() -> str:
        """Look."""
        return "nothing"

    seen = []
    agent = create_agent(langchain("one two"), [look])
    if streams:
        parts = door.stream(agent, {"messages": ASK}, {"callbacks": [Tracer()]}, stream_mode="messages")
        assert [message.text for message, _ in parts if message.text.strip()] == ["one", "two"]
        assert seen == ["start", *["token"] * 3]
    else:
        door.invoke(agent, {"messages": ASK}, {"callbacks": [Tracer()]})
        assert seen == ["start"]


def test_a_model_of_langchain_that_takes_no_tools_says_so(door):
    with pytest.raises(ModelError, match="GenericFakeChatModel can't be told of tools"):
        ask(door, GenericFakeChatModel(messages=iter(())), tools=[TOOL])


def test_the_async_forms_of_langchain_are_awaited_on_asyncio_only(loop):
    async def main():
        return has_native_async(langchain()), has_native_async(ScriptedModel([])), has_native_async(Bare())

    assert loop.run(main) == (loop.way == "asyncio", True, False)


def agent(model, heard, saver=None):
    """A graph whose node calls a model twice and keeps the second answer, as a retry does."""

    def twice(state, config):
        request = ModelRequest(model, state["messages"])
        for _ in range(2):
            answer = call_model(model, request, config, heard.append)
        return {"messages": [answer]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", twice)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    return graph.compile(checkpointer=saver)


def test_each_streamed_answer_of_a_task_has_an_id_of_its_own():
    heard = []
    graph = agent(ScriptedModel(["a b"], on_exhausted="repeat"), heard)
    state = graph.invoke({"messages": ASK})
    first, second = {piece.id for piece in heard[:3]}, {piece.id for piece in heard[3:]}
    assert len(first) == len(second) == 1
    assert first != second
    assert {state["messages"][-1].id} == second
    # What a run without a checkpointer gave may be the input of the next one.
    again = graph.invoke({"messages": state["messages"]})
    assert len({message.id for message in again["messages"]}) == 3


def test_the_ids_of_a_task_that_runs_again_are_the_same():
    saver, found = InMemorySaver(), []
    for _ in range(2):
        heard = []
        config = {"configurable": {"thread_id": "t"}}
        agent(ScriptedModel(["a b"], on_exhausted="repeat"), heard, saver).invoke({"messages": ASK}, config)
        found.append({piece.id for piece in heard})
        saver.delete_thread("t")
    assert found[0] == found[1]


@pytest.mark.parametrize("make", [lambda: langchain("one two"), lambda: ScriptedModel(["one two"])])
def test_who_reads_messages_is_told_each_piece_once(door, make):
    model = make()

    class Node:
        """Calls the model in either form."""

        def invoke(self, state, config):
            answer = call_model(model, ModelRequest(model, state["messages"]), config, message_writer())
            return {"messages": [answer]}

        async def ainvoke(self, state, config):
            answer = await acall_model(model, ModelRequest(model, state["messages"]), config, message_writer())
            return {"messages": [answer]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", Node())
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    parts = door.stream(graph.compile(), {"messages": ASK}, stream_mode="messages")
    assert "".join(message.text for message, _ in parts) == "one two"
