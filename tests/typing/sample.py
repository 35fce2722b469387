"""What a type checker must accept and know of the public API; checked by `tests/project/test_typing.py`."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, assert_type

from pregel import END, START, Command, OmitFromInput, Pregel, Runtime, Send, StateGraph
from pregel.graph import CompiledStateGraph
from pregel.types import StreamWriter


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
