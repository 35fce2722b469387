"""What runs in the place of a node that has failed for good."""

import threading
from typing import Annotated, Literal, TypedDict

import anyio
import pytest

from pregel import END, START, Command, InMemorySaver, Runtime, StateGraph, interrupt
from pregel.errors import (
    ConcurrentRunError,
    GraphDefinitionError,
    InvalidUpdateError,
    NodeTimeoutError,
    StarvedJoinError,
    UnknownTargetError,
)
from pregel.testing import fake_clock
from pregel.types import NodeError, RetryPolicy, Send


def add(a: list, b: list) -> list:
    return a + b


class State(TypedDict, total=False):
    log: Annotated[list, add]
    x: int


@pytest.fixture
def clock():
    with fake_clock() as made:
        yield made


def fails(state):
    raise ValueError("no")


async def fails_awaited(state):
    await anyio.lowlevel.checkpoint()
    raise ValueError("no")


@pytest.fixture(params=[fails, fails_awaited], ids=["sync node", "async node"])
def failing(request):
    """A node that fails, in each form in turn."""
    return request.param


def handles(state, error):
    return {"log": [error.node, type(error.error).__name__, error.attempts]}


async def handles_awaited(state, error: NodeError):
    await anyio.lowlevel.checkpoint()
    return handles(state, error)


@pytest.fixture(params=[handles, handles_awaited], ids=["sync handler", "async handler"])
def handler(request):
    """An error handler in each form, in turn."""
    return request.param


def alone(action, *, checkpointer=None, **options):
    """Return a graph of one node."""
    return StateGraph(State).add_node("node", action, **options).add_edge(START, "node").compile(checkpointer)


def test_the_handler_s_result_is_the_task_s(door, failing, handler):
    graph = alone(failing, error_handler=handler)

    assert door.invoke(graph, {}) == {"log": ["node", "ValueError", 1]}
    assert door.stream(graph, {}) == [{"node": {"log": ["node", "ValueError", 1]}}]


def test_case_40_a_failure_that_is_handled_is_not_raised_beside_siblings(door, failing, handler):
    builder = StateGraph(State).add_node("node", failing, error_handler=handler)
    builder.add_node("sibling", lambda state: {"log": ["sibling"]}).add_edge(START, "node").add_edge(START, "sibling")
    graph = builder.compile()

    assert door.invoke(graph, {}) == {"log": ["node", "ValueError", 1, "sibling"]}
    assert {key for part in door.stream(graph, {}) for key in part} == {"node", "sibling"}


def test_case_40_a_timeout_is_handled(door, clock, handler):
    freed, ended = threading.Event(), threading.Event()

    def node(state):
        clock.advance(1)
        freed.wait()
        ended.set()

    graph = alone(node, timeout=1, error_handler=handler)

    assert door.invoke(graph, {}) == {"log": ["node", NodeTimeoutError.__name__, 1]}
    freed.set()
    ended.wait()


def test_the_handler_runs_when_there_are_no_attempts_left(door, clock):
    def node(state):
        raise ConnectionError

    graph = alone(node, retry_policy=RetryPolicy(max_attempts=4), error_handler=handles)

    assert door.invoke(graph, {}) == {"log": ["node", "ConnectionError", 4]}
    assert len(clock.slept) == 3


def test_the_handler_gets_what_the_node_got(door, failing):
    seen = []

    class Narrow(TypedDict):
        x: int

    def handler(state, error, runtime: Runtime, config):
        seen.append((state, type(error), runtime.attempt, runtime.node, runtime.step, config["tags"]))
        return {}

    def narrow(state: Narrow):
        raise ValueError

    builder = StateGraph(State).add_node("node", narrow, error_handler=handler)
    builder.add_conditional_edges(START, lambda state: ["node", Send("node", "a packet")], ["node"])
    door.invoke(builder.compile(), {"x": 1, "log": ["y"]}, {"tags": ["t"]})

    rest = (NodeError, 1, "node", 1, ["t"])
    assert sorted(seen, key=repr) == sorted([({"x": 1}, *rest), ("a packet", *rest)], key=repr)


def test_a_handler_need_not_ask_for_the_error(door, failing):
    assert door.invoke(alone(failing, error_handler=lambda state: {"log": ["handled"]}), {}) == {"log": ["handled"]}


