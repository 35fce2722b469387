"""The forms in which edges are written, and what of them can't mean anything."""

import pytest

from pregel.graph.workflow import DEFAULT_ROUTE, END, Edge, JoinNode, Workflow, WorkflowConfigurationError, node
from pregel.types import START as GRAPH_START
from tests.workflow.kit import run


def a(node_input=None):
    return "a"


def b(node_input=None):
    return "b"


def c(node_input=None):
    return "c"


def d(node_input=None):
    return node_input


def links(*edges):
    """The edges of a workflow as triples."""
    return [tuple(link) for link in Workflow("w", list(edges)).edges.links]


def test_a_chain_is_an_edge_from_each_element_to_the_next():
    assert links(("START", a, b, c)) == [("START", "a", None), ("a", "b", None), ("b", "c", None)]


def test_a_list_is_a_chain_too():
    assert links(["START", a, b]) == links(("START", a, b))


def test_a_fan_out_is_the_cross_product():
    assert links(("START", a, (b, c), d)) == [
        ("START", "a", None),
        ("a", "b", None),
        ("a", "c", None),
        ("b", "d", None),
        ("c", "d", None),
    ]


def test_a_fan_out_leads_to_a_fan_out():
    assert [link[:2] for link in links(("START", (a, b), (c, d)))] == [
        ("START", "a"),
        ("START", "b"),
        ("a", "c"),
        ("a", "d"),
        ("b", "c"),
        ("b", "d"),
    ]


def test_a_routing_map_leads_by_routes_and_what_follows_it_comes_after_all_targets():
    assert links(("START", a, {"x": b, "y": c}, d)) == [
        ("START", "a", None),
        ("a", "b", "x"),
        ("a", "c", "y"),
        ("b", "d", None),
        ("c", "d", None),
    ]


def test_a_route_leads_to_several():
    assert links(("START", a, {"x": (b, c)})) == [("START", "a", None), ("a", "b", "x"), ("a", "c", "x")]


def test_an_edge_by_itself():
    assert links(Edge("START", a), Edge(a, b, route="x"), Edge(a, c, route=["y", "z"]), Edge(a, d)) == [
        ("START", "a", None),
        ("a", "b", "x"),
        ("a", "c", "y"),
        ("a", "c", "z"),
        ("a", "d", None),
    ]


def test_true_and_one_are_two_routes():
    assert links(("START", a, {True: b, "1": d}), Edge(a, c, route=1))[1:] == [
        ("a", "b", True),
        ("a", "d", "1"),
        ("a", "c", 1),
    ]


def test_chains_share_their_nodes():
    assert links(("START", a, b), (a, c), (b, d)) == [
        ("START", "a", None),
        ("a", "b", None),
        ("a", "c", None),
        ("b", "d", None),
    ]


def test_the_same_edge_twice_is_one():
    assert links(("START", a, b), ("START", a, c))[0] == ("START", "a", None)
    assert len(links(("START", a, b), ("START", a, c))) == 3


def test_a_function_that_comes_again_in_a_chain_is_another_node():
    assert list(Workflow("w", [("START", a, a, b, a)]).edges.nodes) == ["a", "a_2", "b", "a_3"]


def test_a_function_in_another_chain_is_the_same_node():
    assert list(Workflow("w", [("START", a, b), (b, c), (c, d)]).edges.nodes) == ["a", "b", "c", "d"]


def test_a_target_of_a_map_is_the_node_that_there_is():
    assert links(("START", a, b, {"again": a, "on": c}))[2:] == [("b", "a", "again"), ("b", "c", "on")]


def test_lambdas_are_numbered():
    assert list(Workflow("w", [("START", lambda: 1, lambda: 2)]).edges.nodes) == ["lambda_1", "lambda_2"]


def test_a_node_with_a_name_is_the_same_node_wherever_it_stands():
    named = node(a, name="first")
    assert links(("START", named, b), (named, c)) == [
        ("START", "first", None),
        ("first", "b", None),
        ("first", "c", None),
    ]


def test_a_path_can_end_at_the_end(door):
    workflow = Workflow("w", [("START", a, END)])
    assert run(door, workflow)["output"] == "a"


def test_the_graph_has_the_edges_of_the_workflow():
    graph = Workflow("w", [("START", a, {"x": b, DEFAULT_ROUTE: c}, d)]).compile().get_graph()
    kinds = {(source, target): data["kind"] for source, target, data in graph.edges(data=True)}
    assert kinds[GRAPH_START, "a"] == "static"
    assert kinds["a", "b"] == kinds["a", "c"] == "conditional"
    assert kinds["b", "d"] == "static"


