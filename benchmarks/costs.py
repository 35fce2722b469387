"""What the capacity model needs to know of a machine, measured on it in a few seconds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from benchmarks.queueing import Costs
from pregel.executors.process import ProcessExecutor
from pregel.graph import END, START, StateGraph

CHAIN = 50
WIDTH = 200
ROUNDS = 5
#: Seconds that a scheduler of Dask takes for a task, where it is not measured: Dask's own rule of thumb.
SCHEDULE = 1e-3


class State(TypedDict, total=False):
    """What the nodes of a measurement share."""

    n: int
    log: Annotated[list[int], operator.add]


def add_one(state: State) -> dict[str, int]:
    return {"n": state["n"] + 1}


def append(state: State) -> dict[str, list[int]]:
    return {"log": [1]}


def chain(**options: Any) -> Any:
    """Return a graph of nodes in a line."""
    builder = StateGraph(State).add_sequence([(f"n{place}", add_one) for place in range(CHAIN)])
    return builder.add_edge(START, "n0").compile(**options)


def fan(width: int, **options: Any) -> Any:
    """Return a graph of nodes side by side."""
    builder = StateGraph(State)
    for place in range(width):
        builder.add_node(f"n{place}", append).add_edge(START, f"n{place}").add_edge(f"n{place}", END)
    return builder.compile(**options)


def timed(call: Callable[[], Any], units: int) -> tuple[float, float]:
    """Return the time of a unit by the clock and in this process, in seconds: the median of some rounds."""
    call()
    walls, own = [], []
    for _ in range(ROUNDS):
        wall, processor = perf_counter(), process_time()
        call()
        walls.append((perf_counter() - wall) / units)
        own.append((process_time() - processor) / units)
    return median(walls), median(own)


def measured(postgres: str, *, dask: bool) -> Costs:
    """Measure this machine.

    Args:
        postgres: The connection string of a database for commits; empty for a SQLite file.
        dask: Whether a scheduler of Dask is started and measured.
    """
    line = chain()
    bare = timed(lambda: line.invoke({"n": 0}), CHAIN)[1]
    wide = fan(WIDTH, executor="inline")
    task = timed(lambda: wide.invoke({"log": []}), WIDTH)[1]
    with saver_of(postgres) as saver:
        stored, threads = chain(checkpointer=saver), [f"capacity-{uuid4()}" for _ in range(ROUNDS + 1)]
        waiting = iter(threads)

        def run() -> None:
            stored.invoke({"n": 0}, {"configurable": {"thread_id": next(waiting)}})

        wall, own = timed(run, CHAIN)
        for thread in threads:  # the database may be one in use
            saver.delete_thread(thread)
    with ProcessExecutor(1) as executor:
        away = fan(WIDTH, executor=executor)
        away.invoke({"log": []})  # the process starts
        begun = executor.submit(process_time).result()
        sent = timed(lambda: away.invoke({"log": []}), WIDTH)[1]
        received = (executor.submit(process_time).result() - begun) / WIDTH / (ROUNDS + 1)
    return Costs(
        superstep=bare,
        task=task,
        store=max(own - bare, 0.0),
        commit=max(wall - own, 0.0),
        send=max(sent - task, 0.0),
        schedule=scheduler() if dask else SCHEDULE,
        receive=received,
    )


@contextmanager
def saver_of(postgres: str) -> Iterator[Any]:
    """Give a checkpointer in the database, or in a file that goes afterwards."""
    if postgres:
        from pregel.checkpoint.postgres import PostgresSaver  # noqa: PLC0415 - an extra

        with PostgresSaver(postgres) as saver:
            yield saver
        return
    from pregel.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - as above

    with TemporaryDirectory(prefix="pregel-capacity-") as folder, SqliteSaver(Path(folder) / "runs.db") as saver:
        yield saver


def scheduler() -> float:
    """Return the time of a processor that a scheduler of Dask takes for a task, with its client, in seconds."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - an extra

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        calls = count()

        def run() -> None:
            client.gather([client.submit(int, next(calls)) for _ in range(WIDTH)])

        return timed(run, WIDTH)[1]  # of a local cluster both are in this process
