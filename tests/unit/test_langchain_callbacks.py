"""LangChain's callbacks, tags and metadata reach what nodes call, and its models' tokens reach who reads messages."""

import asyncio
from contextlib import aclosing
from threading import Thread

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableBinding, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import tool

from pregel import START, MessagesState, StateGraph
from pregel.config import RunConfig
from pregel.errors import InvalidConfigError
from pregel.graph.messages import REMOVE_ALL_MESSAGES
from pregel.runtime import message_writer

ASKED = {"messages": [HumanMessage("hello", id="q")]}
RUN = "12345678-1234-5678-1234-567812345678"


class Whole(GenericFakeChatModel):
    """A model that can't stream."""

    def _should_stream(self, **options):
        return False


class Broken(GenericFakeChatModel):
    """A model whose answer breaks off."""

    def _stream(self, *given, **options):
        yield next(super()._stream(*given, **options))
        raise RuntimeError("broken off")


class Notes(BaseCallbackHandler):
    """Notes what it is told of models and tools."""

    run_inline = True

    def __init__(self):
        self.models = []
        self.tools = []
        self.tokens = 0

    def on_llm_new_token(self, token, **about):
        self.tokens += 1

    def on_chat_model_start(self, serialized, messages, **about):
        self.models.append(about)

    def on_tool_start(self, serialized, text, **about):
        self.tools.append(about)


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing at {place}"


def model(*answers, kind=GenericFakeChatModel, **options):
    """Return a model with answers."""
    return kind(messages=iter([AIMessage(answer) for answer in answers]), **options)


def chain(**actions):
    """Return a graph of nodes that run one after the other."""
    return StateGraph(MessagesState).add_sequence(list(actions.items())).add_edge(START, next(iter(actions))).compile()


def asker(speaks):
    """Return a node that asks a model without giving it a config."""
    return lambda state: {"messages": speaks.invoke(state["messages"])}


def words(parts):
    """Return what was said, without the empty piece that may end it."""
    return [message.content for message, _ in parts if message.content.strip()]


# --- Tokens -----------------------------------------------------------------------------------------------------------


def test_a_model_that_is_invoked_without_a_config_is_streamed_once(door):
    parts = door.stream(chain(ask=asker(model("one two three"))), ASKED, stream_mode="messages")

    assert words(parts) == ["one", "two", "three"]
    assert {about["node"] for _, about in parts} == {"ask"}
    assert len({message.id for message, _ in parts}) == 1


def test_a_model_that_is_given_the_config_is_streamed_once(door):
    speaks = model("one two")

    def ask(state, config: RunConfig):
        return {"messages": speaks.invoke(state["messages"], config)}

    parts = door.stream(chain(ask=ask), ASKED, {"callbacks": [Notes()]}, stream_mode="messages")

    assert words(parts) == ["one", "two"]


def test_a_model_that_is_awaited_is_streamed_once():
    speaks = model("one two", "three four")

    async def ask(state):
        return {"messages": await speaks.ainvoke(state["messages"])}

    async def read(state):
        pieces = [piece async for piece in speaks.astream(state["messages"])]
        return {"messages": pieces[:1]}

    async def main():
        graph = chain(ask=ask, read=read)
        return [part async for part in graph.astream(ASKED, stream_mode="messages")]

    assert words(asyncio.run(main())) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_chain_that_a_node_streams_is_told_once(is_async):
    chained = model("one two") | RunnableLambda(lambda said: said.content)

    def read(state):
        return {"messages": "".join(chained.stream("x"))}

    async def aread(state):
        return {"messages": "".join([piece async for piece in chained.astream("x")])}

    async def main():
        graph = chain(read=aread if is_async else read)
        return [part async for part in graph.astream(ASKED, stream_mode="messages")]

    assert words(asyncio.run(main())) == ["one", "two", "one two"]  # the last is another message: the user's


def test_a_model_without_an_answer_tells_nothing(door):
    class Silent(GenericFakeChatModel):
        def _generate(self, *given, **options):
            return ChatResult(generations=[])

        def _should_stream(self, **options):
            return False

    def ask(state):
        with pytest.raises(IndexError):  # LangChain's own
            model("never said", kind=Silent).invoke("x")
        return {}

    assert door.stream(chain(ask=ask), ASKED, stream_mode="messages") == []


