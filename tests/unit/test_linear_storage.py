"""A value that grows is stored as it grows: twice the steps take twice the bytes, whatever holds the list."""

import operator
import sqlite3
from typing import Annotated

import pytest
from langchain_core.messages import HumanMessage as CoreHumanMessage
from typing_extensions import TypedDict

from pregel import START, StateGraph, add_messages
from pregel.channels import Topic
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.graph.messages import HumanMessage

CONFIG = {"configurable": {"thread_id": "t"}}
SIZE = 200
STEPS = (200, 400, 800)
#: The type of the field, its reducer, and what one superstep adds.
SHAPES = {
    "operator.add": (list, operator.add, lambda text: [text]),
    "topic": (list, Topic(accumulate=True), lambda text: text),
    "messages": (list, add_messages, HumanMessage),
    "core messages": (list, add_messages, CoreHumanMessage),
    "dict": (dict, operator.or_, lambda text: {text[:10]: text}),
}


def grown(saver, shape, steps):
    """Let a field grow by 200 bytes in each of so many supersteps."""
    kind, reducer, item = SHAPES[shape]

    class State(TypedDict, total=False):
        n: int
        items: Annotated[kind, reducer]

    def grow(state):
        return {"n": state["n"] + 1, "items": item(f"{state['n']:06}".ljust(SIZE, "x"))}

    graph = (
        StateGraph(State)
        .add_node(grow)
        .add_edge(START, "grow")
        .add_conditional_edges("grow", lambda state: "grow" if state["n"] < steps else "__end__", ["grow", "__end__"])
        .compile(saver, durability="async")
    )
    graph.invoke({"n": 0}, CONFIG | {"recursion_limit": steps})
    assert len(graph.get_state(CONFIG).values["items"]) == steps
    return saver


def blobs(saver):
    """Return the bytes of all that a thread has in memory."""
    lines = saver._threads["t"].lines.values()
    rows = [row for line in lines for rows in (line.checkpoints, *line.values.values()) for row in rows]
    return sum(len(row.blob) for row in rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_in_memory_grow_as_the_data_does(shape):
    small, middle, large = (blobs(grown(InMemorySaver(), shape, steps)) for steps in STEPS)
    assert large <= 3 * SIZE * STEPS[-1]
    assert small <= 3 * SIZE * STEPS[0]
    assert middle / small < 2.2
    assert large / middle < 2.2


def pages(path, steps, shape):
    """Return the bytes of the file that a run leaves."""
    with SqliteSaver(path, synchronous="NORMAL") as saver:
        grown(saver, shape, steps)
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    return count * size


@pytest.mark.parametrize("shape", SHAPES)
def test_the_file_grows_as_the_data_does(shape, tmp_path):
    SqliteSaver(tmp_path / "empty.db").close()
    small, middle, large = (pages(tmp_path / f"{steps}.db", steps, shape) for steps in STEPS)
    assert large <= 3 * SIZE * STEPS[-1]
    assert middle / small < 2.2
    assert large / middle < 2.2


def test_each_turn_of_a_conversation_stores_what_it_adds_also_where_a_graph_inside_takes_part():
    class State(TypedDict, total=False):
        messages: Annotated[list, add_messages]

    def answer(state):
        return {"messages": [HumanMessage("answer".ljust(SIZE, "x"))]}

    inner = StateGraph(State).add_node(answer).add_edge(START, "answer").compile()
    outer = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")

    def bytes_after(turns):
        saver = InMemorySaver()
        graph = outer.compile(saver)
        for turn in range(turns):
            graph.invoke({"messages": [HumanMessage(f"{turn}".ljust(SIZE, "x"))]}, CONFIG)
        assert len(graph.get_state(CONFIG).values["messages"]) == 2 * turns
        return blobs(saver)

    few, more = bytes_after(50), bytes_after(100)
    assert more / few < 2.2


def test_small_items_are_read_from_few_rows():
    class State(TypedDict, total=False):
        n: Annotated[list, operator.add]

    saver = InMemorySaver()
    graph = (
        StateGraph(State)
        .add_node("add", lambda state: {"n": [1]})
        .add_edge(START, "add")
        .add_conditional_edges("add", lambda state: "add" if len(state["n"]) < 1_000 else "__end__", ["add", "__end__"])
        .compile(saver, durability="async")
    )
    graph.invoke({"n": []}, CONFIG)
    rows = saver.values("t", [(0, 2**62)], ())
    assert len(rows) < 400


def test_a_value_that_is_replaced_is_not_read_with_all_that_it_was():
    class State(TypedDict, total=False):
        n: int
        items: Annotated[dict, operator.or_]

    def replace(state):
        return {"n": state["n"] + 1, "items": {state["n"] % 10: f"{state['n']}".ljust(SIZE, "x")}}

    saver = InMemorySaver()
    graph = (
        StateGraph(State)
        .add_node(replace)
        .add_edge(START, "replace")
        .add_conditional_edges(
            "replace", lambda state: "replace" if state["n"] < 300 else "__end__", ["replace", "__end__"]
        )
        .compile(saver)
    )
    graph.invoke({"n": 0}, CONFIG)
    read = sum(len(row.blob) for row in saver.values("t", [(0, 2**62)], ()))
    assert read < 10 * SIZE * 4
