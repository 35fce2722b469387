"""Parallel workers, and what a node runs by `ctx.run_node`."""

import asyncio
import operator
from threading import Barrier, Lock
from typing import Annotated, TypedDict

import pytest

from pregel import InMemorySaver, interrupt
from pregel.errors import PregelError
from pregel.graph.workflow import Event, RequestInput, Workflow, WorkflowConfigurationError, WorkflowDataError, node
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


# --- ctx.run_node -----------------------------------------------------------------------------------------------------


def caller(run_node):
    """A sync or async node around a generator function that yields what `ctx.run_node` gave."""

    def sync(ctx, node_input):
        return run_node(ctx, node_input)

    return sync


def test_a_node_runs_functions(door):
    def calls(ctx, node_input):
        first = ctx.run_node(double, node_input)
        second = ctx.run_node(double, 10, name="again")
        return [first.result(), second.result()]

    graph = Workflow("w", [("START", calls)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 4}, thread())["output"] == [8, 20]
    assert [event.path for event in events(graph)] == [
        "w@1/calls@1/double@1",
        "w@1/calls@1/again@1",
        "w@1/calls@1",
    ]


def test_an_async_node_awaits_functions_of_both_kinds(loop):
    async def calls(ctx, node_input):
        first = ctx.run_node(adouble, node_input)
        second = ctx.run_node(double, 10)
        return [await first, await second]

    assert run(loop, Workflow("w", [("START", calls)]), 4)["output"] == [8, 20]


def test_a_sync_node_runs_an_async_function(door):
    def calls(ctx, node_input):
        return ctx.run_node(adouble, node_input).result()

    assert run(door, Workflow("w", [("START", calls)]), 4)["output"] == 8


def test_a_part_sees_what_the_node_has_written_and_its_writes_come_with_its_result(door):
    def part(ctx, node_input):
        ctx.state["part"] = ctx.state["before"] + 1
        return "done"

    def calls(ctx, node_input):
        ctx.state["before"] = 1
        running = ctx.run_node(part)
        assert "part" not in ctx.state
        running.result()
        assert running.result() == "done"
        ctx.state["after"] = ctx.state["part"] + 1

    graph = Workflow("w", [("START", calls)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 4}, thread())["state"] == {"before": 1, "part": 2, "after": 3}
    assert deltas(graph) == [{"before": 1}, {"part": 2}, {"after": 3}]


def test_what_nobody_asks_for_counts_all_the_same(door):
    def part(ctx):
        ctx.state["part"] = 1

    def calls(ctx):
        ctx.run_node(part)

    assert run(door, Workflow("w", [("START", calls)]))["state"] == {"part": 1}


def test_a_part_that_sets_what_the_node_has_set_meanwhile_is_an_error(door):
    def part(ctx):
        ctx.state["k"] = "part"

    def calls(ctx):
        running = ctx.run_node(part)
        ctx.state["k"] = "node"
        running.result()

    with pytest.raises(WorkflowDataError, match=r"'w@1/calls@1/part@1' sets the key 'k' of the state to 'part'"):
        run(door, Workflow("w", [("START", calls)]))


def test_parts_do_not_run_again_when_the_node_does(door, saver):
    ran, broken = [], [True]

    def part(ctx, node_input):
        ran.append(node_input)
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return node_input

    def calls(ctx, node_input):
        first = ctx.run_node(part, 1).result()
        second = ctx.run_node(part, 2).result()
        if broken[0]:
            raise ConnectionError
        return [first, second]

    graph = Workflow("w", [("START", calls)]).compile(saver)
    with pytest.raises(ConnectionError):
        door.invoke(graph, {"node_input": 0}, thread())
    broken[0] = False
    assert door.invoke(graph, None, thread()) == {"output": [1, 2], "state": {"n": 2}}
    assert ran == [1, 2]


def test_parts_have_parts(door):
    def inner(ctx, node_input):
        ctx.state["inner"] = node_input
        return node_input + 1

    def outer(ctx, node_input):
        return ctx.run_node(inner, node_input).result() + 1

    def calls(ctx, node_input):
        return ctx.run_node(outer, node_input).result() + 1

    graph = Workflow("w", [("START", calls)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 1}, thread()) == {"output": 4, "state": {"inner": 1}}
    assert events(graph)[0].path == "w@1/calls@1/outer@1/inner@1"


def test_a_part_is_retried_and_nothing_of_a_failed_attempt_counts(door):
    from pregel.types import RetryPolicy

    def part(ctx):
        ctx.state[f"attempt {len(tries)}"] = 1
        yield Event(output="done", content=f"attempt {len(tries)}")
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError

    tries = []
    part_node = node(part, retry=RetryPolicy(initial_interval=0, jitter=False))

    def calls(ctx):
        return ctx.run_node(part_node).result()

    graph = Workflow("w", [("START", calls)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0}, thread()) == {"output": "done", "state": {"attempt 1": 1}}
    assert [event.content for event in events(graph)] == ["attempt 1", None]


def test_an_error_of_a_part_is_raised_where_its_result_is_asked_for(door):
    def fails(ctx):
        ctx.state["dirty"] = 1
        raise ValueError("bad")

    def calls(ctx):
        try:
            ctx.run_node(fails).result()
        except ValueError as error:
            return str(error)

    assert run(door, Workflow("w", [("START", calls)])) == {"output": "bad", "state": {}}


@pytest.mark.parametrize("given", [lambda: 1, 5])
def test_what_cannot_be_a_part(door, given):
    def calls(ctx):
        ctx.run_node(given)

    with pytest.raises(WorkflowConfigurationError, match=r"needs a name|is nothing to run"):
        run(door, Workflow("w", [("START", calls)]))


def test_a_part_takes_no_route(door):
    def part(ctx):
        ctx.route = "x"

    def calls(ctx):
        ctx.run_node(part).result()

    with pytest.raises(WorkflowDataError, match="took a route: no edges lead from it"):
        run(door, Workflow("w", [("START", calls)]))


def test_parts_that_are_gathered_side_by_side(loop):
    async def part(ctx, node_input):
        ctx.state[f"k{node_input}"] = node_input
        return node_input

    async def calls(ctx):
        parts = [ctx.run_node(part, number) for number in range(3)]
        return [await each for each in parts]

    assert run(loop, Workflow("w", [("START", calls)])) == {"output": [0, 1, 2], "state": {"k0": 0, "k1": 1, "k2": 2}}


def test_the_result_of_an_async_part_must_be_awaited(loop):
    async def calls(ctx, node_input):
        part = ctx.run_node(adouble, node_input)
        try:
            part.result()
        except PregelError as error:
            return "await it" in str(error)

    assert run(loop, Workflow("w", [("START", calls)]), 1)["output"] is True


def test_gather_of_asyncio_takes_parts():
    async def calls(ctx):
        return await asyncio.gather(*(ctx.run_node(adouble, number) for number in range(3)))

    async def main():
        return await Workflow("w", [("START", calls)]).compile().ainvoke({"node_input": 0})

    assert asyncio.run(main())["output"] == [0, 2, 4]
