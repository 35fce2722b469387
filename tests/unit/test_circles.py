"""Tasks that would wait for each other for ever: one of them goes past the limit of its node."""

import operator
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import START, Send, StateGraph
from pregel.drivers.limits import Limits
from pregel.node import Code, Node, View
from tests.waiting import finishes


class State(TypedDict):
    log: Annotated[list, operator.add]


@pytest.fixture(params=["sync", "async"])
def calls(request):
    """Each way of a node to run a graph, in turn: makes a node of what it returns and what it runs, if anything."""

    def make(decide):
        def node(state):
            result, graph, given = decide(state)
            if graph is not None:
                graph.invoke(given)
            return {"log": [result]}

        async def anode(state):
            result, graph, given = decide(state)
            if graph is not None:
                await graph.ainvoke(given)
            return {"log": [result]}

        return node if request.param == "sync" else anode

    return make


@pytest.mark.parametrize("names", [("limited", "again"), ("again", "limited")])
@pytest.mark.parametrize("most", [1, 2, None])
def test_a_graph_that_runs_itself_beside_a_limited_node_ends(door, calls, names, most):
    def decide(state):
        return ("end", None, {}) if len(state["log"]) > 1 else ("again", graph, {"log": [*state["log"], "deeper"]})

    nodes = {"limited": calls(lambda state: ("limited", None, {})), "again": calls(decide)}
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, nodes[name], max_concurrency=1 if name == "limited" else None).add_edge(START, name)
    graph = builder.compile()
    assert finishes(lambda: door.invoke(graph, {}, {"max_concurrency": most})) == {"log": [*names]}


@pytest.mark.parametrize("most", [1, 2, None])
def test_two_limited_nodes_that_have_each_other_inside_end(door, calls, most):
    def outer(name, other):
        return lambda state: ("inner", None, {}) if state["log"] else (name, graph, {"log": [other]})

    builder = StateGraph(State)
    for name, other in (("a", "b"), ("b", "a")):
        builder.add_node(name, calls(outer(name, other)), max_concurrency=1)
    builder.add_conditional_edges(START, lambda state: state["log"] or ["a", "b"], ["a", "b"])
    graph = builder.compile()
    assert finishes(lambda: door.invoke(graph, {}, {"max_concurrency": most})) == {"log": ["a", "b"]}


def limited(name):
    return Node(name, 0, Code(name), View(), max_concurrency=1)


def two_at_once():
    """Return the limits of a run and the turns of two tasks that run in it, each of a node that takes one at a time."""
    outermost = Limits(None)
    turns = [outermost.turn(limited(name)) for name in ("a", "b")]
    assert all(turn.ask(print) for turn in turns)
    return outermost, turns


def test_who_closes_a_circle_goes_past_the_gate_of_its_node():
    outermost, (in_a, in_b) = two_at_once()
    b_in_a = Limits(None, outermost, in_a).turn(in_b.node)
    a_in_b = Limits(None, outermost, in_b).turn(in_a.node)
    assert not b_in_a.ask(print)  # it waits for what may still end
    assert a_in_b.ask(print)
    a_in_b.end()
    in_b.end()
    assert b_in_a.left == []
    b_in_a.end()
    in_a.end()
    assert [gate.free for gate in outermost.nodes.values()] == [1, 1]
    assert outermost.waiting == {}


def test_a_limit_holds_as_long_as_somebody_may_end():
    outermost, (in_a, in_b) = two_at_once()
    inside = Limits(None, outermost, in_a)
    waiting = [inside.turn(in_b.node) for _ in range(3)]
    assert not any(turn.ask(print) for turn in waiting)
    in_b.end()
    assert [turn.left == [] for turn in waiting] == [True, False, False]


def test_another_one_in_a_circle_goes_past_where_who_closes_it_waits_for_a_slot():
    outermost = Limits(1)
    node, plain = limited("n"), Node("p", 1, Code("p"), View())
    went = []
    runs, beside = outermost.turn(plain), outermost.turn(node)
    assert runs.ask(print)
    inside = Limits(1, outermost, runs)
    first, second = inside.turn(node), inside.turn(node)
    assert first.ask(print)
    assert not beside.ask(lambda: went.append("beside"))
    assert not second.ask(lambda: went.append("second"))
    first.end()  # now `beside` has its node's gate, and waits for the slot of what waits for `second`
    assert went == ["second"]
    second.end()
    runs.end()
    assert went == ["second", "beside"]
    beside.end()
    assert (outermost.slots.free, outermost.nodes[node].free) == (1, 1)


def test_wide_fan_outs_of_limited_nodes_inside_each_other_end(door):
    async def work(number):
        await anyio.lowlevel.checkpoint()
        return {"log": [number]}

    child = StateGraph(State).add_node("fan", lambda state: {}).add_node("work", work, max_concurrency=2)
    sends = [Send("work", number) for number in range(50)]
    child.add_edge(START, "fan").add_conditional_edges("fan", lambda state: sends, ["work"])
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, child.compile() if name == "c" else (shared := child.compile())).add_edge(START, name)
    graph = builder.add_node("d", shared).add_edge(START, "d").compile()
    result = finishes(lambda: door.invoke(graph, {}, {"max_concurrency": 3}))
    assert result == {"log": [*range(50)] * 4}
