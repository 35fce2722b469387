"""Nodes that run in real worker processes."""

import asyncio
import operator
import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Annotated, Any, TypedDict

import anyio
import anyio.to_thread
import pytest

from pregel.channels.base import Overwrite
from pregel.channels.last_value import LastValue
from pregel.checkpoint.memory import InMemorySaver
from pregel.config import get_config, get_stream_writer
from pregel.errors import InvalidUpdateError, NodeExecutorError, NodeTimeoutError, NotSendableError
from pregel.executors.process import ProcessExecutor
from pregel.graph import END, START, StateGraph
from pregel.lowlevel import NodeBuilder
from pregel.main import Pregel
from pregel.runtime import Runtime, get_runtime, interrupt
from pregel.testing import fake_clock
from pregel.types import Command, RetryPolicy, Send


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[Any], operator.add]


@dataclass
class Context:
    name: str


@pytest.fixture(scope="module")
def executor():
    """Two worker processes, warm."""
    with ProcessExecutor(2) as made:
        yield made


def graph_of(executor, *, compiled=None, **nodes):
    """A graph of nodes side by side, and one after them."""
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node, executor=executor).add_edge(START, name)
    builder.add_node("last", lambda state: {"n": len(state["log"])})
    return builder.add_edge([*nodes], "last").compile(name="g", **(compiled or {}))


def where(state):
    return {"log": [os.getpid()]}


# --- results ----------------------------------------------------------------------------------------------------------


def test_code_runs_in_other_processes_and_the_rest_of_the_graph_here(door, executor):
    def path(state):
        home.append(os.getpid())
        return "last"

    home = []
    builder = StateGraph(State).add_node("a", where, executor=executor).add_node("b", where)
    builder.add_node("last", where, executor="inline").add_edge(START, "a").add_edge(START, "b")
    builder.add_conditional_edges("a", path, ["last"]).add_edge("b", END)
    log = door.invoke(builder.compile(), {"log": []})["log"]
    assert log[0] != os.getpid()
    assert log[1:] == [os.getpid()] * 2
    assert home == [os.getpid()]


def sends(state):
    return Command(goto=[Send("square", {"of": n}) for n in range(state["n"])])


def square(given):
    return {"log": [given["of"] ** 2]}


async def asquare(given):
    await asyncio.sleep(0)
    return {"log": [given["of"] ** 2]}


@pytest.mark.parametrize("node", [square, asquare])
def test_many_tasks_come_back_in_their_order(door, executor, node):
    builder = StateGraph(State).add_node("sends", sends, destinations=["square"])
    builder.add_node("square", node, executor=executor).add_edge(START, "sends")
    assert door.invoke(builder.compile(), {"n": 20, "log": []})["log"] == [n**2 for n in range(20)]


def test_an_executor_of_the_graph_runs_all_nodes_that_do_not_say_otherwise(door, executor):
    inner = StateGraph(State).add_node("i", where).add_edge(START, "i").compile(executor=executor)
    builder = StateGraph(State).add_node("a", where).add_node("b", where, executor="inline").add_node("c", inner)
    builder.add_edge(START, "a").add_edge(START, "b").add_edge(START, "c")
    log = door.invoke(builder.compile(executor=executor), {"log": []})["log"]
    assert [pid == os.getpid() for pid in log] == [False, True, False]


def test_a_node_that_gives_back_what_it_was_given_is_told_so(door, executor):
    graph = graph_of(executor, a=lambda state: {**state})
    with pytest.raises(InvalidUpdateError, match=r"the very object it was given.*\[same-object\]"):
        door.invoke(graph, {"log": ["x"]})
    graph = graph_of(executor, a=lambda state: {"log": Overwrite([*state["log"], "y"])})
    assert door.invoke(graph, {"log": ["x"]})["log"] == ["x", "y"]


