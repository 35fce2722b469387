"""Where runs go: edges, joins, conditional edges, commands, packets, and what is wrong with them before a run."""

import operator
import warnings
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel

from pregel import END, START, Command, Overwrite, Runtime, Send, StateGraph
from pregel.channels import EphemeralValue
from pregel.errors import (
    GraphDefinitionError,
    PregelError,
    PregelWarning,
    SchemaError,
    StarvedJoinError,
    UnknownTargetError,
    UnreachableNodeError,
)


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    count: int
    way: str


may_warn = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")
executors = pytest.mark.parametrize("executor", ["inline", "thread"])


def step(name, result=None):
    """Return a node that logs its name."""

    def node(state):
        return {"log": [name], **(result or {})}

    return node


def build(nodes, *edges, schema=State, **options):
    """Return a builder with a logging node for each letter and the edges."""
    builder = StateGraph(schema, **options)
    for name in nodes:
        builder.add_node(name, step(name))
    for edge in edges:
        builder.add_edge(*edge)
    return builder


def log(graph, given=None):
    """Return what ran, superstep by superstep."""
    return graph.invoke(given or {})["log"]


def steps(graph, given=None):
    """Return the log as each superstep left it, cut into the supersteps."""
    states = [state["log"] for state in graph.stream(given or {}, stream_mode="values")]
    return [later[len(earlier) :] for earlier, later in pairwise(states)]


def refused(make, kind, *words):
    """Read the error of a graph that can't be built."""
    with pytest.raises(kind) as caught:
        make()
    assert isinstance(caught.value, PregelError)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    return caught.value


def fails(door, graph, kind, *words):
    """Read the error of a run that fails after superstep 1 began and before its barrier."""
    *states, error = door.stream(graph, {"way": "given"}, stream_mode="values")
    assert isinstance(error, kind), error
    for word in words:
        assert word in str(error), str(error)
    assert states == [{"log": [], "way": "given"}]


# --- Static edges -----------------------------------------------------------------------------------------------------


def test_edges_run_nodes_one_superstep_after_the_other(door):
    graph = build("abc", (START, "a"), ("a", "b"), ("b", "c"), ("c", END)).compile()

    assert door.invoke(graph, {})["log"] == ["a", "b", "c"]
    assert steps(graph) == [["a"], ["b"], ["c"]]


def test_a_node_without_edges_ends_its_path():
    assert log(build("a", (START, "a")).compile()) == ["a"]


def test_edges_out_of_one_node_run_their_targets_in_one_superstep():
    graph = build("abc", (START, "a"), ("a", "b"), ("a", "c")).compile()

    assert steps(graph) == [["a"], ["b", "c"]]


def test_an_edge_added_twice_is_one_edge():
    assert log(build("ab", (START, "a"), ("a", "b"), ("a", "b")).compile()) == ["a", "b"]


def test_edges_may_come_before_their_nodes():
    builder = StateGraph(State).add_edge(START, "a").add_edge("a", "b")
    builder.add_node("a", step("a")).add_node("b", step("b"))

    assert log(builder.compile()) == ["a", "b"]


def test_two_edges_of_one_superstep_into_one_node_run_it_once():
    assert log(build("abc", (START, "a"), (START, "b"), ("a", "c"), ("b", "c")).compile()) == ["a", "b", "c"]


@may_warn
def test_two_plain_edges_at_different_depth_run_the_node_twice(door):
    graph = build("abcd", (START, "a"), (START, "b"), ("a", "d"), ("b", "c"), ("c", "d")).compile()

    assert door.invoke(graph, {})["log"] == ["a", "b", "c", "d", "d"]
    assert steps(graph) == [["a", "b"], ["c", "d"], ["d"]]


def test_two_plain_edges_at_different_depth_are_a_warning_at_compile():
    builder = build("abcd", (START, "a"), (START, "b"), ("a", "d"), ("b", "c"), ("c", "d"))

    with pytest.warns(PregelWarning, match="'d'"):
        builder.compile()


