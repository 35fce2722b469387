"""Generators that ask: `reply = yield RequestInput(...)`, and everything behind it counts."""

import pytest

from pregel import InMemorySaver, interrupt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import InvalidResumeError
from pregel.executors.process import ProcessExecutor
from pregel.graph.workflow import Event, RequestInput, Runner, Workflow, WorkflowDataError, node
from pregel.types import Command, RetryPolicy
from tests.workflow.kit import Way, deltas, events, thread


def echo(node_input):
    return ["echo", node_input]


def interview(ctx, node_input):
    ctx.state["begun"] = ctx.state.get("begun", 0) + 1
    yield Event(content="hello")
    name = yield RequestInput("name?", {"about": node_input})
    yield Event(content=f"hello {name}", state={"name": name})
    age = yield RequestInput("age?", response_schema=int)
    ctx.state["age"] = age
    yield Event(content="thanks")
    yield f"{name}, {age}"


async def ainterview(ctx, node_input):
    ctx.state["begun"] = ctx.state.get("begun", 0) + 1
    yield Event(content="hello")
    name = yield RequestInput("name?", {"about": node_input})
    yield Event(content=f"hello {name}", state={"name": name})
    age = yield RequestInput("age?", response_schema=int)
    ctx.state["age"] = age
    yield Event(content="thanks")
    yield f"{name}, {age}"


@pytest.mark.parametrize("asks", [interview, ainterview])
def test_it_goes_on_behind_each_question_and_its_writes_count_once(loop, saver, asks):
    graph = Workflow("w", [("START", node(asks, name="interview"), echo)]).compile(saver)
    (question,) = loop.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert question.value == {
        "interrupt_id": "input",
        "message": "name?",
        "payload": {"about": 5},
        "path": "w@1/interview@1",
    }
    (question,) = loop.invoke(graph, Command(resume="Ada"), thread())["__interrupt__"]
    assert question.value["interrupt_id"] == "input_2"
    with pytest.raises(InvalidResumeError, match="does not fit what was asked for"):
        loop.invoke(graph, Command(resume="old"), thread())
    assert loop.invoke(graph, Command(resume="36"), thread()) == {
        "output": ["echo", "Ada, 36"],
        "state": {"begun": 1, "name": "Ada", "age": 36},
    }
    assert deltas(graph) == [{"begun": 1}, {"name": "Ada"}, {"age": 36}, {}, {}]
    assert [event.content for event in events(graph)] == ["hello", "hello Ada", "thanks", None, None]


def test_another_process_goes_on(door, tmp_path):
    def open_graph(saver):
        return Workflow("w", [("START", interview, echo)]).compile(saver)

    for reply, ended in ((None, False), ("Ada", False), ("36", True)):
        with SqliteSaver(tmp_path / "runs.sqlite") as saver:
            given = {"node_input": 5} if reply is None else Command(resume=reply)
            result = door.invoke(open_graph(saver), given, thread())
            assert ("output" in result) == ended
    assert result == {"output": ["echo", "Ada, 36"], "state": {"begun": 1, "name": "Ada", "age": 36}}


