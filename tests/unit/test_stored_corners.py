"""Stored runs in the corners: what a careful look at the public API has found to go wrong once."""

import operator
from typing import Annotated, TypedDict

import pytest

from pregel import END, START, Command, InMemorySaver, NodeBuilder, Pregel, SqliteSaver, StateGraph, interrupt
from pregel.channels import EphemeralValue, LastValue
from pregel.checkpoint.postgres import PostgresSaver
from pregel.errors import (
    GraphRecursionError,
    InvalidConfigError,
    InvalidUpdateError,
    NodeInputError,
    OutsideTaskError,
)
from pregel.types import GroupCommit, StateUpdate

THREAD = {"configurable": {"thread_id": "t"}}
DURABILITIES = ["sync", "exit"]


class State(TypedDict, total=False):
    x: int
    log: Annotated[list, operator.add]


def asks(what):
    return lambda state: {"log": [f"{what} {interrupt(what)}"]}


def says(what):
    return lambda state: {"log": [what]}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
        return
    if request.param == "sqlite":
        opened = SqliteSaver(tmp_path / "runs.sqlite")
    else:
        opened = PostgresSaver(request.getfixturevalue("postgres"))
    with opened:
        yield opened


def test_a_fork_whose_first_superstep_runs_graphs_side_by_side_opens_one_branch(door, saver):
    def child(name):
        return StateGraph(State).add_node(name, says(name)).add_edge(START, name).compile(name=name)

    builder = StateGraph(State)
    for name in "abcd":
        builder.add_node(name, child(f"{name}1")).add_edge(START, name)
    graph = builder.compile(saver)
    door.invoke(graph, {"log": ["in"]}, THREAD)
    first = list(graph.get_state_history(THREAD))[-1].config
    for branch in range(1, 6):
        assert door.invoke(graph, None, first) == {"log": ["in", "a1", "b1", "c1", "d1"]}
        assert graph.get_state(THREAD).config["configurable"]["checkpoint_id"].startswith(f"{branch}.")


def test_a_conditional_edge_of_start_can_not_ask_where_nothing_would_begin_it_again(door):
    builder = StateGraph(State).add_node("a", says("a"))
    inner = builder.add_conditional_edges(START, lambda state: interrupt("where"), ["a"])
    with pytest.raises(OutsideTaskError, match="a conditional edge of START can't ask"):
        door.invoke(inner.compile(InMemorySaver()), {"x": 1}, THREAD)
    outer = StateGraph(State).add_node("inner", inner.compile()).add_edge(START, "inner").compile(InMemorySaver())
    assert door.invoke(outer, {"x": 1}, THREAD)["__interrupt__"][0].value == "where"
    assert door.invoke(outer, Command(resume="a"), THREAD)["log"] == ["a"]


def test_an_update_as_a_node_whose_edge_asks_is_refused_and_changes_nothing():
    builder = StateGraph(State).add_node("z", lambda state: {}).add_node("a", lambda state: {}).add_edge("z", "a")
    builder.add_node("b", lambda state: {}).add_conditional_edges("a", lambda state: interrupt("w"), ["b"])
    graph = builder.add_edge(START, "z").compile(InMemorySaver())
    graph.update_state(THREAD, {"x": 1}, START)
    before = graph.get_state(THREAD)
    updates = [[StateUpdate({"log": [1]}, "z")], [StateUpdate({"log": [2]}, "a")], [StateUpdate({"log": [3]}, "b")]]
    with pytest.raises(InvalidUpdateError, match="updated as node 'a', a conditional edge of which asks"):
        graph.bulk_update_state(THREAD, updates)
    assert graph.get_state(THREAD) == before


def test_an_update_during_a_pause_leaves_what_the_due_task_reads(door):
    class Short(TypedDict, total=False):
        token: Annotated[str, EphemeralValue]
        x: int
        seen: str

    def use(state: Short):
        return {"seen": f"{state.get('token')} {interrupt('q')}"}

    builder = StateGraph(Short).add_node("a", lambda state: {"token": "T"}).add_node("use", use)
    graph = builder.add_edge(START, "a").add_edge("a", "use").compile(InMemorySaver())
    door.invoke(graph, {}, THREAD)
    graph.update_state(THREAD, {"x": 1})
    assert door.invoke(graph, Command(resume="yes", update={"x": 2}), THREAD)["seen"] == "T yes"


