"""Leaving a run early, in every way one can: what has not begun never does, and nothing is left behind."""

import asyncio
import contextlib
import gc
import operator
import sys
import threading
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import START, Send, StateGraph
from tests.leftovers import nothing_left


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


def count(state):
    return {"n": state["n"] + 1}


def counter(**options):
    """Return a graph that counts for ever, and the list of what its node saw."""
    seen = []

    def step(state):
        seen.append(state["n"])
        return {"n": state["n"] + 1}

    async def astep(state):
        return step(state)

    builder = StateGraph(State).add_node("step", astep if options.pop("awaits", False) else step)
    return builder.add_edge(START, "step").add_edge("step", "step").compile(**options), seen


async def talk(state, writer):
    writer("begun")
    return {}


class Sleepers:
    """A graph of parallel nodes that wait for ever, and what became of them."""

    def __init__(self, width):
        self.ended = []
        self.begun = 0
        self.all_begun = anyio.Event()
        builder = StateGraph(State).add_node("sleep", self.sleep)
        builder.add_conditional_edges(START, lambda state: [Send("sleep", i) for i in range(width)], ["sleep"])
        self.width = width
        self.graph = builder.compile()

    async def sleep(self, number):
        self.begun += 1
        if self.begun == self.width:
            self.all_begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.append(number)


@pytest.mark.parametrize("awaits", [False, True])
def test_a_sync_stream_stands_still_between_parts_and_stops_when_closed(awaits):
    graph, seen = counter(awaits=awaits)
    parts = graph.stream({"n": 0})
    assert next(parts) == {"step": {"n": 1}}
    assert seen == [0]
    assert next(parts) == {"step": {"n": 2}}
    parts.close()
    assert seen == [0, 1]


@pytest.mark.parametrize("awaits", [False, True])
def test_an_async_stream_that_is_left_stops_where_a_sync_one_would(loop, awaits):
    graph, seen = counter(awaits=awaits)

    async def main():
        async with nothing_left(loop):
            async with contextlib.aclosing(graph.astream({"n": 0})) as parts:
                async for part in parts:
                    if part == {"step": {"n": 2}}:
                        break
        assert seen == [0, 1]

    loop.run(main)


@pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning")  # trio's, and true
def test_a_stream_that_is_dropped_is_cancelled_by_the_garbage_collector(loop):
    async def main():
        sleepers = Sleepers(2)
        builder = StateGraph(State).add_node("talk", talk).add_node("sleep", sleepers.sleep)
        builder.add_conditional_edges(
            START, lambda state: ["talk", Send("sleep", 0), Send("sleep", 1)], ["talk", "sleep"]
        )
        graph = builder.compile()
        async with nothing_left(loop):
            parts = graph.astream({}, stream_mode="custom")
            assert await anext(parts) == "begun"
            await sleepers.all_begun.wait()
            del parts
            gc.collect()
            while len(sleepers.ended) < 2:
                await anyio.lowlevel.checkpoint()
            for _ in range(10):  # the tasks that ended have yet to be forgotten
                await anyio.lowlevel.checkpoint()

    loop.run(main)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("way", ["ainvoke", "astream"])
def test_a_cancelled_scope_ends_every_task(loop, width, way):
    async def main():
        sleepers = Sleepers(width)

        async def run():
            if way == "ainvoke":
                await sleepers.graph.ainvoke({})
            else:
                async for _ in sleepers.graph.astream({}):
                    pass

        async with nothing_left(loop):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await sleepers.all_begun.wait()
                group.cancel_scope.cancel()
            if way == "astream":
                gc.collect()
                for _ in range(10):
                    await anyio.lowlevel.checkpoint()
        assert sorted(sleepers.ended) == list(range(width))

    loop.run(main)


@pytest.mark.parametrize("width", [1, 3])
def test_a_consumers_own_timeout_around_one_part_ends_the_run(loop, width):
    async def main():
        sleepers = Sleepers(width)
        async with nothing_left(loop):
            async with contextlib.aclosing(sleepers.graph.astream({})) as parts:
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as group:

                        async def give_up():
                            await sleepers.all_begun.wait()
                            scope.cancel()

                        group.start_soon(give_up)
                        await anext(parts)
                assert scope.cancelled_caught
        assert sorted(sleepers.ended) == list(range(width))

    loop.run(main)


@pytest.mark.parametrize("width", [1, 3])
def test_asyncio_task_cancel_and_timeout_end_every_task(width):
    async def main():
        sleepers = Sleepers(width)
        before = asyncio.all_tasks()
        task = asyncio.create_task(sleepers.graph.ainvoke({}))
        await sleepers.all_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(sleepers.ended) == list(range(width))
        assert asyncio.all_tasks() == before
        sleepers = Sleepers(width)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await sleepers.graph.ainvoke({})
        assert asyncio.all_tasks() == before

    asyncio.run(main())


