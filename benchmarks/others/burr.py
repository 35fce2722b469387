"""Apache Burr: actions that read and write a state, transitions with conditions. One action runs at a time."""

from itertools import pairwise
from typing import Any

from burr.core import ApplicationBuilder, Graph, GraphBuilder, State, action, expr

from benchmarks.model import Prepared, equals


@action(reads=["n"], writes=["n"])
def _add_one(state: State) -> State:
    return state.update(n=state["n"] + 1)


@action(reads=["n"], writes=["n"])
async def _add_one_async(state: State) -> State:
    return state.update(n=state["n"] + 1)


@action(reads=["n"], writes=[])
def _stop(state: State) -> State:
    return state


def _application(graph: Graph, start: str) -> Any:
    # A run is an application: it holds the state. The graph is built once and shared.
    return ApplicationBuilder().with_graph(graph).with_entrypoint(start).with_state(n=0).build()


def chain(n: int) -> Prepared:
    names = [f"n{i}" for i in range(n)]
    builder = GraphBuilder().with_actions(**dict.fromkeys(names, _add_one_async))
    graph = builder.with_transitions(*pairwise(names)).build()

    async def call() -> int:
        _, _, state = await _application(graph, names[0]).arun(halt_after=[names[-1]])
        return state["n"]

    return Prepared(call=call, units=n, check=equals(n), loop="asyncio")


def loop(steps: int) -> Prepared:
    builder = GraphBuilder().with_actions(step=_add_one, stop=_stop)
    graph = builder.with_transitions(("step", "step", expr(f"n < {steps}")), ("step", "stop")).build()

    def call() -> int:
        _, _, state = _application(graph, "step").run(halt_before=["stop"])
        return state["n"]

    return Prepared(call=call, units=steps, check=equals(steps))
