"""What it costs to keep every superstep in memory: the chain under `invoke` with the in-memory checkpointer."""

from functools import partial

import msgpack

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals
from benchmarks.workloads import stores

SIZES = (10, 100, 1000)
OPENERS = {"ours": stores.ours_memory, "langgraph": stores.langgraph_memory}


def _engine(name: EngineName, n: int, durability: str) -> Prepared:
    def build(saver: object) -> object:
        return graphs.chain(api(name), [graphs.add_one] * n, checkpointer=saver)

    runs = stores.Runs(build, OPENERS[name], {"n": 0}, n, durability=durability)

    def check(answer: tuple[dict, dict]) -> None:
        equals({"n": n})(answer[1])
        runs.check_stored(answer)

    return Prepared(call=runs.call, units=n, check=check, around=runs.around)


def ours(n: int) -> Prepared:
    return _engine("ours", n, "sync")


def langgraph(n: int, durability: str) -> Prepared:
    return _engine("langgraph", n, durability)


def floor(n: int) -> Prepared:
    nodes = [graphs.add_one] * n
    pack = msgpack.Packer().pack

    def call() -> dict[int, bytes]:
        state, stored = {"n": 0}, {}
        for step, node in enumerate(nodes):
            change = node(state)
            state.update(change)
            stored[step] = pack(change)
        return stored

    def check(stored: dict[int, bytes]) -> None:
        equals([{"n": step + 1} for step in range(n)])([msgpack.unpackb(stored[step]) for step in range(n)])

    return Prepared(call=call, units=n, check=check)


WORKLOAD = Workload(
    name="ck-mem",
    about="The chain with the in-memory checkpointer; `invoke`. LangGraph stores in the run's own thread (`sync`) or "
    "in others (`async`, its default); ours is compared with `sync`. Floor: msgpack of each change, kept in a dict.",
    unit="superstep",
    cases=tuple(
        Case(
            f"N = {n}",
            (
                Contender("ours", partial(ours, n)),
                Contender("langgraph", partial(langgraph, n, "sync"), "sync"),
                Contender("langgraph", partial(langgraph, n, "async"), "async"),
                Contender("floor", partial(floor, n)),
            ),
            targets={"ours": (Target(30),)},
            quick=n == SIZES[0],
            size=n,
        )
        for n in SIZES
    ),
)
