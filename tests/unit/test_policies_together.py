"""Policies where they meet each other and the rest: chains of errors, the cache, limits, times that never come."""

import asyncio
import inspect
import logging
import operator
import sys
import threading
from contextlib import contextmanager
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import END, START, Runtime, StateGraph, errors
from pregel.cache.memory import InMemoryCache
from pregel.clock import clock
from pregel.drivers import workers
from pregel.errors import AttemptRevokedError, NodeTimeoutError
from pregel.testing import fake_clock
from pregel.types import CachePolicy, NodeError, RetryPolicy
from tests.waiting import finishes

STEADY = RetryPolicy(jitter=False)


class State(TypedDict):
    log: Annotated[list, operator.add]


@pytest.fixture
def fake():
    with fake_clock() as made:
        yield made


def alone(action, *, cache=None, **options):
    """Return a graph of one node."""
    return StateGraph(State).add_node("node", action, **options).add_edge(START, "node").compile(cache=cache)


def contexts(error):
    """Return an error and those before it, and fail where they go round in a circle."""
    found = []
    while error is not None:
        assert not any(error is each for each in found)
        found.append(error)
        error = error.__context__
    return found


# -- errors about errors -----------------------------------------------------------------------------------------------


def test_a_function_that_raises_what_it_is_asked_about_makes_no_circle(door, fake):
    def again(error):
        raise error

    def node(state):
        raise ValueError

    with pytest.raises(ValueError) as caught:
        door.invoke(alone(node, retry_policy=RetryPolicy(retry_on=again)), {})
    assert len(contexts(caught.value)) == 1


def test_a_handler_that_raises_the_cause_of_the_error_makes_no_circle(door):
    def node(state):
        try:
            raise KeyError("cause")
        except KeyError as error:
            raise ValueError from error

    def handler(state, error: NodeError):
        raise error.error.__cause__

    with pytest.raises(KeyError) as caught:
        door.invoke(alone(node, error_handler=handler), {})
    assert len(contexts(caught.value)) == 1


def test_an_error_of_a_handler_that_takes_no_context_is_raised_without(door):
    class FrozenError(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    def node(state):
        raise ValueError

    def handler(state):
        raise FrozenError

    with pytest.raises(FrozenError):
        door.invoke(alone(node, error_handler=handler), {})


@pytest.mark.parametrize("level", [logging.WARNING, logging.DEBUG])
def test_an_error_whose_text_raises_is_tried_again_and_logged(caplog, fake, level):
    class UnspeakableError(ConnectionError):
        def __str__(self):
            raise RuntimeError("no text")

        __repr__ = __str__

    def node(state, runtime: Runtime):
        if runtime.attempt < 2:
            raise UnspeakableError
        return {"log": [runtime.attempt]}

    with caplog.at_level(level, "pregel"):
        assert alone(node, retry_policy=STEADY).invoke({}) == {"log": [2]}
        with pytest.raises(UnspeakableError):
            alone(node).invoke({})
    assert "failed, and the next one begins in 0.5 s: UnspeakableError" in caplog.text


def test_all_errors_of_the_library_are_listed():
    own = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and kind.__module__ == errors.__name__}
    assert own - {*errors.__all__} == {"StateCarryingError"}  # what others are made of


# -- times that never come ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [1e10, sys.float_info.max, sys.maxsize])
def test_a_timeout_longer_than_threads_can_wait_leaves_other_alarms_alone(door, timeout):
    assert door.invoke(alone(lambda state: {"log": [1]}, timeout=timeout), {}) == {"log": [1]}
    rang = threading.Event()
    clock().call_at(clock().now(), rang.set)
    assert rang.wait(10)


# -- attempts that were given up ---------------------------------------------------------------------------------------