def test_nodes_side_by_side_are_told_apart(door):
    builder = StateGraph(MessagesState)
    for name in ("left", "right"):
        speaks = model(f"{name}1 {name}2")

        def ask(state, config: RunConfig, speaks=speaks):
            return {"messages": speaks.invoke("x", config)}

        builder.add_node(name, ask).add_edge(START, name)

    parts = door.stream(builder.compile(), ASKED, {"run_id": RUN}, stream_mode="messages")

    for name in ("left", "right"):
        assert words(part for part in parts if part[1]["node"] == name) == [f"{name}1", f"{name}2"]


def test_a_part_has_the_tags_and_the_metadata_of_the_model(door):
    speaks = model("word", tags=["mine"], metadata={"size": "small"})
    graph = chain(ask=RunnableLambda(lambda state: state["messages"]) | speaks | (lambda said: {"messages": [said]}))

    parts = door.stream(graph, ASKED, {"tags": ["t"], "metadata": {"user": "ada"}}, stream_mode="messages")

    _, about = parts[0]
    assert sorted(about["tags"]) == ["mine", "t"]
    assert (about["user"], about["size"], about["ls_model_type"]) == ("ada", "small", "chat")


def test_a_model_that_can_not_stream_is_told_whole_and_once(door):
    parts = door.stream(chain(ask=asker(model("one two", kind=Whole))), ASKED, stream_mode="messages")

    assert words(parts) == ["one two"]


def test_a_whole_answer_that_no_update_brings_is_told(door):
    speaks = model("an aside", kind=Whole)

    parts = door.stream(chain(ask=lambda state: speaks.invoke("x") and {}), ASKED, stream_mode="messages")

    assert words(parts) == ["an aside"]


def test_tokens_that_a_node_tells_as_well_come_once(door):
    speaks = model("one two")

    def ask(state):
        pieces = []
        for piece in speaks.stream(state["messages"]):
            pieces.append(piece)
            tell = message_writer()
            tell(piece)
        return {"messages": [AIMessage("one two", id=pieces[0].id)]}

    assert words(door.stream(chain(ask=ask), ASKED, stream_mode="messages")) == ["one", "two"]


def test_what_removes_a_message_is_not_told(door):
    graph = chain(drop=lambda state: {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("instead")]})

    ((message, _),) = door.stream(graph, ASKED, stream_mode="messages")
    assert message.content == "instead"


@pytest.mark.parametrize("tag", ["nostream", "langsmith:nostream"])
def test_the_tokens_of_a_model_that_is_tagged_so_are_left_out(door, tag):
    quiet, loud = model("hush hush", tags=[tag]), model("one two")

    def ask(state):
        quiet.invoke("x")
        return {"messages": [loud.invoke("x")]}

    assert words(door.stream(chain(ask=ask), ASKED, stream_mode="messages")) == ["one", "two"]


def test_what_a_tagged_model_says_is_told_whole_where_it_comes_into_the_state(door):
    graph = chain(ask=asker(model("hush hush", tags=["nostream"])))

    assert words(door.stream(graph, ASKED, stream_mode="messages")) == ["hush hush"]


def test_what_a_model_said_before_it_broke_off_is_told_and_the_error_is_its_own(door):
    *parts, error = door.stream(chain(ask=asker(model("one two", kind=Broken))), ASKED, stream_mode="messages")

    assert words(parts) == ["one"]
    assert str(error) == "broken off"


def test_a_thread_that_is_given_the_config_tells_without_a_task(door):
    speaks = model("one two")

    def ask(state, config: RunConfig):
        thread = Thread(target=speaks.invoke, args=["x", config])
        thread.start()
        thread.join()
        return {}

    parts = door.stream(chain(ask=ask), ASKED, stream_mode="messages")

    assert words(parts) == ["one", "two"]
    assert {(about["node"], about["step"], about["task"]) for _, about in parts} == {(None, 0, None)}