def test_two_plain_edges_at_equal_depth_are_no_warning_at_compile():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = build("abcd", (START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")).compile()

    assert log(graph) == ["a", "b", "c", "d"]


def test_a_builder_can_be_extended_and_compiled_again():
    builder = build("a", (START, "a"))
    first = builder.compile()
    builder.add_node("b", step("b")).add_edge("a", "b")

    assert log(builder.compile()) == ["a", "b"]
    assert log(first) == ["a"]


# --- Joins ------------------------------------------------------------------------------------------------------------


def test_a_join_waits_for_the_slower_branch(door):
    graph = build("abcd", (START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "d")).compile()

    assert door.invoke(graph, {})["log"] == ["a", "b", "c", "d"]
    assert steps(graph) == [["a", "b"], ["c"], ["d"]]


def test_a_join_says_that_it_waits_for_all():
    builder = build("abc", (START, "a"), (START, "b"))
    builder.add_edge(["a", "b"], "c", wait="all")

    assert log(builder.compile()) == ["a", "b", "c"]


def test_a_join_into_end_runs_nothing():
    assert log(build("ab", (START, "a"), (START, "b"), (["a", "b"], END)).compile()) == ["a", "b"]


def test_a_join_of_one_source_is_an_edge():
    assert log(build("ab", (START, "a"), (["a"], "b")).compile()) == ["a", "b"]


def test_a_source_named_twice_is_one_source():
    assert log(build("ab", (START, "a"), (["a", "a"], "b")).compile()) == ["a", "b"]


def test_a_source_that_ran_twice_is_heard_once():
    builder = build("abcd", (START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "d"))
    builder.add_conditional_edges("a", lambda state: END if state["log"].count("a") > 1 else "a", ["a", END])

    assert log(builder.compile()).count("d") == 1


def test_a_join_starts_anew_after_it_fired():
    builder = build("abcd", (START, "a"), (START, "b"), (["a", "b"], "c"), ("c", "d"))
    builder.add_conditional_edges("d", lambda state: ["a", "b"] if state["log"].count("d") < 3 else END)

    assert log(builder.compile()) == ["a", "b", "c", "d"] * 3


def test_joins_in_series_and_side_by_side():
    edges = [(START, "a"), (START, "b"), (["a", "b"], "c"), (["a", "b"], "d"), (["c", "d"], "e")]

    assert steps(build("abcde", *edges).compile()) == [["a", "b"], ["c", "d"], ["e"]]


@may_warn
def test_a_source_reached_by_a_packet_is_heard():
    builder = build("abc", (START, "a"), (["a", "b"], "c"))
    builder.add_conditional_edges("a", lambda state: [Send("b", 1), Send("b", 2)], ["b"])

    assert log(builder.compile()) == ["a", "b", "b", "c"]


def starving(**options):
    builder = StateGraph(State, **options)
    for name in "rabcde":
        builder.add_node(name, step(name, {"count": 7} if name == "a" else None))
    builder.add_edge(START, "r")
    builder.add_conditional_edges("r", lambda state: state.get("way", "a"), {"a": "a", "b": "b", "e": "e"})
    builder.add_edge(["a", "b"], "c")
    builder.add_edge("c", "d")
    return builder


@may_warn
def test_a_starved_join_is_an_error_after_the_last_commit_that_carries_the_state(door):
    graph = starving().compile(name="demo")
    *states, error = door.stream(graph, {}, stream_mode="values")

    assert isinstance(error, StarvedJoinError)
    for word in ("'demo'", "'a'", "'b'", "'c'", "[starved-join]"):
        assert word in str(error)
    assert error.state == states[-1] == {"log": ["r", "a"], "count": 7}


@may_warn
def test_a_starved_join_names_each_join_that_waits():
    builder = starving()
    builder.add_edge(["a", "e"], "d")

    error = refused(lambda: builder.compile().invoke({}), StarvedJoinError, "'c'", "'b'", "'d'", "'e'")
    assert error.state["log"] == ["r", "a"]


@may_warn
def test_a_join_that_heard_nobody_is_not_starved():
    assert log(starving().compile(), {"way": "e"}) == ["r", "e"]


@may_warn
@pytest.mark.parametrize("options", [{"allow": {"starved-join"}}, {"strict": False}])
def test_a_starved_join_allowed_is_a_warning_and_the_result_is_returned(door, options):
    graph = starving(**options).compile(name="demo")

    with pytest.warns(PregelWarning) as caught:
        result = door.invoke(graph, {})
    assert result == {"log": ["r", "a"], "count": 7}
    (message,) = [str(warning.message) for warning in caught if "starved-join" in str(warning.message)]
    for word in ("'demo'", "'a'", "'b'", "'c'"):
        assert word in message


@may_warn
def test_a_starved_join_of_one_run_is_forgotten_by_the_next():
    graph = starving().compile()

    for _ in range(2):
        error = refused(lambda: graph.invoke({}), StarvedJoinError, "heard from 'a' and not from 'b'")
        assert error.state["log"] == ["r", "a"]


def test_a_join_that_may_starve_is_a_warning_at_compile():
    with pytest.warns(PregelWarning, match=r"'c'"):
        starving().compile()


def test_nodes_that_may_conflict_are_a_warning_at_compile():
    class Count(TypedDict):
        count: int

    def left(state) -> Count:
        return {"count": 1}

    def right(state) -> Count:
        return {"count": 2}

    builder = StateGraph(State).add_node(left).add_node(right)
    builder.add_edge(START, "left").add_edge(START, "right")

    with pytest.warns(PregelWarning, match=r"'count'"):
        builder.compile()


# --- Conditional edges ------------------------------------------------------------------------------------------------


def routed(path, path_map=None, *, nodes="abc", schema=State):
    builder = StateGraph(schema)
    builder.add_node("r", step("r"))
    for name in nodes:
        builder.add_node(name, step(name))
    builder.add_edge(START, "r")
    builder.add_conditional_edges("r", path, path_map)
    return builder.compile(name="demo")


class Way(Enum):
    LEFT = 1


def literal_path(state) -> Literal["a", "b", "c"]:
    return "b"


def literal_list_path(state) -> list[Literal["a", "b", "c"]]:
    return ["c", "a"]


async def async_path(state):
    return "b"


@pytest.mark.parametrize(
    ("path", "path_map", "expected"),
    [
        pytest.param(lambda state: "b", None, ["b"], id="name"),
        pytest.param(lambda state: ["c", "a"], None, ["a", "c"], id="list"),
        pytest.param(lambda state: ("c", "a"), None, ["a", "c"], id="tuple"),
        pytest.param(lambda state: ["a", "a"], None, ["a"], id="the same twice"),
        pytest.param(lambda state: END, None, [], id="END"),
        pytest.param(lambda state: ["a", END], None, ["a"], id="END in a list"),
        pytest.param(lambda state: [], None, [], id="nothing"),
        pytest.param(lambda state: Send("b", 1), None, ["b"], id="Send"),
        pytest.param(lambda state: [Send("b", 1), "c", Send("b", 2)], None, ["c", "b", "b"], id="mix"),
        pytest.param(lambda state: "b", ["a", "b", "c"], ["b"], id="list as path_map"),
        pytest.param(lambda state: "b", ("a", "b", "c", END), ["b"], id="tuple as path_map"),
        pytest.param(lambda state: "x", {"x": "b", "y": "a", "z": "c"}, ["b"], id="dict"),
        pytest.param(lambda state: ["x", "z"], {"x": "b", "y": "a", "z": "c"}, ["b", "c"], id="dict and list"),
        pytest.param(lambda state: True, {True: "b", False: "a", None: "c"}, ["b"], id="bool"),
        pytest.param(lambda state: None, {True: "b", False: "a", None: "c"}, ["c"], id="None as a key"),
        pytest.param(lambda state: Way.LEFT, {Way.LEFT: "b", 1: "a", 2: "c"}, ["b"], id="enum"),
        pytest.param(lambda state: "x", {"x": END, "y": "a", "z": "b", "w": "c"}, [], id="END in a dict"),
        pytest.param(lambda state: Send("b", 1), {"x": "b", "y": "a", "z": "c"}, ["b"], id="Send beside a dict"),
        pytest.param(literal_path, None, ["b"], id="Literal"),
        pytest.param(literal_list_path, None, ["a", "c"], id="list of Literal"),
        pytest.param(async_path, None, ["b"], id="async"),
    ],
)
def test_what_a_path_may_answer(door, path, path_map, expected):
    assert door.invoke(routed(path, path_map), {})["log"] == ["r", *expected]


def test_a_conditional_edge_from_start_sees_the_input(door):
    builder = build("ab")
    builder.add_conditional_edges(START, lambda state: state["way"])

    assert door.invoke(builder.compile(), {"way": "b"})["log"] == ["b"]


def test_a_conditional_edge_adds_to_static_edges():
    builder = build("abc", (START, "a"), ("a", "b"))
    builder.add_conditional_edges("a", lambda state: "c")

    assert steps(builder.compile()) == [["a"], ["b", "c"]]


def test_several_conditional_edges_on_one_node_all_answer_also_lambdas():
    builder = build("abcd", (START, "a"))
    builder.add_conditional_edges("a", lambda state: "b")
    builder.add_conditional_edges("a", lambda state: "c")
    builder.add_conditional_edges("a", lambda state: [Send("d", 1), "c"])

    assert log(builder.compile()) == ["a", "b", "c", "d"]


def test_one_path_may_serve_several_nodes_and_one_node_twice():
    def path(state):
        return "c"

    builder = build("abc", (START, "a"), (START, "b"))
    for source in ("a", "b", "b"):
        builder.add_conditional_edges(source, path)

    assert log(builder.compile()) == ["a", "b", "c"]


class Callable:
    def __call__(self, state):
        return "b"


class Runnable:
    def invoke(self, state):
        return "b"


@pytest.mark.parametrize("path", [partial(lambda name, state: name, "b"), Callable(), Runnable(), Callable().__call__])
def test_a_path_is_any_callable_or_an_object_with_invoke(path):
    assert log(routed(path)) == ["r", "b"]


def test_a_path_is_given_what_it_asks_for():
    seen = []

    def path(state, runtime: Runtime, config):
        seen.append((runtime.context, runtime.node, config["tags"]))
        return END

    builder = build("r", (START, "r"))
    builder.add_conditional_edges("r", path)
    builder.compile().invoke({}, {"tags": ["t"]}, context=5)

    assert seen == [(5, "r", ["t"])]


def test_a_path_that_raises_fails_its_node(door):
    def path(state):
        raise LookupError("no way")

    *states, error = door.stream(routed(path), {}, stream_mode="values")

    assert isinstance(error, LookupError)
    assert states == [{"log": []}]
    notes = " ".join(error.__notes__)
    for word in ("'demo'", "'r'", "superstep 1"):
        assert word in notes


class Wide(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    mine: int
    theirs: int
    spark: Annotated[int, EphemeralValue]


def test_a_path_sees_the_view_and_its_own_tasks_writes_only(door):
    seen = {}

    def watch(name):
        def path(state):
            seen[name] = state
            return END

        return path

    builder = StateGraph(Wide)
    builder.add_node("a", lambda state: {"log": ["a"], "mine": 1})
    builder.add_node("b", lambda state: {"log": ["b"], "theirs": 2})
    for name in "ab":
        builder.add_edge(START, name)
        builder.add_conditional_edges(name, watch(name))
    door.invoke(builder.compile(), {"log": ["in"], "mine": 0})

    assert seen == {
        "a": {"log": ["in", "a"], "mine": 1},
        "b": {"log": ["in", "b"], "mine": 0, "theirs": 2},
    }


def test_a_path_of_a_packets_task_sees_that_tasks_writes_only():
    seen = []

    def path(state):
        seen.append(list(state["log"]))
        return END

    builder = StateGraph(State)
    builder.add_conditional_edges(START, lambda state: [Send("a", "x"), Send("a", "y")], ["a"])
    builder.add_node("a", lambda arg: {"log": [arg]})
    builder.add_conditional_edges("a", path)

    assert builder.compile(executor="inline").invoke({"log": ["in"]})["log"] == ["in", "x", "y"]
    assert seen == [["in", "x"], ["in", "y"]]


def test_a_path_can_change_nothing():
    def path(state):
        state["count"] = 99
        del state["way"]
        return "b"

    assert routed(path).invoke({"way": "w", "count": 1}) == {"log": ["r", "b"], "way": "w", "count": 1}


def test_a_path_of_a_narrow_node_sees_the_whole_state():
    class Narrow(TypedDict, total=False):
        count: int

    seen = []

    def work(state: Narrow):
        seen.append(state)
        return {"count": 2}

    builder = StateGraph(State).add_node("a", work)
    builder.add_conditional_edges(START, lambda state: seen.append(state) or "a", ["a"])
    builder.add_conditional_edges("a", lambda state: seen.append(state) or END)
    builder.compile().invoke({"way": "w", "count": 1})

    assert seen == [{"log": [], "way": "w", "count": 1}, {"count": 1}, {"log": [], "way": "w", "count": 2}]


@dataclass
class Data:
    log: Annotated[list[str], operator.add]
    way: str = "none"


class Model(BaseModel):
    log: Annotated[list[str], operator.add] = []
    way: str = "none"


@pytest.mark.parametrize("schema", [Data, Model])
def test_a_path_is_given_an_instance_where_the_schema_makes_them(schema):
    seen = []
    graph = routed(lambda state: seen.append(state) or "b", schema=schema)
    graph.invoke({"way": "w"})

    assert seen == [schema(log=["r"], way="w")]


# --- Commands ---------------------------------------------------------------------------------------------------------


def commanded(command, *edges, nodes="abc", **options):
    builder = StateGraph(State)
    builder.add_node("r", lambda state: command, **options)
    for name in nodes:
        builder.add_node(name, step(name))
    builder.add_edge(START, "r")
    for edge in edges:
        builder.add_edge(*edge)
    return builder.compile(name="demo")


@pytest.mark.parametrize(
    ("goto", "expected"),
    [
        ("b", ["b"]),
        (["b", "a"], ["a", "b"]),
        (("b", "a"), ["a", "b"]),
        (Send("b", 1), ["b"]),
        ([Send("b", 1), "c", Send("a", 2), Send("b", 3)], ["c", "b", "a", "b"]),
        (END, []),
        (["b", END], ["b"]),
        ([], []),
    ],
)
def test_where_a_command_may_go(door, goto, expected):
    graph = commanded(Command(update={"log": ["r"]}, goto=goto), destinations=["a", "b", "c"])

    assert door.invoke(graph, {})["log"] == ["r", *expected]


@may_warn
@pytest.mark.parametrize(
    ("goto", "expected"), [("b", ["a", "b"]), ("a", ["a"]), (END, ["a"]), (Send("a", 1), ["a", "a"])]
)
def test_goto_adds_to_static_edges(door, goto, expected):
    graph = commanded(Command(goto=goto), ("r", "a"), destinations=["b", "c"])

    assert door.invoke(graph, {})["log"] == expected


def test_a_node_with_static_edges_and_declared_commands_is_a_warning_at_compile():
    def r(state) -> Command[Literal["b"]]:
        return Command(goto="b")

    builder = build("ab").add_node(r)
    builder.add_edge(START, "r").add_edge("r", "a")

    with pytest.warns(PregelWarning, match="'r'"):
        builder.compile()


def test_commands_of_a_list_all_go():
    commands = [Command(goto="b"), {"log": ["r"]}, Command(goto=["a", Send("c", 1)])]

    assert log(commanded(commands, destinations=["a", "b", "c"])) == ["r", "a", "b", "c"]


def test_an_annotated_command_reaches_its_destinations():
    def r(state) -> Command[Literal["b", "__end__"]]:
        return Command(goto="b")

    builder = build("b").add_node(r).add_edge(START, "r")

    assert log(builder.compile()) == ["b"]


# --- Packets ----------------------------------------------------------------------------------------------------------

ARGUMENTS = [1, None, "text", b"bytes", [1, 2], (1,), {"anything": 1}, {"count": "not checked"}, object(), Way.LEFT]


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("by", ["path", "command"])
def test_a_packet_gives_its_argument_as_it_is(argument, by):
    seen = []

    def receive(arg):
        seen.append(arg)
        return {"log": ["got"]}

    builder = StateGraph(State).add_node("receive", receive)
    send = Send("receive", argument)
    if by == "path":
        builder.add_conditional_edges(START, lambda state: send, ["receive"])
    else:
        builder.add_node("go", lambda state: Command(goto=send), destinations=["receive"])
        builder.add_edge(START, "go")

    assert log(builder.compile()) == ["got"]
    assert len(seen) == 1
    assert seen[0] is argument


@pytest.mark.parametrize("schema", [Data, Model])
def test_a_packet_is_not_made_an_instance(schema):
    seen = []
    argument = {"way": 5}

    def receive(arg: schema):
        seen.append(arg)
        return {"log": ["got"]}

    builder = StateGraph(schema).add_node("receive", receive)
    builder.add_conditional_edges(START, lambda state: Send("receive", argument), ["receive"])

    assert builder.compile().invoke({})["log"] == ["got"]
    assert seen[0] is argument


def test_packets_run_beside_nodes_in_the_next_superstep_as_a_task_each():
    builder = build("abc", (START, "a"), ("a", "c"))
    builder.add_conditional_edges("a", lambda state: [Send("b", n) for n in range(3)] + [Send("c", 3)], ["b", "c"])

    assert steps(builder.compile()) == [["a"], ["c", "b", "b", "b", "c"]]


def test_a_task_of_a_packet_follows_the_edges_of_its_node():
    builder = build("ab", ("a", "b"))
    builder.add_conditional_edges(START, lambda state: [Send("a", 1), Send("a", 2)], ["a"])

    assert steps(builder.compile()) == [["a", "a"], ["b"]]


# --- Unknown targets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("worke", ["'worke'", "Did you mean 'worker'?"]),
        (["a", "worke"], ["'worke'", "'worker'"]),
        (Send("worke", 1), ["'worke'", "'worker'"]),
        (["a", Send("worke", 1)], ["'worke'", "'worker'"]),
        (Send(END, 1), ["END", "Send"]),
        (Send(START, 1), ["START"]),
        (START, ["START"]),
        (None, ["None", "END"]),
        (["a", None], ["None"]),
        (1, ["1 (int)", "name of a node"]),
        (["a", ["b"]], ["['b']"]),
        ({"a"}, ["{'a'} (set)", "name of a node"]),
        (Send(["a"], 1), ["['a']"]),
        ("", ["''"]),
    ],
)
@pytest.mark.parametrize("by", ["path", "command"])
def test_an_unknown_target_is_an_error_and_nothing_of_the_step_is_kept(door, answer, shown, by):
    ran = []
    builder = StateGraph(State)
    for name in ("a", "worker"):
        builder.add_node(name, lambda state, name=name: ran.append(name) or {})
    if by == "path":
        builder.add_node("r", lambda state: {"log": ["r"]})
        builder.add_conditional_edges("r", lambda state: answer)
    else:
        builder.add_node("r", lambda state: Command(update={"log": ["r"]}, goto=answer), destinations=["a", "worker"])
    builder.add_edge(START, "r")

    fails(door, builder.compile(name="demo"), UnknownTargetError, "'r'", "'demo'", *shown)
    assert ran == []


def test_an_answer_that_the_path_map_does_not_have_is_an_error(door):
    graph = routed(lambda state: "lefft", {"left": "a", "right": "b", "on": "c"})

    fails(door, graph, UnknownTargetError, "'r'", "'demo'", "'lefft'", "Did you mean 'left'?", "'right'")


def test_a_node_that_the_path_map_does_not_name_is_an_error(door):
    def r_path(state):
        return "b"

    builder = build("rab", (START, "r"), (START, "b"))
    builder.add_conditional_edges("r", r_path, ["a"])
    *states, error = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert isinstance(error, UnknownTargetError)
    for word in ("'r'", "'demo'", "'b'", "'a'", "r_path"):
        assert word in str(error)
    assert states == [{"log": []}]


def test_an_answer_that_the_literal_does_not_list_is_an_error_where_it_is_no_node(door):
    def path(state) -> Literal["a", "b", "c"]:
        return "bb"

    fails(door, routed(path), UnknownTargetError, "'r'", "'demo'", "'bb'")


def test_a_node_that_the_literal_does_not_list_is_an_error(door):
    def r_path(state) -> Literal["a"]:
        return "b"

    builder = build("rab", (START, "r"), (START, "b"))
    builder.add_conditional_edges("r", r_path)
    *states, error = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert isinstance(error, UnknownTargetError)
    for word in ("'r'", "'demo'", "'b'", "'a'", "r_path"):
        assert word in str(error)
    assert states == [{"log": []}]


def test_an_unhashable_answer_beside_a_path_map_is_an_error(door):
    graph = routed(lambda state: {"x": 1}, {"x": "a", "y": "b", "z": "c"})

    fails(door, graph, UnknownTargetError, "'r'", "{'x': 1}")


def test_an_unknown_target_of_the_entry_is_an_error_before_any_node(door):
    builder = build("ab")
    builder.add_conditional_edges(START, lambda state: "c")
    (error,) = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert isinstance(error, UnknownTargetError)
    for word in ("'demo'", "'c'", START):
        assert word in str(error)


# --- Deferred nodes ---------------------------------------------------------------------------------------------------


def deferring(deferred, *edges, nodes="abcd"):
    builder = StateGraph(State)
    for name in nodes:
        builder.add_node(name, step(name), defer=name in deferred)
    for edge in edges:
        builder.add_edge(*edge)
    return builder


@may_warn
def test_a_deferred_node_runs_once_when_nothing_else_is_due(door):
    graph = deferring("d", (START, "a"), (START, "b"), ("a", "d"), ("b", "c"), ("c", "d")).compile()

    assert door.invoke(graph, {})["log"] == ["a", "b", "c", "d"]


@may_warn
def test_a_deferred_node_waits_for_branches_that_do_not_lead_to_it():
    graph = deferring("d", (START, "a"), (START, "d"), ("a", "b"), ("b", "c")).compile()

    assert steps(graph) == [["a"], ["b"], ["c"], ["d"]]


def test_a_deferred_node_that_is_alone_runs_at_once():
    assert log(deferring("a", (START, "a"), nodes="a").compile()) == ["a"]


@may_warn
def test_two_deferred_nodes_in_series_run_in_order_and_once_each():
    graph = deferring("bc", (START, "a"), (START, "b"), (START, "c"), ("b", "c"), nodes="abc").compile()

    assert steps(graph) == [["a"], ["b"], ["c"]]


def test_deferred_nodes_that_do_not_lead_to_each_other_run_together():
    assert steps(deferring("bc", (START, "a"), (START, "b"), (START, "c"), nodes="abc").compile()) == [
        ["a"],
        ["b", "c"],
    ]


@may_warn
def test_what_a_deferred_node_starts_runs_before_the_next_deferred_one():
    graph = deferring("bd", (START, "a"), (START, "b"), (START, "d"), ("b", "c"), ("c", "d")).compile()

    assert steps(graph) == [["a"], ["b"], ["c"], ["d"]]


def test_packets_to_a_deferred_node_wait_too():
    builder = deferring("c", (START, "a"), ("a", "b"), nodes="abc")
    builder.add_conditional_edges(START, lambda state: [Send("c", 1), Send("c", 2)], ["c"])

    assert steps(builder.compile()) == [["a"], ["b"], ["c", "c"]]


def test_a_deferred_node_may_start_a_loop():
    builder = deferring("b", (START, "a"), ("a", "b"), nodes="ab")
    builder.add_conditional_edges("b", lambda state: END if state["log"].count("b") == 2 else "a", ["a", END])

    assert log(builder.compile()) == ["a", "b", "a", "b"]


def test_a_join_into_a_deferred_node_waits_for_both():
    graph = deferring(
        "d", (START, "a"), (START, "b"), (START, "c"), ("c", "e"), (["a", "b"], "d"), nodes="abcde"
    ).compile()

    assert steps(graph) == [["a", "b", "c"], ["e"], ["d"]]


def test_a_deferred_node_may_be_a_source_of_a_join():
    graph = deferring("b", (START, "a"), (START, "b"), (["a", "b"], "c"), nodes="abc").compile()

    assert steps(graph) == [["a"], ["b"], ["c"]]


# --- What is wrong before a run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edge", "unknown", "near"),
    [
        (("worker", "finsh"), "'finsh'", "'finish'"),
        (("workr", "finish"), "'workr'", "'worker'"),
        ((["worker", "finsh"], "finish"), "'finsh'", "'finish'"),
        ((["worker", "finish"], "workr"), "'workr'", "'worker'"),
        ((START, "workr"), "'workr'", "'worker'"),
        (("workr", END), "'workr'", "'worker'"),
    ],
)
def test_an_edge_that_names_no_node_is_an_error_with_the_nearest_match(edge, unknown, near):
    builder = build(["worker", "finish"], (START, "worker"), ("worker", "finish"), edge)

    refused(lambda: builder.compile(name="demo"), GraphDefinitionError, "'demo'", unknown, f"Did you mean {near}?")


