"""What a compiled workflow is to the engine: fields, streams, drawings, threads, forks, processes, and its cost."""

import operator
import os
import sys
from typing import Annotated, TypedDict

import pytest

from pregel import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import GraphDefinitionError, MutatedStateError
from pregel.executors.process import ProcessExecutor
from pregel.graph.workflow import END, Event, JoinNode, Workflow, node
from pregel.graph.workflow.folding import fold_events
from pregel.graph.workflow.workflow import Workflow as Home
from pregel.testing import run_seeded
from tests.workflow.kit import events, outputs, run, thread


def add(ctx, node_input):
    ctx.state[f"k{node_input}"] = node_input
    return node_input + 1


def show(node_input):
    return [node_input]


def test_input_and_output_have_schemas_without_what_is_private():
    graph = Workflow("w", [("START", add)]).compile()
    assert set(graph.get_input_jsonschema()["properties"]) == {"node_input", "state"}
    assert set(graph.get_output_jsonschema()["properties"]) == {"output", "state"}


def test_streams_show_the_state_and_the_output(door):
    graph = Workflow("w", [("START", add, show)]).compile()
    assert door.stream(graph, {"node_input": 1}) == [{"add": {"state": {"k1": 1}}}, {"show": {"output": [2]}}]
    assert door.stream(graph, {"node_input": 1}, stream_mode="values")[-1] == {"output": [2], "state": {"k1": 1}}


def test_without_an_input_the_first_nodes_have_their_default(door):
    def first(node_input="default"):
        return node_input

    graph = Workflow("w", [("START", first)]).compile(InMemorySaver())
    assert door.invoke(graph, {}, thread())["output"] == "default"
    assert door.invoke(graph, {"node_input": 1}, thread())["output"] == 1
    assert door.invoke(graph, {}, thread())["output"] == "default"


def test_an_output_in_the_input_is_ignored_so_that_a_result_can_be_given_back(door):
    graph = Workflow("w", [("START", add)]).compile()
    result = door.invoke(graph, {"node_input": 1})
    assert door.invoke(graph, {"node_input": 2, **result}) == {"output": 3, "state": {"k1": 1, "k2": 2}}


def test_temp_keys_of_the_input_are_not_stored(door):
    def sees(ctx):
        return ctx.state["temp:k"]

    graph = Workflow("w", [("START", sees)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0, "state": {"temp:k": 1, "a": 2}}, thread()) == {
        "output": 1,
        "state": {"a": 2},
    }
    assert dict(graph.get_state(thread()).values["@events"][0].delta) == {"a": 2}


def test_a_failed_run_goes_on_where_it_failed(door, saver):
    ran, broken = [], [True]

    def silent():
        ran.append("silent")

    def fails(ctx):
        ran.append("fails")
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        if broken[0]:
            raise ConnectionError
        return "done"

    graph = Workflow("w", [("START", silent, fails)]).compile(saver)
    with pytest.raises(ConnectionError):
        door.invoke(graph, {"node_input": 0}, thread())
    broken[0] = False
    assert door.invoke(graph, None, thread()) == {"output": "done", "state": {"n": 1}}
    assert ran == ["silent", "fails", "fails"]


def test_a_fork_leaves_what_came_later(door):
    graph = Workflow("w", [("START", add, node(add, name="again"), show)]).compile(InMemorySaver())
    door.invoke(graph, {"node_input": 1}, thread())
    before = next(each for each in graph.get_state_history(thread()) if each.next == ("again",))
    assert door.invoke(graph, None, before.config) == {"output": [3], "state": {"k1": 1, "k2": 2}}
    assert [path for path, _ in outputs(graph)] == ["add@1", "again@1", "show@1"]


