"""`@task` and `@entrypoint`: what is called, where it runs, and what comes back."""

import asyncio
import concurrent.futures
import operator
import threading
from functools import partial
from threading import Barrier, Event
from typing import Annotated, TypedDict

import anyio
import pytest
import sniffio

from pregel import START, Command, InMemorySaver, Runtime, Send, StateGraph, interrupt
from pregel.cache.memory import InMemoryCache
from pregel.config import get_stream_writer
from pregel.drivers import workers
from pregel.errors import (
    AttemptRevokedError,
    GraphDefinitionError,
    InvalidInputError,
    InvalidUpdateError,
    NodeTimeoutError,
    OutsideTaskError,
    PregelError,
)
from pregel.graph.functional import entrypoint, nodecalls, task
from pregel.store.memory import InMemoryStore
from pregel.testing import fake_clock
from pregel.types import CachePolicy, RetryPolicy
from tests.waiting import PATIENCE


@task
def double(number: int) -> int:
    return 2 * number


@task
async def adouble(number: int) -> int:
    await anyio.lowlevel.checkpoint()
    return 2 * number


# -- calling -----------------------------------------------------------------------------------------------------------


def test_an_entry_point_takes_and_returns_bare_values(door):
    @entrypoint()
    def shout(text: str) -> str:
        return text.upper()

    assert door.invoke(shout, "hello") == "HELLO"
    assert shout.name == "shout"


@pytest.mark.parametrize("called", [double, adouble], ids=["sync task", "async task"])
def test_sync_code_calls_tasks_of_both_kinds(door, called):
    @entrypoint()
    def total(numbers: list[int]) -> list[int]:
        return [future.result() for future in [called(number) for number in numbers]]

    assert door.invoke(total, [3, 1, 2]) == [6, 2, 4]


@pytest.mark.parametrize("called", [double, adouble], ids=["sync task", "async task"])
def test_async_code_calls_tasks_of_both_kinds(door, called):
    @entrypoint()
    async def total(numbers: list[int]) -> list[int]:
        return [await future for future in [called(number) for number in numbers]]

    assert door.invoke(total, [3, 1, 2]) == [6, 2, 4]


def test_async_code_finds_its_own_event_loop_in_the_tasks_that_it_calls(loop):
    """On trio as well, where code that has a sync form is not awaited by preference."""
    seen = []

    @task
    async def here() -> None:
        seen.append((threading.get_ident(), sniffio.current_async_library()))

    @entrypoint()
    async def main(_: int) -> None:
        seen.append((threading.get_ident(), loop.way))
        await here()

    loop.invoke(main, 0)
    assert seen == [seen[0], seen[0]]


def test_async_code_beside_a_path_of_both_kinds_has_its_tasks_on_its_own_loop(loop):
    """On trio such a node has no form that is preferred, and is awaited all the same."""
    seen = []

    class Path:
        def invoke(self, _):
            return "__end__"

        async def ainvoke(self, _):
            return "__end__"

    @task
    async def here() -> None:
        seen.append(sniffio.current_async_library())

    async def node(_: State):
        await here()
        return {}

    builder = StateGraph(State).add_node(node).add_edge(START, "node").add_conditional_edges("node", Path())
    loop.invoke(builder.compile(), {})
    assert seen == [loop.way]


def test_sync_tasks_run_side_by_side(door):
    together = Barrier(3)

    @task
    def meet(number: int) -> int:
        together.wait(PATIENCE)
        return number

    @entrypoint()
    def main(_: int) -> list[int]:
        return [future.result() for future in [meet(number) for number in range(3)]]

    assert door.invoke(main, 0) == [0, 1, 2]


def test_async_tasks_run_side_by_side(door):
    @entrypoint()
    async def main(_: int) -> list[int]:
        arrived, all_there = [], anyio.Event()

        @task
        async def meet(number: int) -> int:
            arrived.append(number)
            if len(arrived) == 3:
                all_there.set()
            with anyio.fail_after(PATIENCE):
                await all_there.wait()
            return number

        return [await future for future in [meet(number) for number in range(3)]]

    assert door.invoke(main, 0) == [0, 1, 2]