@pytest.mark.parametrize("gives", ["nothing", "the config", "an empty config"])
@pytest.mark.parametrize("subgraphs", [True, False])
def test_a_graph_that_a_node_runs_tells_where_its_parts_are_read(door, gives, subgraphs):
    inner = chain(ask=asker(model("one two")))

    def run(state, config: RunConfig):
        given = {"nothing": None, "the config": config, "an empty config": {}}[gives]
        return {"messages": inner.invoke(state, given)["messages"]}

    parts = door.stream(chain(run=run), ASKED, stream_mode="messages", subgraphs=subgraphs)

    if subgraphs:
        assert words(part for _, part in parts) == ["one", "two"]
        assert {path for path, _ in parts} == {("run:1:0:run",)}
    else:
        assert words(parts) == ["one two"]


@pytest.mark.parametrize("callbacks", [None, [Notes()], CallbackManager([Notes()])])
@pytest.mark.parametrize("gives", ["nothing", "the config"])
def test_a_model_of_a_graph_inside_that_nobody_reads_is_not_streamed(door, gives, callbacks):
    notes = Notes()
    speaks = model("one two", "three four", "five six", "seven eight", callbacks=[notes])
    inner = chain(ask=asker(speaks), ask_again=lambda state, config: {"messages": speaks.invoke("x", config)})

    def run(state, config: RunConfig):
        return {"messages": inner.invoke(state, config if gives == "the config" else None)["messages"]}

    parts = door.stream(chain(child=inner, run=run), ASKED, {"callbacks": callbacks}, stream_mode="messages")

    assert words(parts) == ["one two", "three four", "five six", "seven eight"]
    assert len(notes.models) == 4
    assert notes.tokens == 0


@pytest.mark.parametrize("gives", ["nothing", "the config"])
def test_a_graph_that_a_node_reads_tells_the_node(door, gives):
    inner = chain(ask=asker(model("one two")))
    read = []

    def reader(state, config: RunConfig):
        given = None if gives == "nothing" else config
        read.extend(words(inner.stream(state, given, stream_mode="messages")))
        return {}

    assert door.stream(chain(reader=reader), ASKED, stream_mode="messages", subgraphs=True) == []
    assert read == ["one", "two"]


# --- Callbacks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [list, tuple, CallbackManager])
@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("gives", ["nothing", "the config"])
def test_callbacks_tags_and_metadata_reach_models_and_tools(door, shape, streams, gives):
    notes, speaks = Notes(), model("one two")

    def ask(state, config: RunConfig):
        given = config if gives == "the config" else None
        look.invoke({"place": "home"}, given)
        return {"messages": speaks.invoke(state["messages"], given)}

    callbacks = shape([notes])
    config = {"callbacks": callbacks, "tags": ["t"], "metadata": {"user": "ada"}, "run_name": "mine", "run_id": RUN}
    if streams:
        assert words(door.stream(chain(ask=ask), ASKED, config, stream_mode="messages")) == ["one", "two"]
    else:
        door.invoke(chain(ask=ask), ASKED, config)

    for (about,) in (notes.models, notes.tools):
        assert "t" in about["tags"]
        assert about["metadata"]["user"] == "ada"
        assert str(about["run_id"]) != RUN
        assert about.get("name") != "mine"
    assert list(callbacks.handlers if shape is CallbackManager else callbacks) == [notes]


@pytest.mark.parametrize("shape", [list, tuple, CallbackManager])
@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("gives", ["nothing", "the config"])
@pytest.mark.parametrize("wrap", ["bind", "with_config"])
def test_a_binding_around_a_model_has_each_callback_and_each_token_once(door, shape, streams, gives, wrap):
    notes, speaks = Notes(), model("one two")
    bound = speaks.bind(stop=["."]) if wrap == "bind" else speaks.with_config(tags=["mine"])
    assert isinstance(bound, RunnableBinding)

    def ask(state, config: RunConfig):
        return {"messages": bound.invoke(state["messages"], config if gives == "the config" else None)}

    config = {"callbacks": shape([notes])}
    if streams:
        assert words(door.stream(chain(ask=ask), ASKED, config, stream_mode="messages")) == ["one", "two"]
        assert notes.tokens == 3
    else:
        door.invoke(chain(ask=ask), ASKED, config)
    assert len(notes.models) == 1


