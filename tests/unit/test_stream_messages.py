"""`stream_mode="messages"`: what tasks tell of messages while they run, and what their updates bring."""

import gc
import operator
import subprocess
import sys
import weakref
from threading import Event, Thread
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import START, MessagesState, OmitFromOutput, Overwrite, Send, StateGraph, add_messages
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import OutsideTaskError
from pregel.graph.messages import AIMessage, HumanMessage, RemoveMessage
from pregel.reporter import Audience, Brought, Emit
from pregel.runtime import message_writer
from pregel.testing import run_seeded

ASKED = {"messages": [HumanMessage("hello", id="q")]}
PATIENCE = 10  # seconds after which something that should come is taken for lost


def chain(schema=MessagesState, /, **actions):
    """Return a graph of nodes that run one after the other."""
    return StateGraph(schema).add_sequence(list(actions.items())).add_edge(START, next(iter(actions))).compile()


def speaker(text, name):
    """Return a node that tells a text word by word, if somebody listens, and then brings it as a message."""

    def speak(state):
        tell = message_writer()
        if tell is not None:
            for word in text.split():
                tell(AIMessage(word, id=name))
        return {"messages": [AIMessage(text, id=name)]}

    return speak


def contents(parts):
    """Return the contents of the messages in parts of the mode."""
    return [message.content for message, _ in parts]


# --- What is told -----------------------------------------------------------------------------------------------------


def test_tokens_are_parts_and_the_message_they_make_is_not_told_again(door):
    parts = door.stream(chain(speak=speaker("one two three", "a")), ASKED, stream_mode="messages")

    assert contents(parts) == ["one", "two", "three"]
    assert all(type(part) is tuple for part in parts)


def test_a_part_says_who_speaks(door):
    config = {"tags": ["t"], "metadata": {"user": "ada"}}

    ((_, told), (_, brought)) = door.stream(
        chain(say=speaker("word", "a"), note=lambda state: {"messages": "noted"}), ASKED, config, stream_mode="messages"
    )

    assert told == {
        "user": "ada",
        "node": "say",
        "step": 1,
        "task": "1:0:say",
        "tags": ["t"],
        "pregel_node": "say",
        "pregel_step": 1,
    }
    assert (brought["user"], brought["node"], brought["step"], brought["tags"]) == ("ada", "note", 2, ["t"])


def test_what_an_update_brings_is_told_once_and_what_the_state_held_never(door):
    def whole_history(state):
        return {"messages": [*state["messages"], AIMessage("new", id="n")]}

    graph = chain(first=lambda state: {"messages": [AIMessage("old", id="o")]}, second=whole_history)

    assert contents(door.stream(graph, ASKED, stream_mode="messages")) == ["old", "new"]


def test_a_later_update_of_a_message_that_was_told_is_not_told(door):
    def reworded(state):
        return {"messages": Overwrite([AIMessage("other words", id="a"), AIMessage("more", id="m")])}

    graph = chain(speak=speaker("some words", "a"), reword=reworded)

    assert contents(door.stream(graph, ASKED, stream_mode="messages")) == ["some", "words", "more"]


def test_what_removes_a_message_and_what_is_none_is_not_told(door):
    graph = chain(
        drop=lambda state: {"messages": [RemoveMessage(id="q"), AIMessage("instead", id="i")]},
        nothing=lambda state: {},
    )

    assert contents(door.stream(graph, ASKED, stream_mode="messages")) == ["instead"]


def test_messages_of_any_visible_field_are_told_and_of_no_other(door):
    class State(TypedDict):
        messages: Annotated[list, add_messages]
        answer: AIMessage
        pair: tuple
        count: int
        draft: Annotated[list, add_messages, OmitFromOutput]

    def write(state):
        return {
            "answer": AIMessage("whole"),
            "pair": (AIMessage("left"), "no message"),
            "count": 1,
            "draft": [AIMessage("secret")],
        }

    assert contents(door.stream(chain(State, write=write), ASKED, stream_mode="messages")) == ["whole", "left"]


def test_a_message_that_a_send_carried_is_not_told_when_it_comes_into_the_state(door):
    builder = StateGraph(MessagesState)
    builder.add_node("fan", lambda state: {}).add_edge(START, "fan")
    builder.add_node("keep", lambda given: {"messages": [*given["messages"], AIMessage("kept", id="k")]})
    builder.add_node("bare", lambda given: {"messages": [given, AIMessage("bare", id="b")]})
    carried = HumanMessage("carried", id="c")
    builder.add_conditional_edges(
        "fan", lambda state: [Send("keep", {"messages": [carried]}), Send("bare", carried)], ["keep", "bare"]
    )

    parts = door.stream(builder.compile(), ASKED, stream_mode="messages")

    assert sorted(contents(parts)) == ["bare", "kept"]