def test_a_sync_task_runs_beside_the_async_code_that_called_it(door):
    @entrypoint()
    async def main(_: int) -> int:
        go = Event()

        @task
        def held() -> int:
            assert go.wait(PATIENCE)
            return 7

        future = held()
        go.set()
        return await future

    assert door.invoke(main, 0) == 7


def test_a_task_begins_before_anybody_asks_for_its_result(door):
    begun = Event()

    @task
    def begin() -> None:
        begun.set()

    @entrypoint()
    def main(_: int) -> bool:
        begin()
        return begun.wait(PATIENCE)

    assert door.invoke(main, 0) is True


def test_tasks_call_tasks(door):
    @task
    def fib(n: int) -> int:
        if n < 2:
            return n
        one, other = fib(n - 1), fib(n - 2)
        return one.result() + other.result()

    @task
    async def afib(n: int) -> int:
        if n < 2:
            return n
        one, other = afib(n - 1), fib(n - 2)
        return await one + await other

    @entrypoint(checkpointer=InMemorySaver())
    def main(n: int) -> tuple[int, int]:
        one, other = fib(n), afib(n)
        return one.result(), other.result()

    assert door.invoke(main, 7, {"configurable": {"thread_id": "1"}}) == (13, 13)


def test_futures_are_those_of_the_standard_library(door):
    @entrypoint()
    def main(n: int) -> list[int]:
        futures = [double(number) for number in range(n)]
        done, rest = concurrent.futures.wait(futures, PATIENCE)
        assert (len(done), len(rest)) == (n, 0)
        assert {future.result() for future in concurrent.futures.as_completed(futures)} == {2 * i for i in range(n)}
        assert not futures[0].cancel(), "a call that was made is made"
        assert futures[0].exception() is None
        return [future.result(timeout=PATIENCE) for future in futures]

    assert door.invoke(main, 5) == [0, 2, 4, 6, 8]


def test_asyncio_gathers_futures():
    @entrypoint()
    async def main(n: int) -> list[int]:
        wrapped = asyncio.wrap_future(double(n))
        return [*await asyncio.gather(*(called(i) for i in range(n) for called in (double, adouble))), await wrapped]

    assert asyncio.run(main.ainvoke(2)) == [0, 0, 2, 2, 4]


def test_a_result_that_is_not_there_in_time_is_a_timeout_and_nothing_is_lost(door):
    go = Event()

    @task
    def held() -> int:
        assert go.wait(PATIENCE)
        return 7

    @entrypoint()
    def main(_: int) -> int:
        future = held()
        with pytest.raises(TimeoutError):
            future.result(timeout=0)
        with pytest.raises(TimeoutError):
            future.exception(timeout=0.001)
        go.set()
        return future.result()

    assert door.invoke(main, 0) == 7


def test_who_asks_on_the_loop_on_which_the_task_runs_is_told_to_await_it(loop):
    @entrypoint()
    async def main(_: int) -> int:
        go = anyio.Event()

        @task
        async def held() -> int:
            await go.wait()
            return 8

        future = held()
        with pytest.raises(PregelError, match="await it"):
            future.result()
        with pytest.raises(TimeoutError):
            await anyio.to_thread.run_sync(future.result, 0)
        go.set()
        in_thread = await anyio.to_thread.run_sync(future.result)
        return in_thread + await future + future.result()

    assert loop.invoke(main, 0) == 24


def test_who_gave_up_waiting_has_not_asked_for_the_failure(loop):
    @entrypoint()
    async def main(_: int) -> None:
        go = anyio.Event()

        @task
        async def late() -> None:
            await go.wait()
            raise BrokenError("late")

        future = late()
        with anyio.move_on_after(0):
            await future
        go.set()

    with pytest.raises(BrokenError, match="late"):
        loop.invoke(main, 0)


def test_code_in_a_thread_that_async_code_started_calls_tasks_too(loop):
    @entrypoint()
    async def main(number: int) -> int:
        return await anyio.to_thread.run_sync(lambda: double(number).result() + adouble(number).result())

    assert loop.invoke(main, 3) == 12


