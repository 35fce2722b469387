"""Places that are reached rarely, each with what must hold there."""

import operator
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel

from pregel import END, START, Command, OmitFromInput, Overwrite, Send, StateGraph, add_messages
from pregel.channels import EphemeralValue, KeyedValue, NamedBarrierValue, UntrackedValue
from pregel.errors import (
    GraphDefinitionError,
    InvalidInputError,
    InvalidUpdateError,
    InvalidUpdateTypeError,
    ReducerError,
    SchemaError,
)
from pregel.graph import Unchecked
from pregel.types import StreamWriter


class State(TypedDict, total=False):
    n: int
    log: Annotated[list, operator.add]


def one(node, schema=State, **options):
    return StateGraph(schema, **options).add_node("node", node).add_edge(START, "node").compile(name="demo")


@pytest.mark.parametrize("channel", [EphemeralValue, UntrackedValue])
def test_a_guard_that_is_a_type_is_refused_with_where_the_type_belongs(channel):
    with pytest.raises(TypeError, match="guard is True or False, not <class 'int'>; a field's type"):
        channel(int)


def test_an_update_that_a_keyed_field_does_not_take_names_field_and_node(door):
    class Keyed(TypedDict):
        table: Annotated[dict, KeyedValue]

    with pytest.raises(InvalidUpdateError, match=r"field 'table' of graph 'demo', written by node 'node'.* mapping"):
        door.invoke(one(lambda state: {"table": 5}, Keyed), {})


def test_a_fold_that_fails_where_the_reducer_does_not_is_blamed_on_the_fold(door):
    def reducer(left, right):
        return left + right

    def fold(left, updates):
        raise ValueError("broken")

    reducer.fold = fold

    class Folding(TypedDict):
        total: Annotated[int, reducer]

    builder = StateGraph(Folding)
    for name in "ab":
        builder.add_node(name, lambda state: {"total": 1}).add_edge(START, name)
    with pytest.raises(ReducerError, match=r"of node 'a' .*, node 'b' .* at once \(its `fold`\)"):
        door.invoke(builder.compile(), {})


def test_a_path_does_not_see_a_barrier_that_its_own_write_leaves_unfinished(door):
    class Gate(TypedDict):
        gate: Annotated[Any, NamedBarrierValue("ab")]
        seen: Annotated[list, operator.add]

    def path(state):
        assert state.get("gate") in {None, frozenset("ab")}
        return "b" if "gate" not in state else END

    builder = StateGraph(Gate).add_node("a", lambda state: {"gate": "a", "seen": ["gate" in state]})
    builder.add_node("b", lambda state: {"gate": "b", "seen": ["gate" in state]})
    builder.add_edge(START, "a").add_conditional_edges("a", path, ["b", END])
    assert door.invoke(builder.compile(), {}) == {"gate": frozenset("ab"), "seen": [False, False]}


def test_a_path_sees_a_barrier_that_its_own_write_completes(door):
    class Gate(TypedDict):
        gate: Annotated[Any, NamedBarrierValue("ab")]
        seen: Annotated[list, operator.add]

    builder = StateGraph(Gate).add_node("a", lambda state: {"gate": "a"}).add_node("b", lambda state: {"gate": "b"})
    builder.add_node("c", lambda state: {"seen": [sorted(state["gate"])]}).add_edge(START, "a").add_edge("a", "b")
    graph = builder.add_conditional_edges("b", lambda state: "c" if "gate" in state else END, ["c", END]).compile()
    assert door.invoke(graph, {})["seen"] == [["a", "b"]]


def test_a_reducer_whose_error_has_no_text_is_told_by_its_type():
    class WordlessError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    def reducer(left, right):
        raise WordlessError

    class Odd(TypedDict):
        x: Annotated[int, reducer]

    graph = StateGraph(Odd).add_node("node", lambda state: {"x": 1}).add_edge(START, "node").compile()
    with pytest.raises(ReducerError, match="raised WordlessError, folding an update of node 'node'"):
        graph.invoke({})