def test_a_path_map_that_names_no_node_is_an_error_with_the_nearest_match():
    for path_map in ({"x": "workr"}, ["workr"]):
        builder = build(["worker"], (START, "worker"))
        builder.add_conditional_edges("worker", lambda state: "x", path_map)
        words = ("'demo'", "'workr'", "Did you mean 'worker'?", "'worker'")
        refused(partial(builder.compile, name="demo"), GraphDefinitionError, *words)


def test_a_literal_that_names_no_node_is_an_error_with_the_nearest_match():
    def path(state) -> Literal["workr"]:
        return "workr"

    builder = build(["worker"], (START, "worker"))
    builder.add_conditional_edges("worker", path)

    refused(lambda: builder.compile(name="demo"), GraphDefinitionError, "'demo'", "path", "'workr'", "'worker'?")


def test_a_conditional_edge_from_no_node_is_an_error():
    builder = build(["worker"], (START, "worker"))
    builder.add_conditional_edges("workr", lambda state: END)

    refused(lambda: builder.compile(name="demo"), GraphDefinitionError, "'demo'", "'workr'", "'worker'?")


def annotated_destination(state) -> Command[Literal["workr"]]:
    return Command()


@pytest.mark.parametrize(
    ("action", "options"),
    [
        (annotated_destination, {}),
        (step("x"), {"destinations": ["workr"]}),
        (step("x"), {"destinations": {"workr": "?"}}),
    ],
)
def test_a_destination_that_is_no_node_is_an_error(action, options):
    builder = build(["worker"], (START, "worker")).add_node("go", action, **options).add_edge("worker", "go")

    refused(lambda: builder.compile(name="demo"), GraphDefinitionError, "'demo'", "'go'", "'workr'", "'worker'?")