def test_ten_thousand_calls_of_one_node_come_back_in_order(door):
    @entrypoint()
    def main(n: int) -> list[int]:
        return [future.result() for future in [double(number) for number in range(n)]]

    calls = 10_000 if door.way == "sync" else 1_000
    assert door.invoke(main, calls) == list(range(0, 2 * calls, 2))


def test_ten_thousand_async_calls_come_back_in_order(loop):
    @entrypoint()
    async def main(n: int) -> list[int]:
        return [await future for future in [adouble(number) for number in range(n)]]

    calls = 10_000 if loop.way == "asyncio" else 1_000
    assert loop.invoke(main, calls) == list(range(0, 2 * calls, 2))


@pytest.mark.parametrize("limit", [1, 2])
def test_a_concurrency_limit_holds_for_tasks_and_never_makes_them_wait_for_ever(door, limit):
    running, most, lock = [0], [0], threading.Lock()

    @task
    def count(depth: int) -> int:
        if depth:
            return sum(future.result() for future in [count(depth - 1), count(depth - 1)])
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1
        return 1

    @entrypoint()
    def main(depth: int) -> int:
        return sum(future.result() for future in [count(depth), count(depth)])

    assert door.invoke(main, 3, {"max_concurrency": limit}) == 16
    assert most[0] <= limit


@pytest.fixture
def few_threads(monkeypatch):
    """A pool for tasks whose threads are all taken."""
    go, taken = Event(), Barrier(3)

    def hold():
        taken.wait(PATIENCE)
        go.wait(PATIENCE)

    pool = workers.Workers()
    pool.limit = 2
    for _ in range(2):
        pool.submit(hold)
    taken.wait(PATIENCE)
    monkeypatch.setattr(nodecalls, "submit", pool.submit)
    monkeypatch.setattr(nodecalls, "has_room", pool.has_room)
    yield
    go.set()


@pytest.mark.usefixtures("few_threads")
def test_tasks_run_although_all_threads_are_taken():
    @task
    def count(depth: int) -> int:
        return sum(future.result() for future in [count(depth - 1), count(depth - 1)]) if depth else 1

    @entrypoint()
    def main(depth: int) -> int:
        futures = [count(depth) for _ in range(4)]
        assert not concurrent.futures.wait(futures, PATIENCE).not_done
        return sum(future.result() for future in futures)

    assert main.invoke(3) == 32


# -- where tasks are called --------------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    numbers: list[int]
    total: Annotated[int, operator.add]


def test_nodes_of_any_graph_call_tasks(door):
    def plain(state: State):
        return {"total": sum(future.result() for future in map(double, state["numbers"]))}

    async def awaited(state: State):
        return {"total": sum([await future for future in map(adouble, state["numbers"])])}

    def packet(number: int):
        return {"total": double(number).result()}

    builder = StateGraph(State).add_node(plain).add_node(awaited).add_node(packet)
    builder.add_edge(START, "plain").add_edge(START, "awaited")
    builder.add_conditional_edges(START, lambda s: [Send("packet", n) for n in s["numbers"]], ["packet"])
    inner = builder.compile(name="inner")
    assert door.invoke(inner, {"numbers": [1, 2]}) == {"numbers": [1, 2], "total": 18}
    outer = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(InMemorySaver())
    assert door.invoke(outer, {"numbers": [1, 2]}, {"configurable": {"thread_id": "1"}})["total"] == 18


def test_conditional_edges_call_tasks_and_their_failures_count(door):
    @task
    def fail() -> None:
        raise ValueError("unread")

    def path(state: State):
        if double(1).result() == 2 and not state["numbers"]:
            fail()
        return "__end__"

    async def apath(_: State):
        return "__end__" if await adouble(1) == 2 else "node"

    builder = StateGraph(State).add_node("node", lambda _: {"total": 1}).add_edge(START, "node")
    graph = builder.add_conditional_edges("node", path).add_conditional_edges("node", apath).compile()
    assert door.invoke(graph, {"numbers": [1]})["total"] == 1
    with pytest.raises(ValueError, match="unread"):
        door.invoke(graph, {"numbers": []})


def test_an_inline_node_calls_tasks(door):
    def inline(state: State):
        return {"total": sum(future.result() for future in [double(1), adouble(2)])}

    graph = StateGraph(State).add_node(inline, executor="inline").add_edge(START, "inline").compile()
    assert door.invoke(graph, {})["total"] == 6