def test_another_process_goes_on(door, tmp_path):
    values = {1: {2, 3}, "t": (1, "a"), None: b"x", 1.5: float("inf")}

    def gives(ctx):
        ctx.state["v"] = values
        yield Event(output=values, content=frozenset({1}))

    def fails():
        if broken[0]:
            raise ConnectionError
        return "done"

    broken = [True]
    path = tmp_path / "runs.sqlite"
    with SqliteSaver(path) as saver, pytest.raises(ConnectionError):
        door.invoke(Workflow("w", [("START", gives, fails)]).compile(saver), {"node_input": values}, thread())
    broken[0] = False
    with SqliteSaver(path) as saver:
        graph = Workflow("w", [("START", gives, fails)]).compile(saver)
        assert door.invoke(graph, None, thread()) == {"output": "done", "state": {"v": values}}
        assert outputs(graph) == [("gives@1", values), ("fails@1", "done")]
        assert events(graph)[0].content == frozenset({1})


def branches():
    """A workflow in which much runs side by side."""

    def begin(node_input):
        return node_input

    def branch(number):
        def part(ctx, node_input):
            ctx.state[f"b{number}"] = [node_input]
            yield Event(state={f"c{number}": number}, content=f"from {number}")
            yield number

        return node(part, name=f"branch{number}")

    def items(ctx, node_input):
        ctx.state[f"i{node_input}"] = node_input
        return -node_input

    worker = node(items, name="worker", parallel_worker=True)
    inner = Workflow("inner", [("START", [branch(7), branch(8)], JoinNode("inner_join"))])
    fan = tuple(branch(number) for number in range(4))
    return Workflow("w", [("START", begin, (*fan, worker, inner), JoinNode("join"), show)])


@pytest.mark.parametrize("way", ["sync", "asyncio", "trio"])
def test_whatever_ends_first_state_output_and_events_are_the_same(way):
    from tests.conftest import Door

    door = Door(way)
    expected = None
    for seed in range(10 if way == "sync" else 3):
        graph = branches().compile(InMemorySaver())
        if way == "sync":
            assert run_seeded(graph, {"node_input": [1, 2, 3]}, seed=seed, config=thread()).error is None
            result = graph.get_state(thread()).values
        else:
            door.invoke(graph, {"node_input": [1, 2, 3]}, thread())
            result = graph.get_state(thread()).values
        told = (result["output"], result["state"], result["@events"])
        expected = expected or told
        assert told == expected


def test_the_events_lead_to_the_state(door):
    graph = branches().compile(InMemorySaver())
    door.invoke(graph, {"node_input": [1, 2, 3], "state": {"a": 1}}, thread())
    values = graph.get_state(thread()).values
    assert fold_events(values["@events"]) == values["state"]
    assert len(values["state"]) == 16