@pytest.mark.parametrize("path_map", ["worker", [1], [None], 5])
def test_a_path_map_that_is_none_is_an_error(path_map):
    builder = build(["worker"], (START, "worker"))

    refused(
        lambda: builder.add_conditional_edges("worker", lambda state: END, path_map),
        GraphDefinitionError,
        "'worker'",
        "path_map",
        repr(path_map),
    )


def test_a_path_that_is_no_function_is_an_error():
    builder = build("a", (START, "a"))

    refused(lambda: builder.add_conditional_edges("a", "b"), GraphDefinitionError, "'a'", "path", "'b'")


def test_a_graph_without_entry_point_is_an_error():
    refused(lambda: build("a").compile(name="demo"), GraphDefinitionError, "'demo'", "entry point", "START")


def test_a_graph_without_nodes_is_an_error():
    refused(lambda: StateGraph(State).compile(name="demo"), GraphDefinitionError, "'demo'", "entry point")


def test_a_name_used_twice_is_an_error():
    refused(lambda: build("a").add_node("a", step("a")), GraphDefinitionError, "'a'", "already")


@pytest.mark.parametrize("name", [START, END, "__mine", "__input__", "", "a|b", "a:b"])
def test_a_reserved_name_is_an_error(name):
    refused(lambda: StateGraph(State).add_node(name, step("x")), GraphDefinitionError, repr(name))


