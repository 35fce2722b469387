"""A fan-out that stands in the graph: one source, W nodes of its own each, a join that waits for all of them."""

import asyncio
import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, TypedDict

from benchmarks import others
from benchmarks.engines import Api, api
from benchmarks.model import Case, Contender, EngineName, LoopName, Prepared, Target, Workload, equals

SIZES = (10, 100, 1000)
ASYNC_TARGETS = {1000: {"ours": (Target(20),), "ours trio": (Target(8),)}}
SYNC_TARGETS = {
    100: {"ours inline": (Target(50),)},
    1000: {"ours": (Target(12),), "ours inline": (Target(50),)},
}
#: From here on the engines whose cost a task grows with the width are left out.
TOO_WIDE = 1000


class Fan(TypedDict):
    """What the source gives, and what the W nodes made of it."""

    x: int
    products: Annotated[list[int], operator.add]
    total: int


def source(state: Fan) -> dict[str, int]:
    return {"x": state["x"] + 1}


def worker(index: int) -> Callable[[Fan], dict[str, list[int]]]:
    def work(state: Fan) -> dict[str, list[int]]:
        return {"products": [state["x"] * index]}

    return work


def join(state: Fan) -> dict[str, int]:
    return {"total": sum(state["products"])}


async def source_async(state: Fan) -> dict[str, int]:
    return {"x": state["x"] + 1}


def worker_async(index: int) -> Callable[[Fan], Any]:
    async def work(state: Fan) -> dict[str, list[int]]:
        return {"products": [state["x"] * index]}

    return work


async def join_async(state: Fan) -> dict[str, int]:
    return {"total": sum(state["products"])}


def _answer(width: int) -> dict[str, Any]:
    products = [2 * index for index in range(width)]
    return {"x": 2, "products": products, "total": sum(products)}


def _graph(engine: Api, first: Any, workers: list[Any], last: Any, **options: Any) -> Any:
    builder = engine.StateGraph(Fan)
    # Names of one length: an engine that orders by name and one that orders by declaration then agree.
    names = [f"w{index:04}" for index in range(len(workers))]
    builder.add_node("source", first)
    builder.add_node("join", last)
    builder.add_edge(engine.START, "source")
    for name, node in zip(names, workers, strict=True):
        builder.add_node(name, node)
        builder.add_edge("source", name)
    builder.add_edge(names, "join")
    builder.add_edge("join", engine.END)
    return builder.compile(**options)


def _engine(name: EngineName, width: int, loop: LoopName | None, **options: Any) -> Prepared:
    if loop:
        run = _graph(api(name), source_async, [*map(worker_async, range(width))], join_async, **options).ainvoke
    else:
        run = _graph(api(name), source, [*map(worker, range(width))], join, **options).invoke
    return Prepared(call=partial(run, {"x": 1}), units=width, check=equals(_answer(width)), loop=loop)


def ours(width: int, loop: LoopName | None, **options: Any) -> Prepared:
    return _engine("ours", width, loop, **options)


def langgraph(width: int, loop: LoopName | None) -> Prepared:
    return _engine("langgraph", width, loop)


def floor(width: int, form: str) -> Prepared:
    nodes, nodes_async = [*map(worker, range(width))], [*map(worker_async, range(width))]

    def reduce(updates: Any) -> dict[str, Any]:
        products: list[int] = []
        for update in updates:
            products += update["products"]
        return {"x": 2, "products": products, "total": sum(products)}

    async def in_tasks() -> dict[str, Any]:
        state = await source_async({"x": 1})
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(node(state)) for node in nodes_async]
        return reduce(task.result() for task in tasks)

    def on_threads() -> dict[str, Any]:
        state = source({"x": 1})
        with ThreadPoolExecutor() as pool:
            return reduce(pool.map(lambda node: node(state), nodes))

    def in_a_row() -> dict[str, Any]:
        state = source({"x": 1})
        return reduce(node(state) for node in nodes)

    call = {"tasks": in_tasks, "threads": on_threads, "in a row": in_a_row}[form]
    loop: LoopName | None = "asyncio" if form == "tasks" else None
    return Prepared(call=call, units=width, check=equals(_answer(width)), loop=loop)


def _async_case(width: int) -> Case:
    # Burr runs one action of a graph at a time: its parallel actions are applications of their own.
    without = ("burr", "llama_index", "google_adk") if width >= TOO_WIDE else ("burr",)
    return Case(
        f"async nodes, W = {width}",
        (
            Contender("ours", partial(ours, width, "asyncio")),
            Contender("ours", partial(ours, width, "trio"), "trio", needs="trio"),
            Contender("langgraph", partial(langgraph, width, "asyncio")),
            *others.contenders("fanout", width, without=without),
            Contender("floor", partial(floor, width, "tasks"), "tasks"),
        ),
        targets={**ASYNC_TARGETS.get(width, {}), **others.TARGETS},
        quick=width == SIZES[0],
        note=others.TOO_SLOW if width >= TOO_WIDE else "",
        size=width,
        form="async nodes",
    )


def _sync_case(width: int) -> Case:
    return Case(
        f"sync nodes, W = {width}",
        (
            Contender("ours", partial(ours, width, None)),
            Contender("ours", partial(ours, width, None, executor="inline"), "inline"),
            Contender("langgraph", partial(langgraph, width, None)),
            Contender("floor", partial(floor, width, "threads"), "threads"),
            Contender("floor", partial(floor, width, "in a row"), "in a row"),
        ),
        targets=SYNC_TARGETS.get(width, {}),
        quick=width == SIZES[0],
        size=width,
        form="sync nodes",
    )


WORKLOAD = Workload(
    name="fanout",
    about="One source, W nodes, a join of all of them, their results added by `operator.add`; async nodes under "
    "`ainvoke`, sync nodes under `invoke`. Burr runs one node at a time and is no part of it. Floors: an "
    "`asyncio.TaskGroup`, a thread pool, a plain loop.",
    unit="task",
    cases=(*map(_async_case, SIZES), *map(_sync_case, SIZES)),
)
