"""What it costs to be watched: the loop of 1000 supersteps, every part of its stream read."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals

STEPS = 1000
#: How many parts there are, and the last one. `values` begins with the input.
ANSWERS = {"updates": (STEPS, {"step": {"n": STEPS}}), "values": (STEPS + 1, {"n": STEPS})}


def _read(parts: Iterable[Any]) -> tuple[int, Any]:
    count, part = 0, None
    for part in parts:  # noqa: B007 - the last part is the answer
        count += 1
    return count, part


def _engine(name: EngineName, mode: str) -> Prepared:
    graph = graphs.loop(api(name), STEPS)

    def call() -> tuple[int, Any]:
        return _read(graph.stream({"n": 0}, config=graphs.limit(STEPS), stream_mode=mode))

    return Prepared(call=call, units=STEPS, check=equals(ANSWERS[mode]))


def ours(mode: str) -> Prepared:
    return _engine("ours", mode)


def langgraph(mode: str) -> Prepared:
    return _engine("langgraph", mode)


def floor(mode: str) -> Prepared:
    def parts() -> Iterator[dict[str, Any]]:
        state = {"n": 0}
        if mode == "values":
            yield dict(state)
        while state["n"] < STEPS:
            update = graphs.add_one(state)
            state.update(update)
            yield {"step": update} if mode == "updates" else dict(state)

    return Prepared(call=lambda: _read(parts()), units=STEPS, check=equals(ANSWERS[mode]))


WORKLOAD = Workload(
    name="stream",
    about="The loop, streamed and read fully. Floor: a generator around the while loop.",
    unit="superstep",
    cases=tuple(
        Case(
            f"{mode}, {STEPS} supersteps",
            (
                Contender("ours", partial(ours, mode)),
                Contender("langgraph", partial(langgraph, mode)),
                Contender("floor", partial(floor, mode)),
            ),
            targets={"ours": (Target(25),)},
            quick=True,
        )
        for mode in ANSWERS
    ),
)
