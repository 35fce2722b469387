"""Map-reduce: W tasks by `Send` in one superstep, their results joined by `operator.add`."""

import asyncio
import operator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, TypedDict

from benchmarks.engines import Api, api
from benchmarks.model import Case, Contender, EngineName, LoopName, Prepared, Target, Workload, equals

SIZES = (100, 1000, 10_000)
ASYNC_TARGETS = {
    100: {},
    1000: {"ours": (Target(20),), "ours trio": (Target(8),)},
    10_000: {"ours": (Target(50),), "ours trio": (Target(8),)},
}
SYNC_TARGETS = {
    100: {"ours inline": (Target(50),)},
    1000: {"ours": (Target(12),), "ours inline": (Target(50),)},
    10_000: {"ours": (Target(40),), "ours inline": (Target(50),)},
}


class Fan(TypedDict):
    """How many tasks to send, and what they gave back."""

    width: int
    squares: Annotated[list[int], operator.add]
    total: int


def work(x: int) -> dict[str, list[int]]:
    return {"squares": [x * x]}


async def work_async(x: int) -> dict[str, list[int]]:
    return {"squares": [x * x]}


def join(state: Fan) -> dict[str, int]:
    return {"total": sum(state["squares"])}


async def join_async(state: Fan) -> dict[str, int]:
    return {"total": sum(state["squares"])}


def _answer(width: int) -> dict[str, Any]:
    squares = [x * x for x in range(width)]
    return {"width": width, "squares": squares, "total": sum(squares)}


def _graph(engine: Api, worker: Any, joiner: Any, **options: Any) -> Any:
    def fan_out(state: Fan) -> list[Any]:
        return [engine.Send("work", x) for x in range(state["width"])]

    builder = engine.StateGraph(Fan)
    builder.add_node("work", worker)
    builder.add_node("join", joiner)
    builder.add_conditional_edges(engine.START, fan_out, ["work"])
    builder.add_edge("work", "join")
    builder.add_edge("join", engine.END)
    return builder.compile(**options)


def _engine(name: EngineName, width: int, loop: LoopName | None, **options: Any) -> Prepared:
    if loop:
        run = _graph(api(name), work_async, join_async, **options).ainvoke
    else:
        run = _graph(api(name), work, join, **options).invoke
    return Prepared(call=partial(run, {"width": width}), units=width, check=equals(_answer(width)), loop=loop)


def ours(width: int, loop: LoopName | None, **options: Any) -> Prepared:
    return _engine("ours", width, loop, **options)


def langgraph(width: int, loop: LoopName | None) -> Prepared:
    return _engine("langgraph", width, loop)


def floor(width: int, form: str) -> Prepared:
    def reduce(updates: Any) -> dict[str, Any]:
        # In place: what a hand-written loop does, and what `operator.add` pair by pair can't.
        squares: list[int] = []
        for update in updates:
            squares += update["squares"]
        return {"width": width, "squares": squares, "total": sum(squares)}

    async def in_tasks() -> dict[str, Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work_async(x)) for x in range(width)]
        return reduce(task.result() for task in tasks)

    def on_threads() -> dict[str, Any]:
        with ThreadPoolExecutor() as pool:
            return reduce(pool.map(work, range(width)))

    def in_a_row() -> dict[str, Any]:
        return reduce(map(work, range(width)))

    call = {"tasks": in_tasks, "threads": on_threads, "in a row": in_a_row}[form]
    loop: LoopName | None = "asyncio" if form == "tasks" else None
    return Prepared(call=call, units=width, check=equals(_answer(width)), loop=loop)


def _async_case(width: int) -> Case:
    return Case(
        f"async nodes, W = {width}",
        (
            Contender("ours", partial(ours, width, "asyncio")),
            Contender("ours", partial(ours, width, "trio"), "trio", needs="trio"),
            Contender("langgraph", partial(langgraph, width, "asyncio")),
            Contender("floor", partial(floor, width, "tasks"), "tasks"),
        ),
        targets=ASYNC_TARGETS[width],
        quick=width == SIZES[0],
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
        targets=SYNC_TARGETS[width],
        quick=width == SIZES[0],
        size=width,
        form="sync nodes",
    )


WORKLOAD = Workload(
    name="send",
    about="W tasks by `Send`, joined by `operator.add`; async nodes under `ainvoke` (LangGraph runs on asyncio only), "
    "sync nodes under `invoke`. Floors: an `asyncio.TaskGroup`, a thread pool, a plain loop.",
    unit="task",
    cases=(*map(_async_case, SIZES), *map(_sync_case, SIZES)),
)
