"""The cost of a superstep for async nodes: N of them in a line under `ainvoke`."""

from functools import partial

from benchmarks import graphs, others
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

SIZES = (10, 100, 1000)
#: From here on the engines whose cost a node grows with the chain are left out.
TOO_LONG = 1000


def _engine(name: EngineName, n: int) -> Prepared:
    graph = graphs.chain(api(name), [graphs.add_one_async] * n)
    call = partial(graph.ainvoke, {"n": 0}, config=graphs.limit(n))
    return Prepared(call=call, units=n, check=equals({"n": n}), loop="asyncio")


def ours(n: int) -> Prepared:
    return _engine("ours", n)


def langgraph(n: int) -> Prepared:
    return _engine("langgraph", n)


def floor(n: int) -> Prepared:
    nodes = [graphs.add_one_async] * n

    async def call() -> dict[str, int]:
        state = {"n": 0}
        for node in nodes:
            state.update(await node(state))
        return state

    return Prepared(call=call, units=n, check=equals({"n": n}), loop="asyncio")


def _case(n: int) -> Case:
    too_long = n >= TOO_LONG
    return Case(
        f"N = {n}",
        (
            Contender("ours", partial(ours, n)),
            Contender("langgraph", partial(langgraph, n)),
            *others.contenders("chain", n, without=("llama_index", "google_adk") if too_long else ()),
            Contender("floor", partial(floor, n)),
        ),
        targets={"ours": (Target(30),), **others.TARGETS},
        quick=n == SIZES[0],
        note=others.TOO_SLOW if too_long else "",
        size=n,
    )


WORKLOAD = Workload(
    name="chain_async",
    about="The chain with async nodes; `ainvoke`. Floor: a loop that awaits the functions.",
    unit="superstep",
    cases=tuple(map(_case, SIZES)),
)
