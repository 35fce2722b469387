"""Nodes that run on a real Ray cluster on this machine; `make test-ray` installs Ray for them."""

import operator
import os
from concurrent.futures import CancelledError
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.config import get_config, get_stream_writer
from pregel.errors import NodeExecutorError, NodeTimeoutError, NotSendableError
from pregel.executors.ray import RayExecutor
from pregel.graph import START, StateGraph
from pregel.runtime import get_runtime, interrupt
from pregel.testing import fake_clock
from pregel.types import Command, RetryPolicy, Send

pytestmark = pytest.mark.ray


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[Any], operator.add]


@pytest.fixture(scope="session")
def ray():
    """A cluster of two processors, on this machine."""
    import ray

    with TemporaryDirectory(prefix="ray-") as folder:  # a short path, as Ray has sockets far down in it
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
        yield ray
        ray.shutdown()


@pytest.fixture
def executor(ray):
    with RayExecutor() as made:
        yield made


def graph_of(executor, *, saver=None, **nodes):
    """A graph of nodes side by side."""
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node, executor=executor).add_edge(START, name)
    return builder.compile(saver, name="g")


def config():
    return {"configurable": {"thread_id": "t", "tenant": "acme"}}


# --- nodes ------------------------------------------------------------------------------------------------------------


def sends(state):
    return Command(goto=[Send("work", {"of": n}) for n in range(state["n"])])


def work(given):
    return {"log": [(given["of"], os.getpid())]}


def test_tasks_run_in_the_cluster_and_come_back_in_their_order(door, executor):
    builder = StateGraph(State).add_node("sends", sends, destinations=["work"])
    graph = builder.add_node("work", work, executor=executor).add_edge(START, "sends").compile()
    log = door.invoke(graph, {"n": 10, "log": []})["log"]
    assert [n for n, _ in log] == [*range(10)]
    assert os.getpid() not in {pid for _, pid in log}


async def tells(state):
    found = get_runtime()
    return {"log": [get_config()["configurable"], found.idempotency_key, found.attempt, found.node]}


def test_code_knows_its_task(door, executor):
    graph = graph_of(executor, saver=InMemorySaver(), a=tells)
    assert door.invoke(graph, {"n": 1}, config())["log"] == [config()["configurable"], "t|1:0:a", 1, "a"]


def asks(state):
    get_stream_writer()("asking")
    return {"log": [interrupt("name?"), interrupt("age?")]}


def test_code_asks_and_is_answered(door, executor):
    graph = graph_of(executor, saver=InMemorySaver(), a=asks)
    assert door.invoke(graph, {"n": 1}, config())["__interrupt__"][0].value == "name?"
    assert door.invoke(graph, Command(resume="Ada"), config())["__interrupt__"][0].value == "age?"
    parts = door.stream(graph, Command(resume=36), config(), stream_mode=["custom", "updates"])
    assert parts == [("custom", "asking"), ("updates", {"a": {"log": ["Ada", 36]}})]


def test_a_value_that_cannot_be_sent_is_named(door, executor):
    lock = Lock()
    with pytest.raises(NotSendableError, match=r"node 'a' of graph 'g' can't go to a worker: .*'lock' is <unlocked"):
        door.invoke(graph_of(executor, a=lambda state: {"log": [lock]}), {"log": []})
    with pytest.raises(NotSendableError, match=r"node 'a' of graph 'g' can't give back .*\['log'\]\[0\] is <unlocked"):
        door.invoke(graph_of(executor, a=lambda state: {"log": [Lock()]}), {"log": []})


