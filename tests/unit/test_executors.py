"""Executors without processes: thread pools of the user's own, and executors that fail."""

import asyncio
import sys
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from threading import Event, Lock, current_thread
from typing import Any, TypedDict

import pytest

from pregel.channels.last_value import LastValue
from pregel.errors import GraphDefinitionError, InvalidConfigError, NodeExecutorError, NotSendableError
from pregel.executors.process import ProcessExecutor
from pregel.executors.ray import RayExecutor
from pregel.graph import END, START, StateGraph
from pregel.lowlevel import NodeBuilder
from pregel.main import Pregel
from pregel.runtime import get_runtime
from pregel.store.base import BaseStore
from pregel.testing import fake_clock
from pregel.transient import default_retry_on
from pregel.types import Command, Send, TimeoutPolicy

# --- executors that do nothing, or fail -------------------------------------------------------------------------------


class State(TypedDict, total=False):
    n: int


def one(state):
    return {"n": 1}


class Still(Executor):
    """Takes calls and never makes them."""

    def __init__(self):
        self.futures = []
        self.asked = Event()

    def submit(self, fn, /, *args, **kwargs):
        self.futures.append(Future())
        self.asked.set()
        return self.futures[-1]


def test_calls_that_have_not_begun_are_taken_back_when_a_sibling_fails(door):
    still = Still()

    def fails(state):
        still.asked.wait()
        raise LookupError("lost")

    builder = StateGraph(State).add_node("a", one, executor=still).add_node("b", fails)
    with pytest.raises(LookupError, match="lost"):
        door.invoke(builder.add_edge(START, "a").add_edge(START, "b").compile(on_failure="cancel"), {})
    assert [future.cancelled() for future in still.futures] == [True]


class Answering(Still):
    """Ends each call at once in one way."""

    def __init__(self, end):
        super().__init__()
        self.end = end

    def submit(self, fn, /, *args, **kwargs):
        future = super().submit(fn)
        self.end(future)
        return future


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda future: future.cancel(), "its executor has cancelled it"),
        (lambda future: future.set_exception(OSError("no route")), r"its executor failed \(OSError: no route\)"),
        (
            lambda future: future.set_exception(BrokenExecutor("gone")),
            r"its executor failed \(BrokenExecutor: gone\)\n",
        ),
    ],
)
def test_what_an_executor_does_not_bring_to_an_end_is_its_fault(door, end, reason):
    builder = StateGraph(State).add_node("a", one, executor=Answering(end)).add_edge(START, "a")
    with pytest.raises(NodeExecutorError, match=rf"^node 'a' of graph 'g' did not run to its end: .*{reason}"):
        door.invoke(builder.compile(name="g"), {})


def refuse(future):
    raise OSError("no more processes")


def test_an_executor_that_takes_nothing_is_at_fault(door):
    builder = StateGraph(State).add_node("a", one, executor=Answering(refuse)).add_edge(START, "a")
    with pytest.raises(NodeExecutorError, match="no more processes"):
        door.invoke(builder.compile(), {})


def test_a_lost_worker_is_tried_again_by_default():
    assert default_retry_on(NodeExecutorError("lost"))
    assert not default_retry_on(NotSendableError("lock"))


# --- thread pools -----------------------------------------------------------------------------------------------------


def where(lock):
    return {"here": (current_thread().name, get_runtime().node, lock)}


class Here(TypedDict, total=False):
    here: Any


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_thread_pool_shares_what_the_program_has(door, kind):
    lock = Lock()

    def node(state):
        return where(lock)

    async def anode(state):
        return where(lock)

    with ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        builder = StateGraph(Here).add_node("a", node if kind == "sync" else anode, executor=pool).add_edge(START, "a")
        assert door.invoke(builder.compile(), {}) == {"here": ("mine_0", "a", lock)}


def test_a_run_that_is_left_waits_for_code_that_runs_in_this_process(door):
    begun, failed, ended = Event(), Event(), []

    def slow(state):
        begun.set()
        failed.wait()
        while not get_runtime().cancelled():  # the run that is left says so
            pass
        ended.append("slow")
        return {}

    def fails(state):
        begun.wait()
        failed.set()
        raise LookupError("lost")

    with ThreadPoolExecutor(1) as pool:
        builder = StateGraph(State).add_node("a", slow, executor=pool).add_node("b", fails)
        with pytest.raises(LookupError, match="lost"):
            door.invoke(builder.add_edge(START, "a").add_edge(START, "b").compile(on_failure="cancel"), {})
        assert ended == ["slow"]


