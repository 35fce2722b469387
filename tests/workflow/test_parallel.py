"""Parallel workers: a function that is run for each item of a list."""

import operator
from threading import Barrier, Lock
from typing import Annotated, TypedDict

import pytest

from pregel import InMemorySaver, interrupt
from pregel.graph.workflow import Event, RequestInput, Workflow, WorkflowDataError, node
from pregel.types import Command
from tests.workflow.kit import deltas, events, run, thread


def double(node_input):
    return 2 * node_input


async def adouble(node_input):
    return 2 * node_input


def parallel(function, **options):
    return node(function, name="work", parallel_worker=True, **options)


@pytest.mark.parametrize("function", [double, adouble])
@pytest.mark.parametrize("most", [None, 1, 2])
def test_a_parallel_worker_gives_the_outputs_in_the_order_of_the_items(door, function, most):
    workflow = Workflow("w", [("START", parallel(function, max_parallel_workers=most))])
    assert run(door, workflow, [3, 1, 2])["output"] == [6, 2, 4]


def test_what_is_no_list_is_one_item_and_an_empty_list_is_none(door):
    workflow = Workflow("w", [("START", parallel(double))])
    assert run(door, workflow, 4)["output"] == [8]
    assert run(door, workflow, [])["output"] == []
    assert run(door, workflow, ("a",))["output"] == ["aa"]


def test_items_without_output_give_none(door):
    workflow = Workflow("w", [("START", parallel(lambda node_input: node_input if node_input > 1 else None))])
    assert run(door, workflow, [1, 2, 1])["output"] == [None, 2, None]


def test_items_run_side_by_side(door):
    meeting = Barrier(3, timeout=10)

    def meets(node_input):
        meeting.wait()
        return node_input

    assert run(door, Workflow("w", [("START", parallel(meets))]), [1, 2, 3])["output"] == [1, 2, 3]


def test_no_more_items_run_at_once_than_allowed(door):
    lock, now, most = Lock(), [0], [0]

    def counts(node_input):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        with lock:
            now[0] -= 1
        return node_input

    workflow = Workflow("w", [("START", parallel(counts, max_parallel_workers=2))])
    assert run(door, workflow, list(range(20)))["output"] == list(range(20))
    assert 1 <= most[0] <= 2


def test_items_see_the_state_before_all_of_them_and_write_in_their_order(door):
    def writes(ctx, node_input):
        ctx.state[f"k{node_input}"] = sorted(ctx.state)
        return node_input

    graph = Workflow("w", [("START", parallel(writes, max_parallel_workers=1))]).compile(InMemorySaver())
    result = door.invoke(graph, {"node_input": [2, 1], "state": {"a": 0}}, thread())
    assert result["state"] == {"a": 0, "k2": ["a"], "k1": ["a"]}
    assert [(event.path, event.output) for event in events(graph)] == [
        ("w@1/work@1/work@1", 2),
        ("w@1/work@1/work@2", 1),
        ("w@1/work@1", [2, 1]),
    ]


def test_two_items_that_set_a_key_to_different_values_are_an_error(door):
    def writes(ctx, node_input):
        ctx.state["k"] = node_input

    workflow = Workflow("w", [("START", parallel(writes))])
    assert run(door, workflow, [1, 1])["state"] == {"k": 1}
    with pytest.raises(WorkflowDataError) as caught:
        run(door, workflow, [1, 1, 2])
    message = str(caught.value)
    assert "'w@1/work@1/work@3' sets the key 'k' of the state to 2" in message
    assert "'w@1/work@1/work@2' has set it to 1" in message


class Log(TypedDict):
    log: Annotated[list, operator.add]
    n: int


def test_a_key_with_a_reducer_takes_what_all_items_give(door):
    def writes(ctx, node_input):
        ctx.state["log"] = [node_input]
        yield Event(state={"log": [-node_input]})

    workflow = Workflow("w", [("START", parallel(writes))], state_schema=Log)
    graph = workflow.compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": [3, 1, 2], "state": {"log": [0]}}, thread())["log"] == [
        0,
        3,
        -3,
        1,
        -1,
        2,
        -2,
    ]
    assert [delta["log"] for delta in deltas(graph) if delta] == [[3], [-3], [1], [-1], [2], [-2]]


def test_an_item_that_fails_is_named_when_all_have_ended(door):
    ran = []

    def fails(node_input):
        ran.append(node_input)
        if node_input == 2:
            raise ValueError("two")
        return node_input

    with pytest.raises(ValueError, match="two") as caught:
        run(door, Workflow("w", [("START", parallel(fails))]), [1, 2, 3])
    assert "It was raised by item 2 of 3 of node 'work' of workflow 'w'." in caught.value.__notes__
    assert sorted(ran) == [1, 2, 3]


def test_several_items_that_fail_make_a_group(door):
    def fails(node_input):
        raise ValueError(node_input)

    with pytest.raises(ExceptionGroup, match="2 items of node 'work'") as caught:
        run(door, Workflow("w", [("START", parallel(fails))]), ["a", "b"])
    assert [str(error) for error in caught.value.exceptions] == ["a", "b"]


def test_items_that_have_ended_do_not_run_again(door, saver):
    ran, broken = [], [True]

    def fails(ctx, node_input):
        ran.append(node_input)
        ctx.state[f"k{node_input}"] = 1
        if node_input == 2 and broken[0]:
            raise ConnectionError
        return node_input

    graph = Workflow("w", [("START", parallel(fails))]).compile(saver)
    with pytest.raises(ConnectionError):
        door.invoke(graph, {"node_input": [1, 2, 3]}, thread())
    broken[0] = False
    result = door.invoke(graph, None, thread())
    assert result == {"output": [1, 2, 3], "state": {"k1": 1, "k2": 1, "k3": 1}}
    assert sorted(ran) == [1, 2, 2, 3]


def test_items_can_ask(door, saver):
    def asks(node_input):
        return f"{node_input}: {interrupt(node_input)}"

    graph = Workflow("w", [("START", parallel(asks))]).compile(saver)
    asked = door.invoke(graph, {"node_input": ["a", "b"]}, thread())["__interrupt__"]
    assert [each.value for each in asked] == ["a", "b"]
    answers = {each.id: each.value.upper() for each in asked}
    assert door.invoke(graph, Command(resume=answers), thread())["output"] == ["a: A", "b: B"]


def test_an_item_cannot_ask_by_a_request(door):
    workflow = Workflow("w", [("START", parallel(lambda node_input: RequestInput("?")))])
    with pytest.raises(WorkflowDataError, match="runs inside another node, and gave a RequestInput"):
        run(door, workflow, [1])


def test_temp_keys_cannot_be_set_in_what_is_recorded(door):
    def sets(ctx):
        ctx.state["temp:k"] = 1

    with pytest.raises(WorkflowDataError, match="temp: keys are not"):
        run(door, Workflow("w", [("START", parallel(sets))]), [1])
