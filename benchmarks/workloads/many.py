"""Many runs of one graph at a time, as in a server: 100 chains of 10 async nodes, and none may wait for another."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypedDict

from benchmarks import graphs, others
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

RUNS, NODES = 100, 10
#: When a run that waits for the others must have been let go: far more than all of them take.
PATIENCE = 30.0


class Held(TypedDict):
    """A counter, and whether this run waits in its first node until somebody opens the gate."""

    n: int
    held: bool


def _together(one: Callable[[], Awaitable[Any]], answer: Any) -> Prepared:
    async def call() -> list[Any]:
        return await asyncio.gather(*(one() for _ in range(RUNS)))

    return Prepared(call=call, units=RUNS * NODES, check=equals([answer] * RUNS), loop="asyncio")


def _engine(name: EngineName) -> Prepared:
    graph = graphs.chain(api(name), [graphs.add_one_async] * NODES)
    return _together(partial(graph.ainvoke, {"n": 0}, config=graphs.limit(NODES)), {"n": NODES})


def ours() -> Prepared:
    return _engine("ours")


def langgraph() -> Prepared:
    return _engine("langgraph")


def other(name: EngineName) -> Prepared:
    return _together(others.prepare(name, "chain", NODES).call, NODES)


def floor() -> Prepared:
    nodes = [graphs.add_one_async] * NODES

    async def one() -> dict[str, int]:
        state = {"n": 0}
        for node in nodes:
            state.update(await node(state))
        return state

    return _together(one, {"n": NODES})


def _beside_a_held_run(run: Callable[[Held, asyncio.Event], Awaitable[Any]]) -> Prepared:
    """Start a run that can't go on, then the others; only when all of them are done is the first one let go."""

    async def call() -> list[Any]:
        gate = asyncio.Event()
        async with asyncio.timeout(PATIENCE):
            held = asyncio.create_task(run({"n": 0, "held": True}, gate))
            free = await asyncio.gather(*(run({"n": 0, "held": False}, gate) for _ in range(RUNS - 1)))
            gate.set()
            return [*free, await held]

    answer = [*([{"n": NODES, "held": False}] * (RUNS - 1)), {"n": NODES, "held": True}]
    return Prepared(call=call, units=RUNS * NODES, check=equals(answer), loop="asyncio")


def _engine_held(name: EngineName) -> Prepared:
    # The nodes find the gate here: each call makes one in its own event loop, and calls do not overlap.
    gates: list[asyncio.Event] = []

    async def first(state: Held) -> dict[str, int]:
        if state["held"]:
            await gates[-1].wait()
        return {"n": state["n"] + 1}

    async def add_one(state: Held) -> dict[str, int]:
        return {"n": state["n"] + 1}

    graph = graphs.chain(api(name), [first, *[add_one] * (NODES - 1)], schema=Held)

    async def run(given: Held, gate: asyncio.Event) -> Any:
        gates[:] = [gate]
        return await graph.ainvoke(given, config=graphs.limit(NODES))

    return _beside_a_held_run(run)


def ours_held() -> Prepared:
    return _engine_held("ours")


def langgraph_held() -> Prepared:
    return _engine_held("langgraph")


def floor_held() -> Prepared:
    async def run(given: Held, gate: asyncio.Event) -> dict[str, Any]:
        state = dict(given)
        if given["held"]:
            await gate.wait()
        for _ in range(NODES):
            state.update(await graphs.add_one_async(state))
        return state

    return _beside_a_held_run(run)


WORKLOAD = Workload(
    name="many",
    about=f"{RUNS} concurrent `ainvoke` of one graph, a chain of {NODES} async nodes. The second case holds one run in "
    "its first node until all others are done: it fails where runs wait for each other. agent_framework is no part of "
    "it: its workflow runs once at a time. Floor: coroutines that await the functions.",
    unit="superstep",
    cases=(
        Case(
            f"{RUNS} runs",
            (
                Contender("ours", ours),
                Contender("langgraph", langgraph),
                *(Contender(name, partial(other, name)) for name in others.OTHERS if name != "agent_framework"),
                Contender("floor", floor),
            ),
            targets={"ours": (Target(25),), **others.TARGETS},
            quick=True,
        ),
        Case(
            f"{RUNS} runs, one held",
            (
                Contender("ours", ours_held),
                Contender("langgraph", langgraph_held),
                Contender("floor", floor_held),
            ),
            targets={"ours": (Target(25),)},
            quick=True,
        ),
    ),
)