def test_a_field_with_a_reserved_name_is_an_error():
    schema = TypedDict("schema", {"__start__": int, "x": int})

    refused(
        lambda: StateGraph(schema).add_node("a", step("a")).add_edge(START, "a").compile(), SchemaError, "'__start__'"
    )


def test_a_node_may_have_a_fields_name():
    assert log(build(["log", "count"], (START, "log"), ("log", "count")).compile()) == ["log", "count"]


@pytest.mark.parametrize("action", [5, "text", {"a": 1}])
def test_an_action_that_can_not_run_is_an_error(action):
    builder = StateGraph(State).add_node("a", action).add_edge(START, "a")

    refused(lambda: builder.compile(name="demo"), GraphDefinitionError, "'a'", "'demo'", repr(action))


def test_a_node_without_action_is_an_error():
    refused(lambda: StateGraph(State).add_node("a"), GraphDefinitionError, "'a'", "add_node")


def test_a_node_without_a_name_is_an_error():
    refused(lambda: StateGraph(State).add_node(Callable()), GraphDefinitionError, "name")


def needs_more(state, confg):
    return {}


def needs_keyword(state, *, storage):
    return {}


def needs_nothing():
    return {}


def keyword_only(*, state):
    return {}


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (needs_more, ["'confg'", "Did you mean 'config'?", "functools.partial"]),
        (needs_keyword, ["'storage'", "default"]),
        (needs_nothing, ["state"]),
        (keyword_only, ["state"]),
    ],
)
def test_a_parameter_that_nothing_fills_is_an_error(action, words):
    builder = StateGraph(State).add_node("work", action).add_edge(START, "work")

    refused(lambda: builder.compile(name="demo"), GraphDefinitionError, "'work'", "'demo'", *words)


