"""What idle parts cost: one node loops 300 times beside K nodes and K fields that nothing happens to."""

from functools import partial
from typing import Any, TypedDict

from benchmarks import graphs
from benchmarks.engines import Api, api
from benchmarks.model import Case, Contender, EngineName, Growth, Prepared, Target, Workload, equals

SIZES = (10, 100, 1000, 5000)
STEPS = 300
TARGETS = {10: {"ours": (Target(30),)}, 1000: {"ours": (Target(250),)}}
#: From here on LangGraph is left out.
TOO_WIDE = 5000


def _start(k: int) -> dict[str, int]:
    return {"n": 0, **{f"idle{i}": i for i in range(k)}}


def _answer(k: int) -> dict[str, int]:
    return {**_start(k), "n": STEPS}


# Without annotations: an engine may give a node only the fields that its annotation names, here it is to see them all.
def _step(state):
    return {"n": state["n"] + 1}


def _idle(state):
    return {"n": 0}


def _graph(engine: Api, k: int) -> Any:
    def route(state: Any) -> str:
        return "step" if state["n"] < STEPS else engine.END

    # The functional form: the fields are known only here.
    builder = engine.StateGraph(TypedDict("Wide", dict.fromkeys(_start(k), int)))
    builder.add_node("step", _step)
    idle = [f"node{i}" for i in range(k)]
    for name in idle:
        builder.add_node(name, _idle)
    builder.add_edge(engine.START, "step")
    # The idle nodes are reachable, as they are in a real graph: the router just never chooses them.
    builder.add_conditional_edges("step", route, ["step", *idle, engine.END])
    return builder.compile()


def _engine(name: EngineName, k: int) -> Prepared:
    call = partial(_graph(api(name), k).invoke, _start(k), config=graphs.limit(STEPS))
    return Prepared(call=call, units=STEPS, check=equals(_answer(k)))


def ours(k: int) -> Prepared:
    return _engine("ours", k)


def langgraph(k: int) -> Prepared:
    return _engine("langgraph", k)


def floor(k: int) -> Prepared:
    start = _start(k)

    def call() -> dict[str, int]:
        state = dict(start)
        while state["n"] < STEPS:
            state.update(_step(state))
        return state

    return Prepared(call=call, units=STEPS, check=equals(_answer(k)))


def _case(k: int) -> Case:
    contenders = [Contender("ours", partial(ours, k))]
    if k < TOO_WIDE:
        contenders.append(Contender("langgraph", partial(langgraph, k)))
    contenders.append(Contender("floor", partial(floor, k)))
    return Case(
        f"K = {k}",
        tuple(contenders),
        targets=TARGETS.get(k, {}),
        quick=k == SIZES[0],
        size=k,
        note=""
        if k < TOO_WIDE
        else "LangGraph is left out: at 0.16 to 0.33 s a superstep it alone would take many minutes.",
    )


WORKLOAD = Workload(
    name="wide",
    about=f"One node loops {STEPS} times beside K idle nodes and K idle fields; `invoke`. Floor: a while loop.",
    unit="superstep",
    cases=tuple(map(_case, SIZES)),
    growth=(Growth("ours", "K = 10", "K = 5000", at_most=6),),
)
