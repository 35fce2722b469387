"""What a type checker must accept and know of the public API; checked by `tests/project/test_typing.py`."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, assert_type

from pregel import END, START, Command, OmitFromInput, Pregel, Runtime, Send, StateGraph
from pregel.graph import CompiledStateGraph
from pregel.graph.functional import EntryPoint, TaskFuture, arecorded, entrypoint, recorded, task
from pregel.types import RetryPolicy, StreamWriter


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[str], operator.add]
    answer: Annotated[str, OmitFromInput]


@dataclass
class Context:
    user: str


class Agent:
    """A node whose parameter is not called state."""

    async def __call__(self, current: State, runtime: Runtime[Context]) -> dict[str, Any]:
        return {"log": [runtime.context.user]}


def count(s: State, writer: StreamWriter) -> State:
    writer("counting")
    return {"n": s["n"] + 1}


def choose(values: State) -> Command[Literal["count"]]:
    return Command(update={"answer": "x"}, goto="count")


def path(anything: State) -> Literal["choose", "__end__"]:
    return "choose" if anything["n"] < 3 else END


builder = StateGraph(State, Context)
assert_type(builder, StateGraph[State, Context, State, State])
builder.add_node("agent", Agent()).add_node(count).add_node(choose).add_node("lambda", lambda s: {"n": s["n"]})
builder.add_edge(START, "agent").add_edge(["agent", "count"], "lambda", wait="live")
builder.add_conditional_edges("agent", path)
builder.add_conditional_edges("lambda", lambda s: [Send("count", s), END], ["count", END])
graph = builder.compile()
assert_type(graph, CompiledStateGraph[State, Context, State, State])
plain: Pregel = graph
assert_type(graph.invoke({"n": 1}, {"recursion_limit": 5}, context=Context("ann")), dict[str, Any])
for part in graph.stream({"n": 1}, stream_mode=["values", "custom"], context={"user": "ann"}):
    assert part is not None


async def main() -> None:
    assert_type(await graph.ainvoke({"n": 1}), dict[str, Any])
    async for each in graph.astream({"n": 1}, version="v2", subgraphs=True):
        assert each["type"]


@task
def sync_task(number: int, *, times: int = 1) -> str:
    return str(number * times)


@task
async def async_task(text: str) -> bytes:
    return text.encode()


@task(name="other", retry_policy=RetryPolicy())
def with_options(number: int) -> float:
    return number / 2


@task(timeout=5)
async def async_with_options(number: int) -> list[int]:
    return [number]


@entrypoint()
def entry(number: int, *, previous: int | None = None) -> int:
    assert_type(sync_task(number, times=2), TaskFuture[str])
    assert_type(async_task("a"), TaskFuture[bytes])
    assert_type(with_options(1), TaskFuture[float])
    assert_type(async_with_options(1), TaskFuture[list[int]])
    assert_type(sync_task(1).result(), str)
    assert_type(recorded("a", lambda: number), int)
    return len(sync_task(1).result())


async def awaits() -> None:
    assert_type(await async_task("a"), bytes)
    assert_type(await sync_task(1), str)

    async def make() -> int:
        return 1

    assert_type(await arecorded("a", make), int)


assert_type(entry, EntryPoint)
final = entrypoint.final(value="a", save=1)
assert_type(final.save, int)
