"""The cost of a superstep: N nodes in a line under `invoke`."""

from functools import partial

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

SIZES = (10, 100, 1000)


def _engine(name: EngineName, n: int) -> Prepared:
    graph = graphs.chain(api(name), [graphs.add_one] * n)
    call = partial(graph.invoke, {"n": 0}, config=graphs.limit(n))
    return Prepared(call=call, units=n, check=equals({"n": n}))


def ours(n: int) -> Prepared:
    return _engine("ours", n)


def langgraph(n: int) -> Prepared:
    return _engine("langgraph", n)


def floor(n: int) -> Prepared:
    nodes = [graphs.add_one] * n

    def call() -> dict[str, int]:
        state = {"n": 0}
        for node in nodes:
            state.update(node(state))
        return state

    return Prepared(call=call, units=n, check=equals({"n": n}))


WORKLOAD = Workload(
    name="chain",
    about="N nodes in a line, each adds 1; `invoke`. Floor: a loop over the functions.",
    unit="superstep",
    cases=tuple(
        Case(
            f"N = {n}",
            (
                Contender("ours", partial(ours, n)),
                Contender("langgraph", partial(langgraph, n)),
                Contender("floor", partial(floor, n)),
            ),
            targets={"ours": (Target(30),)},
            quick=n == SIZES[0],
            size=n,
        )
        for n in SIZES
    ),
)
