"""Waiting beside each other: 100 nodes that sleep 10 ms in one superstep must take about as long as one of them."""

import asyncio
import operator
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, TypedDict

from benchmarks.engines import Api, api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

WIDTH = 100
SECONDS = 0.01
ANSWER = {"done": WIDTH}


class Done(TypedDict):
    """How many nodes are done."""

    done: Annotated[int, operator.add]


def sleeper(state: Done) -> dict[str, int]:
    time.sleep(SECONDS)
    return {"done": 1}


async def sleeper_async(state: Done) -> dict[str, int]:
    await asyncio.sleep(SECONDS)
    return {"done": 1}


def _graph(engine: Api, node: Any) -> Any:
    builder = engine.StateGraph(Done)
    for index in range(WIDTH):
        builder.add_node(f"n{index}", node)
        builder.add_edge(engine.START, f"n{index}")
        builder.add_edge(f"n{index}", engine.END)
    return builder.compile()


def _engine(name: EngineName, form: str) -> Prepared:
    # The harness's warm-up round has filled the engine's thread pool before the clock first runs.
    if form == "async":
        run = _graph(api(name), sleeper_async).ainvoke
        return Prepared(call=partial(run, {"done": 0}), units=1, check=equals(ANSWER), loop="asyncio")
    run = _graph(api(name), sleeper).invoke
    return Prepared(call=partial(run, {"done": 0}), units=1, check=equals(ANSWER))


def ours(form: str) -> Prepared:
    return _engine("ours", form)


def langgraph(form: str) -> Prepared:
    return _engine("langgraph", form)


def floor(form: str) -> Prepared:
    start: Done = {"done": 0}

    async def in_tasks() -> dict[str, int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(sleeper_async(start)) for _ in range(WIDTH)]
        return {"done": sum(task.result()["done"] for task in tasks)}

    if form == "async":
        return Prepared(call=in_tasks, units=1, check=equals(ANSWER), loop="asyncio")

    # A thread for every sleep, and kept: the ideal.
    pool = ThreadPoolExecutor(WIDTH)

    def on_threads() -> dict[str, int]:
        return {"done": sum(update["done"] for update in pool.map(sleeper, [start] * WIDTH))}

    return Prepared(call=on_threads, units=1, check=equals(ANSWER))


def _case(form: str, at_most: float) -> Case:
    return Case(
        f"{form}, {WIDTH} x {SECONDS * 1e3:g} ms",
        (
            Contender("ours", partial(ours, form)),
            Contender("langgraph", partial(langgraph, form)),
            Contender("floor", partial(floor, form)),
        ),
        targets={"ours": (Target(at_most, "times-floor"),)},
        quick=True,
    )


WORKLOAD = Workload(
    name="io",
    about=f"{WIDTH} nodes in one superstep that each sleep {SECONDS * 1e3:g} ms; default settings, thread pools warm. "
    f"Floors: an `asyncio.TaskGroup`, a pool of {WIDTH} threads.",
    unit="run",
    cases=(_case("async", 1.3), _case("sync", 2.5)),
)
