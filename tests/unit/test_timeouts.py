"""Attempts that take too long: the caller is released, and what goes on has no effect."""

import asyncio
import threading
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import END, START, InMemorySaver, Runtime, StateGraph, interrupt
from pregel.clock import use
from pregel.drivers.deadline import Deadline
from pregel.errors import AttemptRevokedError, GraphDefinitionError, NodeTimeoutError
from pregel.policy import Policy
from pregel.runtime import message_writer
from pregel.store.memory import InMemoryStore
from pregel.testing import FakeClock, fake_clock
from pregel.types import RetryPolicy, TimeoutPolicy


def add(a: list, b: list) -> list:
    return a + b


class State(TypedDict):
    log: Annotated[list, add]


@pytest.fixture
def clock():
    with fake_clock() as made:
        yield made


class Stuck:
    """Lets sync code hang until the test is over, and waits for its end then."""

    def __init__(self):
        self.freed = threading.Event()
        self.hanging = 0
        self.ended = threading.Semaphore(0)

    def hang(self, clock, seconds):
        """Let time pass, and hang."""
        self.hanging += 1
        clock.advance(seconds)
        self.freed.wait()

    def free(self):
        """Let all code that hangs go on, and wait until it has said that it is done."""
        self.freed.set()
        for _ in range(self.hanging):
            self.ended.acquire()
        self.hanging = 0
        self.freed.clear()


@pytest.fixture
def stuck():
    made = Stuck()
    yield made
    made.free()


def alone(action, *, checkpointer=None, store=None, **options):
    """Return a graph of one node."""
    builder = StateGraph(State).add_node("node", action, **options).add_edge(START, "node")
    return builder.compile(checkpointer, store=store)


def test_sync_code_that_takes_too_long_is_given_up_while_it_still_runs(door, clock, stuck):
    def node(state):
        stuck.hang(clock, 5)
        stuck.ended.release()
        return {"log": ["late"]}

    with pytest.raises(
        NodeTimeoutError, match="node 'node' of graph 'State' ran longer than 5 s in attempt 1"
    ) as caught:
        door.invoke(alone(node, timeout=5), {})

    assert isinstance(caught.value, TimeoutError)
    assert stuck.hanging == 1


def test_async_code_that_takes_too_long_is_cancelled(door, clock):
    cancelled = []

    async def node(state):
        clock.advance(5)
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(True)

    with pytest.raises(NodeTimeoutError, match="ran longer than 5 s"):
        door.invoke(alone(node, timeout=timedelta(seconds=5)), {})

    assert cancelled == [True]


def test_code_that_ends_in_time_is_left_alone(door, clock):
    def plain(state):
        clock.advance(4.9)
        return {"log": ["plain"]}

    async def awaited(state):
        clock.advance(4.9)
        await anyio.lowlevel.checkpoint()
        return {"log": ["awaited"]}

    builder = StateGraph(State).set_node_defaults(timeout=5).add_sequence([("plain", plain), ("awaited", awaited)])

    assert door.invoke(builder.add_edge(START, "plain").compile(), {}) == {"log": ["plain", "awaited"]}


def test_a_timeout_is_tried_again_by_default(door, clock, stuck):
    def node(state, runtime: Runtime):
        if runtime.attempt == 1:
            stuck.hang(clock, 1)
            stuck.ended.release()
        return {"log": [runtime.attempt]}

    graph = alone(node, timeout=1, retry_policy=RetryPolicy(jitter=False))

    assert door.invoke(graph, {}) == {"log": [2]}
    assert clock.slept == [0.5]
    stuck.free()


def test_async_code_that_swallows_its_cancellation_is_given_up_all_the_same(door, clock):
    async def node(state, runtime: Runtime):
        if runtime.attempt == 1:
            clock.advance(1)
            with suppress(BaseException):
                await anyio.sleep_forever()
            return {"log": ["late"]}
        return {"log": [runtime.attempt]}

    graph = alone(node, timeout=1, retry_policy=RetryPolicy())

    async def two_runs():
        return [await graph.ainvoke({}), await graph.ainvoke({})]

    if door.way == "sync":
        assert graph.invoke({}) == {"log": [2]}
    else:
        assert door.run(two_runs) == [{"log": [2]}, {"log": [2]}]
    if door.way == "asyncio":
        assert asyncio.run(cancellations_left(graph)) == 0


async def cancellations_left(graph):
    """Return how many cancellations a run leaves its task with."""
    await graph.ainvoke({})
    return asyncio.current_task().cancelling()


