"""The cost of a superstep with a decision after it: one node and a conditional edge."""

from functools import partial

from benchmarks import graphs, others
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

SIZES = (100, 1000, 10_000)
#: From which size on an engine would make everybody wait.
TOO_LONG: dict[EngineName, int] = {
    "google_adk": 1000,
    "llama_index": 10_000,
    "agent_framework": 10_000,
}


def _engine(name: EngineName, steps: int) -> Prepared:
    graph = graphs.loop(api(name), steps)
    call = partial(graph.invoke, {"n": 0}, config=graphs.limit(steps))
    return Prepared(call=call, units=steps, check=equals({"n": steps}))


def ours(steps: int) -> Prepared:
    return _engine("ours", steps)


def langgraph(steps: int) -> Prepared:
    return _engine("langgraph", steps)


def floor(steps: int) -> Prepared:
    def call() -> dict[str, int]:
        state = {"n": 0}
        while state["n"] < steps:
            state.update(graphs.add_one(state))
        return state

    return Prepared(call=call, units=steps, check=equals({"n": steps}))


def _case(steps: int) -> Case:
    without = [name for name, size in TOO_LONG.items() if steps >= size]
    return Case(
        f"{steps} supersteps",
        (
            Contender("ours", partial(ours, steps)),
            Contender("langgraph", partial(langgraph, steps)),
            *others.contenders("loop", steps, without=without),
            Contender("floor", partial(floor, steps)),
        ),
        targets={"ours": (Target(30),), **others.TARGETS},
        quick=steps == SIZES[0],
        note=f"left out, since one call takes many seconds: {', '.join(without)}." if without else "",
        size=steps,
    )


WORKLOAD = Workload(
    name="loop",
    about="One node and a conditional edge back to it; `invoke`. The engines that are async only run in an event loop "
    "that is already there. Floor: a while loop.",
    unit="superstep",
    cases=tuple(map(_case, SIZES)),
)
