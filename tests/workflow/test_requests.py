"""Nodes that ask by `RequestInput`, and go on with the reply."""

from dataclasses import dataclass
from typing import Literal

import pytest

from pregel import InMemorySaver, interrupt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.codec import serializable
from pregel.errors import InvalidResumeError, MissingCheckpointerError
from pregel.graph.workflow import Event, RequestInput, Workflow, WorkflowDataError, node
from pregel.types import Command
from tests.workflow.kit import deltas, run, thread


def echo(node_input):
    return ["echo", node_input]


def asks(ctx, node_input):
    ran.append("asks")
    ctx.state["asked"] = ctx.state.get("asked", 0) + 1
    return RequestInput("sure?", {"about": node_input}, interrupt_id="sure")


ran = []


@pytest.fixture(autouse=True)
def nothing_ran():
    ran.clear()


def test_the_reply_is_the_output_and_the_function_does_not_run_again(door, saver):
    graph = Workflow("w", [("START", asks, echo)]).compile(saver)
    (question,) = door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert question.value == {
        "interrupt_id": "sure",
        "message": "sure?",
        "payload": {"about": 5},
        "path": "w@1/asks@1",
    }
    result = door.invoke(graph, Command(resume="yes"), thread())
    assert result == {"output": ["echo", "yes"], "state": {"asked": 1}}
    assert ran == ["asks"]
    assert deltas(graph) == [{"asked": 1}, {}, {}]


@pytest.mark.parametrize("reply", [None, False, "", {"result": 1}, [1]])
def test_any_reply_is_one(door, saver, reply):
    graph = Workflow("w", [("START", asks, echo)]).compile(saver)
    (question,) = door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert door.invoke(graph, Command(resume={question.id: reply}), thread())["output"] == ["echo", reply]


def test_a_request_can_be_returned_and_awaited(door, saver):
    async def returns(ctx):
        ctx.state["a"] = 1
        return RequestInput("?")

    graph = Workflow("w", [("START", returns, echo)]).compile(saver)
    door.invoke(graph, {"node_input": 0}, thread())
    assert door.invoke(graph, Command(resume=1), thread()) == {"output": ["echo", 1], "state": {"a": 1}}

    async def yields(ctx):
        ctx.state["b"] = 1
        yield RequestInput("?")

    graph = Workflow("w2", [("START", yields, echo)]).compile(saver)
    door.invoke(graph, {"node_input": 0}, thread("u"))
    assert door.invoke(graph, Command(resume=1), thread("u")) == {"output": ["echo", 1], "state": {"b": 1}}


def test_a_function_without_context_asks(door, saver):
    def returns():
        ran.append("returns")
        return RequestInput("?")

    graph = Workflow("w", [("START", returns, echo)]).compile(saver)
    door.invoke(graph, {"node_input": 0}, thread())
    assert door.invoke(graph, Command(resume=1), thread())["output"] == ["echo", 1]
    assert ran == ["returns"]


def test_with_rerun_on_resume_the_function_runs_again_and_its_writes_count_once(door, saver):
    def asks_again(ctx, node_input):
        ran.append(dict(ctx.resume_inputs))
        ctx.state["asked"] = ctx.state.get("asked", 0) + 1
        yield Event(state={"told": ctx.state.get("told", 0) + 1})
        if "sure" not in ctx.resume_inputs:
            yield RequestInput("sure?", interrupt_id="sure")
        yield ctx.resume_inputs["sure"]

    graph = Workflow("w", [("START", node(asks_again, rerun_on_resume=True), echo)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume="yes"), thread()) == {
        "output": ["echo", "yes"],
        "state": {"asked": 1, "told": 1},
    }
    assert ran == [{}, {"sure": "yes"}]


def test_several_requests_come_one_after_the_other(door, saver):
    def asks_twice(ctx):
        yield RequestInput("name?", interrupt_id="name")
        yield RequestInput("age?", interrupt_id="age", response_schema=int)
        yield dict(ctx.resume_inputs)

    graph = Workflow("w", [("START", node(asks_twice, rerun_on_resume=True))]).compile(saver)
    assert door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"][0].value["message"] == "name?"
    assert door.invoke(graph, Command(resume="Ada"), thread())["__interrupt__"][0].value["message"] == "age?"
    assert door.invoke(graph, Command(resume="36"), thread())["output"] == {"name": "Ada", "age": 36}