def test_an_entry_point_is_a_node_that_takes_the_state_and_returns_an_update(door):
    @entrypoint()
    def work(state: State) -> State:
        return {"total": sum(future.result() for future in map(double, state["numbers"]))}

    @entrypoint()
    async def awork(state: State) -> State:
        return {"total": sum([await future for future in map(adouble, state["numbers"])])}

    builder = StateGraph(State).add_node("work", work).add_node("awork", awork)
    graph = builder.add_edge(START, "work").add_edge(START, "awork").compile()
    assert door.invoke(graph, {"numbers": [1, 2]}) == {"numbers": [1, 2], "total": 12}


def test_an_entry_point_is_invoked_in_nodes_and_in_tasks(door):
    @entrypoint()
    def inner(number: int) -> int:
        return double(number).result() + 1

    @task
    def called(number: int) -> int:
        return inner.invoke(number)

    def node(state: State):
        return {"total": inner.invoke(1) + called(2).result() + sum(inner.batch([3, 4]))}

    graph = StateGraph(State).add_node(node).add_edge(START, "node").compile()
    assert door.invoke(graph, {})["total"] == 3 + 5 + 7 + 9


def test_batches_run_entry_points(loop):
    @entrypoint()
    def inner(number: int) -> int:
        return double(number).result()

    assert inner.batch([1, 2, 3]) == [2, 4, 6]

    async def main():
        return await inner.abatch([1, 2, 3])

    assert loop.run(main) == [2, 4, 6]


# -- failures ----------------------------------------------------------------------------------------------------------


class BrokenError(Exception):
    pass


@task
def broken(name: str) -> None:
    raise BrokenError(name)


@task
async def abroken(name: str) -> None:
    raise BrokenError(name)


@pytest.mark.parametrize("called", [broken, abroken], ids=["sync", "async"])
def test_a_failure_is_raised_where_the_result_is_asked_for(door, called):
    @entrypoint()
    async def main(_: int) -> str:
        try:
            await called("a")
        except BrokenError as error:
            return str(error)

    assert door.invoke(main, 0) == "a"


@pytest.mark.parametrize("called", [broken, abroken], ids=["sync", "async"])
def test_the_failure_of_a_task_nobody_asks_for_fails_the_node(door, called):
    @entrypoint()
    def main(_: int) -> str:
        called("a")
        return "fine"

    with pytest.raises(BrokenError, match="a") as caught:
        door.invoke(main, 0)
    assert any(f"node {called.name!r}" in note for note in caught.value.__notes__)
    assert any("node 'main'" in note for note in caught.value.__notes__)


def test_several_failures_nobody_asks_for_make_a_group_in_the_order_of_the_calls(door):
    @entrypoint()
    def main(_: int) -> str:
        for name in "cab":
            broken(name)
        double(1)
        return "fine"

    with pytest.raises(ExceptionGroup, match="3 tasks failed") as caught:
        door.invoke(main, 0)
    assert [str(error) for error in caught.value.exceptions] == ["c", "a", "b"]


def test_failures_nobody_asked_for_are_notes_of_the_one_that_ended_the_node(door):
    @entrypoint()
    def main(_: int) -> None:
        futures = [broken("a"), broken("b"), broken("c")]
        concurrent.futures.wait(futures)
        futures[1].result()

    with pytest.raises(BrokenError, match="b") as caught:
        door.invoke(main, 0)
    notes = [note for note in caught.value.__notes__ if "asked for" in note]
    assert [note[-14:] for note in notes] == ["BrokenError: a", "BrokenError: c"]


def test_a_failure_nobody_asked_for_counts_beside_a_question(door):
    fails = [True]

    @task
    def once() -> int:
        if fails.pop():
            raise BrokenError("once")
        return 7

    @entrypoint(checkpointer=InMemorySaver())
    def main(_: int) -> list:
        future = once()
        answer = interrupt("sure?")
        return [answer, future.result()]

    config = {"configurable": {"thread_id": "1"}}
    with pytest.raises(BrokenError, match="once"):
        door.invoke(main, 0, config)
    fails.append(False)
    assert [each.value for each in door.invoke(main, None, config)["__interrupt__"]] == ["sure?"]
    assert door.invoke(main, Command(resume="yes"), config) == ["yes", 7]