@contextmanager
def released():
    """Give an event that code hangs on until the test is over."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def test_a_heartbeat_of_an_attempt_that_was_given_up_raises_without_an_idle_timeout_too(door, fake):
    ended = threading.Event()
    raised = []

    def node(state, runtime: Runtime):
        if runtime.attempt == 1:
            fake.advance(10)
            hangs.wait()
            try:
                runtime.heartbeat()
            except AttemptRevokedError as error:
                raised.append(error)
            ended.set()
        return {"log": [runtime.attempt]}

    with released() as hangs:
        assert door.invoke(alone(node, timeout=5, retry_policy=STEADY), {}) == {"log": [2]}
    assert ended.wait(10)
    assert len(raised) == 1


@pytest.mark.parametrize(("inside", "config"), [({}, {"max_concurrency": 1}), ({"max_concurrency": 1}, {})])
@pytest.mark.parametrize("siblings", [1, 2])
def test_tasks_inside_an_attempt_that_was_given_up_hold_no_place(door, fake, inside, config, siblings):
    hung = []

    def hangs_once(state):
        if not hung:
            hung.append(True)
            fake.advance(10)
            hangs.wait()
        return {"log": ["inner"]}

    child = StateGraph(State)
    for number in range(siblings):  # the second one waits for the place of the first when both are given up
        child.add_node(f"inner {number}", hangs_once, **inside).add_edge(START, f"inner {number}")
    builder = StateGraph(State).add_node("node", child.compile(), timeout=5, retry_policy=STEADY)
    graph = builder.add_edge(START, "node").compile()
    with released() as hangs:
        assert finishes(lambda: door.invoke(graph, {}, config)) == {"log": ["inner"] * siblings}


def test_a_handler_and_what_follows_need_no_place_of_an_attempt_that_was_given_up(door, fake):
    def hang(state):
        fake.advance(10)
        hangs.wait()

    def says(word):
        return lambda state: {"log": [word]}

    builder = StateGraph(State).add_node("node", alone(hang), timeout=5, error_handler=says("handled"))
    builder.add_sequence([("beside", says("beside")), ("after", says("after"))])
    graph = builder.add_edge(START, "node").add_edge(START, "beside").compile()
    with released() as hangs:
        result = finishes(lambda: door.invoke(graph, {}, {"max_concurrency": 1}))
    assert result == {"log": ["handled", "beside", "after"]}


# -- attempts and runs that are cancelled ------------------------------------------------------------------------------


def beside(name, action, other, **options):
    """Return a graph of two nodes side by side."""
    builder = StateGraph(State).add_node(name, action, **options).add_node("other", other)
    return builder.add_edge(START, name).add_edge(START, "other").compile(on_failure="cancel")


async def forever(state):
    await anyio.sleep_forever()


@pytest.mark.parametrize("levels", range(4))
@pytest.mark.parametrize("rounds", range(3))
def test_code_that_hears_of_the_end_of_its_attempt_before_it_is_cancelled_is_cancelled(
    monkeypatch, fake, levels, rounds
):
    async def node(state):
        loop = asyncio.get_running_loop()

        def later(job, left):
            loop.call_soon(*((job,) if left == 0 else (later, job, left - 1)))

        # The handler's thread begins when the attempt has been given up, and groups inside it are not cancelled yet.
        monkeypatch.setattr(workers, "submit", lambda job, inside: later(job, rounds))
        fake.advance(10)
        raise ValueError

    graph = beside("node", node, forever, error_handler=lambda state: {})
    for _ in range(levels):
        graph = beside("node", graph, forever)
    with pytest.raises(NodeTimeoutError):
        asyncio.run(alone(graph, timeout=5).ainvoke({}))


async def cleans_up_badly(state):
    async def fails_at_its_end():
        try:
            await anyio.sleep_forever()
        finally:
            raise OSError

    async with anyio.create_task_group() as group:
        group.start_soon(fails_at_its_end)
        group.start_soon(anyio.sleep_forever)


def test_what_fails_while_a_given_up_attempt_is_cancelled_is_not_heard(loop, fake):
    async def node(state):
        fake.advance(10)
        await cleans_up_badly(state)

    with pytest.raises(NodeTimeoutError):
        loop.invoke(alone(node, timeout=5), {})


def test_what_fails_while_a_sibling_of_a_failure_is_cancelled_is_not_heard(loop):
    async def fails(state):
        for _ in range(9):  # the other one has begun by then
            await anyio.lowlevel.checkpoint()
        raise ValueError

    with pytest.raises(ValueError):
        loop.invoke(beside("fails", fails, cleans_up_badly), {})


def test_an_exit_while_an_attempt_is_cancelled_leaves_the_run(loop, fake):
    class Exit(BaseException):
        pass

    async def exits():
        try:
            await anyio.sleep_forever()
        finally:
            raise Exit

    async def node(state):
        fake.advance(10)
        async with anyio.create_task_group() as group:
            group.start_soon(exits)
            group.start_soon(anyio.sleep_forever)

    with pytest.raises(BaseExceptionGroup) as caught:
        loop.invoke(alone(node, timeout=5), {})
    assert caught.group_contains(Exit)


@pytest.mark.parametrize("config", [{}, {"max_concurrency": 2}])
def test_a_task_that_ends_after_the_failure_of_its_superstep_is_no_part_of_a_stream(door, config):
    begun = threading.Event()

    def fails(state):
        begun.wait()
        raise ValueError

    def ends(state, runtime: Runtime):
        begun.set()
        while not runtime.cancelled():
            threading.Event().wait(0)
        return {}

    *_, last = door.stream(beside("fails", fails, ends), {}, config, stream_mode=["custom"])
    assert isinstance(last, ValueError)


# -- the cache ---------------------------------------------------------------------------------------------------------


def cached(path, **options):
    """Return a graph whose node has a result in the cache, and a conditional edge that decides each time."""
    builder = StateGraph(State).add_node("node", lambda state: {"log": ["node"]}, cache_policy=CachePolicy(), **options)
    builder.add_edge(START, "node").add_conditional_edges("node", path, [END])
    return builder.compile(cache=InMemoryCache())


def fails_at(number, error):
    """Return a path that raises when it is asked for the n-th time."""
    asked = []

    def path(state):
        asked.append(True)
        if len(asked) == number:
            raise error
        return END

    return path


def test_a_conditional_edge_that_fails_after_a_cached_result_is_tried_again(door, fake):
    graph = cached(fails_at(2, ConnectionError()), retry_policy=STEADY)
    assert [door.invoke(graph, {}) for _ in range(2)] == [{"log": ["node"]}] * 2
    assert fake.slept == [0.5]


def test_a_conditional_edge_that_fails_after_a_cached_result_is_handled(door):
    graph = cached(fails_at(2, ValueError()), error_handler=lambda state: {"log": ["handled"]})
    assert [door.invoke(graph, {}) for _ in range(2)] == [{"log": ["node"]}, {"log": ["handled"]}]


def no_key(state):
    raise ConnectionError


@pytest.mark.parametrize(
    ("node", "policy"),
    [
        pytest.param(lambda state: {"log": [object()]}, CachePolicy(), id="a result that can't be kept"),
        pytest.param(lambda state: {"log": []}, CachePolicy(key_func=no_key), id="no key"),
    ],
)
def test_what_goes_wrong_with_the_cache_is_a_failure_like_any_other(door, fake, node, policy):
    handler = {"error_handler": lambda state, error: {"log": [error.attempts]}}
    graph = alone(node, cache=InMemoryCache(), cache_policy=policy, retry_policy=STEADY, **handler)
    assert door.invoke(graph, {}) == {"log": [1 + len(fake.slept)]}
    assert fake.slept == ([0.5, 1.0] if policy.key_func else [])


# -- handlers ----------------------------------------------------------------------------------------------------------


def test_the_handler_of_a_node_that_runs_inline_runs_inline(loop):
    threads = []

    def node(state):
        threads.append(threading.current_thread())
        raise ValueError

    def handler(state):
        threads.append(threading.current_thread())
        return {}

    loop.invoke(alone(node, executor="inline", error_handler=handler), {})
    assert threads[0] is threads[1]
