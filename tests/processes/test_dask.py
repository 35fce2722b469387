"""Nodes that run on a real Dask cluster of processes on this machine."""

import operator
import os
import signal
import warnings
from pathlib import Path
from typing import Annotated, Any, TypedDict

import distributed
import pytest

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import GraphDefinitionError, NotSendableError
from pregel.graph import START, StateGraph
from pregel.runtime import get_runtime, interrupt
from pregel.types import Command, Send


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[Any], operator.add]


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Dask depends on
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, distributed.Client(cluster) as made:
            yield made


def sends(state):
    return Command(goto=[Send("work", {"of": n}) for n in range(state["n"])])


def work(given):
    return {"log": [(given["of"], os.getpid())]}


def fanned(executor):
    builder = StateGraph(State).add_node("sends", sends, destinations=["work"])
    return builder.add_node("work", work, executor=executor).add_edge(START, "sends").compile()


def test_tasks_run_in_the_cluster_and_come_back_in_their_order(door, client):
    log = door.invoke(fanned(client.get_executor()), {"n": 20, "log": []})["log"]
    assert [n for n, _ in log] == [*range(20)]
    assert os.getpid() not in {pid for _, pid in log}


def same(given):
    with Path(given["file"]).open("a", encoding="utf-8") as file:
        file.write("x")
    return {}


def test_equal_tasks_are_not_taken_for_one(door, client, tmp_path):
    def twins(state):
        return Command(goto=[Send("same", {"file": state["log"][0]})] * 5)

    builder = StateGraph(State).add_node("twins", twins, destinations=["same"]).add_edge(START, "twins")
    graph = builder.add_node("same", same, executor=client.get_executor(pure=True)).compile()
    file = tmp_path / "ran"
    for times in (5, 10):
        door.invoke(graph, {"log": [str(file)]})
        assert file.read_text() == "x" * times


def asks(state):
    return {"log": [interrupt("?"), get_runtime().idempotency_key]}


def test_a_question_crosses_the_cluster_and_the_answer_goes_back(door, client, tmp_path):
    builder = StateGraph(State).add_node("asks", asks, executor=client.get_executor()).add_edge(START, "asks")
    with SqliteSaver(tmp_path / "runs.db") as saver:
        graph = builder.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "t"}}
        assert door.invoke(graph, {"n": 1}, config)["__interrupt__"][0].value == "?"
        assert door.invoke(graph, Command(resume="!"), config)["log"] == ["!", "t|1:0:asks"]


def dies_once(given):
    folder = Path(given["folder"])
    if given["of"] != 3:
        return {"log": [given["of"]]}
    if not folder.exists():
        folder.mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["again"]}


def test_a_worker_that_is_killed_in_the_middle_costs_nothing_but_time(door, client, tmp_path):
    def scatter(state):
        return Command(goto=[Send("work", {"of": n, "folder": f"{tmp_path}/died"}) for n in range(8)])

    builder = StateGraph(State).add_node("scatter", scatter, destinations=["work"]).add_edge(START, "scatter")
    graph = builder.add_node("work", dies_once, executor=client.get_executor()).compile()
    assert door.invoke(graph, {"log": []})["log"] == [0, 1, 2, "again", 4, 5, 6, 7]


def test_a_value_that_cannot_be_sent_is_named(door, client):
    graph = StateGraph(State).add_node("a", lambda state: {"n": client}, executor=client.get_executor())
    with pytest.raises(NotSendableError, match=r"node 'a' of graph 'State' can't go to a worker: call, whose variable"):
        door.invoke(graph.add_edge(START, "a").compile(), {"n": 1})


def test_a_client_is_no_executor(client):
    builder = StateGraph(State).add_node("a", work, executor=client).add_edge(START, "a")
    with pytest.raises(GraphDefinitionError, match=r"node 'a' .* give its get_executor\(\)"):
        builder.compile()