def test_nodes_of_the_low_level_api_run_there_too(door, executor):
    node = NodeBuilder().subscribe_only("n").do(lambda n: os.getpid()).write_to("pid")
    channels = {"n": LastValue, "pid": LastValue}
    program = Pregel(nodes={"a": node}, channels=channels, input_channels="n", output_channels="pid", executor=executor)
    assert door.invoke(program, 1) not in {os.getpid(), None}


# --- the task -------------------------------------------------------------------------------------------------------


def tells(state, runtime: Runtime[Context]):
    found = get_runtime()
    return {
        "log": [
            get_config()["configurable"]["thread_id"],
            runtime.context.name,
            runtime.idempotency_key,
            found.task_id,
            found.attempt,
            sorted(runtime.state),
            runtime.cancelled(),
            runtime.heartbeat(),
        ]
    }


def test_code_knows_its_task(door, executor):
    builder = StateGraph(State, context_schema=Context).add_node("a", tells, executor=executor).add_edge(START, "a")
    graph = builder.compile(checkpointer=InMemorySaver())
    log = door.invoke(graph, {"n": 1}, {"configurable": {"thread_id": "t"}}, context=Context("c"))["log"]
    assert log == ["t", "c", "t|1:0:a", "t|1:0:a", 1, ["log", "n"], False, None]


def asks(state):
    return {"log": [interrupt("name?"), interrupt("age?")]}


def test_code_asks_and_is_answered(door, executor):
    graph = graph_of(executor, a=asks, b=where, compiled={"checkpointer": InMemorySaver()})
    config = {"configurable": {"thread_id": "t"}}
    asked = []
    result = door.invoke(graph, {"n": 1}, config)
    while "__interrupt__" in result:
        (question,) = result["__interrupt__"]
        asked.append(question.value)
        result = door.invoke(graph, Command(resume=len(asked)), config)
    assert asked == ["name?", "age?"]
    assert result["log"][:2] == [1, 2]
    assert result["n"] == 3


def writes(state):
    get_stream_writer()("first")
    get_stream_writer()("second")
    return {"log": ["done"]}


def test_what_code_writes_is_streamed_before_its_update(door, executor):
    parts = door.stream(graph_of(executor, a=writes), {"log": []}, stream_mode=["custom", "updates"])
    assert parts == [
        ("custom", "first"),
        ("custom", "second"),
        ("updates", {"a": {"log": ["done"]}}),
        ("updates", {"last": {"n": 1}}),
    ]


# --- errors -----------------------------------------------------------------------------------------------------------


def fails(state):
    raise LookupError("lost")


def test_an_error_comes_with_where_it_happened(door, executor):
    with pytest.raises(LookupError, match="lost") as caught:
        door.invoke(graph_of(executor, a=fails), {"log": []})
    there, here = caught.value.__notes__
    assert there.startswith("Traceback in process ")
    assert "in fails\n" in there
    assert here == "In graph 'g', node 'a', superstep 1, task 1:0:a."


def test_a_value_that_cannot_be_sent_is_named(door, executor):
    lock = Lock()
    with pytest.raises(NotSendableError, match=r"node 'a' of graph 'g' can't go to a worker: .*'lock' is <unlocked"):
        door.invoke(graph_of(executor, a=lambda state: {"log": [lock]}), {"log": []})


def dies_once(state):
    folder = Path(state["log"][0])
    if not folder.exists():
        folder.mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["alive", get_runtime().attempt]}


def test_a_worker_that_dies_fails_its_task_only(door, executor, tmp_path):
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}}
    graph = graph_of(executor, a=dies_once, b=where, compiled={"checkpointer": saver})
    with pytest.raises(NodeExecutorError, match="node 'a' of graph 'g' did not run to its end") as caught:
        door.invoke(graph, {"log": [f"{tmp_path}/died"]}, config)
    assert "broken for good" not in str(caught.value)
    (_, done) = graph.get_state(config).tasks
    assert done.result is not None
    log = door.invoke(graph, None, config)["log"]
    assert log[1:3] == ["alive", 1]
    assert log[3] == done.result["log"][0]  # it was not run again