def test_a_node_with_async_paths_is_given_up_in_its_thread(door, clock, stuck):
    async def path(state):
        return END

    def node(state, runtime: Runtime):
        if runtime.attempt == 1:
            stuck.hang(clock, 1)
            stuck.ended.release()
        return {"log": [runtime.attempt]}

    builder = StateGraph(State).add_node("node", node, timeout=1, retry_policy=RetryPolicy())
    builder.add_edge(START, "node").add_conditional_edges("node", path, [END])

    assert door.invoke(builder.compile(), {}) == {"log": [2]}


def test_signs_of_life_put_off_the_idle_timeout_and_not_the_other_one(door, clock, stuck):
    def node(state, runtime: Runtime):
        signs = (runtime.heartbeat, lambda: runtime.stream_writer("x"), lambda: message_writer()("piece"))
        for _ in range(10):
            for sign in signs:
                clock.advance(0.75)
                sign()
        stuck.hang(clock, 1)
        stuck.ended.release()

    policy = TimeoutPolicy(run_timeout=24, idle_timeout=1)
    with pytest.raises(NodeTimeoutError, match="gave no sign of life for 1 s"):
        door.invoke(alone(node, timeout=policy), {})
    assert clock.now() == 23.5
    stuck.free()

    policy = TimeoutPolicy(run_timeout=23, idle_timeout=1)
    with pytest.raises(NodeTimeoutError, match="ran longer than 23 s"):
        door.invoke(alone(node, timeout=policy), {})


def test_what_a_graph_inside_writes_is_a_sign_of_life_whoever_reads_it(door, clock):
    def inner(state, runtime: Runtime):
        for _ in range(5):
            clock.advance(0.9)
            runtime.stream_writer("x")
        for _ in range(5):
            clock.advance(0.9)
            runtime.heartbeat()
        return {"log": ["in time"]}

    graph = alone(alone(inner), timeout=TimeoutPolicy(idle_timeout=1))

    assert door.invoke(graph, {}) == {"log": ["in time"]}
    assert door.stream(graph, {}, stream_mode=["custom"], subgraphs=True)[-1] == (
        ("node:1:0:node",), "custom", "x"
    )  # fmt: skip
    assert door.stream(graph, {}, stream_mode=["custom", "values"])[-1] == ("values", {"log": ["in time"]})


def test_tokens_of_langchain_s_models_are_signs_of_life_and_refused_when_nobody_waits_for_them(door, clock, stuck):
    answers = pytest.importorskip("langchain_core.language_models")
    refused = []

    class Slow(answers.GenericFakeChatModel):
        def _stream(self, *given, **options):
            for piece in super()._stream(*given, **options):
                clock.advance(0.75)
                yield piece

    def node(state, runtime: Runtime):
        if runtime.attempt == 2:
            stuck.free()
            return {"log": ["second"]}
        Slow(messages=iter(["one two three four"])).invoke("q")
        stuck.hang(clock, 1)
        try:
            Slow(messages=iter(["five"])).invoke("q")
        except AttemptRevokedError:
            refused.append("token")
        finally:
            stuck.ended.release()

    graph = alone(node, timeout=TimeoutPolicy(idle_timeout=1), retry_policy=RetryPolicy())
    parts = door.stream(graph, {}, stream_mode="messages")

    assert "".join(message.content for message, _ in parts) == "one two three four"
    assert refused == ["token"]


def test_a_sign_of_life_of_a_node_inside_counts_for_the_node_around_it_too(door, clock):
    def inner(state, runtime: Runtime):
        for _ in range(5):
            clock.advance(0.75)
            runtime.heartbeat()
        return {"log": ["in time"]}

    idle = TimeoutPolicy(idle_timeout=1)

    assert door.invoke(alone(alone(inner, timeout=idle), timeout=idle), {}) == {"log": ["in time"]}


def test_async_code_that_has_ended_counts_though_its_time_is_up_in_the_same_moment(door, clock):
    async def node(state):
        clock.advance(1)
        return {"log": ["ended"]}

    graph = alone(node, timeout=1)

    assert door.invoke(graph, {}) == {"log": ["ended"]}
    if door.way == "asyncio":
        assert asyncio.run(cancellations_left(graph)) == 0


def test_a_deadline_that_is_over_says_nothing_more(clock):
    told = []

    class Late(FakeClock):
        def call_at(self, when, call):
            deadline.stop()  # while it is set
            self.late = call
            return lambda: told.append("taken back")

    late = Late()
    before = use(late)
    try:
        deadline = Deadline(Policy(run_timeout=1))
        deadline.start(lambda: told.append("expired"))
        late.advance(2)
        late.late()
    finally:
        use(before)

    assert told == ["taken back"]