def test_a_failure_that_was_looked_at_is_settled(door):
    @entrypoint()
    def main(_: int) -> str:
        return type(broken("a").exception()).__name__

    assert door.invoke(main, 0) == "BrokenError"


def test_siblings_of_a_task_that_fails_run_to_their_end(door):
    ended = []

    @entrypoint()
    def main(_: int) -> None:
        failed = Event()

        @task
        def slow() -> None:
            assert failed.wait(PATIENCE)
            ended.append("slow")

        slow()
        try:
            broken("a").result()
        finally:
            failed.set()

    with pytest.raises(BrokenError):
        door.invoke(main, 0)
    assert ended == ["slow"]


async def cancelled_once(begun, graph):
    """Run a graph, and cancel the run as soon as an event of its code says so."""
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, 0)
            await begun.wait()
            group.cancel_scope.cancel()


def endless_task(begun, ended):
    """Return a task that says that it has begun, and runs until it is cancelled."""

    @task
    async def endless() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("endless")

    return endless


def test_a_cancellation_that_was_asked_for_stops_async_tasks_and_leaves_nothing_running(loop):
    ended = []

    async def main():
        begun = anyio.Event()
        endless = endless_task(begun, ended)

        @entrypoint()
        async def run(_: int) -> None:
            endless()
            try:
                await endless()
            finally:
                ended.append("run")

        await cancelled_once(begun, run)
        assert sorted(ended) == ["endless", "endless", "run"]

    loop.run(main)


@pytest.mark.parametrize("caught", [False, True], ids=["in a group", "while another error is handled"])
def test_a_cancellation_that_comes_in_a_group_or_late_stops_tasks_as_well(loop, caught):
    ended = []

    async def main():
        begun = anyio.Event()
        endless = endless_task(begun, ended)

        @entrypoint()
        async def run(_: int) -> None:
            future = endless()
            if caught:
                raise BrokenError("the node has failed, and waits for its task")
            async with anyio.create_task_group() as group:
                group.start_soon(future.aresult)
                group.start_soon(anyio.sleep_forever)

        await cancelled_once(begun, run)
        assert ended == ["endless"]

    loop.run(main)


async def left_early(graph):
    """Read the first part of a stream, and leave."""
    parts = graph.astream(0, stream_mode="custom")
    async for _ in parts:
        break
    await parts.aclose()


def test_leaving_a_stream_stops_its_tasks(loop):
    ended = []

    @task
    async def endless() -> None:
        get_stream_writer()("begun")
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("endless")

    @entrypoint()
    async def run(_: int) -> None:
        await endless()

    loop.run(partial(left_early, run))
    assert ended == ["endless"]


def test_leaving_the_stream_of_sync_code_begins_no_more_tasks(door):
    begun = []

    @task
    def first(*, runtime: Runtime) -> None:
        get_stream_writer()("begun")
        while not runtime.cancelled():
            pass

    @task
    def second() -> None:
        begun.append("second")

    @entrypoint()
    def run(_: int) -> None:
        first().result()
        second().result()

    if door.way == "sync":
        parts = run.stream(0, stream_mode="custom")
        next(parts)
        parts.close()
    else:
        door.run(partial(left_early, run))
    assert begun == []


@pytest.fixture
def clock():
    with fake_clock() as made:
        yield made


def test_a_node_that_ran_out_of_time_is_released_and_begins_no_task_any_more(door, clock):
    go, refused = Event(), []
    over = Event()

    @task
    def held() -> None:
        clock.advance(5)
        assert go.wait(PATIENCE)

    @entrypoint(timeout=1)
    def run(_: int) -> None:
        try:
            held().result()
            double(1)
        except AttemptRevokedError as error:
            refused.append(error)
            raise
        finally:
            over.set()

    try:
        with pytest.raises(NodeTimeoutError):
            door.invoke(run, 0)
    finally:
        go.set()
    assert over.wait(PATIENCE)
    assert len(refused) == 1