def test_a_parameter_of_a_path_that_nothing_fills_is_an_error():
    def path(state, nothing):
        return END

    builder = build("a", (START, "a"))
    builder.add_conditional_edges("a", path)

    refused(lambda: builder.compile(name="demo"), GraphDefinitionError, "'a'", "'demo'", "path", "'nothing'")


def test_what_is_injected_by_name_or_annotation():
    seen = []

    def work(anything, config, writer, rt: Runtime[int], extra=5, *args, more=6, **kwargs):
        seen.append((anything, config["tags"], rt.context, extra, args, more, kwargs))
        writer("part")
        return {}

    builder = StateGraph(State).add_node("work", work).add_edge(START, "work")
    parts = list(builder.compile().stream({"count": 1}, {"tags": ["t"]}, stream_mode="custom", context=3))

    assert seen == [({"log": [], "count": 1}, ["t"], 3, 5, (), 6, {})]
    assert parts == ["part"]


def test_an_empty_join_is_an_error():
    refused(lambda: build("a", (START, "a"), ([], "a")), GraphDefinitionError, "'a'", "no source")


@pytest.mark.parametrize("virtual", [START, END])
def test_a_join_that_waits_for_a_virtual_node_is_an_error(virtual):
    refused(lambda: build("ab", (START, "a"), ([virtual, "a"], "b")), GraphDefinitionError, "'b'", virtual)


