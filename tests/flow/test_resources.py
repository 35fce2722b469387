"""Resources: what a run needs and no snapshot holds is asked for before anything runs."""

import json

import pytest

from pregel import interrupt
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow.agents import SimpleAgent
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import FlowDefinitionError, MissingResourceError
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.resources import Resource
from tests.flow.running import resume, run


class Database(dict):
    """A connection."""


class Remote(Database):
    """A connection to another machine."""


def loading(ran=None):
    """A graph whose second activity loads an order, after somebody was asked which."""

    def ask(ctx):
        if ran is not None:
            ran.append("ask")
        ctx["order.id"] = interrupt("which?")

    def load(ctx):
        ctx["order"] = ctx.resource("db")[ctx["order.id"]]

    return (
        FlowGraph("g")
        .add_activity("ask", ask, to="load")
        .add_activity("load", load, resources=[Resource("db", Database)], to="risk")
        .add_agent(SimpleAgent(Resource("model"), name="risk", instruction="#{order}", output_key="risk"))
    )


def test_an_activity_finds_what_it_has_declared_also_in_a_run_that_goes_on_from_a_text(door):
    given = {"db": Database(a="Order A"), "model": ScriptedModel(["low"]), "other": object()}
    ctx = FlowContext("job")
    run(door, loading(), ctx, resources=given)
    text = ctx.to_json()
    assert json.loads(text)["resources"] == ["db", "model"]
    restored = FlowContext.from_json(text)
    resume(door, loading(), restored, "a", resources=given)
    assert restored["risk"] == "low"
    assert given["model"].calls[0].messages[0].text == "Order A"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, r"needs 'db' \(Database\), 'model' \(object\)"),
        ({"model": 1}, r"needs 'db' \(Database\):"),
        ({"model": 1, "db": {}}, r"needs 'db' \(Database, not \{\} \(dict\)\):"),
    ],
)
def test_all_that_is_missing_or_of_another_type_is_told_and_nothing_runs(given, why, door):
    ran = []
    with pytest.raises(MissingResourceError, match=why):
        run(door, loading(ran), FlowContext(), resources=given)
    assert ran == []


def test_what_was_not_declared_is_not_found_although_it_was_given(door):
    graph = FlowGraph("g").add_activity("a", lambda ctx: ctx.resource("data"), resources=[Resource("date")])
    with pytest.raises(MissingResourceError, match=r"node 'a' .*asks for the resource 'data'.*Did you mean 'date'"):
        run(door, graph, FlowContext(), resources={"data": 1, "date": 2})
    with pytest.raises(MissingResourceError, match="context 'job'"):
        FlowContext("job").resource("date")


def needing(*types):
    """A graph whose activities need one name to be of these types."""
    graph = FlowGraph("g")
    for place, kind in enumerate(types):
        graph.add_activity(str(place), lambda _: None, resources=[Resource("db", kind)])
    return graph


def test_of_two_types_of_one_name_the_narrower_one_counts():
    assert needing(Database, Remote).resources() == needing(Remote, Database).resources() == {"db": Remote}
    assert needing(object, Database).resources() == {"db": Database}
    with pytest.raises(FlowDefinitionError, match=r"activity '1' .* to be a int, and another node .* a Database"):
        needing(Database, int).resources()


def test_what_is_no_resource_is_refused_when_it_is_added():
    with pytest.raises(FlowDefinitionError, match="activity 'a' of graph 'g': resources takes a list"):
        FlowGraph("g").add_activity("a", lambda _: None, resources=["db"])


def two_models(second):
    """An agent, then a node, then an agent: each agent has a model of its own."""
    graph = FlowGraph("g")
    graph.add_agent(SimpleAgent(Resource("first"), name="one", instruction="?", output_key="one"), to="ask")
    graph.add_activity("ask", second, to="two")
    return graph.add_agent(SimpleAgent(Resource("second"), name="two", instruction="?", output_key="two"))


def paused(ctx):
    ctx["ok"] = interrupt("ok?")


@pytest.mark.parametrize("carried", [False, True])
def test_a_run_that_goes_on_needs_what_may_still_run_and_no_more(carried, door):
    ctx = FlowContext()
    run(door, two_models(paused), ctx, resources={"first": ScriptedModel(["a"]), "second": None})
    text = ctx.to_json()
    assert json.loads(text)["resources"] == ["second"]
    ctx = FlowContext.from_json(text) if carried else ctx
    with pytest.raises(MissingResourceError, match=r"graph 'g' needs 'second' \(object\): "):
        resume(door, two_models(paused), ctx, "yes")
    assert ctx.cursor(two_models(paused)).pending  # the answer was not taken
    assert resume(door, two_models(paused), ctx, "yes", resources={"second": ScriptedModel(["b"])}).status == "finished"
    assert dict(ctx) == {"one": "a", "ok": "yes", "two": "b"}


def test_what_a_failed_run_still_needs_is_what_was_due(door):
    def failing(_):
        raise RuntimeError

    ctx = FlowContext()
    with pytest.raises(RuntimeError):
        run(door, two_models(failing), ctx, resources={"first": ScriptedModel(["a"]), "second": None})
    assert json.loads(ctx.to_json())["resources"] == ["second"]
    resume(door, two_models(lambda ctx: None), ctx, resources={"second": ScriptedModel(["b"])})
    assert ctx["two"] == "b"


def test_what_follows_a_branch_that_has_ended_beside_one_that_waits_is_still_needed(door):
    def graph():
        made = FlowGraph("g").add_parallel("fork", ["done", "ask"]).add_activity("ask", paused)
        made.add_activity("done", lambda _: None, resources=[Resource("first")], to="after")
        return made.add_activity(
            "after", lambda ctx: ctx.update(got=ctx.resource("second")), resources=[Resource("second")]
        )

    ctx = FlowContext()
    run(door, graph(), ctx, resources={"first": 1, "second": 2})
    with pytest.raises(MissingResourceError, match=r"needs 'second' \(object\):"):
        resume(door, graph(), ctx, "yes")
    assert resume(door, graph(), ctx, "yes", resources={"second": 2}).status == "finished"


def test_a_loop_that_goes_on_needs_all_of_a_pass_again(door):
    def graph():
        made = FlowGraph("g").add_loop("each", over=lambda _: [1, 2], item="item", body="first", to="end")
        made.add_activity("first", lambda _: None, resources=[Resource("first")], to="last")
        made.add_activity("last", lambda ctx: ctx.stop(), to="each").add_activity("end", lambda _: None)
        return made

    ctx = FlowContext()
    assert run(door, graph(), ctx, resources={"first": 1}).status == "stopped"
    assert ctx.cursor(graph()).next == ("@next/each",)
    with pytest.raises(MissingResourceError, match=r"needs 'first'"):
        resume(door, graph(), ctx)
    assert resume(door, graph(), ctx, resources={"first": 1}).status == "stopped"
