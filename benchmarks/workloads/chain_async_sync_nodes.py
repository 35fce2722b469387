"""Sync nodes under `ainvoke`: they must not block the event loop, and crossing into a thread is what costs."""

import asyncio
from functools import partial
from typing import Any

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

SIZES = (10, 100, 1000)


def _engine(name: EngineName, n: int, **options: Any) -> Prepared:
    graph = graphs.chain(api(name), [graphs.add_one] * n, **options)
    call = partial(graph.ainvoke, {"n": 0}, config=graphs.limit(n))
    return Prepared(call=call, units=n, check=equals({"n": n}), loop="asyncio")


def ours(n: int, **options: Any) -> Prepared:
    return _engine("ours", n, **options)


def langgraph(n: int) -> Prepared:
    return _engine("langgraph", n)


def floor(n: int) -> Prepared:
    nodes = [graphs.add_one] * n

    async def call() -> dict[str, int]:
        state = {"n": 0}
        for node in nodes:
            state.update(await asyncio.to_thread(node, state))
        return state

    return Prepared(call=call, units=n, check=equals({"n": n}), loop="asyncio")


WORKLOAD = Workload(
    name="chain_async_sync_nodes",
    about="The chain with sync nodes under `ainvoke`. Floor: one `asyncio.to_thread` a node; "
    "an engine that stays in its thread for several nodes can be faster.",
    unit="superstep",
    cases=tuple(
        Case(
            f"N = {n}",
            (
                Contender("ours", partial(ours, n)),
                Contender("ours", partial(ours, n, executor="inline"), "inline"),
                Contender("langgraph", partial(langgraph, n)),
                Contender("floor", partial(floor, n)),
            ),
            targets={"ours": (Target(15),), "ours inline": (Target(30),)},
            quick=n == SIZES[0],
            size=n,
        )
        for n in SIZES
    ),
)