def test_an_update_during_a_pause_leaves_the_channel_that_made_a_node_due(door):
    graph = Pregel(
        nodes={"a": NodeBuilder().subscribe_only("n").do(lambda n: (n, interrupt("q"))).write_to("m")},
        channels={"n": EphemeralValue, "m": LastValue, "z": LastValue},
        input_channels=["n"],
        output_channels=["m", "z"],
        checkpointer=InMemorySaver(),
    )
    door.invoke(graph, {"n": 3}, THREAD)
    graph.update_state(THREAD, {"z": 1})
    assert door.invoke(graph, Command(resume=1), THREAD) == {"m": (3, 1), "z": 1}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_graph_inside_that_runs_into_its_limit_goes_on_from_there(door, durability):
    def node(state):
        return Command(update={"log": [1]}, goto="node" if len(state["log"]) < 6 else END)

    inner = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    outer = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")
    graph = outer.compile(InMemorySaver(), durability=durability)
    config = {**THREAD, "recursion_limit": 3}
    for given in ({}, None):
        with pytest.raises(GraphRecursionError):
            door.invoke(graph, given, config)
    assert door.invoke(graph, None, config) == {"log": [1] * 7}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_fork_at_a_pause_does_not_see_the_half_done_run_of_a_graph_with_a_history(door, durability):
    class Inner(TypedDict, total=False):
        x: int
        mine: Annotated[list, operator.add]

    inner = StateGraph(Inner).add_node("c", lambda state: {"mine": ["c"]}).add_edge(START, "c")
    inner = inner.add_node("q", lambda state: {"mine": [interrupt("q")]}).add_edge("c", "q").compile(True)
    outer = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")
    graph = outer.compile(InMemorySaver(), durability=durability)
    door.invoke(graph, {"x": 1}, THREAD)
    paused = graph.get_state(THREAD).config
    door.invoke(graph, Command(resume="A"), THREAD)
    door.invoke(graph, None, paused)
    assert graph.get_state(THREAD, subgraphs=True).tasks[0].state.values["mine"] == ["c"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_graph_inside_that_has_ended_while_a_sibling_waits_is_not_shown_as_paused(door, durability):
    inner = StateGraph(State).add_node("ask", asks("q")).add_edge(START, "ask").compile()
    builder = StateGraph(State).add_node("inner", inner).add_node("p", asks("p"))
    graph = builder.add_edge(START, "inner").add_edge(START, "p").compile(InMemorySaver(), durability=durability)
    first, second = door.invoke(graph, {}, THREAD)["__interrupt__"]
    door.invoke(graph, Command(resume={first.id: "Q"}), THREAD)
    task = graph.get_state(THREAD, subgraphs=True).tasks[0]
    assert (task.result, task.state.next, task.state.interrupts) == ({"log": ["q Q"]}, (), ())
    assert door.invoke(graph, Command(resume={second.id: "P"}), THREAD) == {"log": ["q Q", "p P"]}


def test_a_target_from_outside_is_planned_as_any_other(door):
    builder = StateGraph(State).add_node("a", says("a")).add_node("q", asks("q"))
    builder.add_node("late", says("late"), defer=True).add_edge(START, "a").add_edge("a", "q").add_edge("a", "late")
    graph = builder.compile(InMemorySaver())
    door.invoke(graph, {}, THREAD)
    assert len(door.invoke(graph, Command(goto=["q", "late"]), THREAD)["__interrupt__"]) == 1
    assert door.invoke(graph, Command(resume=1), THREAD) == {"log": ["a", "q 1", "late"]}


def test_a_target_from_outside_needs_no_declaration_in_a_graph_with_a_live_join(door):
    builder = StateGraph(State).add_node("a", asks("a")).add_node("c", says("c")).add_node("j", says("j"))
    builder.add_edge(START, "a").add_edge(START, "c").add_edge(["a", "c"], "j", wait="live")
    graph = builder.compile(InMemorySaver())
    door.invoke(graph, {}, THREAD)
    assert door.invoke(graph, Command(resume=1, goto="c"), THREAD) == {"log": ["a 1", "c", "j"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_answer_is_kept_where_a_sibling_fails_and_the_rest_is_cancelled(durability):
    fails = [True]

    def fragile(state):
        answer = interrupt("n")
        if fails:
            fails.clear()
            raise ValueError
        return {"log": [answer]}

    builder = StateGraph(State).add_node("n", fragile).add_node("m", asks("m"))
    builder.add_edge(START, "n").add_edge(START, "m")
    graph = builder.compile(InMemorySaver(), durability=durability, on_failure="cancel")
    first, second = graph.invoke({}, THREAD)["__interrupt__"]
    with pytest.raises(ValueError):
        graph.invoke(Command(resume={first.id: "N", second.id: "M"}), THREAD)
    assert graph.invoke(None, THREAD) == {"log": ["N", "m M"]}


def test_the_state_of_a_graph_in_a_node_with_a_long_name_can_be_read(door):
    name = "x" * 300
    inner = StateGraph(State).add_node("q", asks("q")).add_edge(START, "q").compile()
    graph = StateGraph(State).add_node(name, inner).add_edge(START, name).compile(InMemorySaver())
    door.invoke(graph, {}, THREAD)
    assert graph.get_state(graph.get_state(THREAD).tasks[0].state).next == ("q",)


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize("bounds", [(NAN, 1), ("a", 1), (1, "a"), (1, NAN), (1, INFINITE), (0, 1)])
def test_bounds_of_group_commits_that_bound_nothing_are_refused(bounds):
    graph = StateGraph(State).add_node("a", says("a")).add_edge(START, "a").compile(InMemorySaver())
    with pytest.raises(InvalidConfigError):
        graph.invoke({}, THREAD, durability=GroupCommit(*bounds))


def test_a_bare_value_that_is_not_there_is_named_without_a_schema():
    graph = Pregel(
        nodes={"a": NodeBuilder().subscribe_only("n").do(lambda n: n).write_to("m")},
        channels={"n": EphemeralValue, "m": LastValue},
        input_channels=["n"],
        output_channels=["m"],
        checkpointer=InMemorySaver(),
    )
    graph.invoke({"n": 1}, THREAD, interrupt_before="*")
    graph.update_state(THREAD, {}, as_node="a")
    assert graph.get_state(THREAD).next == ()
    with pytest.raises(NodeInputError, match="takes a value"):
        graph._network.nodes["a"].view.present({}, "node 'a'")


def test_joins_of_nodes_whose_names_look_like_joins_are_told_apart(door):
    builder = StateGraph(State)
    for name in ("a", "b+c", "a+b", "c", "d"):
        builder.add_node(name, says(name))
    for name in ("a", "c"):
        builder.add_edge(START, name)
    builder.add_edge("a", "b+c").add_edge("c", "a+b").add_edge(["a", "b+c"], "d").add_edge(["a+b", "c"], "d")
    graph = builder.compile(InMemorySaver())
    straight = door.invoke(graph, {}, {"configurable": {"thread_id": "straight"}})
    door.invoke(graph, {}, THREAD, interrupt_after=["a"])
    assert door.invoke(graph, None, THREAD) == straight