def test_what_it_raises_behind_a_question_is_raised(door, saver):
    def asks():
        reply = yield RequestInput("?")
        raise ConnectionError(reply)

    graph = Workflow("w", [("START", asks)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    with pytest.raises(ConnectionError, match="down"):
        door.invoke(graph, Command(resume="down"), thread())


@pytest.mark.parametrize("reply", [None, False, "", [1]])
def test_the_last_reply_is_its_output_if_it_gives_none(door, saver, reply):
    def asks():
        yield RequestInput("first?")
        yield RequestInput("second?")
        yield Event(content="done")

    graph = Workflow("w", [("START", asks, echo)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    door.invoke(graph, Command(resume="one"), thread())
    (asked,) = graph.get_state(thread()).interrupts
    assert door.invoke(graph, Command(resume={asked.id: reply}), thread())["output"] == ["echo", reply]


def test_an_output_before_the_question_stays(door, saver):
    def asks():
        yield 1
        yield RequestInput("?")

    graph = Workflow("w", [("START", asks, echo)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume="reply"), thread())["output"] == ["echo", 1]


def test_a_function_that_returns_a_generator_asks_as_one(door, saver):
    def asks():
        def inner():
            yield "got " + (yield RequestInput("?"))

        return inner()

    graph = Workflow("w", [("START", asks)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume="it"), thread())["output"] == "got it"


def test_a_question_that_a_generator_returns_gives_its_output(door, saver):
    def asks():
        name = yield RequestInput("name?")
        return RequestInput(f"sure, {name}?")

    graph = Workflow("w", [("START", asks)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    (question,) = door.invoke(graph, Command(resume="Ada"), thread())["__interrupt__"]
    assert question.value["message"] == "sure, Ada?"
    assert door.invoke(graph, Command(resume="yes"), thread())["output"] == "yes"


def test_branches_ask_side_by_side_and_each_goes_on(door, saver):
    ran = []

    def left(ctx):
        ran.append("left")
        ctx.state["left"] = yield RequestInput("left?")
        ctx.state["left_again"] = yield RequestInput("left again?")

    def right(ctx):
        ran.append("right")
        ctx.state["right"] = yield RequestInput("right?")

    graph = Workflow("w", [("START", (left, right), echo)]).compile(saver)
    asked = door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert [each.value["path"] for each in asked] == ["w@1/left@1", "w@1/right@1"]
    (first, second) = [each.id for each in asked]
    asked = door.invoke(graph, Command(resume={first: 1}), thread())["__interrupt__"]
    assert [each.value["message"] for each in asked] == ["left again?", "right?"]
    assert sorted(ran) == ["left", "left", "right"]  # who has no reply does not run again
    result = door.invoke(graph, Command(resume={asked[0].id: 2, second: 3}), thread())
    assert result["state"] == {"left": 1, "left_again": 2, "right": 3}
    assert result["output"] == ["echo", {"left": 2, "right": 3}]


def test_an_inner_workflow_asks(door, saver):
    def before(ctx, node_input):
        ctx.state["before"] = ctx.state.get("before", 0) + 1
        return node_input

    inner = Workflow("inner", [("START", before, interview)])
    graph = Workflow("outer", [("START", inner, echo)]).compile(saver)
    (question,) = door.invoke(graph, {"node_input": 5}, thread())["__interrupt__"]
    assert question.value["path"] == "outer@1/inner@1/interview@1"
    door.invoke(graph, Command(resume="Ada"), thread())
    assert door.invoke(graph, Command(resume="36"), thread()) == {
        "output": ["echo", "Ada, 36"],
        "state": {"before": 1, "begun": 1, "name": "Ada", "age": 36},
    }


def test_what_runs_inside_it_is_not_run_again(door, saver):
    ran = []

    def costly(node_input):
        ran.append(node_input)
        return node_input + 1

    def asks(ctx):
        value = ctx.run_node(costly, 1).result()
        factor = yield RequestInput("factor?", response_schema=int)
        yield value * factor

    graph = Workflow("w", [("START", asks)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    assert door.invoke(graph, Command(resume=10), thread())["output"] == 20
    assert ran == [1]


def test_another_question_in_the_place_of_one_that_has_a_reply_is_an_error(door, saver):
    def asks(ctx):
        if "input" not in ctx.resume_inputs:
            yield RequestInput("name?")
        yield RequestInput("age?")

    graph = Workflow("w", [("START", asks)]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    with pytest.raises(WorkflowDataError, match=r"asks 'age\?' where it asked 'name\?' when it ran before"):
        door.invoke(graph, Command(resume="Ada"), thread())


def test_what_it_tells_before_it_asks_comes_before_the_question(door):
    runner = Runner(Workflow("w", [("START", interview)]))

    def said(given):
        found = Way(door).events(runner, given, session_id="s")
        return [(event.partial, event.sequence, event.content) for event in found if event.content is not None]

    *hello, (_, _, question) = said("in")
    assert hello == [(True, None, "hello")]
    assert question["message"] == "name?"
    *hello, (_, _, question) = said("Ada")
    assert hello == [(True, None, "hello Ada")]
    assert question["message"] == "age?"
    assert said("36") == [(False, 4, "hello"), (False, 5, "hello Ada"), (False, 6, "thanks")]


def test_without_readers_nothing_is_told_ahead(door):
    graph = Workflow("w", [("START", interview)]).compile(InMemorySaver())
    door.invoke(graph, {"node_input": 5}, thread())
    door.invoke(graph, Command(resume="Ada"), thread())
    door.invoke(graph, Command(resume=36), thread())
    assert [event.content for event in events(graph)] == ["hello", "hello Ada", "thanks", None]


def test_an_attempt_that_fails_behind_the_reply_is_made_again_with_it(door, saver):
    tried = []

    def asks(ctx):
        ctx.state["asked"] = ctx.state.get("asked", 0) + 1
        number = yield RequestInput("?", response_schema=int)
        tried.append(number)
        if len(tried) < 4:
            raise ConnectionError("down")
        yield number + 1

    retries = RetryPolicy(max_attempts=2, initial_interval=0)
    graph = Workflow("w", [("START", node(asks, retry=retries))]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    with pytest.raises(ConnectionError):
        door.invoke(graph, Command(resume="1"), thread())
    assert door.invoke(graph, None, thread()) == {"output": 2, "state": {"asked": 1}}
    assert tried == [1, 1, 1, 1]


@pytest.mark.parametrize("reruns", [False, True])
def test_it_asks_by_interrupt_too(door, saver, reruns):
    def both(ctx):
        first = yield RequestInput("1?")
        second = interrupt("2?")
        third = yield RequestInput("3?", interrupt_id="third", response_schema=int)
        yield [first, second, third, interrupt("4?"), dict(ctx.resume_inputs)]

    graph = Workflow("w", [("START", node(both, rerun_on_resume=reruns))]).compile(saver)
    door.invoke(graph, {"node_input": 5}, thread())
    for reply in ("one", "two", "3"):
        assert "output" not in door.invoke(graph, Command(resume=reply), thread())
    result = door.invoke(graph, Command(resume="four"), thread())
    assert result["output"] == ["one", "two", 3, "four", {"input": "one", "third": 3}]


def test_it_goes_on_in_the_process_of_an_executor():
    with ProcessExecutor(1) as executor:
        graph = Workflow("w", [("START", interview)]).compile(InMemorySaver(), executor=executor)
        graph.invoke({"node_input": 5}, thread())
        graph.invoke(Command(resume="Ada"), thread())
        with pytest.raises(InvalidResumeError, match="does not fit what was asked for"):
            graph.invoke(Command(resume="old"), thread())
        result = graph.invoke(Command(resume="36"), thread())
    assert result == {"output": "Ada, 36", "state": {"begun": 1, "name": "Ada", "age": 36}}
