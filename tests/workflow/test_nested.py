"""Workflows as nodes of workflows."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

import pytest

from pregel import InMemorySaver, interrupt
from pregel.errors import InvalidConcurrentUpdateError
from pregel.graph.workflow import Event, JoinNode, StateSchemaError, Workflow, WorkflowConfigurationError, node
from pregel.types import Command
from tests.workflow.kit import deltas, events, run, thread


def first(ctx, node_input):
    ctx.state["first"] = node_input
    return node_input + 1


async def second(ctx, node_input):
    ctx.state["second"] = [ctx.state["first"], node_input]
    return node_input + 1


def before(ctx, node_input):
    ctx.state["before"] = node_input
    return node_input + 1


def after(ctx, node_input):
    return [node_input, *sorted(ctx.state)]


INNER = Workflow("inner", [("START", first, second)])


def test_a_workflow_is_a_node_with_its_last_output_on_the_same_state(door):
    graph = Workflow("outer", [("START", before, INNER, after)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0}, thread()) == {
        "output": [3, "before", "first", "second"],
        "state": {"before": 0, "first": 1, "second": [1, 2]},
    }
    assert deltas(graph) == [{"before": 0}, {"first": 1}, {"second": [1, 2]}, {}]


def test_events_have_the_inner_workflow_as_author_and_the_path_to_it(door):
    graph = Workflow("outer", [("START", before, INNER, after)]).compile(InMemorySaver())
    door.invoke(graph, {"node_input": 0}, thread())
    assert [(event.author, event.path, event.step, event.sequence) for event in events(graph)] == [
        ("outer", "outer@1/before@1", 1, 2),
        ("inner", "outer@1/inner@1/first@1", 2, 3),
        ("inner", "outer@1/inner@1/second@1", 2, 4),
        ("outer", "outer@1/after@1", 3, 5),
    ]


def test_three_deep(door):
    middle = Workflow("middle", [("START", INNER)])
    graph = Workflow("outer", [("START", middle)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 1}, thread())["output"] == 3
    assert [event.path for event in events(graph)] == [
        "outer@1/middle@1/inner@1/first@1",
        "outer@1/middle@1/inner@1/second@1",
    ]


def test_an_inner_workflow_that_runs_again_begins_anew(door):
    def count(ctx, node_input):
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return node_input

    def again(ctx, node_input):
        ctx.route = ctx.state["n"] < 3
        return node_input

    inner = Workflow("inner", [("START", count)])
    graph = Workflow("outer", [("START", inner, again, {True: inner, False: after})]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 7}, thread()) == {"output": [7, "n"], "state": {"n": 3}}
    assert [event.path for event in events(graph) if "count" in event.path] == [
        f"outer@1/inner@{number}/count@1" for number in (1, 2, 3)
    ]


def test_what_an_inner_workflow_deletes_is_gone(door):
    def deletes(ctx):
        del ctx.state["before"]

    graph = Workflow("outer", [("START", before, Workflow("inner", [("START", deletes)]), after)]).compile()
    assert door.invoke(graph, {"node_input": 0}) == {"output": [None], "state": {}}


def test_inner_workflows_run_side_by_side(door):
    left = Workflow("left", [("START", node(first, name="a"))])

    def writes(ctx, node_input):
        ctx.state["right"] = node_input

    right = Workflow("right", [("START", writes)])
    result = run(door, Workflow("outer", [("START", (left, right), JoinNode("join"))]), 1)
    assert result == {"output": {"left": 2, "right": None}, "state": {"first": 1, "right": 1}}


def test_inner_workflows_that_write_one_key_are_an_error(door):
    left, right = Workflow("left", [("START", first)]), Workflow("right", [("START", first)])
    with pytest.raises(InvalidConcurrentUpdateError, match="the key 'first'"):
        run(door, Workflow("outer", [("START", (left, right))]), 1)


class Log(TypedDict, total=False):
    log: Annotated[list, operator.add]
    before: int
    first: int
    second: list


def writes_log(ctx, node_input):
    ctx.state["log"] = [node_input]
    yield Event(state={"log": [node_input + 1]})
    yield node_input


def test_a_key_with_a_reducer_takes_what_the_inner_workflow_gives_once(door):
    inner = Workflow("inner", [("START", writes_log, writes_log)])
    outer = Workflow("outer", [("START", writes_log, inner)], state_schema=Log)
    assert run(door, outer, 1, {"log": [0]})["log"] == [0, 1, 2, 1, 2, 1, 2]


def test_an_inner_workflow_has_the_schema_of_the_outer_one(door):
    def misspelt(frist):
        return frist

    inner = Workflow("inner", [("START", misspelt)])
    with pytest.raises(StateSchemaError, match=r"node 'misspelt' of workflow 'inner'.*Did you mean 'first'"):
        Workflow("outer", [("START", inner)], state_schema=Log)
    outer = Workflow("outer", [("START", before, INNER)], state_schema=Log)
    assert run(door, outer, 0) == {"output": 3, "log": [], "before": 0, "first": 1, "second": [1, 2]}


@dataclass
class Counting:
    n: Annotated[int, operator.add] = 10
    log: Annotated[list, operator.add] = field(default_factory=lambda: ["start"])


def test_the_start_of_a_key_with_a_reducer_counts_once(door):
    def adds(ctx):
        ctx.state["n"] = 1
        ctx.state["log"] = ["more"]
        return [ctx.state["n"], ctx.state["log"]]

    outer = Workflow("outer", [("START", Workflow("inner", [("START", adds)]))], state_schema=Counting)
    assert run(door, outer) == {"output": [11, ["start", "more"]], "n": 11, "log": ["start", "more"]}


class First(TypedDict, total=False):
    first: int


class More(TypedDict, total=False):
    frist: int


def test_an_inner_schema_declares_keys_of_the_outer_one(door):
    inner = Workflow("inner", [("START", first)], state_schema=First)
    assert run(door, Workflow("outer", [("START", before, inner)], state_schema=Log), 0)["first"] == 1
    assert run(door, Workflow("outer", [("START", before, inner)]), 0)["state"] == {"before": 0, "first": 1}
    with pytest.raises(StateSchemaError, match=r"declares the key 'frist'.*Did you mean 'first'"):
        Workflow("outer", [("START", Workflow("inner", [("START", first)], state_schema=More))], state_schema=Log)


def test_a_question_inside_waits_and_what_was_done_is_not_done_again(door, saver):
    ran = []

    def asks(ctx, node_input):
        ran.append("asks")
        ctx.state["answer"] = interrupt("really?")

    def begins(ctx, node_input):
        ran.append("begins")
        ctx.state["n"] = ctx.state.get("n", 0) + 1

    inner = Workflow("inner", [("START", begins, asks)])
    graph = Workflow("outer", [("START", before, inner, after)]).compile(saver)
    asked = door.invoke(graph, {"node_input": 0}, thread())["__interrupt__"]
    assert [each.value for each in asked] == ["really?"]
    assert door.invoke(graph, Command(resume="yes"), thread())["state"] == {"before": 0, "n": 1, "answer": "yes"}
    assert ran == ["begins", "asks", "asks"]


def test_temp_keys_are_shared_with_an_inner_workflow(door):
    def sets(ctx):
        ctx.state["temp:a"] = 1
        ctx.state["temp:b"] = 2

    def uses(ctx):
        ctx.state["temp:c"] = ctx.state["temp:a"] + 1
        del ctx.state["temp:b"]

    def sees(ctx):
        return {key: value for key, value in ctx.state.items() if key.startswith("temp:")}

    outer = Workflow("outer", [("START", sets, Workflow("inner", [("START", uses)]), sees)])
    assert run(door, outer) == {"output": {"temp:a": 1, "temp:c": 2}, "state": {}}


def test_partial_events_of_an_inner_workflow_have_their_path(door):
    def streams():
        yield Event(content="a", partial=True)

    graph = Workflow("outer", [("START", Workflow("inner", [("START", streams)]))]).compile()
    parts = door.stream(graph, {"node_input": 0}, stream_mode="custom", subgraphs=True)
    assert [part.path for _, part in parts] == ["outer@1/inner@1/streams@1"]


def test_a_failure_inside_fails_the_node_and_nothing_of_it_counts(door):
    def fails(ctx):
        ctx.state["dirty"] = 1
        raise ValueError("bad")

    graph = Workflow("outer", [("START", Workflow("inner", [("START", first, fails)]))]).compile(InMemorySaver())
    with pytest.raises(ValueError, match="bad"):
        door.invoke(graph, {"node_input": 1}, thread())
    assert graph.get_state(thread()).values["state"] == {}


def test_a_workflow_can_be_given_another_name(door):
    graph = Workflow("outer", [("START", node(INNER, name="a"), node(INNER, name="b"))]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0}, thread())["output"] == 4
    assert [event.path for event in events(graph)][::2] == ["outer@1/a@1/first@1", "outer@1/b@1/first@1"]
    with pytest.raises(WorkflowConfigurationError, match="is a workflow: parallel_worker"):
        node(INNER, parallel_worker=True)


def test_a_node_runs_a_workflow(door):
    def calls(ctx, node_input):
        return ctx.run_node(INNER, node_input).result()

    result = run(door, Workflow("outer", [("START", calls)]), 1)
    assert result == {"output": 3, "state": {"first": 1, "second": [1, 2]}}


class Plain(TypedDict, total=False):
    log: list[int]


@pytest.mark.parametrize(("outside", "inside"), [(Log, Plain), (Plain, Log), (None, Log)])
def test_a_key_has_the_same_reducer_inside_and_outside(outside, inside):
    inner = Workflow("inner", [("START", first)], inside)
    with pytest.raises(StateSchemaError, match="workflow 'inner', a node of workflow 'w', declares the key 'log' with"):
        Workflow("w", [("START", inner)], outside)


def test_a_key_with_the_same_reducer_may_start_otherwise(door):
    def write(ctx):
        ctx.state["log"] = [1]

    class Inside(TypedDict, total=False):
        log: Annotated[list[int], operator.add]

    @dataclass
    class Begun:
        log: Annotated[list[int], operator.add] = field(default_factory=lambda: [0])

    workflow = Workflow("w", [("START", Workflow("inner", [("START", write)], Inside))], Begun)
    assert run(door, workflow) == {"log": [0, 1]}


def test_a_node_runs_a_workflow_that_it_makes_anew_each_time(door, saver):
    def write(ctx, node_input):
        ctx.state[f"k{node_input}"] = node_input

    def outer(ctx):
        for number in (1, 2):
            ctx.run_node(node(Workflow("inner", [("START", write)]), name="part"), number).result()

    graph = Workflow("w", [("START", outer)]).compile(saver)
    assert door.invoke(graph, {}, thread())["state"] == {"k1": 1, "k2": 2}
