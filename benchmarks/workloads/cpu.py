"""Computing beside each other: 8 nodes that compute in pure Python, on worker processes, one for each processor."""

import operator
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Annotated, Any, TypedDict

from benchmarks.engines import Api, api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

TASKS = 8
#: Turns of a loop; a tenth of a second or so.
TURNS = 1_000_000


class Sum(TypedDict):
    """What the nodes have computed."""

    total: Annotated[int, operator.add]


def compute(state: Sum) -> dict[str, int]:
    """Keep one processor busy."""
    value = 1
    for _ in range(TURNS):
        value = (value * 1_103_515_245 + 12_345) % 2_147_483_648
    return {"total": value}


ANSWER = {"total": TASKS * compute({"total": 0})["total"]}


def _graph(engine: Api, **options: Any) -> Any:
    builder = engine.StateGraph(Sum)
    for index in range(TASKS):
        builder.add_node(f"n{index}", compute)
        builder.add_edge(engine.START, f"n{index}")
        builder.add_edge(f"n{index}", engine.END)
    return builder.compile(**options)


def ours() -> Prepared:
    from pregel.executors.process import ProcessExecutor  # noqa: PLC0415 - where it is measured

    # The harness's warm-up round starts the processes before the clock first runs.
    run = _graph(api("ours"), executor=ProcessExecutor(os.cpu_count())).invoke
    return Prepared(call=partial(run, {"total": 0}), units=TASKS, check=equals(ANSWER), once=True)


def on_threads(name: EngineName) -> Prepared:
    run = _graph(api(name)).invoke
    return Prepared(call=partial(run, {"total": 0}), units=TASKS, check=equals(ANSWER), once=True)


def sequence() -> Prepared:
    def one_after_the_other() -> dict[str, int]:
        return {"total": sum(compute({"total": 0})["total"] for _ in range(TASKS))}

    return Prepared(call=one_after_the_other, units=TASKS, check=equals(ANSWER), once=True)


def pool() -> Prepared:
    workers = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"))

    def in_processes() -> dict[str, int]:
        return {"total": sum(update["total"] for update in workers.map(compute, [{"total": 0}] * TASKS))}

    return Prepared(call=in_processes, units=TASKS, check=equals(ANSWER), once=True)


WORKLOAD = Workload(
    name="cpu",
    about=f"{TASKS} nodes in one superstep that each compute about a tenth of a second in pure Python, on one worker "
    "process for each processor. Floors: one call after the other, which the ratio compares with, and a bare "
    "`ProcessPoolExecutor.map`.",
    unit="task",
    cases=(
        Case(
            f"{TASKS} tasks",
            (
                Contender("ours", ours, "processes", rival="floor", floor="floor pool"),
                Contender("ours", partial(on_threads, "ours")),
                Contender("langgraph", partial(on_threads, "langgraph")),
                Contender("floor", sequence),
                Contender("floor", pool, "pool"),
            ),
            targets={"ours processes": (Target(1.7), Target(1.1, "times-floor"))},
            quick=True,
        ),
    ),
)
