"""What a node gets that several lead to, and when it runs."""

import pytest

from pregel import InMemorySaver
from pregel.errors import StarvedJoinError
from pregel.graph.workflow import DEFAULT_ROUTE, END, Edge, Event, JoinNode, Workflow
from tests.workflow.kit import outputs, run, thread


def one(node_input):
    return 1


def two(node_input):
    return 2


def long(node_input):
    return "long"


def gather(node_input):
    return node_input


def test_a_node_behind_several_runs_once_with_all_they_gave(door):
    graph = Workflow("w", [("START", (one, two), gather)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0}, thread())["output"] == {"one": 1, "two": 2}
    assert [path for path, _ in outputs(graph)] == ["one@1", "two@1", "gather@1"]


def test_branches_of_unequal_length_arrive_together(door):
    workflow = Workflow("w", [("START", one, two, gather), ("START", long, gather)])
    assert run(door, workflow)["output"] == {"two": 2, "long": "long"}


def test_the_input_of_the_run_arrives_by_the_name_of_start(door):
    workflow = Workflow("w", [("START", one, gather), ("START", gather)])
    assert run(door, workflow, "in")["output"] == {"one": 1, "START": "in"}


def test_one_of_several_that_came_gives_its_bare_output(door):
    def choose(ctx, node_input):
        ctx.route = node_input

    workflow = Workflow("w", [("START", choose, {"a": one, "b": two}, gather)])
    assert run(door, workflow, "a")["output"] == 1
    assert run(door, workflow, ["a", "b"])["output"] == {"one": 1, "two": 2}


@pytest.mark.parametrize("wait", ["live", "all"])
def test_a_join_gives_a_dict_by_source(door, wait):
    workflow = Workflow("w", [("START", (one, two, long), JoinNode("join", wait), gather)])
    assert run(door, workflow)["output"] == {"one": 1, "two": 2, "long": "long"}


def test_a_join_gives_none_for_a_source_without_output(door):
    def silent():
        return None

    assert run(door, Workflow("w", [("START", (one, silent), JoinNode("join"))]))["output"] == {
        "one": 1,
        "silent": None,
    }


def test_a_join_does_not_wait_for_what_was_routed_elsewhere(door):
    def choose(ctx, node_input):
        ctx.route = node_input

    workflow = Workflow("w", [("START", choose, {"a": one, "b": two, DEFAULT_ROUTE: END}, JoinNode("join"))])
    assert run(door, workflow, "b")["output"] == {"join": {"two": 2}}


def test_a_join_for_all_says_that_it_starved(door):
    def choose(ctx, node_input):
        ctx.route = node_input

    edges = [("START", choose, {"a": one, "b": two}), ((one, two), JoinNode("join", wait="all"))]
    with pytest.raises(StarvedJoinError, match="two"), pytest.warns(match="may starve"):
        run(door, Workflow("w", edges), "a")


def test_a_join_in_a_loop_fires_once_a_round(door):
    def begin(ctx, node_input):
        ctx.state["rounds"] = ctx.state.get("rounds", 0) + 1
        return ctx.state["rounds"]

    def left(node_input):
        return node_input * 10

    def right(node_input):
        return node_input * 100

    def again(ctx, node_input):
        ctx.route = "again" if ctx.state["rounds"] < 3 else "end"
        return node_input

    join = JoinNode("join")
    graph = Workflow("w", [("START", begin, (left, right), join, again, {"again": begin, "end": END})]).compile(
        InMemorySaver()
    )
    assert door.invoke(graph, {"node_input": 0}, thread())["output"] == {"left": 30, "right": 300}
    assert [output for path, output in outputs(graph) if path.startswith("join")] == [
        {"left": 10, "right": 100},
        {"left": 20, "right": 200},
        {"left": 30, "right": 300},
    ]


def test_a_node_gets_only_what_arrived_since_it_last_ran(door):
    def begin(node_input):
        return "begin"

    def collect(ctx, node_input):
        seen = [*ctx.state.get("seen", []), node_input]
        ctx.state["seen"] = seen
        ctx.route = "more" if len(seen) < 2 else "end"
        return "collected"

    def more(node_input):
        return "more"

    workflow = Workflow("w", [("START", begin, collect, {"more": more, "end": END}), (more, collect)])
    assert run(door, workflow)["state"] == {"seen": ["begin", "more"]}


def test_what_was_routed_elsewhere_does_not_arrive(door):
    def choose(ctx, node_input):
        ctx.route = node_input
        return "chosen"

    workflow = Workflow("w", [("START", choose, {"around": one, "straight": gather}), (one, gather)])
    assert run(door, workflow, "around")["output"] == 1
    assert run(door, workflow, "straight")["output"] == "chosen"
    assert run(door, workflow, ["around", "straight"])["output"] == {"choose": "chosen", "one": 1}


def test_what_was_left_behind_in_an_earlier_turn_does_not_arrive_later(door):
    def first(ctx, node_input):
        ctx.route = node_input
        return f"first of {node_input}"

    def fail(node_input):
        raise RuntimeError("failed")

    def beside(node_input):
        return "beside"

    workflow = Workflow(
        "w",
        [
            ("START", first),
            Edge(first, beside, route="both"),
            Edge(first, long, route="both"),  # while it runs, what `beside` gave is committed and waits
            Edge(first, one, route="one"),
            (long, fail),
            ((beside, fail, one), gather),
        ],
    )
    graph = workflow.compile(InMemorySaver())
    with pytest.raises(RuntimeError, match="failed"):
        door.invoke(graph, {"node_input": "both"}, thread())
    assert door.invoke(graph, {"node_input": "one"}, thread())["output"] == 1


def test_events_stand_in_the_order_of_declaration_whoever_was_first(door):
    from threading import Event as Flag

    released = Flag()

    def slow(node_input):
        released.wait(10)
        return "slow"

    def fast(node_input):
        released.set()
        return "fast"

    graph = Workflow("w", [("START", (slow, fast), gather)]).compile(InMemorySaver())
    result = door.invoke(graph, {"node_input": 0}, thread())
    assert list(result["output"]) == ["slow", "fast"]
    assert [path for path, _ in outputs(graph)] == ["slow@1", "fast@1", "gather@1"]


def test_a_join_can_be_followed_by_routes(door):
    def choose(ctx, node_input):
        ctx.route = "yes" if node_input["one"] else "no"

    workflow = Workflow("w", [("START", (one, two), JoinNode("join"), choose, {"yes": long, "no": gather})])
    assert run(door, workflow)["output"] == {"long": "long"}


def test_a_message_is_no_output(door):
    def told(node_input):
        yield Event(content="hello")

    assert run(door, Workflow("w", [("START", (told, one), gather)]))["output"] == {"told": None, "one": 1}