def test_messages_that_are_none_name_the_field_at_the_input_and_at_the_node(door):
    class Chat(TypedDict):
        messages: Annotated[list, add_messages]

    with pytest.raises(InvalidInputError, match="the input of graph 'demo': the field 'messages' does not accept 5"):
        door.invoke(one(lambda state: {}, Chat), {"messages": 5})
    with pytest.raises(InvalidUpdateError, match="node 'node' of graph 'demo': the field 'messages' does not accept 5"):
        door.invoke(one(lambda state: {"messages": 5}, Chat), {})
    replaced = door.invoke(one(lambda state: {"messages": Overwrite(["b"])}, Chat), {"messages": ["a"]})["messages"]
    assert [message.text for message in replaced] == ["b"]


def test_an_unchecked_messages_field_is_prepared_all_the_same(door):
    class Chat(TypedDict):
        messages: Annotated[list, add_messages, Unchecked]

    (message,) = door.invoke(one(lambda state: {"messages": "hi"}, Chat), {})["messages"]
    assert message.id


def test_an_async_generator_is_told_to_be_a_coroutine(door):
    async def stream(state) -> AsyncIterator:
        yield {}

    with pytest.raises(InvalidUpdateTypeError, match="declare the node with `async def`"):
        door.invoke(one(lambda state: stream(state)), {})  # noqa: PLW0108 - the function itself would be read as async


def test_a_model_whose_required_fields_are_not_input_is_checked_field_by_field(door):
    class Model(BaseModel):
        given: int
        made: Annotated[int, OmitFromInput]

    def make(state) -> dict:
        return {"made": 1}

    builder = StateGraph(Model).add_node("make", make, input_schema=TypedDict("Given", {"given": int}))
    graph = builder.add_edge(START, "make").compile(name="demo")
    assert door.invoke(graph, {"given": "5"}) == {"given": 5, "made": 1}
    with pytest.raises(InvalidInputError, match="does not fit its schema"):
        door.invoke(graph, {"given": "five"})


class Box(BaseModel):
    n: int = 0


def test_an_instance_of_another_schema_of_the_graph_is_an_update(door):
    builder = StateGraph(State, input_schema=Box).add_node("node", lambda state: Box(n=7)).add_edge(START, "node")
    assert door.invoke(builder.compile(), Box(n=1)) == {"n": 7, "log": []}
    command = StateGraph(State, input_schema=Box).add_node("node", lambda state: Command(update=Box(n=8)))
    assert door.invoke(command.add_edge(START, "node").compile(), {})["n"] == 8


@pytest.mark.parametrize("width", [1, 2])
def test_a_starved_join_that_is_allowed_warns_in_every_way(door, width):
    builder = StateGraph(State, allow={"starved-join"})
    for name in "abc":
        builder.add_node(name, lambda state: {"log": ["x"]})
    builder.add_conditional_edges(START, lambda state: [Send("a", state)] * width, ["a", "b"]).add_edge(["a", "b"], "c")
    with pytest.warns(match="may-starve"):
        graph = builder.compile()
    with pytest.warns(match=r"has heard from 'a' and not from 'b'.*\[starved-join\]"):
        assert door.invoke(graph, {})["log"] == ["x"] * width


def test_many_steps_of_async_nodes_let_others_have_the_loop(loop):
    import anyio
    import anyio.lowlevel

    async def count(state):
        return {"n": state["n"] + 1}

    builder = StateGraph(State).add_node(count).add_edge(START, "count")
    builder.add_conditional_edges("count", lambda state: "count" if state["n"] < 200 else END, ["count", END])
    graph = builder.compile()
    turns = []

    async def main():
        async with anyio.create_task_group() as group:

            async def others():
                while True:
                    await anyio.lowlevel.checkpoint()
                    turns.append(1)

            group.start_soon(others)
            await graph.ainvoke({"n": 0})
            group.cancel_scope.cancel()

    loop.run(main)
    assert len(turns) >= 5