@pytest.mark.parametrize("beside", [0, 2])
def test_code_in_a_worker_thread_is_waited_for_and_nothing_follows_it(loop, beside):
    begun, release = threading.Event(), threading.Event()
    ran = []

    def work(state):
        begun.set()
        assert release.wait(10)
        ran.append("work")
        return {}

    builder = StateGraph(State).add_node("work", work).add_node("after", lambda state: ran.append("after"))
    builder.add_node("beside", lambda state: {}).add_edge("work", "after")
    builder.add_conditional_edges(
        START, lambda state: ["work", *[Send("beside", i) for i in range(beside)]], ["work", "beside"]
    )
    graph = builder.compile()

    async def main():
        async with nothing_left(loop), anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, {})
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                for _ in range(10):  # until the run has been told
                    await anyio.lowlevel.checkpoint()
            release.set()
        assert ran == ["work"]

    loop.run(main)


def test_a_worker_that_waits_for_the_reader_of_a_stream_is_let_go(loop):
    graph, seen = counter()

    async def main():
        async with nothing_left(loop):
            async with contextlib.aclosing(graph.astream({"n": 0})) as parts:
                assert await anext(parts) == {"step": {"n": 1}}
        assert seen == [0]

    loop.run(main)


@pytest.mark.parametrize("executor", ["thread", "inline"])
def test_siblings_of_a_failed_task_are_cancelled_where_that_is_asked_for(door, executor):
    begun, ended = [], []

    async def fail(state):
        while not begun:
            await anyio.lowlevel.checkpoint()
        raise ValueError("no")

    async def sleep(state):
        begun.append("sleep")
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("sleep")

    builder = StateGraph(State).add_node("sleep", sleep).add_node("fail", fail)
    graph = builder.add_edge(START, "sleep").add_edge(START, "fail").compile(on_failure="cancel", executor=executor)
    with pytest.raises(ValueError, match="no"):
        door.invoke(graph, {})
    assert ended == ["sleep"]


def test_sync_siblings_that_have_not_begun_never_do_where_failure_cancels(door):
    ran = []

    def work(number):
        ran.append(number)
        if number == 0:
            raise ValueError("no")
        return {}

    builder = StateGraph(State).add_node("work", work)
    builder.add_conditional_edges(START, lambda state: [Send("work", i) for i in range(50)], ["work"])
    graph = builder.compile(executor="inline")
    with pytest.raises(ValueError, match="no"):
        door.invoke(graph, {}, on_failure="cancel")
    if door.way == "sync":
        assert ran == [0]
    ran.clear()
    with pytest.raises(ValueError, match="no"):
        door.invoke(graph, {})
    assert ran == list(range(50))


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("width", [1, 3])
def test_an_exit_in_a_node_leaves_the_run_at_once(interrupt, width):
    def leave(number):
        raise interrupt

    builder = StateGraph(State).add_node("leave", leave).add_node("after", lambda state: pytest.fail("ran"))
    builder.add_conditional_edges(START, lambda state: [Send("leave", i) for i in range(width)], ["leave"])
    builder.add_edge("leave", "after")
    graph = builder.compile()
    with pytest.raises(interrupt):
        graph.invoke({})
    assert graph.invoke  # the graph holds no run: nothing of it is spoilt


def test_a_failed_run_leaves_the_graph_as_it_was(door):
    state = {"fail": True}

    def work(given):
        if state["fail"]:
            raise ValueError("no")
        return {"n": 1}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile()
    with pytest.raises(ValueError, match="no"):
        door.invoke(graph, {})
    state["fail"] = False
    assert door.invoke(graph, {}) == {"n": 1, "log": []}


def test_a_stream_ends_with_the_error_after_the_parts_before_it(door):
    def fail(state):
        raise ValueError("no")

    builder = StateGraph(State).add_node("count", count).add_node("fail", fail)
    graph = builder.add_edge(START, "count").add_edge("count", "fail").compile()
    first, error = door.stream(graph, {"n": 0})
    assert first == {"count": {"n": 1}}
    assert type(error) is ValueError


def test_idle_workers_keep_no_run_alive():
    import weakref

    class Result(list):
        pass

    def work(number):
        return {"log": Result([number])}

    builder = StateGraph(State).add_node("work", work)
    builder.add_conditional_edges(START, lambda state: [Send("work", i) for i in range(4)], ["work"])
    graph = builder.compile()
    given = Result()
    alive = weakref.ref(given)
    graph.invoke({"log": given})
    del given
    gc.collect()
    assert alive() is None
    assert sys.getrefcount(graph) < 10