def test_edges_of_the_node_do_not_fire_and_a_command_of_the_handler_leads_on(door, failing):
    def graph(answer):
        builder = StateGraph(State).add_node("node", failing, error_handler=lambda state: answer)
        builder.add_node("usual", lambda state: {"log": ["usual"]}).add_node(
            "rescue", lambda state: {"log": ["rescue"]}
        )
        builder.add_edge(START, "node").add_edge("node", "usual")
        builder.add_conditional_edges("node", lambda state: ["usual", "rescue"], ["usual", "rescue"])
        return builder.compile()

    assert door.invoke(graph({"log": ["handled"]}), {}) == {"log": ["handled"]}
    led = door.invoke(graph(Command(update={"log": ["handled"]}, goto="rescue")), {})
    assert led == {"log": ["handled", "rescue"]}


def test_a_join_does_not_hear_of_a_node_whose_handler_ran(door, failing):
    builder = StateGraph(State).add_node("good", lambda state: {}).add_node("bad", failing, error_handler=handles)
    builder.add_node("join", lambda state: {"log": ["join"]}).add_node("after", lambda state: {"log": ["after"]})
    builder.add_edge(START, "good").add_edge(START, "bad").add_edge(["good", "bad"], "join", wait="live")
    builder.add_edge(["bad"], "after")

    assert door.invoke(builder.compile(), {}) == {"log": ["bad", "ValueError", 1, "join"]}


def test_a_join_that_waits_for_a_node_whose_handler_ran_is_starved(door, failing):
    builder = StateGraph(State).add_node("good", lambda state: {}).add_node("bad", failing, error_handler=handles)
    builder.add_node("join", lambda state: {}).add_edge(["good", "bad"], "join")
    builder.add_edge(START, "good").add_edge(START, "bad")

    with pytest.raises(StarvedJoinError, match="'bad'"):
        door.invoke(builder.compile(), {})


def test_a_node_is_reached_by_the_annotated_command_of_a_handler(door, failing):
    def handler(state, error) -> Command[Literal["rescue"]]:
        return Command(goto="rescue")

    def anywhere(state, error) -> Command:
        return Command(goto="rescue")

    def rescue(state):
        return {"log": ["rescue"]}

    for each in (handler, anywhere):
        builder = StateGraph(State).add_node("node", failing, error_handler=each).add_node("rescue", rescue)
        graph = builder.add_edge(START, "node").compile()
        assert door.invoke(graph, {}) == {"log": ["rescue"]}
        assert ("node", "rescue") in graph.get_graph().edges() or each is anywhere


def test_a_handler_leads_nowhere_that_it_does_not_say_in_a_graph_with_live_joins(door, failing):
    def handler(state):
        return Command(goto="join")

    builder = StateGraph(State).add_node("bad", failing, error_handler=handler).add_node("join", lambda state: {})
    builder.add_edge(START, "bad").add_edge(["bad"], "join", wait="live")

    with pytest.raises(UnknownTargetError, match="join"):
        door.invoke(builder.compile(), {})


def test_a_handler_that_fails_fails_the_run_and_shows_both_errors(door, failing):
    def handler(state):
        raise KeyError("worse")

    with pytest.raises(KeyError, match="worse") as caught:
        door.invoke(alone(failing, error_handler=handler), {})

    assert isinstance(caught.value.__context__, ValueError)
    assert "node 'node'" in caught.value.__notes__[0]


def test_a_handler_may_raise_the_error_again(door, failing):
    def handler(state, error):
        raise error.error

    with pytest.raises(ValueError, match="no") as caught:
        door.invoke(alone(failing, error_handler=handler), {})

    assert caught.value.__context__ is None


def test_a_handler_s_result_is_checked_as_the_node_s_is(door, failing):
    with pytest.raises(InvalidUpdateError, match="typo"):
        door.invoke(alone(failing, error_handler=lambda state: {"typo": 1}), {})


def test_a_run_that_has_lost_its_thread_is_not_handled(door):
    def node(state):
        raise ConcurrentRunError("lost")

    with pytest.raises(ConcurrentRunError, match="lost"):
        door.invoke(alone(node, error_handler=handles), {})


def test_questions_of_the_handler_are_not_those_of_the_node(door, saver, failing):
    asked = []

    def node(state, runtime: Runtime):
        asked.append(interrupt("node?"))
        raise ValueError

    def handler(state):
        return {"log": [interrupt("handler?"), asked[-1]]}

    graph = alone(node, checkpointer=saver, error_handler=handler)
    config = {"configurable": {"thread_id": "t"}}
    first = door.invoke(graph, {}, config)["__interrupt__"]
    second = door.invoke(graph, Command(resume="one"), config)["__interrupt__"]

    assert [(each.value, each.id) for each in (*first, *second)] == [
        ("node?", "1:0:node#0"), ("handler?", "1:0:__error__node#0")
    ]  # fmt: skip
    assert door.invoke(graph, Command(resume="two"), config) == {"log": ["two", "one"]}


