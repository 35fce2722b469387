"""The cost of a superstep with a decision after it: one node and a conditional edge, 1000 times."""

from functools import partial

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

STEPS = 1000


def _engine(name: EngineName) -> Prepared:
    graph = graphs.loop(api(name), STEPS)
    call = partial(graph.invoke, {"n": 0}, config=graphs.limit(STEPS))
    return Prepared(call=call, units=STEPS, check=equals({"n": STEPS}))


def ours() -> Prepared:
    return _engine("ours")


def langgraph() -> Prepared:
    return _engine("langgraph")


def floor() -> Prepared:
    def call() -> dict[str, int]:
        state = {"n": 0}
        while state["n"] < STEPS:
            state.update(graphs.add_one(state))
        return state

    return Prepared(call=call, units=STEPS, check=equals({"n": STEPS}))


WORKLOAD = Workload(
    name="loop",
    about="One node and a conditional edge back to it; `invoke`. Floor: a while loop.",
    unit="superstep",
    cases=(
        Case(
            f"{STEPS} supersteps",
            (Contender("ours", ours), Contender("langgraph", langgraph), Contender("floor", floor)),
            targets={"ours": (Target(30),)},
            quick=True,
        ),
    ),
)
