"""The compiled graph by itself, without a context: a graph like any other, whose input is checked as a context's is."""

import operator
from typing import Any, TypedDict

import pytest

from pregel import END, START, InMemorySaver, StateGraph, interrupt
from pregel.errors import InvalidInputError, MissingCheckpointerError
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import (
    ContextKeyError,
    FlowGraph,
    FlowRunError,
    Key,
    KeySpace,
    KeyTypeError,
    MissingKeyError,
    SimpleAgent,
)
from tests.flow.running import chain


def test_the_compiled_graph_is_a_graph_like_any_other(door):
    compiled = chain(lambda ctx: ctx.update(b=ctx["a"] + 1)).compile()
    result = door.invoke(compiled, {"data": {"a": 1}})
    assert result["data"] == {"a": 1, "b": 2}
    with pytest.raises(MissingCheckpointerError):
        door.invoke(chain(lambda ctx: interrupt("ok?")).compile(), {})


def test_what_the_compiled_graph_keeps_for_itself_is_no_input_and_no_result(door):
    agent = SimpleAgent(ScriptedModel(["yes"]), name="agent", instruction="?", output_key="said")
    graph = FlowGraph("g").add_loop("each", over=lambda ctx: [1], item="item", body="agent").add_agent(agent, to="each")
    saver = InMemorySaver()
    compiled, config = graph.compile(saver), {"configurable": {"thread_id": "t"}}
    parts = door.stream(compiled, {"data": {}}, config, stream_mode="values")
    assert {tuple(values) for values in parts} == {("data",)}
    assert parts[-1] == {"data": {"item": 1, "said": "yes"}}
    assert {"@trace", "@agent/agent", "@messages", "@at/each"} <= compiled.get_state(config).values.keys()
    with pytest.raises(InvalidInputError, match=r"'@trace', which is private"):
        door.invoke(compiled, {"@trace": []}, config)


def test_the_compiled_graph_is_stored_like_any_other(door):
    saver = InMemorySaver()
    compiled = chain(lambda ctx: ctx.update(id=ctx.id), lambda ctx: interrupt("ok?")).compile(saver)
    config = {"configurable": {"thread_id": "t1"}}
    assert "__interrupt__" in door.invoke(compiled, {"data": {}}, config)
    assert compiled.get_state(config).values["data"] == {"id": "t1"}
    with pytest.raises(FlowRunError, match=r"RunControl"):
        door.invoke(chain(lambda ctx: ctx.stop()).compile(), {})


class Outer(TypedDict, total=False):
    data: Any
    done: bool


def test_the_compiled_graph_is_a_node_of_another_one(door):
    builder = StateGraph(Outer)
    builder.add_node("flow", lambda state: {"data": inner.invoke({"data": state["data"]})["data"]})
    builder.add_edge(START, "flow").add_edge("flow", END)
    inner = chain(lambda ctx: ctx.update(b=2)).compile()
    assert door.invoke(builder.compile(), {"data": {"a": 1}}) == {"data": {"a": 1, "b": 2}}


def test_the_compiled_graph_by_itself_takes_a_key_with_a_reducer_as_its_field(door):
    class Keys(KeySpace):
        notes = Key(list[int], "notes", reducer=operator.add)

    compiled = FlowGraph("g", Keys).add_activity("a", lambda ctx: ctx.add("notes", [2])).compile()
    assert door.invoke(compiled, {"@key/notes": [1]})["@key/notes"] == [1, 2]
    with pytest.raises(ContextKeyError, match=r"'notes', which is folded by its reducer: give it as the field '@key/n"):
        door.invoke(compiled, {"data": {"notes": [1]}})


class Given(KeySpace):
    question = Key(str, "input.question", given=True)
    best = Key(int, "best", given=True, reducer=max)
    amount = Key(int, "amount")


WRONG = {
    "an unknown key": ({"input.question": "why", "amuont": 1}, ContextKeyError, r"Given has no key 'amuont'.*'amount'"),
    "a wrong type": ({"input.question": 5}, KeyTypeError, r"the data for graph 'g': key 'input.question' takes str"),
    "a missing key": ({"amount": 1}, MissingKeyError, r"graph 'g' must be given 'input.question'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_names_and_types_of_the_input_are_checked_before_anything_runs(name, door):
    data, error, message = WRONG[name]
    ran = []
    compiled = chain(lambda ctx: ran.append(ctx["input.question"]), keys=Given).compile()
    with pytest.raises(error, match=message):
        door.invoke(compiled, {"data": data, "@key/best": [1]})
    with pytest.raises(MissingKeyError, match=r"must be given 'best'"):
        door.invoke(compiled, {"data": {"input.question": "why"}})
    assert ran == []
    door.invoke(compiled, {"data": {"input.question": "why"}, "@key/best": 1})
    assert ran == ["why"]


def test_a_later_input_on_a_thread_adds_to_what_was_given(door):
    compiled, config = (
        chain(lambda ctx: None, keys=Given).compile(InMemorySaver()),
        {"configurable": {"thread_id": "t"}},
    )
    door.invoke(compiled, {"data": {"input.question": "why"}, "@key/best": 1}, config)
    result = door.invoke(compiled, {"data": {"amount": 5}}, config)
    assert result["data"] == {"input.question": "why", "amount": 5}