def test_a_graph_that_the_handler_runs_does_not_go_on_with_what_the_node_s_graph_has_stored(door, saver):
    def step(state):
        if state["x"] == 1:
            raise ValueError
        return {"log": [state["x"]]}

    sequence = [("a", lambda state: {"log": ["a"]}), ("b", step)]
    inner = StateGraph(State).add_sequence(sequence).add_edge(START, "a").compile()

    def node(state):
        return {"log": inner.invoke({"x": 1})["log"]}

    def handler(state):
        return {"log": inner.invoke({"x": 2})["log"]}

    graph = alone(node, checkpointer=saver, error_handler=handler)

    for durability in ("sync", "async", "exit"):
        config = {"configurable": {"thread_id": durability}}
        assert door.invoke(graph, {}, config, durability=durability) == {"log": ["a", 2]}
        assert graph.get_state(config).values == {"log": ["a", 2]}


def test_a_run_that_goes_on_does_not_run_a_handled_task_again_nor_let_its_joins_hear_of_it(door, saver):
    ran = []

    def handler(state):
        ran.append("handler")
        return {"log": ["handled"]}

    def flaky(state):
        ran.append("flaky")
        if ran.count("flaky") == 1:
            raise KeyError
        return {}

    builder = StateGraph(State).add_node("bad", fails, error_handler=handler).add_node("flaky", flaky)
    builder.add_node("join", lambda state: {"log": ["join"]}).add_node("after", lambda state: {"log": ["after"]})
    builder.add_edge(START, "bad").add_edge(START, "flaky").add_edge(["bad", "flaky"], "join", wait="live")
    builder.add_edge(["bad"], "after")
    graph = builder.compile(saver)
    config = {"configurable": {"thread_id": "t"}}
    with pytest.raises(KeyError):
        door.invoke(graph, {}, config)

    assert door.invoke(graph, None, config) == {"log": ["handled", "join"]}
    assert sorted(ran) == ["flaky", "flaky", "handler"]


def test_a_default_handler_stands_for_every_node_without_one_and_graphs_too(door, failing):
    inner = alone(failing)
    builder = StateGraph(State).set_node_defaults(error_handler=handles)
    builder.add_node("first", failing, error_handler=lambda state: Command(update={"log": ["own"]}, goto="inner"))
    builder.add_node("inner", inner).add_edge(START, "first").add_edge("first", "inner").add_edge("inner", END)

    assert door.invoke(builder.compile(), {}) == {"log": ["own", "inner", "ValueError", 1]}


def test_a_question_is_no_failure(door, saver):
    graph = alone(lambda state: {"log": [interrupt("?")]}, checkpointer=saver, error_handler=handles)
    config = {"configurable": {"thread_id": "t"}}

    assert door.invoke(graph, {}, config)["__interrupt__"][0].value == "?"
    assert door.invoke(graph, Command(resume="yes"), config) == {"log": ["yes"]}


def test_who_follows_tasks_is_told_of_one_that_ended_well(door):
    parts = door.stream(alone(fails, error_handler=handles), {}, stream_mode="tasks")

    assert [(part["id"], part.get("error"), part.get("result")) for part in parts] == [
        ("1:0:node", None, None),
        ("1:0:node", None, {"log": ["node", "ValueError", 1]}),
    ]


def test_only_handlers_may_ask_for_the_error():
    with pytest.raises(GraphDefinitionError, match="node 'node' of graph 'State' has a parameter 'error' that nothing"):
        alone(lambda state, error: {})

    def node(state, failure: NodeError):
        return {}

    with pytest.raises(GraphDefinitionError, match="has a parameter 'failure' that nothing fills"):
        alone(node)


def test_a_handler_with_a_parameter_that_nothing_fills_is_refused():
    with pytest.raises(
        GraphDefinitionError, match="the error handler of node 'node' of graph 'State' has a parameter 'x'"
    ):
        alone(fails, error_handler=lambda state, x: {})


def test_a_handler_reads_the_error_under_any_name_by_its_annotation(door):
    def handler(state, what: NodeError):
        return {"log": [what.attempts]}

    assert door.invoke(alone(fails, error_handler=handler), {}) == {"log": [1]}


def test_the_saver_of_a_thread_reads_what_a_handler_asked_for():
    saver = InMemorySaver()
    graph = alone(fails, checkpointer=saver, error_handler=handles)
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({}, config)

    assert next(graph.get_state_history(config)).values["log"] == ["node", "ValueError", 1]