def test_a_run_without_an_idle_timeout_takes_heartbeats_and_asks_no_model_for_tokens(door, clock):
    def node(state, runtime: Runtime):
        runtime.heartbeat()
        return {"log": [message_writer(), runtime.cancelled()]}

    assert door.invoke(alone(node), {}) == {"log": [None, False]}
    assert door.invoke(alone(node, retry_policy=RetryPolicy()), {}) == {"log": [None, False]}


def test_nothing_of_an_attempt_that_was_given_up_has_an_effect(door, clock, stuck):
    refused = []
    store = InMemoryStore()

    def late(runtime, tell):
        uses = {
            "writer": lambda: runtime.stream_writer("late"),
            "messages": lambda: tell("late"),
            "store": lambda: runtime.store.put(("n",), "late", {}),
            "question": lambda: interrupt("late?"),
            "graph": lambda: alone(lambda state: {}).invoke({}),
            "heartbeat": runtime.heartbeat,
        }
        for name, refused_use in uses.items():
            try:
                refused_use()
            except AttemptRevokedError:
                refused.append(name)

    def node(state, runtime: Runtime):
        if runtime.attempt == 2:
            stuck.free()
            return {"log": ["second"]}
        tell = message_writer()
        stuck.hang(clock, 1)
        late(runtime, tell)
        refused.append(runtime.cancelled())
        stuck.ended.release()
        return {"log": ["late"]}

    graph = alone(
        node,
        timeout=TimeoutPolicy(1, idle_timeout=9),
        retry_policy=RetryPolicy(),
        checkpointer=InMemorySaver(),
        store=store,
    )
    config = {"configurable": {"thread_id": "t"}}
    parts = door.stream(graph, {}, config, stream_mode=["custom", "messages", "values"])

    assert parts == [("values", {"log": []}), ("values", {"log": ["second"]})]
    assert refused == ["writer", "messages", "store", "question", "graph", "heartbeat", True]
    assert store.search(("n",)) == []
    assert graph.get_state(config).values == {"log": ["second"]}


def test_a_graph_inside_begins_and_stores_nothing_more_when_its_node_is_given_up(door, saver, clock, stuck):
    ran = []

    def first(state):
        ran.append("first")
        return {"log": ["first"]}

    def second(state):
        ran.append("second")
        if ran.count("second") == 1:
            stuck.hang(clock, 1)
        return {"log": ["second"]}

    def third(state):
        ran.append("third")
        return {"log": ["third"]}

    sequence = [("first", first), ("second", second), ("third", third)]
    inner = StateGraph(State).add_sequence(sequence).add_edge(START, "first").compile()
    errors = []

    def runs_it(state, runtime: Runtime):
        try:
            return {"log": inner.invoke({})["log"]}
        except BaseException as error:
            errors.append(type(error).__name__)
            raise
        finally:
            if runtime.attempt == 1:
                stuck.ended.release()

    def after(state):
        stuck.free()
        return {"log": ["after"]}

    builder = StateGraph(State).add_node("node", runs_it, timeout=1, retry_policy=RetryPolicy())
    builder.add_node("after", after).add_edge(START, "node").add_edge("node", "after")
    graph = builder.compile(saver)

    for durability in ("sync", "async", "exit"):
        ran.clear()
        errors.clear()
        config = {"configurable": {"thread_id": durability}}
        result = door.invoke(graph, {}, config, durability=durability)
        again = ["first"] if durability == "exit" else []
        assert ran == ["first", "second", *again, "second", "third"]
        assert result == {"log": ["first", "second", "third", "after"]}
        assert errors == ["AttemptRevokedError"]
        assert graph.get_state(config).values == result


def test_a_graph_that_remembers_is_free_for_the_next_attempt(door, saver, clock, stuck):
    ran = []

    def step(state):
        ran.append(list(state["log"]))
        if len(ran) == 2:
            stuck.hang(clock, 1)
            stuck.ended.release()
        return {"log": ["step"]}

    inner = StateGraph(State).add_sequence([("one", step), ("two", step)]).add_edge(START, "one").compile(True)

    def runs_it(state):
        return {"log": [len(inner.invoke({})["log"])]}

    def after(state):
        stuck.free()
        return {}

    builder = StateGraph(State).add_node("node", runs_it, timeout=1, retry_policy=RetryPolicy())
    builder.add_node("after", after).add_edge(START, "node").add_edge("node", "after")
    for durability in ("sync", "exit"):
        ran.clear()
        config = {"configurable": {"thread_id": durability}}
        assert door.invoke(builder.compile(saver), {}, config, durability=durability) == {"log": [2]}