def test_nodes_of_the_low_level_api_have_executors_too(door):
    node = NodeBuilder().subscribe_only("n").do(lambda n: current_thread().name).write_to("name")
    with ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        program = Pregel(
            nodes={"a": node},
            channels={"n": LastValue, "name": LastValue},
            input_channels="n",
            output_channels="name",
            executor=pool,
        )
        assert door.invoke(program, 1) == "mine_0"


# --- calls as bytes, made in this process -----------------------------------------------------------------------------


class AtOnce(Executor):
    """Makes each call when it is given, as a worker would."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Slow(AtOnce):
    """Makes each call in 4 seconds."""

    def __init__(self, clock):
        self.clock = clock

    def submit(self, fn, /, *args, **kwargs):
        self.clock.advance(4)
        return super().submit(fn, *args, **kwargs)


@pytest.mark.parametrize("limit", ["of the node", "of the run"])
def test_a_task_that_waits_for_a_turn_does_not_use_up_its_time(door, limit):
    def sends(state):
        return Command(goto=[Send("a", {})] * 3)

    with fake_clock() as clock:
        builder = StateGraph(State).add_node("sends", sends, destinations=["a"]).add_edge(START, "sends")
        most = 1 if limit == "of the node" else None
        builder.add_node("a", lambda state: {}, executor=Slow(clock), timeout=5, max_concurrency=most)
        config = {"max_concurrency": 1} if limit == "of the run" else {}
        assert door.invoke(builder.compile(), {"n": 1}, config) == {"n": 1}
        assert clock.now() == 12


def test_async_code_that_runs_elsewhere_needs_no_event_loop_here():
    async def node(state):
        return {"n": 1}

    def path(state):
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return END

    builder = StateGraph(State).add_node("a", node, executor=AtOnce()).add_edge(START, "a")
    assert builder.add_conditional_edges("a", path, [END]).compile().invoke({}) == {"n": 1}


class Shelf(BaseStore):
    """A store that can be sent."""

    def batch(self, ops):
        return [None for _ in ops]

    async def abatch(self, ops):
        return self.batch(ops)


def test_a_store_that_can_be_sent_goes_to_the_node_as_it_is(door):
    def node(state, store):
        return {"n": len(type(store).__name__)}

    builder = StateGraph(State).add_node("a", node, executor=AtOnce()).add_edge(START, "a")
    assert door.invoke(builder.compile(store=Shelf()), {}) == {"n": len("Shelf")}


# --- what compile says ------------------------------------------------------------------------------------------------


class Client:
    """As Dask's: it has `submit` and is no executor."""

    def submit(self, fn):
        """Not called."""

    def get_executor(self):
        """Not called."""


def test_what_only_looks_like_an_executor_is_none():
    builder = StateGraph(State).add_node("a", one, executor=Client()).add_edge(START, "a")
    with pytest.raises(
        GraphDefinitionError, match=r"node 'a' of graph .* is no concurrent.* give its get_executor\(\)"
    ):
        builder.compile()


def test_a_node_that_is_a_graph_has_no_executor_of_its_own():
    inner = StateGraph(State).add_node("a", one).add_edge(START, "a").compile()
    builder = StateGraph(State).add_node("inner", inner, executor=Still()).add_edge(START, "inner")
    with pytest.raises(GraphDefinitionError, match=r"node 'inner' of graph .* is a graph"):
        builder.compile()
    builder = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")
    assert builder.compile(executor=Still()).invoke({}) == {"n": 1}


def idles(executor):
    builder = StateGraph(State).add_node("a", one, executor=executor, timeout=TimeoutPolicy(idle_timeout=1))
    return builder.add_edge(START, "a")


def test_an_idle_timeout_needs_signs_of_life_that_come_at_once():
    with pytest.raises(GraphDefinitionError, match=r"node 'a' of graph .* has an idle timeout and runs on an executor"):
        idles(Still()).compile()


def test_threads_of_the_users_own_give_signs_of_life_at_once(door):
    with ThreadPoolExecutor(1) as executor:
        assert door.invoke(idles(executor).compile(), {}) == {"n": 1}


def test_a_handler_runs_here_when_a_node_failed_there(door):
    def handler(state, error):
        return {"n": error.attempts}

    failing = Answering(lambda future: future.set_exception(OSError("x")))
    builder = StateGraph(State).add_node("a", one, executor=failing, error_handler=handler).add_edge(START, "a")
    assert door.invoke(builder.compile(), {}) == {"n": 1}
    assert len(failing.futures) == 1


# --- processes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_processes_that_cannot_be_is_an_error(workers):
    with pytest.raises(InvalidConfigError, match="max_workers is a whole number of at least 1"):
        ProcessExecutor(workers)


# --- Ray --------------------------------------------------------------------------------------------------------------


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pregel\[ray\]'"):
        RayExecutor()