# --- What the builder refuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda b: b.add_node(len, len), r"add_node takes \(name, action\) or \(action\)"),
        (lambda b: b.add_node(5), "5 has no name of its own"),
        (lambda b: b.add_node("a", len, destinations="abc"), "destinations of node 'a' takes a list of names"),
        (lambda b: b.add_node("a", len, metadata=5), "metadata of node 'a' takes a mapping"),
        (lambda b: b.add_edge(5, "a"), "names 5"),
        (lambda b: b.add_edge(["a", 5], "a"), "names 5"),
        (lambda b: b.add_edge("a", None), "names None"),
        (
            lambda b: b.add_edge(["a"], "b", wait="alive"),
            r"wait takes 'all' or 'live', not 'alive'. Did you mean 'live'\?",
        ),
        (lambda b: b.add_sequence([]), "at least one node"),
        (lambda b: b.add_conditional_edges("a", 5), "needs a path function, not 5"),
        (lambda b: b.add_node("a", 5).add_edge(START, "a").compile(), "give a function"),
    ],
)
def test_what_the_builder_refuses_says_what_it_takes(build, words):
    with pytest.raises(GraphDefinitionError, match=words):
        build(StateGraph(State))


def test_entry_and_finish_points_and_conditional_entries_are_edges(door):
    builder = StateGraph(State).add_node("a", lambda state: {"log": ["a"]}).set_finish_point("a")
    assert door.invoke(builder.set_entry_point("a").compile(), {})["log"] == ["a"]
    other = StateGraph(State).add_node("a", lambda state: {"log": ["a"]})
    assert door.invoke(other.set_conditional_entry_point(lambda state: "a", ["a"]).compile(), {})["log"] == ["a"]


def test_channels_of_langgraph_in_a_schema_are_refused_by_name():
    kind = type("LastValue", (), {"__module__": "langgraph.channels.last_value"})
    marker = kind()

    class Foreign(TypedDict):
        n: Annotated[int, marker]

    with pytest.raises(SchemaError, match=r"field 'n': .*belongs to LangGraph and would do nothing here"):
        StateGraph(Foreign).add_node("a", lambda state: {}).add_edge(START, "a").compile()


# --- What is read off functions ---------------------------------------------------------------------------------------


def test_a_builtin_without_signature_is_a_node(door):
    class Plain(TypedDict):
        n: int

    assert door.invoke(one(dict, Plain), {"n": 1}) == {"n": 1}


def test_an_annotation_that_can_not_be_resolved_counts_unless_it_is_of_no_importance(door):
    def node(state, writer: "Nowhere", *more, **others) -> "Elsewhere":  # noqa: F821 - that is the point
        writer(1)
        return {"n": 1}

    assert door.invoke(one(node), {})["n"] == 1

    def reads(state: "Nowhere"):  # noqa: F821 - that is the point
        return {}

    with pytest.raises(GraphDefinitionError, match=r"its state with 'Nowhere', which can't be resolved.*input_schema="):
        one(reads)


def test_a_union_with_a_writer_is_filled_by_its_annotation(door):
    def node(state, say: StreamWriter | None = None) -> Command[Literal["__end__"]] | list[Command] | None:
        say("hello")

    graph = one(node)
    assert door.stream(graph, {}, stream_mode="custom") == ["hello"]


def test_a_positional_only_extra_parameter_can_not_be_filled():
    def node(state, config, /):
        return {}

    with pytest.raises(GraphDefinitionError, match="has a parameter 'config' that nothing fills"):
        one(node)


def test_a_drawing_names_the_answers_of_a_path_and_joins():
    builder = StateGraph(State)
    for name in "abc":
        builder.add_node(name, lambda state: {})
    builder.add_conditional_edges(START, lambda state: True, {True: "a", False: "b"})
    builder.add_edge(["a", "b"], "c", wait="live").add_node("d", lambda state: {}, destinations=["c"], defer=True)
    text = builder.add_edge("a", "d").compile().get_graph().draw_mermaid()
    for line in (
        'n0___start__ -.->|"True"| n1_a;',
        "n1_a ==> n3_c;",
        'n4_d{{"d"}};',
        "n4_d -.-> n3_c;",
        "n3_c --> n5___end__;",
    ):
        assert f"\t{line}\n" in text
