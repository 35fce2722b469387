"""The cost of a node of a workflow: N functions in a line, each given the output of the one before."""

from functools import partial

from benchmarks import graphs, others
from benchmarks.engines import api
from benchmarks.model import Case, Contender, Growth, Prepared, Target, Workload, equals

SIZES = (10, 100, 1000)
LARGEST = 10_000
#: They have no workflows of functions that are given the output of the one before, or are in other tables.
NOT_MEASURED = tuple(name for name in others.OTHERS if name != "google_adk")


def add_one(node_input: int) -> int:
    """What each node does."""
    return node_input + 1


def ours(n: int) -> Prepared:
    from pregel.graph.workflow import Workflow  # noqa: PLC0415 - where it is measured

    graph = Workflow("chain", [("START", *[add_one] * n)]).compile()
    call = partial(graph.invoke, {"node_input": 0}, config=graphs.limit(n))
    return Prepared(call=lambda: call()["output"], units=n, check=equals(n))


def state_graph(n: int) -> Prepared:
    graph = graphs.chain(api("ours"), [graphs.add_one] * n)
    return Prepared(call=partial(graph.invoke, {"n": 0}, config=graphs.limit(n)), units=n, check=equals({"n": n}))


WORKLOAD = Workload(
    name="workflow",
    about="N functions in a line as a workflow, each given the output of the one before; `invoke`. Floor: the same "
    "chain as a `StateGraph` of ours. google-adk runs it under its in-memory runner.",
    unit="node",
    cases=tuple(
        Case(
            f"N = {n}",
            (
                Contender("ours", partial(ours, n), rival="google_adk"),
                *(others.contenders("chain", n, without=NOT_MEASURED) if n < LARGEST else ()),
                Contender("floor", partial(state_graph, n)),
            ),
            targets={"ours": (Target(2, "times-floor"),)},
            quick=n == SIZES[0],
            size=n,
        )
        for n in (*SIZES, LARGEST)
    ),
    growth=(Growth("ours", f"N = {SIZES[0]}", f"N = {LARGEST}", 1.5),),
)
