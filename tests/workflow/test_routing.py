"""Which edges are taken: routes, loops, and what a node gets from those that led to it."""

from enum import IntEnum, StrEnum

import pytest

from pregel import InMemorySaver
from pregel.errors import GraphRecursionError
from pregel.graph.workflow import DEFAULT_ROUTE, END, Edge, Event, Workflow, WorkflowDataError
from tests.workflow.kit import outputs, run, thread


def choose(ctx, node_input):
    ctx.route = node_input
    return "chosen"


def left(node_input):
    return f"left of {node_input}"


def right(node_input):
    return f"right of {node_input}"


def other(node_input):
    return f"other than {node_input}"


ROUTED = Workflow("routed", [("START", choose, {"l": left, "r": right, DEFAULT_ROUTE: other})])


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("l", {"left": "left of chosen"}),
        ("r", {"right": "right of chosen"}),
        (["l", "r"], {"left": "left of chosen", "right": "right of chosen"}),
        ("?", {"other": "other than chosen"}),
        (None, {"other": "other than chosen"}),
        (["l", "?"], {"left": "left of chosen"}),
    ],
)
def test_a_route_takes_its_edges_and_the_default_those_that_match_nothing(door, route, expected):
    assert run(door, ROUTED, route)["output"] == expected


def test_an_event_takes_a_route(door):
    def choose(node_input):
        return Event(output="by event", route="r")

    assert run(door, Workflow("w", [("START", choose, {"l": left, "r": right})]))["output"] == {
        "right": "right of by event"
    }


def test_the_last_route_counts(door):
    def choose(ctx):
        ctx.route = "l"
        yield Event(route="r", output=1)
        ctx.route = "l"

    assert run(door, Workflow("w", [("START", choose, {"l": left, "r": right})]))["output"] == {"left": "left of 1"}


def test_a_route_that_no_edge_has_is_an_error(door):
    workflow = Workflow("w", [("START", choose, {"left": left, "right": right})])
    with pytest.raises(WorkflowDataError) as caught:
        run(door, workflow, "rihgt")
    message = str(caught.value)
    assert "node 'choose' of workflow 'w' took the route 'rihgt'" in message
    assert "Did you mean 'right'?" in message
    assert "Routes: 'left' (str), 'right' (str)" in message


def test_to_take_no_route_where_all_edges_have_one_is_an_error(door):
    workflow = Workflow("w", [("START", choose, {"left": left, "right": right})])
    with pytest.raises(WorkflowDataError, match="took no route, and all its edges have one"):
        run(door, workflow, None)


def test_a_route_of_a_node_without_routed_edges_is_an_error(door):
    with pytest.raises(WorkflowDataError, match=r"took the route 'x'.*Routes: none"):
        run(door, Workflow("w", [("START", choose, left)]), "x")


def test_true_is_not_one(door):
    workflow = Workflow("w", [("START", choose, {1: left, "1": right}), Edge(choose, other, route=True)])
    assert run(door, workflow, True)["output"] == {"other": "other than chosen"}
    assert run(door, workflow, 1)["output"] == {"left": "left of chosen"}
    assert run(door, workflow, "1")["output"] == {"right": "right of chosen"}
    with pytest.raises(WorkflowDataError, match="took the route False"):
        run(door, workflow, False)


def test_edges_without_a_route_are_taken_beside_those_with_one(door):
    workflow = Workflow("w", [("START", choose, {"l": left}), (choose, right)])
    assert run(door, workflow, "l")["output"] == {"left": "left of chosen", "right": "right of chosen"}
    assert run(door, workflow, None)["output"] == {"right": "right of chosen"}


def test_a_path_that_ends_by_a_route_gives_an_output(door):
    workflow = Workflow("w", [("START", choose, {"stop": END, "on": left})])
    assert run(door, workflow, "stop")["output"] == {"choose": "chosen"}
    assert run(door, workflow, "on")["output"] == {"left": "left of chosen"}


def test_a_loop_goes_on_until_its_route_is_left(door):
    def count(ctx, node_input):
        ctx.state["seen"] = [*ctx.state.get("seen", []), node_input]
        ctx.route = "again" if node_input < 3 else "done"
        return node_input + 1

    workflow = Workflow("w", [("START", count, {"again": count, "done": left})])
    result = run(door, workflow, 0)
    assert result == {"output": "left of 4", "state": {"seen": [0, 1, 2, 3]}}


def test_the_runs_of_a_loop_are_numbered_in_each_turn(door):
    def count(ctx, node_input):
        ctx.route = "again" if node_input < 2 else "done"
        return node_input + 1

    graph = Workflow("w", [("START", count, {"again": count, "done": END})]).compile(InMemorySaver())
    for _ in range(2):
        assert door.invoke(graph, {"node_input": 0}, thread())["output"] == 3
    assert outputs(graph) == [("count@1", 1), ("count@2", 2), ("count@3", 3)] * 2


def test_a_loop_that_is_never_left_ends_with_an_error(door):
    def again(ctx):
        ctx.route = "again"

    graph = Workflow("w", [("START", again, {"again": again, "done": END})]).compile()
    with pytest.raises(GraphRecursionError):
        door.invoke(graph, {"node_input": 0}, {"recursion_limit": 5})


def test_a_loop_over_two_nodes_gives_each_the_output_of_the_other(door):
    def ping(node_input):
        return [*node_input, "ping"]

    def pong(ctx, node_input):
        ctx.route = "on" if len(node_input) < 4 else "end"
        return [*node_input, "pong"]

    workflow = Workflow("w", [("START", ping, pong, {"on": ping, "end": END})])
    assert run(door, workflow, [])["output"] == ["ping", "pong"] * 3


def test_each_of_several_last_nodes_has_a_place_in_the_output(door):
    def left():
        return None

    def right():
        return Event(output=None)

    assert run(door, Workflow("w", [("START", (left, right))]))["output"] == {"right": None}


def test_an_output_of_an_earlier_turn_is_not_shown_again(door):
    def sometimes(node_input):
        return node_input

    graph = Workflow("w", [("START", sometimes)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": "first"}, thread())["output"] == "first"
    assert "output" not in door.invoke(graph, {"node_input": None}, thread())


class Kind(StrEnum):
    LEFT = "l"


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(("key", "route"), [(Kind.LEFT, "l"), ("l", Kind.LEFT), (Number.ONE, 1), (1, [Number.ONE])])
def test_members_of_enums_of_texts_and_numbers_are_their_values(door, saver, key, route):
    def pick(ctx):
        ctx.route = route

    graph = Workflow("w", [("START", pick, {key: right})]).compile(saver)
    assert door.invoke(graph, {}, thread())["output"] == "right of None"


def test_a_number_of_an_enum_is_not_true(door):
    def pick(ctx):
        ctx.route = Number.ONE

    with pytest.raises(WorkflowDataError, match="took the route 1"):
        run(door, Workflow("w", [("START", pick, {True: right})]))
