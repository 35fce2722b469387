"""Nodes that fail are tried again: when, how often, and what stays the same."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import END, START, InMemorySaver, Runtime, StateGraph, interrupt
from pregel.cancellation import Token
from pregel.config import get_stream_writer
from pregel.errors import AttemptRevokedError, GraphDefinitionError, NodeTimeoutError
from pregel.policy import delay
from pregel.runtime import get_runtime
from pregel.store.base import BaseStore
from pregel.store.memory import InMemoryStore
from pregel.testing import fake_clock
from pregel.types import CachePolicy, Command, RetryPolicy, Send

STEADY = RetryPolicy(jitter=False)


def add(a: list, b: list) -> list:
    return a + b


class State(TypedDict):
    log: Annotated[list, add]


def both(action):
    """Return a sync node and its async form."""

    async def awaited(state, runtime: Runtime):
        await anyio.lowlevel.checkpoint()
        return action(state, runtime)

    def plain(state, runtime: Runtime):
        return action(state, runtime)

    return {"sync code": plain, "async code": awaited}


@pytest.fixture(params=["sync code", "async code"])
def form(request):
    """Each form of a node's code, in turn."""
    return lambda action: both(action)[request.param]


@pytest.fixture
def clock():
    with fake_clock() as made:
        yield made


def failing(times, error=ConnectionError, attempts=None):
    """Return a node that fails so many times, and then says which attempt it was."""

    def node(state, runtime):
        if attempts is not None:
            attempts.append((runtime.attempt, runtime.task_id, runtime.idempotency_key))
        if runtime.attempt <= times:
            raise error(f"attempt {runtime.attempt}")
        return {"log": [runtime.attempt]}

    return node


def alone(action, **options):
    """Return a graph of one node."""
    return StateGraph(State).add_node("node", action, **options).add_edge(START, "node").compile()


def test_a_node_is_tried_again_until_it_succeeds(door, form, clock):
    graph = alone(form(failing(2)), retry_policy=STEADY)

    assert door.invoke(graph, {}) == {"log": [3]}
    assert clock.slept == [0.5, 1.0]


def test_all_attempts_at_a_task_have_its_id(door, form, clock):
    attempts = []
    door.invoke(alone(form(failing(2, attempts=attempts)), retry_policy=STEADY), {})

    assert attempts == [(number, "1:0:node", "1:0:node") for number in (1, 2, 3)]


def test_the_last_error_is_raised_with_the_number_of_its_attempt(door, form, clock):
    graph = alone(form(failing(9)), retry_policy=RetryPolicy(max_attempts=4, jitter=False, max_interval=1.5))

    with pytest.raises(ConnectionError, match="attempt 4") as caught:
        door.invoke(graph, {})

    assert clock.slept == [0.5, 1.0, 1.5]
    assert "That was attempt 4, the last one." in caught.value.__notes__
    assert sum(note.startswith("In graph") for note in caught.value.__notes__) == 1


def test_a_node_without_a_policy_is_not_tried_again(door, form, clock):
    with pytest.raises(ConnectionError, match="attempt 1"):
        door.invoke(alone(form(failing(1))), {})

    assert clock.slept == []


def test_an_error_in_the_program_is_not_tried_again(door, form, clock):
    with pytest.raises(ValueError, match="attempt 1"):
        door.invoke(alone(form(failing(1, ValueError)), retry_policy=STEADY), {})

    assert clock.slept == []


def test_of_several_policies_the_first_that_is_about_an_error_counts_it(door, clock):
    errors = [KeyError("a"), ValueError("b"), KeyError("c"), ValueError("d"), KeyError("e")]
    policies = [
        RetryPolicy(retry_on=KeyError, initial_interval=1, max_attempts=3, jitter=False),
        RetryPolicy(retry_on=(ValueError, KeyError), initial_interval=10, max_attempts=3, jitter=False),
    ]

    def node(state):
        raise errors.pop(0)

    with pytest.raises(KeyError, match="e"):
        door.invoke(alone(node, retry_policy=policies), {})

    assert clock.slept == [1, 10, 2, 20]