@serializable
@dataclass
class Verdict:
    good: bool
    why: str = ""


@serializable(tag="a tag of its own")
@dataclass
class Tagged:
    good: bool


def test_a_class_keeps_the_tag_that_it_has(door, saver):
    from pregel.codec.registry import GLOBAL

    def asks():
        return RequestInput("?", response_schema=Tagged)

    graph = Workflow("w", [("START", asks)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume={"good": True}), thread())["output"] == Tagged(good=True)
    assert GLOBAL.types[Tagged].tag == "a tag of its own"


def test_a_class_that_is_not_registered_any_more_is_named(door, saver, monkeypatch):
    from pregel.codec.registry import GLOBAL

    def asks():
        return RequestInput("?", response_schema=Tagged)

    graph = Workflow("w", [("START", asks)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    monkeypatch.delitem(GLOBAL.tags, "a tag of its own")
    with pytest.raises(WorkflowDataError, match=r"must be of the type .a tag of its own., which is not registered"):
        door.invoke(graph, Command(resume={"good": True}), thread())


@pytest.mark.parametrize("reruns", [False, True])
@pytest.mark.parametrize(
    ("schema", "wrong", "reply", "expected"),
    [
        (int, "x", "7", 7),
        (Literal["yes", "no"], "perhaps", "no", "no"),
        (Verdict, {"good": "?"}, {"good": True}, Verdict(good=True)),
        (list[int], ["x"], ["1"], [1]),
        (dict[str, int], {"a": "x"}, {"a": "1"}, {"a": 1}),
        (int | None, "x", None, None),
    ],
)
def test_a_reply_is_checked_and_converted(door, saver, reruns, schema, wrong, reply, expected):
    def asks(ctx):
        if not ctx.resume_inputs:
            yield RequestInput("?", response_schema=schema)
        yield ctx.resume_inputs["input"]

    graph = Workflow("w", [("START", node(asks, rerun_on_resume=reruns), echo)]).compile(saver)
    (question,) = door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert question.response_schema is not None
    with pytest.raises(InvalidResumeError, match="does not fit what was asked for"):
        door.invoke(graph, Command(resume={question.id: wrong}), thread())
    assert door.invoke(graph, Command(resume={question.id: reply}), thread())["output"] == ["echo", expected]


def test_a_schema_that_cannot_be_stored_is_refused_when_it_is_asked_for(door):
    def asks():
        return RequestInput("?", response_schema=schema)

    graph = Workflow("w", [("START", asks)]).compile(InMemorySaver())
    schema = object
    with pytest.raises(WorkflowDataError, match="can't be stored with the question"):
        door.invoke(graph, {"node_input": 5}, thread())
    schema = 5
    with pytest.raises(WorkflowDataError, match="response_schema takes a builtin type"):
        door.invoke(graph, {"node_input": 5}, thread("u"))


def test_another_process_goes_on_with_the_reply(door, tmp_path):
    path = tmp_path / "runs.sqlite"
    with SqliteSaver(path) as saver:
        door.invoke(Workflow("w", [("START", asks, echo)]).compile(saver), {"node_input": 5}, thread())
    with SqliteSaver(path) as saver:
        graph = Workflow("w", [("START", asks, echo)]).compile(saver)
        assert door.invoke(graph, Command(resume="yes"), thread()) == {"output": ["echo", "yes"], "state": {"asked": 1}}
    assert ran == ["asks"]


def test_other_branches_go_on_while_one_waits(door, saver):
    def beside(ctx):
        ran.append("beside")
        ctx.state["beside"] = 1
        return "beside"

    graph = Workflow("w", [("START", (asks, beside), echo)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume="yes"), thread())["output"] == [
        "echo",
        {"asks": "yes", "beside": "beside"},
    ]
    assert sorted(ran) == ["asks", "beside"]


def test_two_nodes_ask_at_once(door, saver):
    def asks_too():
        return RequestInput("too?")

    graph = Workflow("w", [("START", (asks, asks_too), echo)]).compile(saver)
    asked = door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert [each.value["message"] for each in asked] == ["sure?", "too?"]
    replies = {each.id: each.value["message"] for each in asked}
    assert door.invoke(graph, Command(resume=replies), thread())["output"] == [
        "echo",
        {"asks": "sure?", "asks_too": "too?"},
    ]


def test_a_node_asks_by_interrupt_too(door, saver):
    def asks_directly(ctx):
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return interrupt("direct?")

    graph = Workflow("w", [("START", asks_directly, echo)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume="yes"), thread()) == {"output": ["echo", "yes"], "state": {"n": 1}}


def test_a_request_behind_an_interrupt(door, saver):
    def both(ctx):
        ran.append("both")
        ctx.state["first"] = [interrupt("first?"), interrupt("second?")]
        return RequestInput("third?")

    graph = Workflow("w", [("START", both, echo)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    door.invoke(graph, Command(resume=1), thread())
    assert door.invoke(graph, Command(resume=2), thread())["__interrupt__"][0].value["message"] == "third?"
    assert door.invoke(graph, Command(resume=3), thread()) == {"output": ["echo", 3], "state": {"first": [1, 2]}}
    assert ran == ["both"] * 3


def test_a_function_that_runs_again_asks_in_one_way(door, saver):
    def both(ctx):
        interrupt("first?")
        return RequestInput("second?")

    graph = Workflow("w", [("START", node(both, rerun_on_resume=True))]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    with pytest.raises(WorkflowDataError, match="use one of them, or yield the request in a generator"):
        door.invoke(graph, Command(resume=1), thread())


def test_a_node_with_an_output_cannot_ask_what_would_be_one(door, saver):
    def both(ctx):
        ctx.output = 1
        return RequestInput("second?")

    graph = Workflow("w", [("START", both)]).compile(saver)
    with pytest.raises(WorkflowDataError, match="has given an output, which the reply would be"):
        door.invoke(graph, {"node_input": 5}, thread())


def test_a_route_that_was_taken_before_the_question_counts(door, saver):
    def asks(ctx):
        ctx.route = "x"
        return RequestInput("?")

    graph = Workflow("w", [("START", asks, {"x": echo})]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume=1), thread())["output"] == ["echo", 1]


def test_without_a_checkpointer_nothing_could_wait(door):
    with pytest.raises(MissingCheckpointerError):
        run(door, Workflow("w", [("START", asks)]))


def test_a_question_in_a_loop_is_another_one_each_time(door, saver):
    def loops(ctx, node_input):
        return RequestInput(f"{node_input}?")

    def again(ctx, node_input):
        ctx.route = "end" if node_input == "stop" else "again"
        return node_input

    graph = Workflow("w", [("START", loops, again, {"again": loops, "end": echo})]).compile(saver)
    assert door.invoke(graph, {"node_input": "a"}, thread())["__interrupt__"][0].value["message"] == "a?"
    assert door.invoke(graph, Command(resume="b"), thread())["__interrupt__"][0].value["message"] == "b?"
    assert door.invoke(graph, Command(resume="stop"), thread())["output"] == ["echo", "stop"]


def test_an_inner_workflow_asks(door, saver):
    inner = Workflow("inner", [("START", asks)])
    graph = Workflow("outer", [("START", inner, echo)]).compile(saver)
    (question,) = door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert question.value["message"] == "sure?"
    assert door.invoke(graph, Command(resume="yes"), thread()) == {"output": ["echo", "yes"], "state": {"asked": 1}}
    assert ran == ["asks"]


def test_two_requests_of_one_id_are_an_error(door, saver):
    def asks_twice():
        yield RequestInput("name?", interrupt_id="x")
        yield RequestInput("age?", interrupt_id="x")

    graph = Workflow("w", [("START", node(asks_twice, rerun_on_resume=True))]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    with pytest.raises(WorkflowDataError, match="asks twice by the interrupt_id 'x'"):
        door.invoke(graph, Command(resume=1), thread())
