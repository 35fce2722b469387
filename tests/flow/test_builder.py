"""What is added to a flow graph, and what is found wrong with it before anything runs."""

import pytest

from pregel import END
from pregel.graph.agent import ScriptedModel, create_agent
from pregel.graph.flow import FlowContext, FlowDefinitionError, FlowGraph
from tests.flow.running import nodes, run


def test_a_graph_that_is_changed_is_compiled_anew(door):
    graph = FlowGraph("g").add_activity("a", lambda ctx: None)
    ctx = FlowContext()
    run(door, graph, ctx)
    graph.link("a", "b").add_activity("b", lambda ctx: None)
    run(door, graph, ctx)
    assert nodes(ctx) == ["a", "a", "b"]


def test_links_to_unknown_nodes_are_found_at_build():
    graph = FlowGraph("g").add_activity("load", print, to="shcek").add_activity("check", print)
    with pytest.raises(FlowDefinitionError, match=r"activity 'load' of graph 'g' leads to 'shcek'.*'check'"):
        graph.compile()
    with pytest.raises(FlowDefinitionError, match=r"names 'laod', which is no node. Did you mean 'load'"):
        graph.link("laod", "check")


def test_unreachable_nodes_are_found_at_build():
    graph = FlowGraph("g").add_activity("a", print).add_activity("b", print, to="c").add_activity("c", print)
    with pytest.raises(FlowDefinitionError, match=r"nothing in graph 'g' leads to 'b', 'c' from 'a'"):
        graph.compile()


def test_a_graph_without_nodes_and_a_gateway_without_links_are_found_at_build():
    with pytest.raises(FlowDefinitionError, match=r"no nodes"):
        FlowGraph("g").compile()
    with pytest.raises(FlowDefinitionError, match=r"parallel gateway 'p' of graph 'g' leads nowhere"):
        FlowGraph("g").add_parallel("p").compile()
    with pytest.raises(FlowDefinitionError, match=r"leads nowhere"):
        FlowGraph("g").add_exclusive("x", [])


def test_what_cannot_be_added_is_refused_at_once():
    graph = FlowGraph("g").add_activity("a", print, to="b").add_exclusive("x", [(bool, "a")])
    graph.add_loop("l", over="o", item="i", body="a", to="b")
    for wrong, message in (
        (lambda: graph.add_activity("a", print), "has a node 'a' already"),
        (lambda: graph.add_activity("b", 5), "is a function"),
        (lambda: graph.add_activity("b", lambda: None), "neither"),
        (lambda: graph.add_activity("b", lambda ctx, node, more: None), "neither"),
        (lambda: graph.add_activity("@b", print), "'@' is the engine's"),
        (lambda: graph.add_activity("__b", print), "two underscores"),
        (lambda: graph.add_activity("b", print, reads="key"), "lists of keys"),
        (lambda: graph.add_parallel("p", "a"), "list of nodes"),
        (lambda: graph.add_agent(print), "another AgentPart, not <built-in function print>$"),
        (lambda: graph.link("a", "c"), "leads to 'b' already"),
        (lambda: graph.link("l", "c"), "leads to 'b' already"),
        (lambda: graph.link("x", "c"), "has routes"),
        (lambda: FlowGraph("a/b"), "'/'"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_links_may_be_added_one_by_one(door):
    graph = FlowGraph("g").add_activity("a", lambda ctx: None).add_parallel("p")
    graph.add_activity("b", lambda ctx: None).add_activity("c", lambda ctx: None)
    graph.add_loop("l", over=lambda ctx: [1], item="i", body="d").add_activity("d", lambda ctx: None, to="l")
    graph.add_activity("e", lambda ctx: None)
    for source, target in (("a", "p"), ("p", "b"), ("p", "c"), ("b", "l"), ("l", "e"), ("e", END)):
        graph.link(source, target)
    ctx = FlowContext()
    run(door, graph, ctx)
    assert nodes(ctx) == ["a", "p", "b", "c", "l", "d", "l", "e"]


def test_a_graph_may_not_be_named_as_what_a_context_keeps_beside():
    with pytest.raises(FlowDefinitionError, match=r"'@context': '@' is the engine's"):
        FlowGraph("@context")


def test_the_graph_of_an_agent_is_no_agent_and_what_makes_one_is_named():
    with pytest.raises(
        FlowDefinitionError, match=r"add_agent of graph 'g' takes a SimpleAgent.*create_agent.*SimpleAgent\(mod"
    ):
        FlowGraph("g").add_agent(create_agent(ScriptedModel([]), name="risk"))
