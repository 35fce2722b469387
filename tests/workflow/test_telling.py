"""What a node tells: its writes in order, its events, and those who read along."""

import pytest

from pregel import InMemorySaver
from pregel.graph.workflow import (
    NO_OUTPUT,
    Event,
    EventActions,
    Workflow,
    WorkflowDataError,
)
from tests.workflow.kit import events, run, thread


def show(node_input):
    return [node_input]


def test_writes_count_in_the_order_in_which_they_are_made(door):
    def context_first(ctx):
        ctx.state["k"] = "a"
        yield Event(state={"k": "b"})

    def event_first(ctx):
        yield Event(state={"k": "b"})
        ctx.state["k"] = "a"

    assert run(door, Workflow("w", [("START", context_first)]))["state"] == {"k": "b"}
    assert run(door, Workflow("w", [("START", event_first)]))["state"] == {"k": "a"}


def test_a_generator_sees_what_it_has_told(door):
    def tells(ctx):
        before = ctx.state.get("k")
        yield Event(state={"k": "v"})
        yield [before, ctx.state["k"]]

    assert run(door, Workflow("w", [("START", tells)]))["output"] == [None, "v"]


def test_each_event_has_the_changes_since_the_one_before(door):
    def tells(ctx):
        ctx.state["a"] = 1
        yield Event(content="first")
        yield Event(state={"b": 2})
        ctx.state["a"] = 3
        del ctx.state["b"]
        yield "out"
        ctx.state["c"] = 4

    graph = Workflow("w", [("START", tells)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0}, thread())["state"] == {"a": 3, "c": 4}
    told = events(graph)
    assert [(event.content, event.output, event.actions.state_delta, event.actions.deleted) for event in told] == [
        ("first", NO_OUTPUT, {"a": 1}, []),
        (None, NO_OUTPUT, {"b": 2}, []),
        (None, "out", {"a": 3}, ["b"]),
        (None, NO_OUTPUT, {"c": 4}, []),
    ]


def test_a_key_can_be_deleted(door):
    def deletes(ctx):
        del ctx.state["a"]
        assert "a" not in ctx.state
        return sorted(ctx.state)

    graph = Workflow("w", [("START", deletes)]).compile(InMemorySaver())
    result = door.invoke(graph, {"node_input": 0, "state": {"a": 1, "b": 2}}, thread())
    assert result == {"output": ["b"], "state": {"b": 2}}

    def by_event():
        return Event(actions=EventActions(deleted=["a"]))

    assert run(door, Workflow("w", [("START", by_event)]), state={"a": 1})["state"] == {}


def test_a_node_that_tells_nothing_has_no_event(door):
    def silent():
        return None

    graph = Workflow("w", [("START", silent, show)]).compile(InMemorySaver())
    door.invoke(graph, {"node_input": 0}, thread())
    assert [event.path for event in events(graph)] == ["w@1/show@1"]


def test_a_route_without_an_event_has_one_of_its_own(door):
    def chooses(ctx):
        yield Event(content="hello")
        ctx.route = "x"

    graph = Workflow("w", [("START", chooses, {"x": show})]).compile(InMemorySaver())
    door.invoke(graph, {"node_input": 0}, thread())
    assert [(event.content, event.actions.route) for event in events(graph)] == [
        ("hello", None),
        (None, "x"),
        (None, None),
    ]


def test_partial_events_come_at_once_and_are_kept_nowhere(door):
    def streams():
        yield Event(content="a", partial=True)
        yield Event(content="b", partial=True)
        yield "ab"

    graph = Workflow("w", [("START", streams)]).compile(InMemorySaver())
    parts = door.stream(graph, {"node_input": 0}, thread(), stream_mode="custom")
    assert [(part.content, part.author, part.path, part.step, part.partial) for part in parts] == [
        ("a", "w", "w@1/streams@1", 1, True),
        ("b", "w", "w@1/streams@1", 1, True),
    ]
    assert [event.output for event in events(graph)] == ["ab"]


@pytest.mark.parametrize("more", [{"state": {"a": 1}}, {"output": 1}, {"route": "x"}])
def test_a_partial_event_has_content_only(door, more):
    def streams():
        yield Event(content="a", partial=True, **more)

    with pytest.raises(WorkflowDataError, match="a partial event with a state, an output or a route"):
        run(door, Workflow("w", [("START", streams)]))


def test_a_coroutine_that_nobody_awaits_is_an_error(door):
    async def coroutine():
        return 1

    def forgot():
        return coroutine()

    with pytest.raises(WorkflowDataError, match="declare its function with `async def`"):
        run(door, Workflow("w", [("START", forgot)]))