def test_async_code_that_ran_out_of_time_is_released_although_a_sync_task_goes_on(loop, clock):
    go, ended = Event(), []

    @task
    def held() -> None:
        clock.advance(5)
        ended.append(go.wait(PATIENCE))

    @entrypoint(timeout=1)
    async def run(_: int) -> None:
        await held()

    try:
        with pytest.raises(NodeTimeoutError):
            loop.invoke(run, 0)
        assert ended == []
    finally:
        go.set()


def test_an_exit_in_a_task_leaves_the_run(door):
    @task
    async def leave() -> None:
        raise SystemExit(3)

    @entrypoint()
    async def run(_: int) -> None:
        await leave()

    with pytest.raises(SystemExit):
        door.invoke(run, 0)


# -- policies ----------------------------------------------------------------------------------------------------------


def test_tasks_are_retried(door):
    attempts = []

    @task(retry_policy=RetryPolicy(max_attempts=3, initial_interval=0, retry_on=BrokenError))
    def flaky() -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise BrokenError("again")
        return len(attempts)

    @entrypoint()
    def main(_: int) -> int:
        return flaky().result()

    assert door.invoke(main, 0) == 3


def test_tasks_have_a_time_limit(door, clock):
    go = Event()

    @task(timeout=1)
    def held() -> None:
        clock.advance(5)
        assert go.wait(PATIENCE)

    @entrypoint()
    def main(_: int) -> str:
        return type(held().exception()).__name__

    try:
        assert door.invoke(main, 0) == "NodeTimeoutError"
    finally:
        go.set()


def test_tasks_run_in_an_executor(door):
    with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:

        @task(executor=pool)
        def where() -> str:
            return threading.current_thread().name

        @entrypoint()
        def main(_: int) -> list[str]:
            return [future.result() for future in [where(), where()]]

        assert door.invoke(main, 0) == ["mine_0", "mine_0"]


def test_the_results_of_tasks_are_cached(door):
    ran = []

    @task(cache_policy=CachePolicy())
    def slow(number: int) -> int:
        ran.append(number)
        return -number

    @entrypoint(cache=InMemoryCache())
    def main(numbers: list[int]) -> list[int]:
        return [slow(number).result() for number in numbers]

    assert door.invoke(main, [1, 2, 1]) == [-1, -2, -1]
    assert door.invoke(main, [2, 3]) == [-2, -3]
    assert ran == [1, 2, 3]


# -- what is filled in, and what can be a task -------------------------------------------------------------------------


class Who(TypedDict):
    user: str


def test_tasks_and_entry_points_get_what_they_ask_for(door):
    store = InMemoryStore()
    store.put(("names",), "1", {"name": "ann"})

    @task
    def told(number: int, *, config, writer, any_name: Runtime, store) -> list:
        writer("from the task")
        return [number, config["tags"], any_name.node, any_name.context, store.get(("names",), "1").value["name"]]

    @entrypoint(store=store, context_schema=Who)
    def main(number: int, config, anything: Runtime[Who], *, writer, store) -> list:
        writer("from the entry")
        return [told(number).result(), config["tags"], anything.node, store is not None]

    parts = door.stream(main, 1, {"tags": ["t"]}, context={"user": "bob"}, stream_mode=["custom", "values"])
    assert parts == [
        ("custom", "from the entry"),
        ("custom", "from the task"),
        ("values", [[1, ["t"], "told", {"user": "bob"}, "ann"], ["t"], "main", True]),
    ]


def test_a_caller_may_give_what_would_be_filled_in(door):
    @task
    def told(*, config=None, writer="none") -> tuple:
        return config, writer

    @entrypoint()
    def main(_: int) -> tuple:
        return told(config="mine", writer=None).result()

    assert door.invoke(main, 0) == ("mine", None)


class Counter:
    def __init__(self, by: int) -> None:
        self.by = by

    @task
    def add(self, number: int) -> int:
        return number + self.by

    def __call__(self, number: int) -> int:
        return number * self.by

    async def aplus(self, number: int) -> int:
        return number + self.by


def test_methods_partials_and_callable_objects_are_tasks(door):
    three = Counter(3)
    called = task(three, name="times")
    bound = task(three.aplus)
    power = task(partial(pow, 2))

    @entrypoint()
    def main(number: int) -> list[int]:
        return [future.result() for future in (three.add(number), called(number), bound(number), power(number))]

    assert door.invoke(main, 4) == [7, 12, 7, 16]
    assert (bound.name, power.name) == ("aplus", "pow")