def test_a_run_that_goes_on_does_not_tell_what_was_stored():
    graph = (
        StateGraph(MessagesState)
        .add_node("speak", lambda state: {"messages": [*state["messages"], AIMessage(str(len(state["messages"])))]})
        .add_edge(START, "speak")
        .compile(checkpointer=InMemorySaver())
    )
    thread = {"configurable": {"thread_id": "t"}}
    graph.invoke(ASKED, thread)

    assert contents(graph.stream({"messages": "again"}, thread, stream_mode="messages")) == ["3"]


def test_pieces_need_not_be_messages_nor_have_ids(door):
    def speak(state):
        tell = message_writer()
        if tell is not None:
            tell("a text")
            tell("a text")
        return {}

    parts = door.stream(chain(speak=speak), ASKED, stream_mode="messages")

    assert [message for message, _ in parts] == ["a text", "a text"]


# --- When and in which order ------------------------------------------------------------------------------------------


def test_a_token_is_read_while_its_node_still_runs():
    read, seen = Event(), []

    def speak(state):
        message_writer()(AIMessage("first", id="a"))
        seen.append(read.wait(PATIENCE))
        return {}

    for message, _ in chain(speak=speak).stream(ASKED, stream_mode="messages"):
        assert message.content == "first"
        read.set()
    assert seen == [True]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_token_is_read_while_its_node_still_runs_on_a_loop(loop, is_async):
    seen = []

    async def main():
        read, awaited = Event(), anyio.Event()

        def speak(state):
            message_writer()(AIMessage("first", id="a"))
            seen.append(read.wait(PATIENCE))
            return {}

        async def aspeak(state):
            message_writer()(AIMessage("first", id="a"))
            with anyio.fail_after(PATIENCE):
                await awaited.wait()
            seen.append(True)
            return {}

        async for _ in chain(speak=aspeak if is_async else speak).astream(ASKED, stream_mode="messages"):
            read.set()
            awaited.set()

    loop.run(main)
    assert seen == [True]


def test_parts_of_several_modes_come_in_the_order_in_which_they_were_made(door):
    def both(state):
        speaker("one", "a")(state)
        return {"messages": [AIMessage("one", id="a"), AIMessage("two", id="b")]}

    modes = ["updates", "messages", "values"]
    parts = door.stream(chain(both=both), ASKED, stream_mode=modes)

    assert [(mode, part[0].content if mode == "messages" else None) for mode, part in parts] == [
        ("values", None),
        ("messages", "one"),
        ("messages", "two"),
        ("updates", None),
        ("values", None),
    ]


def test_nodes_side_by_side_each_tell_their_own(door):
    builder = StateGraph(MessagesState)
    for name in ("left", "right"):
        builder.add_node(name, speaker(f"{name}1 {name}2", name)).add_edge(START, name)

    parts = door.stream(builder.compile(), ASKED, stream_mode="messages")

    for name in ("left", "right"):
        assert contents(part for part in parts if part[1]["node"] == name) == [f"{name}1", f"{name}2"]
    assert len(parts) == 4


def test_what_was_told_before_an_error_is_read_before_it(door):
    def fail(state):
        speaker("half a", "a")(state)
        raise RuntimeError("broken off")

    *parts, error = door.stream(chain(fail=fail), ASKED, stream_mode="messages")

    assert contents(parts) == ["half", "a"]
    assert isinstance(error, RuntimeError)


def test_a_thread_that_a_node_starts_can_tell(door):
    def speak(state):
        thread = Thread(target=message_writer(), args=[AIMessage("from afar", id="a")])
        thread.start()
        thread.join()
        return {}

    ((message, about),) = door.stream(chain(speak=speak), ASKED, stream_mode="messages")

    assert (message.content, about["node"]) == ("from afar", "speak")


def test_version_2_gives_parts_their_shape(door):
    (part,) = door.stream(chain(speak=speaker("word", "a")), ASKED, stream_mode="messages", version="v2")

    message, about = part.pop("data")
    assert part == {"type": "messages", "ns": (), "step": 1, "task": "1:0:speak"}
    assert (message.content, about["task"]) == ("word", "1:0:speak")


# --- Graphs inside graphs ---------------------------------------------------------------------------------------------


def run_inside(graph):
    """Return the two ways in which a graph takes place inside another one."""
    return {"as a node": graph, "run by a node": lambda state: {"messages": graph.invoke(state)["messages"]}}


@pytest.mark.parametrize("way", ["as a node", "run by a node"])
def test_tokens_of_a_graph_inside_are_told_where_its_parts_are_read(door, way):
    inner = chain(speak=speaker("some words", "a"))
    graph = chain(child=run_inside(inner)[way], after=speaker("last", "z"))

    parts = door.stream(graph, ASKED, stream_mode="messages", subgraphs=True)

    assert [(path, message.content, about["node"]) for path, (message, about) in parts] == [
        (("child:1:0:child",), "some", "speak"),
        (("child:1:0:child",), "words", "speak"),
        ((), "last", "after"),
    ]


