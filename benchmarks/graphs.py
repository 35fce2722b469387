"""Graphs that several workloads share, written once for ours and LangGraph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from benchmarks.engines import Api


class Counter(TypedDict):
    """The smallest state there is."""

    n: int


def add_one(state: Counter) -> dict[str, int]:
    return {"n": state["n"] + 1}


async def add_one_async(state: Counter) -> dict[str, int]:
    return {"n": state["n"] + 1}


def limit(steps: int) -> dict[str, int]:
    """A config that allows so many supersteps: the engines count the first and the last one differently."""
    return {"recursion_limit": steps + 10}


def chain(api: Api, nodes: Sequence[Callable[..., Any]], *, schema: type = Counter, **options: Any) -> Any:
    """Build and compile START -> node 0 -> node 1 -> ... -> END; `options` go to `compile`."""
    builder = api.StateGraph(schema)
    last = api.START
    for index, node in enumerate(nodes):
        name = f"n{index}"
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    builder.add_edge(last, api.END)
    return builder.compile(**options)


def loop(api: Api, steps: int, node: Callable[..., Any] = add_one) -> Any:
    """Build and compile a node that adds 1 and runs again, by a conditional edge, until it has counted to `steps`."""

    def route(state: Counter) -> str:
        return "step" if state["n"] < steps else api.END

    builder = api.StateGraph(Counter)
    builder.add_node("step", node)
    builder.add_edge(api.START, "step")
    builder.add_conditional_edges("step", route, ["step", api.END])
    return builder.compile()
