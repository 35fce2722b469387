"""What it costs to build a graph and compile it: a chain of N nodes that are N different functions."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

SIZES = (100, 1000, 10_000)
TARGETS = {
    100: (Target(2),),
    1000: (Target(2),),
    10_000: (Target(2), Target(1000, "total")),
}


def _function() -> Callable[[graphs.Counter], dict[str, int]]:
    # A function of its own for every node: what an engine remembers of one must not serve for all.
    def node(state: graphs.Counter) -> dict[str, int]:
        return {"n": state["n"] + 1}

    return node


def _engine(name: EngineName, n: int) -> Prepared:
    nodes = [_function() for _ in range(n)]

    def check(graph: Any) -> None:
        # Three parts of the stream, the input and two supersteps, show that it runs: a whole run would take longer
        # than what is measured.
        parts = graph.stream({"n": 0}, config=graphs.limit(n), stream_mode="values")
        got = list(islice(parts, 3))
        parts.close()
        equals([{"n": 0}, {"n": 1}, {"n": 2}])(got)

    return Prepared(call=partial(graphs.chain, api(name), nodes), units=n, check=check)


def ours(n: int) -> Prepared:
    return _engine("ours", n)


def langgraph(n: int) -> Prepared:
    return _engine("langgraph", n)


def floor(n: int) -> Prepared:
    nodes = [_function() for _ in range(n)]

    def call() -> tuple[dict[str, Any], dict[str, str]]:
        named, following, last = {}, {}, "start"
        for index, node in enumerate(nodes):
            name = f"n{index}"
            named[name] = node
            following[last] = name
            last = name
        return named, following

    def check(graph: tuple[dict[str, Any], dict[str, str]]) -> None:
        named, following = graph
        state, name = {"n": 0}, "start"
        while name := following.get(name, ""):
            state = named[name](state)
        equals({"n": n})(state)

    return Prepared(call=call, units=n, check=check)


WORKLOAD = Workload(
    name="compile",
    about="Build and compile a chain of N nodes. Floor: two dicts, of the functions and of who follows whom.",
    unit="node",
    cases=tuple(
        Case(
            f"N = {n}",
            (
                Contender("ours", partial(ours, n)),
                Contender("langgraph", partial(langgraph, n)),
                Contender("floor", partial(floor, n)),
            ),
            targets={"ours": TARGETS[n]},
            quick=n == SIZES[0],
            size=n,
        )
        for n in SIZES
    ),
)