def test_a_task_whose_worker_died_is_tried_again(door, executor, tmp_path):
    builder = StateGraph(State).add_node("a", dies_once, executor=executor, retry_policy=RetryPolicy())
    with fake_clock() as clock:
        log = door.invoke(builder.add_edge(START, "a").compile(), {"log": [f"{tmp_path}/died"]})["log"]
    assert len(clock.slept) == 1
    assert log[1:] == ["alive", 2]


def test_a_pool_of_the_standard_library_says_that_it_is_broken(door, tmp_path):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        graph = graph_of(pool, a=dies_once)
        for _ in range(2):  # while it runs, and when it takes no more
            with pytest.raises(NodeExecutorError, match="broken for good by one dead worker"):
                door.invoke(graph, {"log": [f"{tmp_path}/died"]})


def test_an_executor_that_was_shut_down_says_so(door):
    with ThreadPoolExecutor(1) as pool:
        graph = graph_of(pool, a=where)
    with pytest.raises(NodeExecutorError, match="cannot schedule new futures after shutdown"):
        door.invoke(graph, {"log": []})


# --- leaving ----------------------------------------------------------------------------------------------------------


@dataclass
class Gate:
    """Two pipes: who reads `begun` waits for a worker, which then waits for nobody: `hold` is never written to."""

    begun: str
    hold: str

    def wait(self):
        """Wait until a worker is in the middle of a node, and go on."""
        Path(self.begun).read_text(encoding="utf-8")


@pytest.fixture
def gate(tmp_path):
    made = Gate(f"{tmp_path}/begun", f"{tmp_path}/hold")
    os.mkfifo(made.begun)
    os.mkfifo(made.hold)
    return made


def stands(state):
    (gate,) = state["log"]
    Path(gate.begun).write_text("here", encoding="utf-8")
    return {"log": [Path(gate.hold).read_text(encoding="utf-8")]}


def meets_one(state):
    return {"log": [Path(state["log"][0]).write_text("met", encoding="utf-8")]}


def meets_other(state):
    return {"log": [Path(state["log"][0]).read_text(encoding="utf-8")]}


def check_free(door, executor):
    """Check that both workers take calls: neither of these two ends without the other."""
    with TemporaryDirectory() as folder:
        os.mkfifo(f"{folder}/pipe")
        log = door.invoke(graph_of(executor, a=meets_one, b=meets_other), {"log": [f"{folder}/pipe"]})["log"]
    assert log[1:] == [3, "met"]


def fails_meanwhile(state):
    state["log"][0].wait()
    raise LookupError("lost")


def test_a_run_that_fails_does_not_wait_for_workers(door, executor, gate):
    graph = graph_of(executor, a=stands, b=fails_meanwhile, compiled={"on_failure": "cancel"})
    with pytest.raises(LookupError, match="lost"):
        door.invoke(graph, {"log": [gate]})
    check_free(door, executor)


def test_a_timeout_does_not_wait_for_a_worker(door, executor, gate):
    builder = StateGraph(State).add_node("a", stands, executor=executor, timeout=5).add_edge(START, "a")
    with fake_clock() as clock:

        def let_time_pass():
            gate.wait()
            clock.advance(5)

        thread = Thread(target=let_time_pass)
        thread.start()
        with pytest.raises(NodeTimeoutError, match="ran longer than 5 s"):
            door.invoke(builder.compile(), {"log": [gate]})
        thread.join()
    check_free(door, executor)


def test_a_cancelled_run_does_not_wait_for_workers(loop, executor, gate):
    graph = graph_of(executor, a=stands)

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, {"log": [gate]})
            await anyio.to_thread.run_sync(gate.wait)
            group.cancel_scope.cancel()

    loop.run(main)
    check_free(loop, executor)
