"""Sessions whose workflow has changed since, and workflows that share an app."""

import operator
from typing import Annotated, TypedDict

import pytest

from pregel.errors import GraphChangedError
from pregel.graph.workflow import JoinNode, Runner, Scope, Sessions, Workflow, node
from pregel.types import Migration


def first(ctx, node_input):
    ctx.state["first"] = node_input
    return node_input


def second(node_input):
    return node_input


def failing(node_input):
    raise ConnectionError("down")


def last(runner, given):
    """The output of the last event of a run."""
    *_, event = runner.run(given, session_id="s")
    return event.output


def failed(sessions, *chain):
    with pytest.raises(ConnectionError):
        list(Runner(Workflow("w", [("START", *chain)]), sessions=sessions).run("in", session_id="s"))


def test_a_node_that_is_renamed_keeps_its_output():
    sessions = Sessions()
    failed(sessions, first, node(failing, name="second"))
    changed = Workflow("w", [("START", node(first, name="begin"), node(second, name="end"))])
    with pytest.raises(GraphChangedError, match="Did you mean '@out/begin'") as caught:
        list(Runner(changed, sessions=sessions).run(None, session_id="s"))
    assert "A Runner is told by migrations= too" in caught.value.__notes__[-1]
    moved = Migration(nodes={"first": "begin", "second": "end"})
    assert last(Runner(changed, sessions=sessions, migrations=moved), None) == "in"


def test_a_join_knows_renamed_nodes():
    sessions = Sessions()
    failed(
        sessions, first, (node(second, name="a"), node(second, name="b")), JoinNode("join"), node(failing, name="end")
    )
    sides = (node(second, name="left"), node(second, name="b"))
    changed = Workflow("w", [("START", first, sides, JoinNode("gather"), node(second, name="end"))])
    moved = [Migration(nodes={"a": "left", "join": "gather"})]
    assert last(Runner(changed, sessions=sessions, migrations=moved), None) == {"a": "in", "b": "in"}
    assert last(Runner(changed, sessions=sessions, migrations=moved), "again") == {"left": "again", "b": "again"}


def test_what_is_stored_of_a_node_that_is_gone_is_dropped():
    sessions = Sessions()
    list(Runner(Workflow("w", [("START", first, second)]), sessions=sessions).run("in", session_id="s"))
    changed = Workflow("w", [("START", second)])
    with pytest.raises(GraphChangedError, match="'@out/first'"):
        list(Runner(changed, sessions=sessions).run("more", session_id="s"))
    assert last(Runner(changed, sessions=sessions, migrations=Migration()), "more") == "more"
    assert sessions.get("app", "user", "s").state == {"first": "in"}


def test_a_migration_converts_the_state_too():
    sessions = Sessions()
    list(Runner(Workflow("w", [("START", first)]), sessions=sessions).run("in", session_id="s"))

    def convert(values):
        return {**values, "state": {"begun": values["state"]["first"]}}

    changed = Workflow("w", [("START", node(lambda begun: begun, name="only"))])
    assert last(Runner(changed, sessions=sessions, migrations=Migration(state=convert)), "more") == "in"


class Counting(TypedDict, total=False):
    count: Annotated[int, operator.add, Scope("user")]


def test_two_workflows_of_one_app_share_keys_each_by_its_own_schema():
    def add(ctx):
        ctx.state["count"] = 1

    def read(ctx):
        return ctx.state.get("user:count")

    sessions = Sessions()
    adding = Runner(Workflow("adding", [("START", add)], Counting), sessions=sessions)
    reading = Runner(Workflow("reading", [("START", read)]), sessions=sessions)
    for _ in range(3):
        list(adding.run("go", session_id="adds"))
    assert last(reading, "go") == 3