def test_a_run_with_a_thread_of_its_own_lets_that_go_when_its_node_is_given_up(door, saver, clock, stuck):
    def slow(state):
        if not stuck.hanging:
            stuck.hang(clock, 1)
        return {"log": ["slow"]}

    elsewhere = alone(slow, checkpointer=InMemorySaver())

    def runs_it(state, runtime: Runtime):
        try:
            return {"log": elsewhere.invoke({}, {"configurable": {"thread_id": "other"}})["log"]}
        finally:
            if runtime.attempt == 1:
                stuck.ended.release()

    graph = alone(runs_it, timeout=1, retry_policy=RetryPolicy(), checkpointer=saver)

    assert door.invoke(graph, {}, {"configurable": {"thread_id": "t"}}) == {"log": ["slow"]}
    stuck.free()
    assert elsewhere.get_state({"configurable": {"thread_id": "other"}}).values == {"log": ["slow"]}


def test_tasks_of_one_superstep_are_given_up_each_for_itself(door, clock, stuck):
    begun, handled = threading.Barrier(2), threading.Event()

    def late(state):
        begun.wait()
        stuck.hang(clock, 1)
        stuck.ended.release()

    def handler(state):
        handled.set()
        return {"log": ["given up"]}

    def patient(state):
        begun.wait()
        handled.wait()
        return {"log": ["in time"]}

    builder = StateGraph(State).add_node("late", late, timeout=1, error_handler=handler)
    builder.add_node("patient", patient, timeout=9).add_edge(START, "late").add_edge(START, "patient")

    assert door.invoke(builder.compile(), {}) == {"log": ["given up", "in time"]}


def test_a_run_that_is_left_does_not_wait_for_code_that_was_given_up(loop, clock, stuck):
    async def main():
        def node(state, runtime: Runtime):
            stuck.hang(clock, 1)
            stuck.ended.release()

        graph = alone(node, timeout=1, error_handler=lambda state: {"log": ["x"]})
        async with aclosing(graph.astream({})) as parts:
            async for _ in parts:
                break

    loop.run(main)

    assert stuck.hanging == 1


def test_a_timeout_of_a_node_inside_does_not_end_the_attempt_around_it(door, clock, stuck):
    def slow(state):
        stuck.hang(clock, 1)
        stuck.ended.release()

    inner = alone(slow, timeout=1, error_handler=lambda state: {"log": ["inner"]})

    assert door.invoke(alone(inner, timeout=9), {}) == {"log": ["inner"]}


def test_a_graph_of_async_nodes_is_cancelled_as_a_whole(door, clock):
    ended = []

    async def slow(state):
        clock.advance(1)
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")

    inner = (
        StateGraph(State).add_node("a", slow).add_node("b", slow).add_edge(START, "a").add_edge(START, "b").compile()
    )
    with pytest.raises(NodeTimeoutError, match="node 'node'"):
        door.invoke(alone(inner, timeout=1), {})

    assert ended == ["cancelled", "cancelled"]


def test_ctrl_c_leaves_a_node_that_is_waited_for(clock, stuck, monkeypatch):
    begun, told = threading.Event(), []

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            begun.wait()
            raise KeyboardInterrupt

    def node(state, runtime: Runtime):
        stuck.hanging += 1
        begun.set()
        stuck.freed.wait()
        told.append(runtime.cancelled())
        stuck.ended.release()

    monkeypatch.setattr("pregel.drivers.threaded.Flag", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        alone(node, timeout=1).invoke({})
    stuck.free()

    assert told == [True]


def test_an_exit_in_a_node_with_a_timeout_ends_the_run(door, clock):
    def node(state):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        door.invoke(alone(node, timeout=1), {})


def test_a_node_that_runs_inline_can_not_be_given_up():
    with pytest.raises(GraphDefinitionError, match="node 'node' of graph 'State' has a timeout and runs inline"):
        alone(lambda state: {}, timeout=1, executor="inline")


def test_an_async_node_that_runs_inline_can(door, clock):
    async def node(state):
        clock.advance(1)
        await anyio.sleep_forever()

    with pytest.raises(NodeTimeoutError):
        door.invoke(alone(node, timeout=1, executor="inline"), {})


@pytest.mark.parametrize("timeout", [0, -1, "1", True, float("inf"), timedelta(0), TimeoutPolicy(idle_timeout=0)])
def test_times_that_do_not_pass_are_refused(timeout):
    with pytest.raises(GraphDefinitionError, match=r"timeout of node 'node' takes seconds"):
        StateGraph(State).add_node("node", print, timeout=timeout)


def test_a_timeout_policy_that_says_nothing_takes_a_default_away():
    builder = StateGraph(State).set_node_defaults(timeout=1).add_node("node", lambda state: {}, timeout=TimeoutPolicy())

    assert builder.add_edge(START, "node").compile()._network.nodes["node"].policy is None