def test_a_join_that_waits_in_an_unknown_way_is_an_error():
    builder = build("ab", (START, "a"))

    refused(lambda: builder.add_edge(["a"], "b", wait="any"), GraphDefinitionError, "'any'", "'all'")


@pytest.mark.parametrize("edge", [("a", START), (END, "a"), (["a"], START)])
def test_an_edge_into_start_or_out_of_end_is_an_error(edge):
    refused(lambda: build("a", edge), GraphDefinitionError, "START" if edge[1] == START else "END")


def test_a_conditional_edge_out_of_end_is_an_error():
    refused(lambda: build("a").add_conditional_edges(END, lambda state: "a"), GraphDefinitionError, "END")


def test_an_unknown_code_in_allow_is_an_error_with_the_nearest_match():
    refused(
        lambda: StateGraph(State, allow={"none-retrun"}),
        GraphDefinitionError,
        "'none-retrun'",
        "Did you mean 'none-return'?",
        "wrong-type",
    )


# --- Unreachable nodes ------------------------------------------------------------------------------------------------


def test_a_node_that_nothing_leads_to_is_an_error_with_the_remedies():
    refused(
        lambda: build("abc", (START, "a"), ("b", "c")).compile(name="demo"),
        UnreachableNodeError,
        *("'demo'", "'b'", "'c'", "[unreachable-node]", "Command[Literal[...]]", "destinations=", "path_map"),
    )


@pytest.mark.parametrize("options", [{"allow": {"unreachable-node"}}, {"strict": False}])
def test_an_unreachable_node_allowed_is_a_warning_and_the_graph_runs(options):
    builder = build("ab", (START, "a"), **options)

    with pytest.warns(PregelWarning) as caught:
        graph = builder.compile(name="demo")
    assert len(caught) == 1
    for word in ("'demo'", "'b'", "[unreachable-node]"):
        assert word in str(caught[0].message)
    assert log(graph) == ["a"]


def test_a_node_that_a_command_without_annotation_goes_to_is_unreachable():
    builder = build("a", (START, "r")).add_node("r", lambda state: Command(goto="a"))

    refused(builder.compile, UnreachableNodeError, "'a'", "destinations=")


def test_a_node_that_only_itself_leads_to_is_unreachable():
    refused(lambda: build("ab", (START, "a"), ("b", "b")).compile(), UnreachableNodeError, "'b'")


def test_targets_of_a_path_map_or_a_literal_are_all_that_the_path_reaches():
    for path, path_map in ((lambda state: "a", ["a"]), (lambda state: "x", {"x": "a"}), (literal_path, None)):
        builder = build("rabcd", (START, "r"))
        builder.add_conditional_edges("r", path, path_map)
        refused(builder.compile, UnreachableNodeError, "'d'")