def test_a_function_that_can_not_say_whether_to_try_again_fails_the_task(door, form, clock):
    def retry_on(error):
        raise KeyError("which?")

    graph = alone(form(failing(1)), retry_policy=RetryPolicy(retry_on=retry_on))
    with pytest.raises(KeyError, match="which") as caught:
        door.invoke(graph, {})

    assert isinstance(caught.value.__context__, ConnectionError)
    assert "node 'node'" in caught.value.__notes__[0]


def test_a_result_that_is_no_update_is_an_error_of_the_program(door, clock):
    calls = []

    def node(state):
        calls.append(1)
        return {"typo": 1}

    with pytest.raises(Exception, match="typo"):
        door.invoke(alone(node, retry_policy=STEADY), {})

    assert calls == [1]


def test_the_store_of_an_attempt_does_what_the_graph_s_store_does(door, clock):
    store = InMemoryStore()
    store.extra = "its own"

    async def node(state, runtime: Runtime):
        await runtime.store.aput(("n",), "k", {"x": 1})
        item = await runtime.store.aget(("n",), "k")
        runtime.store.close()
        return {"log": [item.value, runtime.store.extra, isinstance(runtime.store, BaseStore)]}

    builder = StateGraph(State).add_node("node", node, retry_policy=STEADY).add_edge(START, "node")

    assert door.invoke(builder.compile(store=store), {}) == {"log": [{"x": 1}, "its own", True]}


def test_who_waits_in_a_run_that_was_left_is_told_at_once_and_not_when_he_has_stopped_waiting():
    outer = Token()
    inner, told = Token(outer), []
    inner.watch(lambda: told.append("undone"))()
    inner.watch(lambda: told.append("early"))
    outer.cancel()
    inner.watch(lambda: told.append("late"))

    assert told == ["early", "late"]


def test_tasks_of_one_superstep_are_tried_again_each_for_itself(door, form, clock):
    def node(state, runtime):
        if runtime.attempt < state["n"]:
            raise ConnectionError
        return {"log": [(state["n"], runtime.attempt)]}

    builder = StateGraph(State).add_node("node", form(node), retry_policy=RetryPolicy(max_attempts=5))
    builder.add_conditional_edges(START, lambda state: [Send("node", {"n": n}) for n in (3, 1, 2)], ["node"])

    assert door.invoke(builder.compile(), {}) == {"log": [(3, 3), (1, 1), (2, 2)]}
    assert len(clock.slept) == 3


def test_a_conditional_edge_that_fails_is_tried_again_with_its_node(door, clock):
    seen = []

    def path(state):
        seen.append(state["log"])
        if len(seen) == 1:
            raise ConnectionError
        return END

    builder = StateGraph(State).add_node("node", lambda state: {"log": [1]}, retry_policy=STEADY)
    builder.add_edge(START, "node").add_conditional_edges("node", path, [END])

    assert door.invoke(builder.compile(), {}) == {"log": [1]}
    assert seen == [[1], [1]]


def test_a_question_is_no_failure_and_its_answer_holds_for_every_attempt(door, form, clock):
    def node(state, runtime):
        answer = interrupt("go?")
        if runtime.attempt < 3:
            raise ConnectionError
        return {"log": [answer, runtime.attempt]}

    builder = StateGraph(State).add_node("node", form(node), retry_policy=STEADY).add_edge(START, "node")
    graph = builder.compile(InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}

    assert [each.value for each in door.invoke(graph, {}, config)["__interrupt__"]] == ["go?"]
    assert clock.slept == []
    assert door.invoke(graph, Command(resume="yes"), config) == {"log": ["yes", 3]}


def test_a_run_that_goes_on_after_a_failure_counts_its_attempts_anew(door, saver, clock):
    seen = []

    def node(state, runtime: Runtime):
        seen.append((runtime.attempt, runtime.idempotency_key))
        if len(seen) < 5:
            raise ConnectionError
        return {"log": ["done"]}

    builder = StateGraph(State).add_node("node", node, retry_policy=STEADY).add_edge(START, "node")
    graph = builder.compile(saver)
    config = {"configurable": {"thread_id": "t"}}
    with pytest.raises(ConnectionError):
        door.invoke(graph, {}, config)

    assert door.invoke(graph, None, config) == {"log": ["done"]}
    assert seen == [(number, "t|1:0:node") for number in (1, 2, 3, 1, 2)]