class Log(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: Annotated[int, operator.add]
    plain: str


def test_with_a_schema_they_do_too(door):
    def writes(ctx, node_input):
        ctx.state["log"] = [1]
        ctx.state["log"] = [2]
        assert ctx.state["log"][-2:] == [1, 2]
        part = ctx.run_node(part_of, 3)
        ctx.state["log"] = [4]
        part.result()
        ctx.state["plain"] = "x"
        del ctx.state["plain"]
        return node_input

    def part_of(ctx, node_input):
        ctx.state["log"] = [node_input]
        ctx.state["n"] = 1

    inner = Workflow("inner", [("START", writes)])
    graph = Workflow("w", [("START", (writes, inner))], state_schema=Log).compile(InMemorySaver())
    door.invoke(graph, {"node_input": 0, "state": {"log": [0]}}, thread())
    values = graph.get_state(thread()).values
    assert values["log"] == [0, 1, 2, 3, 4, 1, 2, 3, 4]
    assert values["n"] == 2
    assert fold_events(values["@events"], Log) == {"log": values["log"], "n": 2}


def test_a_node_runs_in_another_process():
    with ProcessExecutor(1) as executor:
        workflow = Workflow("w", [("START", add, node(in_another, name="there", executor=executor), show)])
        graph = workflow.compile(InMemorySaver())
        assert graph.invoke({"node_input": 1}, thread()) == {"output": [["there", 2, 1]], "state": {"k1": 1, "t": 2}}
        assert [event.path for event in events(graph)] == ["w@1/add@1", "w@1/there@1", "w@1/show@1"]


def test_the_functions_of_a_workflow_run_in_another_process():
    inner = Workflow("inner", [("START", where, where)])
    chain = ("START", (node(where, name="a"), awaits), JoinNode("join"), inner)
    with ProcessExecutor(1) as executor:
        graph = Workflow("w", [chain]).compile(InMemorySaver(), executor=executor)
        result = graph.invoke({"node_input": 1}, thread())
    pids = result["state"]
    assert pids.keys() == {"a", "awaits", "where", "where_2"}
    assert pids["a"] == pids["awaits"] != os.getpid()
    assert pids["where"] == pids["where_2"] == os.getpid()  # an inner workflow runs with its node
    assert result["output"] == {"a": 1, "awaits": 1}


def test_compile_takes_executors_only():
    with pytest.raises(GraphDefinitionError, match="executor"):
        Workflow("w", [("START", add)]).compile(executor=5)


def where(ctx, node_input):
    ctx.state[ctx.node] = os.getpid()
    return node_input


async def awaits(ctx, node_input):
    return where(ctx, node_input)


def in_another(ctx, node_input, k1):
    ctx.state["t"] = node_input
    return [ctx.node, node_input, k1]


def test_changes_in_place_are_found_inside_too(door):
    def changes(ctx):
        ctx.state["list"].append(1)

    outer = Workflow("outer", [("START", Workflow("inner", [("START", changes)]))])
    with pytest.raises(MutatedStateError, match="node 'changes' of workflow 'inner'"):
        run(door, outer, state={"list": []}, debug=True)


def test_compile_takes_what_every_graph_takes(door):
    graph = Workflow("w", [("START", add, show)]).compile(InMemorySaver(), interrupt_before=["show"], name="other")
    assert graph.name == "other"
    assert door.invoke(graph, {"node_input": 1}, thread())["__interrupt__"]
    assert door.invoke(graph, None, thread())["output"] == [2]


def test_a_large_value_is_given_as_it_is(door):
    value = bytearray(1_000_000)
    seen = []

    def sees(ctx, node_input, value: bytearray):
        seen.extend([value, ctx.state["value"], node_input])

    run(door, Workflow("w", [("START", sees)]), value, {"value": value})
    assert all(each is value for each in seen)


def test_a_chain_of_two_thousand_nodes(door):
    def step(node_input: int):
        return node_input + 1

    graph = Workflow("w", [("START", *[step] * 2_000)]).compile()
    assert door.invoke(graph, {"node_input": 0})["output"] == 2_000


def test_what_a_node_does_costs_the_same_however_many_there_are():
    def step(node_input: int):
        return node_input + 1

    def calls(length):
        graph = Workflow("w", [("START", *[step] * length)]).compile()
        count = [0]

        def profiled(_frame, event, _arg):
            count[0] += event == "call"

        sys.setprofile(profiled)
        try:
            graph.invoke({"node_input": 0})
        finally:
            sys.setprofile(None)
        return count[0]

    few, many = calls(100), calls(200)
    assert many - few == calls(300) - many  # each further node adds as many calls as the one before


def test_a_graph_is_no_workflow_of_names():
    assert Home is Workflow
    with pytest.raises(GraphDefinitionError):
        Workflow("w", [("START", "add")])


def test_the_last_nodes_are_those_that_nothing_follows(door):
    def chooses(ctx, node_input):
        ctx.route = node_input
        return "chooses"

    workflow = Workflow("w", [("START", chooses, {"end": END, "on": show})])
    assert run(door, workflow, "end")["output"] == {"chooses": "chooses"}
    assert run(door, workflow, "on")["output"] == {"show": ["chooses"]}