def bare_command(state) -> Command:
    return Command(goto="a")


def bare_command_of_any(state) -> Command[Any]:
    return Command(goto="a")


def command_of_str(state) -> Command[str]:
    return Command(goto="a")


def command_or_dict(state) -> Command | dict:
    return Command(goto="a")


async def bare_command_later(state) -> Command:
    return Command(goto="a")


@pytest.mark.parametrize(
    "action", [bare_command, bare_command_of_any, command_of_str, command_or_dict, bare_command_later]
)
def test_a_bare_command_reaches_every_node(action):
    assert log(build("ab", (START, "r")).add_node("r", action).compile()) == ["a"]


def test_a_path_without_declared_targets_reaches_every_node():
    builder = build("rab", (START, "r"))
    builder.add_conditional_edges("r", lambda state: "a")

    assert log(builder.compile()) == ["r", "a"]


def test_a_bare_command_that_is_itself_unreachable_reaches_nothing():
    builder = build("ab", (START, "a")).add_node("r", bare_command)

    refused(builder.compile, UnreachableNodeError, "'b'", "'r'")


def test_declared_destinations_are_all_that_a_bare_command_reaches():
    builder = build("ab", (START, "r")).add_node("r", bare_command, destinations=["a"])

    refused(builder.compile, UnreachableNodeError, "'b'")


def test_sources_of_a_join_reach_its_target():
    assert log(build("abc", (START, "a"), (START, "b"), (["a", "b"], "c")).compile()) == ["a", "b", "c"]


# --- Annotations that contradict the state ----------------------------------------------------------------------------


class Other(TypedDict, total=False):
    count: str


class More(TypedDict, total=False):
    count: int
    cuont: int


def reads_another_type(state: Other):
    return {}


def returns_another_type(state) -> Other:
    return {}


def returns_an_undeclared_field(state) -> More:
    return {}


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (reads_another_type, ["Other", "'count'", "str", "int", "State"]),
        (returns_another_type, ["'work'", "Other", "'count'", "str", "int"]),
        (returns_an_undeclared_field, ["'work'", "More", "'cuont'", "Did you mean 'count'?"]),
    ],
)
def test_an_annotation_that_contradicts_the_state_is_found_at_compile(action, words):
    builder = StateGraph(State).add_node("work", action).add_edge(START, "work")

    refused(lambda: builder.compile(name="demo"), SchemaError, "'demo'", "[schema-mismatch]", *words)


@pytest.mark.parametrize("options", [{"allow": {"schema-mismatch"}}, {"strict": False}])
@pytest.mark.parametrize("action", [reads_another_type, returns_another_type, returns_an_undeclared_field])
def test_a_contradicting_annotation_allowed_is_a_warning_and_the_graph_runs(action, options):
    builder = StateGraph(State, **options).add_node("work", action).add_edge(START, "work")

    with pytest.warns(PregelWarning, match="schema-mismatch"):
        graph = builder.compile(name="demo")
    assert graph.invoke({"count": 1}) == {"log": [], "count": 1}


def test_an_input_schema_that_contradicts_the_state_is_found_at_compile():
    builder = StateGraph(State).add_node("work", step("a"), input_schema=Other).add_edge(START, "work")

    refused(lambda: builder.compile(name="demo"), SchemaError, "'demo'", "Other", "'count'", "[schema-mismatch]")


def test_annotations_that_agree_are_no_warning():
    class Same(TypedDict, total=False):
        count: int | None
        log: list

    def work(state: Same) -> Same:
        return {"count": 2}

    builder = StateGraph(State).add_node(work).add_edge(START, "work")

    assert builder.compile().invoke({"count": 1}) == {"log": [], "count": 2}


# --- Both executors ---------------------------------------------------------------------------------------------------


@executors
def test_edges_lead_the_same_way_in_either_executor(door, executor):
    builder = build("abcd", (START, "a"), ("a", "b"), (["a", "b"], "d"))
    builder.add_conditional_edges("a", lambda state: [Send("c", 1), Send("c", 2)], ["c"])

    assert door.invoke(builder.compile(executor=executor), {})["log"] == ["a", "b", "c", "c", "d"]


def test_a_path_that_reads_few_fields_does_not_see_the_updates_of_others(door):
    class Few(TypedDict, total=False):
        count: int

    class All(Few, total=False):
        other: int

    seen = []

    def path(state: Few):
        seen.append(dict(state))
        return END

    builder = StateGraph(All).add_node("a", lambda state: {"count": 1, "other": 2}).add_edge(START, "a")
    graph = builder.add_conditional_edges("a", path, [END]).compile()
    assert door.invoke(graph, {}) == {"count": 1, "other": 2}
    assert seen == [{"count": 1}]


def test_a_path_sees_the_last_of_its_nodes_writes_to_a_field_that_a_sibling_overwrites(door):
    class Written(TypedDict, total=False):
        n: int

    seen = []

    def path(state: Written) -> str:
        seen.append(state["n"])
        return END

    builder = StateGraph(Written)
    builder.add_node("twice", lambda _: [{"n": 1}, {"n": 2}]).add_node("over", lambda _: {"n": Overwrite(3)})
    builder.add_edge(START, "twice").add_edge(START, "over").add_conditional_edges("twice", path, [END])
    assert door.invoke(builder.compile(), {"n": 0}) == {"n": 3}
    assert seen == [2]