@pytest.mark.parametrize("gives", ["nothing", "the config"])
def test_a_binding_that_is_awaited_has_each_callback_and_each_token_once(gives):
    notes, bound = Notes(), model("one two").bind(stop=["."])

    async def ask(state, config: RunConfig):
        return {"messages": await bound.ainvoke(state["messages"], config if gives == "the config" else None)}

    async def main():
        parts = chain(ask=ask).astream(ASKED, {"callbacks": [notes]}, stream_mode="messages")
        return [part async for part in parts]

    assert words(asyncio.run(main())) == ["one", "two"]
    assert (len(notes.models), notes.tokens) == (1, 3)


def test_a_binding_in_a_graph_inside_has_each_callback_once(door):
    notes, bound = Notes(), model("one two", "three four").with_config(tags=["mine"])

    def ask(state, config: RunConfig):
        return {"messages": bound.invoke(state["messages"], config)}

    def run(state, config: RunConfig):
        return chain(ask=ask).invoke(state, config)

    door.invoke(chain(child=chain(ask=ask), run=run), ASKED, {"callbacks": [notes]})

    assert len(notes.models) == 2


def test_callbacks_reach_models_of_graphs_inside(door):
    notes = Notes()
    graph = chain(child=chain(ask=asker(model("one"))), run=lambda state: chain(ask=asker(model("two"))).invoke(state))

    door.invoke(graph, ASKED, {"callbacks": [notes]})

    assert len(notes.models) == 2


def test_a_model_of_nodes_side_by_side_on_a_loop_has_the_callbacks(loop):
    notes, builder = Notes(), StateGraph(MessagesState)
    for name in ("left", "right"):
        speaks = model(name)

        async def ask(state, speaks=speaks):
            return {"messages": speaks.invoke("x")}

        builder.add_node(name, ask).add_edge(START, name)

    loop.invoke(builder.compile(), ASKED, {"callbacks": [notes]})

    assert len(notes.models) == 2


def test_a_graph_inside_a_chain_of_langchain_has_the_callbacks_of_the_chain():
    notes, found = Notes(), []
    graph = chain(ask=asker(model("one two")))
    step = RunnableLambda(lambda given: found.extend(graph.stream(given, stream_mode="messages")))

    step.invoke(ASKED, {"callbacks": [notes], "tags": ["outer"]})

    assert words(found) == ["one", "two"]
    assert "outer" in notes.models[0]["tags"]


def test_without_callbacks_nothing_is_offered(door):
    found = []
    graph = chain(ask=lambda state: found.append(var_child_runnable_config.get()) or {})

    door.invoke(graph, ASKED, {"tags": ["t"]})
    door.invoke(graph, ASKED, {"tags": ["t"], "callbacks": []})

    assert found[0] is None
    assert found[1]["tags"] == ["t"]


def test_what_nodes_find_does_not_leak_to_the_caller(loop):
    graph = chain(ask=asker(model("one two", "three four", "five six", "seven eight")))
    config = {"callbacks": [Notes()]}
    seen = []

    def look_around():
        seen.append(var_child_runnable_config.get())

    for _ in graph.stream(ASKED, config, stream_mode="messages"):
        look_around()
    graph.invoke(ASKED, config)
    look_around()

    async def main():
        async with aclosing(graph.astream(ASKED, config, stream_mode="messages")) as parts:
            async for _ in parts:
                look_around()
        await graph.ainvoke(ASKED, config)
        look_around()

    loop.run(main)
    assert len(seen) > 6
    assert set(seen) == {None}


def test_a_run_that_fails_on_a_loop_leaves_nothing_behind(loop):
    def fail(state):
        raise RuntimeError("on purpose")

    async def main():
        with pytest.raises(RuntimeError, match="on purpose"):
            await chain(fail=fail).ainvoke(ASKED, {"callbacks": [Notes()]})
        return var_child_runnable_config.get()

    assert loop.run(main) is None


def test_callbacks_that_are_none_are_an_error(door):
    with pytest.raises(InvalidConfigError, match=r"takes a list of LangChain's callback handlers.*not Notes"):
        door.invoke(chain(ask=lambda state: {}), ASKED, {"callbacks": Notes()})