JOIN = JoinNode("join", wait="all")


@pytest.mark.parametrize(
    ("edges", "says"),
    [
        ([], "has no edges"),
        ("START", "edges takes a list"),
        ([a], "is no edge: give a chain"),
        ([("START",)], "takes two elements at least"),
        ([("START", a, {})], "a routing map is empty"),
        ([("START", {"x": a})], "by no route"),
        ([({"x": a}, b)], "follows no node"),
        ([("START", a, {"x": b}, {"y": c})], "follows no node"),
        ([("START", a, {1.5: b})], "a route is a bool, an int or a text, not 1.5"),
        ([("START", a, {None: b})], "a route is a bool, an int or a text, not None"),
        ([("START", a, ())], "a fan-out is empty"),
        ([("START", a, (b, (c, d)))], "stands inside a fan-out"),
        ([("START", a, "STRAT")], "nodes are given as they are, not by name"),
        ([("STRAT", a)], "Did you mean 'START'?"),
        ([("START", a, "START")], "leads into START"),
        ([("START", a, END, b)], "leads out of END"),
        ([("START", END)], "from START leads to a node"),
        ([("START", 7)], "is nothing to run"),
        ([("START", dict)], "is nothing to run"),
        ([("START", a), (b, c)], "no edges lead from START to 'b', 'c'"),
        ([("START", a, b), (b, a)], "are a loop in which no edge has a route"),
        ([("START", a), Edge(a, a)], "are a loop in which no edge has a route"),
        ([("START", a, b), Edge(a, b, route="x")], "is there with a route and without one"),
        ([("START", a), Edge(a, b, route="x"), (a, b)], "is there with a route and without one"),
        ([("START", a), Edge(a, b, route=["x", DEFAULT_ROUTE])], "DEFAULT_ROUTE stands by itself"),
        ([("START", a), Edge(a, b, route=[])], "an empty list of routes"),
        ([("START", a, node(b, name="a"))], "two nodes named 'a'"),
        ([("START", a, {"x": JOIN})], "by a route, which need not be taken"),
        ([("START", JOIN)], "before anything runs"),
    ],
)
def test_edges_that_cannot_mean_anything(edges, says):
    with pytest.raises(WorkflowConfigurationError) as caught:
        Workflow("w", edges)
    assert says in str(caught.value)
    assert "workflow 'w'" in str(caught.value)


@pytest.mark.parametrize("name", ["", "__a", "a:b", "a|b", "a/b", "a@b", "START", "END", "user"])
def test_a_node_cannot_have_that_name(name):
    with pytest.raises(WorkflowConfigurationError, match="can't be named"):
        Workflow("w", [("START", node(a, name=name) if name else JoinNode(name))])


def test_a_workflow_cannot_have_that_name():
    with pytest.raises(WorkflowConfigurationError, match="a workflow can't be named 'a/b'"):
        Workflow("a/b", [("START", a)])


def test_what_has_no_name_asks_for_one():
    class Callable:
        def __call__(self):
            return 1

    with pytest.raises(WorkflowConfigurationError, match="has no name: give it one"):
        Workflow("w", [("START", Callable())])
    assert list(Workflow("w", [("START", node(Callable(), name="called"))]).edges.nodes) == ["called"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"parameter_binding": "stat"}, "Did you mean 'state'?"),
        ({"max_parallel_workers": 2}, "is no parallel_worker"),
        ({"max_parallel_workers": 0, "parallel_worker": True}, "whole number of at least 1"),
        ({"parallel_worker": True, "rerun_on_resume": True}, "its items ask by pregel.interrupt()"),
        ({"timeout": -1}, "timeout"),
        ({"retry": 3}, "retry"),
    ],
)
def test_options_of_a_node_that_cannot_be(options, says):
    with pytest.raises(WorkflowConfigurationError) as caught:
        node(a, **options)
    assert says in str(caught.value)


def test_a_join_waits_for_all_or_for_those_that_come():
    with pytest.raises(WorkflowConfigurationError, match="'live' or 'all', not 'any'"):
        JoinNode("j", wait="any")
    with pytest.raises(WorkflowConfigurationError, match="takes a function"):
        node(JOIN)


def test_the_start_of_other_graphs_is_the_start_of_workflows_too():
    assert links((GRAPH_START, a), Edge(GRAPH_START, b)) == links(("START", a), Edge("START", b))