def test_a_graph_inside_goes_on_with_what_it_has_stored_when_its_node_is_tried_again(door, saver, clock):
    ran = []

    def first(state):
        ran.append("first")
        return {"log": ["first"]}

    def second(state, runtime: Runtime):
        ran.append(("second", runtime.attempt))
        if len(ran) < 3:
            raise ConnectionError
        return {"log": ["second"]}

    inner = StateGraph(State).add_sequence([("first", first), ("second", second)]).add_edge(START, "first").compile()
    builder = StateGraph(State).add_node("inner", inner, retry_policy=STEADY).add_edge(START, "inner")
    graph = builder.compile(saver)

    for durability in ("sync", "async"):
        ran.clear()
        config = {"configurable": {"thread_id": durability}}
        assert door.invoke(graph, {}, config, durability=durability) == {"log": ["first", "second"]}
        assert ran == ["first", ("second", 1), ("second", 1)]


def test_of_tasks_side_by_side_in_a_graph_inside_only_those_run_again_that_did_not_end_well(door, saver, clock):
    ran = []

    def node(state, runtime: Runtime):
        ran.append(state["n"])
        if state["n"] == 2 and ran.count(2) == 1:
            raise ConnectionError
        return {"log": [state["n"]]}

    inner = StateGraph(State).add_node("node", node)
    inner.add_conditional_edges(START, lambda state: [Send("node", {"n": n}) for n in (1, 2, 3)], ["node"])
    graph = StateGraph(State).add_node("inner", inner.compile(), retry_policy=STEADY).add_edge(START, "inner")
    config = {"configurable": {"thread_id": "t"}}

    assert door.invoke(graph.compile(saver), {}, config) == {"log": [1, 2, 3]}
    assert sorted(ran) == [1, 2, 2, 3]


def test_a_graph_inside_that_stores_at_the_end_begins_anew(door, saver, clock):
    ran = []

    def first(state):
        ran.append("first")
        return {"log": ["first"]}

    def second(state):
        ran.append("second")
        if len(ran) < 4:
            raise ConnectionError
        return {"log": ["second"]}

    inner = StateGraph(State).add_sequence([("first", first), ("second", second)]).add_edge(START, "first").compile()
    builder = StateGraph(State).add_node("inner", inner, retry_policy=STEADY).add_edge(START, "inner")
    graph = builder.compile(saver, durability="exit")
    config = {"configurable": {"thread_id": "t"}}

    assert door.invoke(graph, {}, config) == {"log": ["first", "second"]}
    assert ran == ["first", "second", "first", "second"]
    assert graph.get_state(config).values == {"log": ["first", "second"]}


def test_a_graph_that_remembers_goes_on_from_the_attempt_before(door, saver, clock):
    ran = []

    def second(state):
        ran.append(list(state["log"]))
        if len(ran) < 2:
            raise ConnectionError
        return {"log": ["second"]}

    sequence = [("first", lambda state: {"log": ["first"]}), ("second", second)]
    inner = StateGraph(State).add_sequence(sequence).add_edge(START, "first").compile(checkpointer=True)
    builder = StateGraph(State).add_node("inner", inner, retry_policy=STEADY).add_edge(START, "inner")
    for durability in ("sync", "exit"):
        ran.clear()
        config = {"configurable": {"thread_id": durability}}
        result = door.invoke(builder.compile(saver), {}, config, durability=durability)
        assert result["log"][-1] == "second"
        assert len(ran) == 2