def test_a_task_looks_like_its_function_and_gives_it_back():
    @task
    def documented(number: int) -> int:
        """Say what it does."""
        return number

    assert documented.__doc__ == "Say what it does."
    assert documented.__name__ == "documented"
    assert documented.function(5) == 5


@pytest.mark.parametrize("decorate", [task, entrypoint()], ids=["task", "entrypoint"])
def test_generators_are_refused(decorate):
    def parts(number):
        yield number

    async def aparts(number):
        yield number

    for each in (parts, aparts, partial(parts)):
        with pytest.raises(GraphDefinitionError, match="is a generator"):
            decorate(each)


@pytest.mark.parametrize("decorate", [task, entrypoint()], ids=["task", "entrypoint"])
def test_what_has_no_name_or_is_no_function_is_refused(decorate):
    with pytest.raises(GraphDefinitionError, match="name="):
        decorate(lambda number: number)
    with pytest.raises(GraphDefinitionError, match="takes a function"):
        decorate(5)


def test_an_entry_point_needs_a_parameter_for_the_input():
    def nothing():
        return 1

    def keyword(*, writer):
        return 1

    with pytest.raises(GraphDefinitionError, match="has no positional parameter"):
        entrypoint()(nothing)
    with pytest.raises(GraphDefinitionError, match="has no positional parameter"):
        entrypoint()(keyword)


def test_an_entry_point_whose_parameter_nothing_fills_is_refused():
    def stranger(number, other):
        return number

    with pytest.raises(GraphDefinitionError, match=r"'other' that nothing fills.*previous, config"):
        entrypoint()(stranger)


def test_wrong_arguments_are_refused_at_the_call(door):
    @task
    def takes_two(one: int, two: int, *, writer) -> int:
        return one

    @entrypoint()
    def main(_: int) -> int:
        with pytest.raises(TypeError, match="'two'"):
            takes_two(1)
        return takes_two(1, two=2).result()

    assert door.invoke(main, 0) == 1


def test_a_task_outside_of_a_graph_says_where_it_belongs():
    with pytest.raises(OutsideTaskError, match=r"double\.function"):
        double(1)


def test_two_functions_of_one_name_are_told_apart_by_an_error(door):
    def make(sign: int):
        @task(name="same")
        def one(number: int) -> int:
            return sign * number

        return one

    @task(name="same")
    def other(number: int) -> int:
        return number

    @entrypoint()
    def fine(_: int) -> int:
        return make(1)(2).result() + make(-1)(3).result()

    @entrypoint()
    def main(_: int) -> int:
        return make(1)(2).result() + other(3).result()

    assert door.invoke(fine, 0) == -1
    with pytest.raises(GraphDefinitionError, match=r"two functions.*'same'"):
        door.invoke(main, 0)


@pytest.mark.parametrize("returned", [lambda f: f, lambda f: [f], lambda f: entrypoint.final(value=1, save={"f": f})])
def test_a_future_that_is_returned_in_place_of_its_result_is_an_error(door, returned):
    @entrypoint()
    def main(number: int):
        return returned(double(number))

    with pytest.raises(InvalidUpdateError, match=r"future of task 'double'.*\.result\(\)"):
        door.invoke(main, 1)


def test_a_future_that_is_given_to_another_task_is_an_error(door):
    @entrypoint()
    def main(number: int) -> int:
        return double(double(number)).result()

    with pytest.raises(InvalidUpdateError, match=r"argument of task 'double' is the future of task 'double'"):
        door.invoke(main, 1)


def test_a_bare_entrypoint_says_how_it_is_written():
    with pytest.raises(GraphDefinitionError, match=r"bare before 'main'.*@entrypoint\(\)"):

        @entrypoint
        def main(number: int) -> int:
            return number


def test_an_entry_point_without_input_says_that_it_takes_anything(door):
    @entrypoint()
    def main(number: int) -> int:
        return number

    with pytest.raises(InvalidInputError, match="give what the function takes"):
        door.invoke(main, None)