@pytest.mark.parametrize("way", ["as a node", "run by a node"])
def test_without_them_the_messages_of_a_graph_inside_are_those_of_its_node(door, way):
    inner = chain(speak=speaker("some words", "a"))

    ((message, about),) = door.stream(chain(child=run_inside(inner)[way]), ASKED, stream_mode="messages")

    assert (message.content, about["node"]) == ("some words", "child")


def test_a_graph_that_a_node_reads_tells_the_node(door):
    inner = chain(speak=speaker("some words", "a"))
    read = []

    def reader(state):
        read.extend(contents(inner.stream(state, stream_mode="messages")))
        return {}

    assert door.stream(chain(read=reader), ASKED, stream_mode="messages", subgraphs=True) == []
    assert read == ["some", "words"]


def test_a_message_without_an_id_that_a_child_brings_is_told_once(door):
    class Plain(TypedDict):
        notes: Annotated[list, operator.add]

    graph = chain(Plain, child=chain(Plain, note=lambda state: {"notes": [AIMessage("first"), AIMessage("first")]}))

    parts = door.stream(graph, {"notes": []}, stream_mode="messages", subgraphs=True)

    assert [path for path, _ in parts] == [("child:1:0:child",)] * 2


def test_a_message_without_an_id_is_kept_as_long_as_another_could_be_taken_for_it():
    class Nameless:
        """A message."""

    audience, message = Audience(), Nameless()
    gone = weakref.ref(message)
    assert audience.takes(Emit("messages", Brought(message, {})))
    del message
    gc.collect()

    assert gone() is not None


# --- Who is told ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"stream_mode": "updates"},
        {"stream_mode": ["values", "custom"], "subgraphs": True},
        {"stream_mode": "messages", "config": {"tags": ["nostream"]}},
        {"stream_mode": "messages", "config": {"tags": ["mine", "langsmith:nostream"]}},
    ],
)
def test_a_node_learns_that_nobody_listens(door, options):
    found = []
    graph = chain(look=lambda state: found.append(message_writer()) or {})
    door.stream(graph, ASKED, **options)
    door.invoke(graph, ASKED)

    assert found == [None, None]


def test_a_run_tagged_nostream_tells_its_messages_whole(door):
    graph = chain(speak=speaker("some words", "a"))

    parts = door.stream(graph, ASKED, {"tags": ["nostream"]}, stream_mode="messages")

    assert contents(parts) == ["some words"]


def test_outside_a_task_there_is_nobody_to_tell():
    with pytest.raises(OutsideTaskError):
        message_writer()


# --- What it costs ----------------------------------------------------------------------------------------------------


def functions_called(call):
    """Return the names of the functions of ours that a call calls, of those that have to do with messages."""
    found = set()

    def note(frame, event, argument):
        if event == "call" and frame.f_globals["__name__"] in {"pregel.reporter", "pregel.callbacks"}:
            found.add(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name for name in found if not name.startswith("Reporter.")}


def test_runs_that_nobody_reads_messages_of_pay_nothing_for_them():
    graph = chain(speak=speaker("one two", "a"), child=chain(speak=speaker("three", "b")))

    assert functions_called(lambda: graph.invoke(ASKED)) == set()
    assert functions_called(lambda: list(graph.stream(ASKED, stream_mode="custom", subgraphs=True))) == set()
    assert {"Speech.part", "Audience.takes"} <= functions_called(
        lambda: list(graph.stream(ASKED, stream_mode="messages"))
    )


def test_no_other_library_is_loaded_to_tell_messages():
    code = (
        "import sys\n"
        "from pregel import StateGraph, START, MessagesState\n"
        "graph = StateGraph(MessagesState).add_node('a', lambda s: {'messages': 'x'}).add_edge(START, 'a').compile()\n"
        "parts = list(graph.stream({'messages': 'q'}, {'callbacks': [object()]}, stream_mode='messages'))\n"
        "print(len(parts), 'langchain_core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "1 False\n"


@pytest.mark.parametrize("seed", range(3))
def test_a_seeded_run_tells_each_message_once(seed):
    def speaks(state):
        message_writer()(AIMessage("a b", id="m"))
        return {"messages": [AIMessage("a b", id="m")]}

    builder = StateGraph(MessagesState).add_node("speaks", speaks).add_edge(START, "speaks")
    parts = run_seeded(builder.compile(), {"messages": []}, seed=seed, stream_mode="messages").parts
    assert [(part["type"], part["data"][0].id, part["data"][1]["node"]) for part in parts] == [
        ("messages", "m", "speaks")
    ]