def test_nodes_of_a_graph_inside_begin_with_attempt_one_each_time(door, form, clock):
    seen = []

    def node(state, runtime):
        seen.append(runtime.attempt)
        if len(seen) < 4:
            raise ConnectionError
        return {"log": ["done"]}

    inner = alone(form(node), retry_policy=RetryPolicy(max_attempts=2))
    graph = alone(inner, retry_policy=RetryPolicy(max_attempts=2))

    assert door.invoke(graph, {}) == {"log": ["done"]}
    assert seen == [1, 2, 1, 2]


def test_what_a_failed_attempt_left_running_has_no_effect_any_more(door, clock):
    go_on, ended, refused = threading.Event(), threading.Event(), []
    store = InMemoryStore()

    def left_behind(runtime):
        go_on.wait()
        for use in (
            lambda: runtime.stream_writer("late"),
            lambda: runtime.store.put(("n",), "late", {}),
            lambda: interrupt("late?"),
            lambda: runtime.store.search(("n",)),
            lambda: alone(lambda state: {}).invoke({}),
        ):
            try:
                use()
            except AttemptRevokedError:
                refused.append(runtime.cancelled())
        ended.set()

    def node(state, runtime: Runtime):
        if runtime.attempt == 1:
            threading.Thread(target=copy_context().run, args=(left_behind, runtime)).start()
            raise ConnectionError
        go_on.set()
        ended.wait()
        runtime.stream_writer("second")
        runtime.store.put(("n",), "second", {"x": runtime.attempt})
        return {"log": [runtime.cancelled()]}

    builder = StateGraph(State).add_node("node", node, retry_policy=STEADY).add_edge(START, "node")
    parts = door.stream(builder.compile(store=store), {}, stream_mode=["custom", "values"])

    assert ("custom", "late") not in parts
    assert parts[-2:] == [("custom", "second"), ("values", {"log": [False]})]
    assert refused == [True, True, True, True, True]
    assert [item.key for item in store.search(("n",))] == ["second"]


def test_parts_are_told_as_they_are_written_in_every_attempt(door, form, clock):
    def node(state, runtime):
        get_stream_writer()(runtime.attempt)
        if runtime.attempt < 3:
            raise ConnectionError
        return {"log": ["done"]}

    parts = door.stream(alone(form(node), retry_policy=STEADY), {}, stream_mode=["custom", "updates"])

    assert parts == [("custom", 1), ("custom", 2), ("custom", 3), ("updates", {"node": {"log": ["done"]}})]


def test_a_run_that_is_left_while_it_waits_begins_no_further_attempt(loop):
    seen = []

    async def main():
        with anyio.CancelScope() as scope:

            async def node(state, runtime: Runtime):
                seen.append(runtime.attempt)
                scope.cancel()
                raise ConnectionError

            await alone(node, retry_policy=RetryPolicy(initial_interval=100)).ainvoke({})

    loop.run(main)

    assert seen == [1]


def test_a_sibling_that_fails_ends_the_wait_of_a_task_where_failures_cancel(door):
    waits, seen = threading.Event(), []

    def patient(state, runtime: Runtime):
        seen.append(runtime.attempt)
        raise ConnectionError

    def retry_on(error):
        waits.set()
        return True

    def hasty(state):
        waits.wait()
        raise ValueError("enough")

    policy = RetryPolicy(initial_interval=1_000, max_interval=1_000, retry_on=retry_on)
    builder = StateGraph(State).add_node("patient", patient, retry_policy=policy).add_node("hasty", hasty)
    builder.add_edge(START, "patient").add_edge(START, "hasty")
    with pytest.raises(ValueError, match="enough"):
        door.invoke(builder.compile(on_failure="cancel"), {})

    assert seen == [1]


def test_defaults_hold_for_nodes_that_do_not_say_it_and_were_added_before_or_after(door, clock):
    builder = StateGraph(State).add_node("before", both(failing(1))["sync code"])
    builder.set_node_defaults(retry_policy=STEADY, executor="inline")
    builder.add_node("after", both(failing(1))["sync code"])
    builder.add_node("own", both(failing(1))["sync code"], retry_policy=[])
    builder.add_edge(START, "before").add_edge("before", "after").add_edge("after", "own")

    parts = door.stream(builder.compile(), {})

    assert parts[:2] == [{"before": {"log": [2]}}, {"after": {"log": [2]}}]
    assert isinstance(parts[2], ConnectionError)


