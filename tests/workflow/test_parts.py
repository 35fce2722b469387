"""`ctx.run_node`: what runs inside a node."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pregel import InMemorySaver
from pregel.errors import PregelError
from pregel.graph.workflow import Event, Workflow, WorkflowConfigurationError, WorkflowDataError, node
from tests.workflow.kit import deltas, events, run, thread


def double(node_input):
    return 2 * node_input


async def adouble(node_input):
    return 2 * node_input


def parallel(function, **options):
    return node(function, name="work", parallel_worker=True, **options)


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


def test_a_part_can_be_a_parallel_worker(door, saver):
    def whole(ctx, node_input):
        return ctx.run_node(parallel(double), node_input).result()

    graph = Workflow("w", [("START", whole)]).compile(saver)
    assert door.invoke(graph, {"node_input": [1, 2]}, thread())["output"] == [2, 4]
    assert [event.path for event in events(graph)][:2] == ["w@1/whole@1/work@1/work@1", "w@1/whole@1/work@1/work@2"]


def test_parts_do_not_go_to_other_processes(door):
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(WorkflowConfigurationError, match="'work' is a parallel_worker and has the executor"):
            parallel(double, executor=executor)

        def whole(ctx):
            return ctx.run_node(node(double, executor=executor), 1).result()

        with pytest.raises(WorkflowConfigurationError, match=r"'double', which ctx\.run_node runs, has the executor"):
            run(door, Workflow("w", [("START", whole)]))