class LostError(Exception):
    """Can't be made from its args alone."""

    def __init__(self, code, *, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code


def fails(state):
    raise LostError(3, detail="lost")


def test_an_exception_comes_back_as_itself(door, executor):
    with pytest.raises(LostError) as caught:
        door.invoke(graph_of(executor, a=fails), {"log": []})
    assert type(caught.value) is LostError
    assert (str(caught.value), caught.value.code) == ("3: lost", 3)
    assert "in fails\n" in caught.value.__notes__[0]


# --- workers that die -------------------------------------------------------------------------------------------------


def dies_once(state):
    folder = Path(state["log"][0])
    if not folder.exists():
        folder.mkdir()
        os._exit(1)
    return {"log": ["alive", get_runtime().attempt, get_runtime().idempotency_key]}


def lives(state):
    return {"log": [os.getpid()]}


def test_a_worker_that_dies_fails_its_task_only(door, executor, tmp_path):
    graph = graph_of(executor, saver=InMemorySaver(), a=dies_once, b=lives)
    with pytest.raises(NodeExecutorError, match=r"^node 'a' of graph 'g' did not run to its end: .*WorkerCrashedError"):
        door.invoke(graph, {"log": [f"{tmp_path}/died"]}, config())
    (_, done) = graph.get_state(config()).tasks
    log = door.invoke(graph, None, config())["log"]
    assert log[1:] == ["alive", 1, "t|1:0:a", *done.result["log"]]  # what had ended is not run again


def test_a_task_whose_worker_died_is_tried_again(door, executor, tmp_path):
    builder = StateGraph(State).add_node("a", dies_once, executor=executor, retry_policy=RetryPolicy())
    with fake_clock() as clock:
        graph = builder.add_edge(START, "a").compile(InMemorySaver())
        log = door.invoke(graph, {"log": [f"{tmp_path}/died"]}, config())["log"]
    assert len(clock.slept) == 1
    assert log[1:] == ["alive", 2, "t|1:0:a"]


def test_ray_itself_tries_again_where_it_is_told_to(door, ray, tmp_path):
    graph = graph_of(RayExecutor(max_retries=1), saver=InMemorySaver(), a=dies_once)
    assert door.invoke(graph, {"log": [f"{tmp_path}/died"]}, config())["log"][1:] == ["alive", 1, "t|1:0:a"]


# --- the executor -----------------------------------------------------------------------------------------------------


def test_what_a_call_raises_is_not_wrapped(executor):
    with pytest.raises(ZeroDivisionError) as caught:
        executor.submit(divmod, 1, 0).result()
    assert type(caught.value) is ZeroDivisionError
    assert "\x1b" not in caught.value.__notes__[0]


def test_without_a_cluster_nothing_is_started(ray, monkeypatch):
    executor = RayExecutor()
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(RuntimeError, match=r"call ray\.init\(\) first"):
        executor.submit(int)


def stands(begun, hold):
    begun.write_text("here", encoding="utf-8")
    return hold.read_text(encoding="utf-8")


def test_a_call_that_waits_is_taken_back_from_the_cluster(ray, gate, tmp_path):
    begun, hold = gate
    executor = RayExecutor(num_cpus=2)
    first = executor.submit(stands, *gate)
    begun.read_text(encoding="utf-8")
    second = executor.submit((tmp_path / "ran").touch)
    assert second.cancel()
    with pytest.raises(CancelledError):
        second.result()
    hold.write_text("go on", encoding="utf-8")
    assert first.result() == "go on"
    executor.shutdown()
    assert not (tmp_path / "ran").exists()
    assert not first.cancel()


def test_an_executor_that_was_left_has_done_its_calls_and_takes_no_more(ray, tmp_path):
    with RayExecutor() as executor:
        executor.submit((tmp_path / "ran").touch)
    assert (tmp_path / "ran").exists()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)
    assert ray.is_initialized()


def spins(begun, interrupted):
    try:
        begun.write_text("here", encoding="utf-8")
        while True:
            pass
    except KeyboardInterrupt:
        interrupted.write_text("interrupted", encoding="utf-8")
        raise


def test_a_call_that_runs_is_interrupted_when_it_is_cancelled(ray, gate):
    begun, interrupted = gate
    executor = RayExecutor()
    future = executor.submit(spins, begun, interrupted)
    begun.read_text(encoding="utf-8")
    executor.shutdown(wait=False, cancel_futures=True)
    assert future.cancelled()
    assert interrupted.read_text(encoding="utf-8") == "interrupted"
    executor.shutdown()  # it has ended


def spins_in_a_node(state):
    spins(*map(Path, state["log"]))


def test_a_node_whose_time_is_up_is_interrupted(door, executor, gate):
    builder = StateGraph(State).add_node("a", spins_in_a_node, executor=executor, timeout=5).add_edge(START, "a")
    begun, interrupted = gate
    with fake_clock() as clock:

        def let_time_pass():
            begun.read_text(encoding="utf-8")
            clock.advance(5)

        thread = Thread(target=let_time_pass)
        thread.start()
        with pytest.raises(NodeTimeoutError, match="ran longer than 5 s"):
            door.invoke(builder.compile(), {"log": [str(begun), str(interrupted)]})
        thread.join()
    assert interrupted.read_text(encoding="utf-8") == "interrupted"