def test_defaults_add_up():
    builder = StateGraph(State).set_node_defaults(timeout=3).set_node_defaults(retry_policy=STEADY)
    graph = builder.add_node("node", lambda state: {}).add_edge(START, "node").compile()
    policy = graph._network.nodes["node"].policy

    assert (policy.run_timeout, policy.retries) == (3.0, (STEADY,))


def test_an_executor_and_a_limit_are_kept_for_who_runs_the_node():
    with ThreadPoolExecutor(1) as executor:
        graph = alone(lambda state: {}, executor=executor, max_concurrency=2)

    node = graph._network.nodes["node"]
    assert (node.policy.executor, node.executor, node.max_concurrency) == (executor, "thread", 2)


async def awaited(given):
    return False


class Awaited:
    """Called like a function, and awaited."""

    async def __call__(self, given):
        return False


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"retry_policy": 3}, "takes a RetryPolicy"),
        ({"retry_policy": "always"}, "takes a RetryPolicy"),
        ({"retry_policy": RetryPolicy(max_attempts=0)}, "max_attempts"),
        ({"retry_policy": RetryPolicy(max_attempts=2.0)}, "max_attempts"),
        ({"retry_policy": RetryPolicy(initial_interval=-1)}, "initial_interval"),
        ({"retry_policy": [STEADY, RetryPolicy(max_interval=float("nan"))]}, "max_interval"),
        ({"retry_policy": RetryPolicy(backoff_factor="2")}, "backoff_factor"),
        ({"retry_policy": RetryPolicy(retry_on=int)}, "retry_on"),
        ({"retry_policy": RetryPolicy(retry_on=(ValueError, "x"))}, "retry_on"),
        ({"error_handler": 3}, "error_handler"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"cache_policy": 3}, "CachePolicy"),
        ({"cache_policy": CachePolicy(key_func="x")}, "key_func"),
        ({"cache_policy": CachePolicy(key_func=awaited)}, "key_func of the cache policy of .* takes a sync function"),
        ({"cache_policy": CachePolicy(key_func=Awaited())}, "takes a sync function"),
        ({"retry_policy": RetryPolicy(retry_on=awaited)}, "retry_on of the retry policy of .* a sync function"),
        ({"retry_policy": RetryPolicy(retry_on=Awaited())}, "a sync function"),
        ({"retry_policy": RetryPolicy(jitter="no")}, "jitter"),
        ({"retry_policy": RetryPolicy(jitter=None)}, "jitter"),
        ({"cache_policy": CachePolicy(ttl=0)}, "ttl"),
        ({"executor": "process"}, "executor"),
    ],
)
def test_options_that_mean_nothing_are_refused_where_they_are_given(option, words):
    for give in (
        lambda: StateGraph(State).add_node("n", print, **option),
        lambda: StateGraph(State).set_node_defaults(**option),
    ):
        with pytest.raises(GraphDefinitionError, match=words):
            give()


def test_a_lone_node_with_a_policy_finds_its_runtime_outside_the_parameters_too(door, clock):
    def node(state):
        if get_runtime().attempt == 1:
            raise NodeTimeoutError
        return {"log": [get_runtime().attempt]}

    assert door.invoke(alone(node, retry_policy=RetryPolicy()), {}) == {"log": [2]}
    assert clock.slept == [delay(RetryPolicy(), 1, "1:0:node")]


def test_a_run_without_policies_loads_nothing_of_them():
    program = """
import sys
from typing import TypedDict
from pregel import START, StateGraph
graph = StateGraph(TypedDict("S", {"x": int})).add_node("a", lambda state: {"x": 1}).add_edge(START, "a").compile()
graph.invoke({})
import asyncio
asyncio.run(graph.ainvoke({}))
print([name for name in sys.modules if name in ("pregel.clock", "pregel.drivers.attempts", "pregel.drivers.awaited")])
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout == "[]\n"
